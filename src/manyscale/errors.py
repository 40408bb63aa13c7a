# SPDX-License-Identifier: Apache-2.0
"""Errors for people: each says what was wrong, where, and what would be right.

The command line prints the message of a `ManyscaleError` without a traceback and exits with its `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyscale._core import GpuFaultKind, KernelFault


class ManyscaleError(Exception):
    """Something the user can understand and mend."""

    exit_code = 1


class InputError(ManyscaleError):
    """A file, parameter, unit or argument given by the user is wrong."""

    exit_code = 2


class GraphError(InputError):
    """A system's graph is not well formed: an unconnected port, a wrong role, a duplicate name."""


class DeadlockError(ManyscaleError):
    """Work is pending and nothing can make progress any more."""

    exit_code = 3
    kind = None  # as that of a KernelError
    location = None


@dataclass(frozen=True)
class FaultLocation:
    """Where a kernel did something wrong; texts are empty and the address is 0 where there is none."""

    kernel: str
    instruction: str
    source: str  # file and line
    cta: tuple[int, int, int]
    thread: tuple[int, int, int]
    address: int  # that was accessed


class KernelError(ManyscaleError):
    """A kernel did something wrong: an address that is not its own, a trap, a failed assertion, a deadlock.

    `kind` says what, and `location` where, where that is known.
    """

    exit_code = 5

    def __init__(
        self, message: str, kind: GpuFaultKind | None = None, location: FaultLocation | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.location = location

    @classmethod
    def of(cls, error: KernelFault) -> KernelError:
        """What the core raised."""
        at = error.location
        x, y, z = at.cta
        i, j, k = at.thread
        found = FaultLocation(at.kernel, at.instruction, at.source, (x, y, z), (i, j, k), at.address)
        return cls(str(error), error.kind, found)


class ProgramError(ManyscaleError):
    """A simulated program could not go on: a wild access, an instruction or a system call that is not there.

    `stdout` and `stderr` are what it had written until then.
    """

    exit_code = 5

    def __init__(self, message: str, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message)
        self.stdout, self.stderr = stdout, stderr


class RunError(ManyscaleError):
    """A run directory cannot be written or read."""

    exit_code = 4


class OutOfMemoryError(ManyscaleError, MemoryError):
    """The memory of this machine, or what the process may use of it, is not enough."""

    exit_code = 6


KEPT_AFTER = (KeyboardInterrupt, DeadlockError, ProgramError, MemoryError)
"""Ends of a run after which the statistics so far are kept, marked as partial."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word to a misspelt one, or lists a few known ones.

    >>> nearest("clok", ["clock", "cores"])
    "did you mean 'clock'?"
    """
    words = sorted(known)
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    if not words:
        return "there are none"
    shown = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    return f"known: {shown}"
