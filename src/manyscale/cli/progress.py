# SPDX-License-Identifier: Apache-2.0
"""A progress display for simulations: simulated time, rate and, when the end is known, an estimate."""

from __future__ import annotations

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
    """A line on the terminal while a simulation runs; nothing at all when quiet or without a terminal."""

    def __init__(self, title: str, total_simulated_fs: int | None = None, quiet: bool = False) -> None:
        self._title = title
        self._total = total_simulated_fs
        self._quiet = quiet
        self._progress: Progress | None = None
        self._shown_at = 0.0
        self._shown_events = 0
        self._rate = 0.0

    def __enter__(self) -> SimulationProgress:
        if self._quiet or not messages().is_terminal:
            return self
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns: list[ProgressColumn] = [
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[simulated]}", markup=False),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeElapsedColumn(),
        ]
        if self._total is not None:
            columns.append(TimeRemainingColumn())
        self._progress = Progress(*columns, console=messages(), transient=True)
        self._task = self._progress.add_task(self._title, total=self._total, simulated="", rate="")
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

    def update(self, simulated_fs: int, events: int) -> None:
        """Tell how far the simulation is, in totals since its start; cheap enough to call very often."""
        if self._progress is None:
            return
        now = monotonic()
        elapsed = now - self._shown_at
        if elapsed < _REFRESH_SECONDS:
            return
        rate = (events - self._shown_events) / elapsed
        self._rate += (rate - self._rate) * (_SMOOTHING if self._rate else 1.0)
        self._shown_at, self._shown_events = now, events
        self._progress.update(
            self._task,
            completed=simulated_fs,
            simulated=f"{humanize(simulated_fs, TIME)} simulated",
            rate=f"{humanize(round(self._rate), COUNT)} events/s",
        )
