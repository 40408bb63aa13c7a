# SPDX-License-Identifier: Apache-2.0
"""Where points are run: the interface that local workers and clusters share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from manyscale.studies.sweep.worker import Record, Task


@dataclass(frozen=True)
class Finished:
    """A point that has a result."""

    record: Record


@dataclass(frozen=True)
class Lost:
    """A point whose worker ended before it had a result; `blamed` if the point may be why."""

    key: str
    reason: str
    blamed: bool = True


class Executor(Protocol):
    """Runs points elsewhere; it is used as a context manager."""

    @property
    def capacity(self) -> int:
        """How many points it should have at a time, so that nobody waits for work."""

    def submit(self, task: Task) -> None:
        """Takes a point."""

    def wait(self) -> Iterable[Finished | Lost]:
        """What has happened since the last call, at least one thing, or nothing after a short while."""

    def describe(self) -> str:
        """In words, where points are run."""

    def __enter__(self) -> Executor: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
