# SPDX-License-Identifier: Apache-2.0
"""Statistics of a region of interest: what was counted while the program was in it, and not before or after.

The run pauses where a core comes to the region's beginning and end. What is counted in between is added up over all
visits; the caches, predictors and buffers keep what they learnt before. A visit is open from the first thread that
begins it to the last that ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyscale import _core
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.cpu.program import Program
    from manyscale.machine.cpu_system import CpuSystem
    from manyscale.system.running import Result

_Columns = dict[str, list[Any]]
_Row = tuple[str, str, Any]  # component, statistic, key


def run_interest(
    program: Program,
    parts: CpuSystem,
    region: str,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> Result:
    """Runs a program to its end; the statistics are those of the region, a mark of the program or a function."""
    _core.cpu_pause_at(parts.program.native, region, program.symbols.addresses.get(region, 0))
    cores = [core.native for core in parts.cores]
    counted = Counted()
    before: _Columns | None = None
    wall, events = 0.0, 0
    while True:
        run = parts.system.run(threads=threads, progress=progress)
        wall, events = wall + run.wall_seconds, events + run.events
        ended = run.outcome != "stopped"
        is_open = not ended and _core.cpu_visits_open(cores) > 0
        if before is None and is_open:
            before = run.columns
        elif before is not None and not is_open:
            counted.add(before, run.columns)
            before = None
        if ended:
            break
    if not counted.visits:
        raise InputError(
            f"{program.path}: it never came to the region '{region}'; a region of interest is a function, or what "
            "MANYSCALE_BEGIN and MANYSCALE_END of manyscale.h enclose"
        )
    run.columns, run.wall_seconds, run.events = counted.columns(run.columns), wall, events
    return run


class Counted:
    """What counters and histograms grew by, over several visits."""

    def __init__(self) -> None:
        self.visits = 0
        self._grown: dict[_Row, float] = {}

    def add(self, before: _Columns, after: _Columns) -> None:
        """Adds a visit, from the statistics when it began and those when it ended."""
        self.visits += 1
        begun = _sums(before)
        for row, value in _sums(after).items():
            self._grown[row] = self._grown.get(row, 0) + value - begun.get(row, 0)

    def columns(self, whole: _Columns) -> _Columns:
        """The statistics of all visits, in the rows of the whole run; without those that are no sums."""
        kept: _Columns = {name: [] for name in whole}
        for index, kind in enumerate(whole["kind"]):
            row = (whole["component"][index], whole["statistic"][index], whole["key"][index])
            value = self._value(row, kind, whole["value"][index])
            if value is None:
                continue
            for name, column in whole.items():
                kept[name].append(value if name == "value" else column[index])
        return kept

    def _value(self, row: _Row, kind: str, at_end: float) -> float | None:
        component, statistic, key = row
        if kind == "gauge":
            return None if statistic.endswith((".min", ".max")) else at_end
        if statistic.endswith(".mean"):
            count = self._grown.get((component, f"{statistic.removesuffix('.mean')}.count", key), 0)
            return self._grown.get(row, 0) / count if count else 0.0
        return self._grown.get(row)


def _sums(columns: _Columns) -> dict[_Row, float]:
    """Counters, the counts of histograms, and in place of their means the sums."""
    rows = zip(
        columns["component"],
        columns["statistic"],
        columns["key"],
        columns["kind"],
        columns["value"],
        strict=True,
    )
    sums: dict[_Row, float] = {}
    for component, statistic, key, kind, value in rows:
        if kind == "counter" or (kind == "histogram" and statistic.endswith((".count", ".bucket"))):
            sums[component, statistic, key] = value
        elif kind == "histogram" and statistic.endswith(".mean"):
            sums[component, statistic, key] = (
                value * sums[component, f"{statistic.removesuffix('.mean')}.count", key]
            )
    return sums
