# SPDX-License-Identifier: Apache-2.0
"""Builds mpi_costs.c for RISC-V with the MPI library and stores it, compressed; run by hand after either changes."""

from __future__ import annotations

import lzma
from pathlib import Path

from manyscale.cpu.building import build
from manyscale.guard import temporary_folder

HERE = Path(__file__).parent
# Functions and data that it does not use are left out, and names of folders of the machine it is built on.
OPTIONS = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--build-id=none"]
OPTIONS += [f"-ffile-prefix-map={Path.cwd()}=."]


def main() -> None:
    """Builds and stores."""
    with temporary_folder() as folder:
        program = folder / "mpi_costs"
        options = [*OPTIONS, f"-ffile-prefix-map={HERE}=projection"]
        build([HERE / "mpi_costs.c"], program, mpi=True, options=options)
        (HERE / "mpi_costs.xz").write_bytes(lzma.compress(program.read_bytes(), preset=9))


if __name__ == "__main__":
    main()
