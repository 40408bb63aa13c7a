# SPDX-License-Identifier: Apache-2.0
"""RISC-V programs on simulated out-of-order multicores: runs, their results, symbols, listings, checks."""

from manyscale.cpu.program import Program, sample
from manyscale.cpu.result import CpuResult, FunctionalResult, Process
from manyscale.cpu.running import run, run_functional
from manyscale.cpu.symbols import Place, Symbols

__all__ = [
    "CpuResult",
    "FunctionalResult",
    "Place",
    "Process",
    "Program",
    "Symbols",
    "run",
    "run_functional",
    "sample",
]
