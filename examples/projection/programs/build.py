# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of this folder for RISC-V and stores them compressed; tests and examples take them from there.

Run by hand where the cross compiler is installed:

    python examples/projection/programs/build.py
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path

from manyscale.cpu.building import build

HERE = Path(__file__).parent
STORED = HERE / "programs.xz"
SOURCES = sorted(HERE.glob("*.c"))
# What no program uses is left out, and the name of the folder it is built in.
OPTIONS = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--build-id=none"]
OPTIONS += [f"-ffile-prefix-map={Path.cwd()}=."]


def main() -> None:
    """Builds and stores."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "programs"
        build(SOURCES, program, mpi=True, options=[*OPTIONS, f"-ffile-prefix-map={HERE}=programs"])
        STORED.write_bytes(lzma.compress(program.read_bytes(), preset=9))


if __name__ == "__main__":
    main()
