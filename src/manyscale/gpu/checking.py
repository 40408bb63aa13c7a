# SPDX-License-Identifier: Apache-2.0
"""Checks modules before they run: instructions that are not supported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from manyscale.errors import InputError

from .isa import Isa, isa_of
from .parsing import ParsedModule, parse
from .sass import architecture_near, assembled_sass, read_sass
from .sources import cubin_of


@dataclass(frozen=True)
class Problem:
    """An instruction that is not supported: its location and the reason."""

    function: str
    instruction: str
    why: str
    line: int
    column: int


@dataclass(frozen=True)
class KernelCheck:
    """A kernel and its problems; without any, it can be executed."""

    module: str
    kernel: str
    problems: tuple[Problem, ...]


def check(source: Any, *, target: str | None = None, isa: Isa = "ptx") -> list[KernelCheck]:
    """Checks every kernel of a module; `source` as for `Device.load`.

    With `isa="sass"` the SASS is checked that is assembled for the module's own GPU, or the nearest to it;
    with "auto" that or, where it cannot be made, the PTX.
    """
    machine = cubin_of(source)
    if machine is not None:
        file = read_sass(*machine)
        return _checks(machine[1], file.kernels, file.problems())
    parsed = source if isinstance(source, ParsedModule) else parse(source, target=target)
    if isa_of(isa) != "ptx":
        try:
            made = assembled_sass(parsed, architecture_near(parsed.target))
            return _checks(parsed.name, parsed.kernels, made.problems())
        except InputError:
            if isa == "sass":
                raise
    return _checks(parsed.name, parsed.kernels, parsed.native.problems())


def _checks(name: str, kernels: list[str], rows: Iterable[tuple[Any, ...]]) -> list[KernelCheck]:
    by_kernel: dict[str, list[Problem]] = {kernel: [] for kernel in kernels}
    for row in rows:
        by_kernel.setdefault(row[0], []).append(Problem(*row[1:]))
    return [KernelCheck(name, kernel, tuple(problems)) for kernel, problems in by_kernel.items()]


def problems_of(rows: Iterable[tuple[Any, ...]]) -> list[Problem]:
    """Rows of the core as problems."""
    return [Problem(*row[1:]) for row in rows]


def describe_problems(module: str, problems: Iterable[Problem]) -> str:
    """One line for each."""
    return "\n".join(f"  {module}:{p.line}:{p.column}: {p.instruction}: {p.why}" for p in problems)
