# SPDX-License-Identifier: Apache-2.0
"""What of a module cannot be executed, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .parsing import parse


@dataclass(frozen=True)
class Problem:
    """An instruction that cannot be executed: where it stands and why."""

    function: str
    instruction: str
    why: str
    line: int
    column: int


@dataclass(frozen=True)
class KernelCheck:
    """A kernel and its problems; without any, it can be run."""

    module: str
    kernel: str
    problems: tuple[Problem, ...]


def check(source: Any, *, target: str | None = None) -> list[KernelCheck]:
    """Checks every kernel of a module; `source` as for `parse`."""
    parsed = parse(source, target=target)
    by_kernel: dict[str, list[Problem]] = {name: [] for name in parsed.kernels}
    for row in parsed.native.problems():
        by_kernel[row[0]].append(Problem(*row[1:]))
    return [KernelCheck(parsed.name, kernel, tuple(problems)) for kernel, problems in by_kernel.items()]


def problems_of(rows: Iterable[tuple[Any, ...]]) -> list[Problem]:
    """Rows of the core as problems."""
    return [Problem(*row[1:]) for row in rows]


def describe_problems(module: str, problems: Iterable[Problem]) -> str:
    """One line for each."""
    return "\n".join(f"  {module}:{p.line}:{p.column}: {p.instruction}: {p.why}" for p in problems)
