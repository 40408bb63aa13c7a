# SPDX-License-Identifier: Apache-2.0
"""Pieces of code that tests put together."""

from __future__ import annotations

from riscv import encoding as e
from riscv.encoding import Instruction


def constant(rd: int, value: int) -> list[Instruction]:
    """Loads a 32-bit constant, sign-extended."""
    low = (value & 0xFFF) - (0x1000 if value & 0x800 else 0)
    return [e.upper("lui", rd, (value - low) >> 12), e.immediate("addiw", rd, rd, low)]


def call(number: int, *arguments: int | None) -> list[Instruction]:
    """A system call; an argument that is None stays what its register holds."""
    code = []
    for at, value in enumerate(arguments):
        code += [] if value is None else constant(10 + at, value)
    return [*code, *constant(17, number), e.ecall()]


def word(bits: int) -> Instruction:
    """Bits that need not be an instruction."""
    return Instruction(bits, 4, f".word {bits:#x}")
