# SPDX-License-Identifier: Apache-2.0
"""The stored MPI and OpenMP programs (mpi_programs/), and what they print under MPICH."""

from __future__ import annotations

import json
from pathlib import Path

from manyscale import cpu

FOLDER = Path(__file__).parent / "mpi_programs"
_EXPECTED = json.loads((FOLDER / "fixtures" / "expected.json").read_text(encoding="utf-8"))["output"]


def program(*arguments: str, ranks: int = 1) -> cpu.Program:
    """One of the programs, to be simulated."""
    return cpu.Program(FOLDER / "fixtures" / "programs.xz", arguments, ranks=ranks)


def output_under_mpich(name: str, ranks: int) -> str:
    """What a program prints with so many ranks."""
    return "".join(line + "\n" for line in _EXPECTED[name][str(ranks)])
