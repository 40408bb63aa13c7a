# SPDX-License-Identifier: Apache-2.0
"""A progress display for simulations: simulated time, work done and rate, and where the end is known an estimate."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from manyscale.cli.console import messages
from manyscale.units import COUNT, TIME, humanize

if TYPE_CHECKING:
    from rich.progress import Progress

_REFRESH_SECONDS = 0.1
_SMOOTHING = 0.2


class SimulationProgress:
    """A line on the terminal while a simulation runs; nothing at all when quiet or without a terminal.

    It is called with the simulated time and the events since the start. The end is known if the simulated time at the
    end is, or if the simulation says what it counts with `measure`: CTAs of a launch, instructions of a trace.
    """

    def __init__(self, title: str, total_simulated_fs: int | None = None, quiet: bool = False) -> None:
        self._title = title
        self._total = total_simulated_fs
        self._quiet = quiet
        self._unit: str | None = None  # of what is counted; without it, simulated time
        self._done: Callable[[], int] = lambda: 0
        self._before = 0
        self._progress: Progress | None = None
        self._shown_at = 0.0
        self._shown_done = 0
        self._rate = 0.0

    def measure(self, unit: str, done: Callable[[], int], total: int | None = None) -> None:
        """From now on the progress is that of a count from what it is now, such as instructions."""
        self._unit, self._done, self._total = unit, done, total
        self._before = done()
        self._shown_done, self._rate = 0, 0.0
        if self._progress is not None:
            self._progress.update(self._task, total=total, completed=0)

    def __enter__(self) -> SimulationProgress:
        if self._quiet or not messages().is_terminal:
            return self
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[done]}", markup=False),
            TextColumn("{task.fields[simulated]}", markup=False),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=messages(),
            transient=True,
        )
        self._task = self._progress.add_task(
            self._title, total=self._total, done="", simulated="", rate="", left=""
        )
        self._progress.start()
        self._shown_at = monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __call__(self, simulated_fs: int, events: int) -> None:
        """As update: what a simulation calls."""
        self.update(simulated_fs, events)

    def update(self, simulated_fs: int, events: int) -> None:
        """Tell how far the simulation is, in totals since its start; cheap enough to call very often."""
        if self._progress is None:
            return
        now = monotonic()
        elapsed = now - self._shown_at
        if elapsed < _REFRESH_SECONDS:
            return
        done = events if self._unit is None else self._done() - self._before
        rate = (done - self._shown_done) / elapsed
        self._rate += (rate - self._rate) * (_SMOOTHING if self._rate else 1.0)
        self._shown_at, self._shown_done = now, done
        completed = simulated_fs if self._unit is None else done
        if self._total is not None:
            completed = min(completed, self._total)  # a replay waits actively where the recorded run did not
        self._progress.update(self._task, completed=completed)  # from which it estimates the rest
        self._progress.update(
            self._task,
            done=self._share(completed),
            simulated=f"{humanize(simulated_fs, TIME)} simulated",
            rate=f"{humanize(round(self._rate), COUNT)} {self._unit or 'events'}/s",
            left=self._left(),
        )

    def _share(self, completed: int) -> str:
        """How much of the work is done, if all of it is known."""
        if not self._total:
            return "" if self._unit is None else f"{completed:,} {self._unit}"
        share = f"{100 * completed / self._total:.0f}%"
        return share if self._unit is None else f"{share} of {self._total:,} {self._unit}"

    def _left(self) -> str:
        """How long it will take, by the rate so far."""
        assert self._progress is not None
        left = self._progress.tasks[0].time_remaining
        if not self._total or left is None:
            return ""
        return f"{left:.0f} s left" if left < 100 else f"{left / 60:.0f} min left"


class PartsProgress:
    """The progress of several simulations as one, each a part of the work that counts as much as it is large.

    It stands in for the progress of each of them: a simulation that says what it counts has begun the next part.
    """

    def __init__(self, whole: SimulationProgress, unit: str, total: int) -> None:
        self._whole = whole
        self._size = 0  # of the present part
        self._ended = 0  # of the parts before
        self._next = 0
        self._share: Callable[[], float] = lambda: 0.0
        whole.measure(unit, self._done, total)

    def size(self, size: int) -> None:
        """How large the parts are that begin from now on."""
        self._next = size

    def measure(self, unit: str, done: Callable[[], int], total: int | None = None) -> None:
        """A part begins; what it counts is a share of it."""
        self._ended += self._size
        self._size = self._next
        before = done()
        self._share = lambda: min((done() - before) / total, 1.0) if total else 0.0

    def _done(self) -> int:
        return self._ended + round(self._size * self._share())

    def __call__(self, simulated_fs: int, events: int) -> None:
        """As that of one simulation."""
        self._whole.update(simulated_fs, events)
