# SPDX-License-Identifier: Apache-2.0
"""The runs of stored programs of which qemu's output is known (programs/build.py makes the list)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from manyscale import cpu

FIXTURES = Path(__file__).parent / "programs" / "fixtures"


@dataclass(frozen=True)
class Case:
    """One run, and what it printed and returned under qemu."""

    binary: str
    arguments: tuple[str, ...]
    exit_code: int
    output: str
    error: str | None  # None: ended by a signal, of which qemu says something of its own
    given: str
    environment: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """For messages and the names of tests."""
        return "-".join([self.binary, *self.arguments])

    def program(self, binaries: dict[str, Path], root: Path) -> cpu.Program:
        """What the simulator runs."""
        return cpu.Program(
            binaries[self.binary],
            self.arguments,
            environment=dict(self.environment),
            root=root,
            writable=True,
            stdin=self.given.encode(),
        )

    def check(self, result: cpu.FunctionalResult | cpu.CpuResult) -> None:
        """That a run came to the same."""
        assert result.stdout == self.output
        assert result.exit_code == self.exit_code
        if self.error is not None:
            assert result.stderr.replace(f"usage: {result.program.name} ", "usage: PROGRAM ") == self.error


def _case(row: dict) -> Case:
    return Case(
        row["binary"],
        tuple(row["arguments"]),
        row["exit"],
        row["output"],
        row["error"],
        row.get("input", ""),
        tuple(row.get("environment", {}).items()),
    )


CASES = [_case(row) for row in json.loads((FIXTURES / "expected.json").read_text())["cases"]]


def find(binary: str, *arguments: str) -> Case:
    """The stored run with these arguments."""
    return next(case for case in CASES if case.binary == binary and case.arguments == arguments)
