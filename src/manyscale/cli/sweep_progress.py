# SPDX-License-Identifier: Apache-2.0
"""What one sees while a sweep runs: the latest results in a table, and how far it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

from manyscale.cli.console import messages, say

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import Progress

    from manyscale.studies.sweep import Notice, Study

_REFRESH_SECONDS = 0.2
_LATEST = 12
_MOST_COLUMNS = 9
_FAILURES_TOLD = 10


def cell(value: Any) -> str:
    """A value of the table for people."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def shown_columns(
    columns: Sequence[str], axes: Sequence[str], metrics: Sequence[dict[str, Any]]
) -> list[str]:
    """The columns that people want to see: the axes and the metrics, and the repetition and status if need be."""
    names = ["point", *axes, "status", *(metric["name"] for metric in metrics)]
    return [name for name in names if name in columns][: max(_MOST_COLUMNS, len(axes) + 4)]


class SweepProgress:
    """The latest results and a line of progress on a terminal; elsewhere, only failures as they happen."""

    def __init__(self, study: Study, quiet: bool) -> None:
        self._study = study
        self._quiet = quiet
        self._live: Live | None = None
        self._progress: Progress | None = None
        self._latest: deque[Notice] = deque(maxlen=_LATEST)
        self._shown_at = 0.0
        self._told = 0
        self.known = 0
        """Results of earlier runs that are used again."""

    def __enter__(self) -> SweepProgress:
        if self._quiet or not messages().is_terminal:
            return self
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failures]}", markup=False),
            TimeElapsedColumn(),
            Remaining(),
            console=messages(),
        )
        self._task = self._progress.add_task(self._study.name, total=None, failures="")
        self._live = Live(self._progress, console=messages(), transient=True, auto_refresh=False)
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def take(self, news: Any) -> None:
        """Takes what the sweep tells: `Begun` first, then a `Notice` for each result."""
        from manyscale.studies.sweep import Begun

        if isinstance(news, Begun):
            self._begin(news)
            return
        if news.record["status"] == "failed" and self._live is None:
            self._tell_failure(news)
        self._latest.append(news)
        if self._live is None or self._progress is None:
            return
        now = monotonic()
        if now - self._shown_at < _REFRESH_SECONDS and news.arrived < news.distinct:
            return
        self._shown_at = now
        failures = f"{news.failures:,} failed" if news.failures else ""
        self._progress.update(self._task, completed=news.arrived, failures=failures)
        self._live.update(self._picture(), refresh=True)

    def _begin(self, begun: Any) -> None:
        self.known = begun.known
        parts = [f"{self._study.name}: {begun.distinct:,} points on {begun.on}"]
        parts += (
            [f"{begun.points - begun.distinct:,} more are equal to others"]
            if begun.points > begun.distinct
            else []
        )
        parts += [f"{begun.known:,} have a result already"] if begun.known else []
        parts += [f"{begun.failures:,} of these failed"] if begun.failures else []
        parts += [f"{begun.damaged:,} damaged results are simulated again"] if begun.damaged else []
        say("; ".join(parts), quiet=self._quiet)
        if self._progress is not None:
            self._progress.update(self._task, total=begun.distinct, completed=begun.known)

    def _tell_failure(self, news: Notice) -> None:
        self._told += 1
        if self._told <= _FAILURES_TOLD:
            coordinates = ", ".join(f"{name}={value}" for name, value in news.point.coordinates.items())
            say(f"point {news.point.index} ({coordinates}) failed: {news.record['error']}", quiet=self._quiet)
        elif self._told == _FAILURES_TOLD + 1:
            say("… more failures are in the table", quiet=self._quiet)

    def _picture(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        axes = [axis.name for axis in self._study.plan.axes]
        metrics = [(metric.name, metric.text) for metric in self._study.metrics]
        if not metrics:
            names = [name for news in self._latest for name in news.record["values"]]
            metrics = [(name, name) for name in dict.fromkeys(names)][:5]
        table = Table(title="latest results", title_justify="left")
        for name in ("point", *axes, *(name for name, _ in metrics)):
            table.add_column(Text(name), overflow="fold")
        for news in self._latest:
            cells = [cell(news.point.coordinates[name]) for name in axes]
            if news.record["status"] == "failed":
                numbers = [Text(str(news.record["error"]).splitlines()[0][:80], style="red")]
            else:
                numbers = [Text(cell(news.record["values"].get(text))) for _, text in metrics]
            table.add_row(
                Text(str(news.point.index)), *(Text(text) for text in cells), *numbers[: max(len(metrics), 1)]
            )
        assert self._progress is not None
        return Group(table, self._progress)
