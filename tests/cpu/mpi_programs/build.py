# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of this folder for RISC-V and stores them, compressed, with what they print under MPICH.

Run by hand where the cross compiler, and MPICH's mpicc and mpiexec are installed:

    python tests/cpu/mpi_programs/build.py

The tests need neither: they take fixtures/programs.xz and fixtures/expected.json.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from manyscale.cpu.building import build, runtime_folder

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"
SOURCES = sorted(HERE.glob("*.c"))
# Functions and data that no program uses are left out, and names of folders of the machine it is built on.
OPTIONS = ["-fopenmp", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--build-id=none"]
OPTIONS += [f"-ffile-prefix-map={Path.cwd()}=."]
PROGRAMS = ["point_to_point", "collectives", "groups_and_types", "heat", "hybrid"]
RANKS = [1, 2, 3, 4, 5, 8]


def main() -> None:
    """Builds, runs, stores."""
    FIXTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "programs"
        prefix_map = f"-ffile-prefix-map={HERE}=mpi_programs"
        build(SOURCES, program, mpi=True, options=[*OPTIONS, prefix_map])
        (FIXTURES / "programs.xz").write_bytes(lzma.compress(program.read_bytes(), preset=9))
        mpich = Path(folder) / "mpich"
        subprocess.run(
            ["mpicc", "-O2", "-fopenmp", f"-I{runtime_folder()}", *SOURCES, "-o", mpich, "-lm"], check=True
        )
        expected = {
            name: {str(ranks): _under_mpich(mpich, name, ranks) for ranks in RANKS} for name in PROGRAMS
        }
    compiler = subprocess.run(
        ["riscv64-linux-gnu-gcc", "--version"], capture_output=True, text=True, check=True
    )
    mpi = subprocess.run(["mpichversion"], capture_output=True, text=True, check=True)
    made_by = [compiler.stdout.splitlines()[0], mpi.stdout.splitlines()[0]]
    text = json.dumps({"made_by": made_by, "output": expected}, indent=1)
    (FIXTURES / "expected.json").write_text(text + "\n", encoding="utf-8")


def _under_mpich(program: Path, name: str, ranks: int) -> list[str]:
    launcher = shutil.which("mpiexec")
    assert launcher is not None
    result = subprocess.run(
        [launcher, "-n", str(ranks), program, name],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        timeout=60,
    )
    return result.stdout.splitlines()


if __name__ == "__main__":
    main()
