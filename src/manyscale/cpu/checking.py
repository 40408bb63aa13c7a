# SPDX-License-Identifier: Apache-2.0
"""What of a program cannot be executed, found before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from manyscale import _core
from manyscale.cpu.program import Program
from manyscale.errors import InputError


@dataclass(frozen=True)
class ProgramProblem:
    """An instruction that cannot be executed: where it stands and why."""

    address: int
    function: str
    source: str
    instruction: str
    why: str


def check(program: Program) -> list[ProgramProblem]:
    """The instructions of a program that cannot be executed; it may still run if it never comes to them.

    A file that cannot be loaded at all is an `InputError`. Which system calls a program makes cannot be known before.
    """
    try:
        _core.cpu_check_elf(program.data, str(program.path))
    except _core.BadProgram as error:
        raise InputError(str(error)) from None
    problems = []
    for _, start, code in program.symbols.code:
        for address, text, why in _core.riscv_unsupported(code, start):
            location = program.symbols.locate(address)
            problems.append(ProgramProblem(address, location.function, location.source, text, why))
    return problems
