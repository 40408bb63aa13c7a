# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of this folder as one RISC-V program, stored compressed with what it prints under qemu-riscv64.

Run by hand where the cross compiler and qemu are installed (Debian: gcc-riscv64-linux-gnu, qemu-user):

    python examples/elastic/programs/build.py

Nothing else needs them: studies and tests take the package's sample `elastic` and `expected.json`.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parents[2] / "src" / "manyscale" / "cpu" / "samples" / "elastic.xz"
COMPILER = "riscv64-linux-gnu-gcc"
QEMU = "qemu-riscv64"
OPTIONS = ["-O2", "-static", "-fopenmp", "-g1", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections"]
OPTIONS += ["-Wl,--gc-sections", "-Wl,--build-id=none", f"-ffile-prefix-map={HERE}=."]
PROGRAMS = ["matrix", "matrix_tasks", "cholesky_tasks", "k_means", "hotspot", "black_scholes"]
PROGRAMS += ["black_scholes_tasks", "stream_cluster", "swaptions", "swaptions_tasks", "canneal", "ferret"]
PROGRAMS += ["hydrodynamics", "hydrodynamics_tasks", "stencil_threads", "queue_threads"]


def first_line(*command: str) -> str:
    """The version line of a tool."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def main() -> None:
    """Builds, runs every program on 1 and 4 threads under qemu, and stores both."""
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "elastic"
        sources = sorted(path.name for path in HERE.glob("*.c"))
        subprocess.run([COMPILER, *OPTIONS, *sources, "-lm", "-o", str(program)], cwd=HERE, check=True)
        for name in PROGRAMS:
            for threads in ("1", "4"):
                command = [QEMU, str(program), name, threads]
                done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
                cases.append({"arguments": [name, threads], "output": done.stdout})
        packed = lzma.compress(program.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    SAMPLE.write_bytes(packed)
    made_by = {"compiler": first_line(COMPILER, "--version"), "qemu": first_line(QEMU, "--version")}
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "expected.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n"cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases, {len(packed) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
