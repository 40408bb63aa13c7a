# SPDX-License-Identifier: Apache-2.0
"""What a run directory holds, for a report to look at: numbers by component, tables, the machine, the timeline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from manyscale.errors import RunError
from manyscale.report.timeline import Timeline, read_timeline
from manyscale.results import Run
from manyscale.results.names import readable
from manyscale.results.ranges import Ranges
from manyscale.results.run_directory import MACHINE_FILE

if TYPE_CHECKING:
    import polars as pl

TIMELINE_FILE = "timeline.pftrace"
PROFILES_FILE = "profiles.json"
_MOST_BYTES = 256 << 20  # of a file that is read whole
_SECOND = 10**15  # femtoseconds


@dataclass(frozen=True)
class GpuTime:
    """What a CUDA program's time went to, in seconds: kernels, copies beside no kernel, and neither."""

    whole: float
    kernels: float
    copies: float
    launches: int

    @property
    def other(self) -> float:
        """Time in which the GPU did nothing."""
        return max(self.whole - self.kernels - self.copies, 0.0)


class Evidence:
    """A run as a report sees it. What is absent or unreadable is None or empty, and `troubles` says why."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.troubles: list[str] = []

    @property
    def kind(self) -> str:
        """The kind of work, such as "cpu-program"; empty if the run does not say."""
        return str(self.run.info["workload"].get("kind", ""))

    @property
    def name(self) -> str:
        """What was run, in a few words."""
        workload = self.run.info["workload"]
        for key in ("kernel", "name", "program", "pattern", "file"):
            if isinstance(workload.get(key), str) and workload[key]:
                return str(workload[key])
        return self.run.path.resolve().name

    @cached_property
    def scalars(self) -> dict[tuple[str, str, str], float]:
        """(component, statistic, scope) -> value, of all statistics that are one number."""
        if not self.run.has_stats:
            return {}
        try:
            table = self.run.stats
        except RunError as error:
            self.troubles.append(str(error))
            return {}
        rows = table.filter(table["key"].is_null())
        return {
            (component, statistic, scope): value
            for component, statistic, scope, value in rows.select(
                "component", "statistic", "scope", "value"
            ).iter_rows()
        }

    @cached_property
    def components(self) -> list[str]:
        """All components with statistics, in their order."""
        return list(dict.fromkeys(component for component, _, _ in self.scalars))

    def group(self, prefix: str) -> list[str]:
        """The components whose names begin so, such as "core["; those of all GPUs of a node."""
        return [name for name in self.components if name.startswith(prefix) or f".{prefix}" in name]

    def value(self, component: str, statistic: str, scope: str = "run") -> float:
        """A number, or 0 where there is none."""
        return self.scalars.get((component, statistic, scope), 0.0)

    def has(self, component: str, statistic: str, scope: str = "run") -> bool:
        return (component, statistic, scope) in self.scalars

    def total(self, components: Iterable[str], *statistics: str) -> float:
        """The sum of counters over components."""
        return sum(self.value(component, name) for component in components for name in statistics)

    def mean_seconds(self, components: Iterable[str], histogram: str) -> float | None:
        """The mean of a histogram of times, over components."""
        found = [
            (self.value(each, f"{histogram}.count"), self.value(each, f"{histogram}.mean"))
            for each in components
        ]
        count = sum(number for number, _ in found)
        return sum(number * mean for number, mean in found) / count / _SECOND if count else None

    @property
    def seconds(self) -> float:
        """Simulated time."""
        return float(self.number("simulated_seconds") or 0.0)

    def number(self, name: str) -> float | None:
        """A number of the headline."""
        value = self.run.headline.get(name, {}).get("value")
        return float(value) if isinstance(value, int | float) else None

    @cached_property
    def machine(self) -> dict[str, Any]:
        """The machine as plain tables; empty if there is none."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        if not (self.run.path / MACHINE_FILE).exists():
            return {}
        try:
            return dict(tomlkit.parse(self.run.machine_text).unwrap())
        except (TOMLKitError, RunError) as error:
            self.troubles.append(f"{MACHINE_FILE} cannot be read: {error}")
            return {}

    def table(self, name: str) -> pl.DataFrame | None:
        """A further table that the run left, such as "links"; None if there is none or it is empty."""
        file = f"{name}.parquet"
        if not self._fits(file, _MOST_BYTES):
            return None
        try:
            table = self.run.table(file)
        except RunError as error:
            self.troubles.append(f"{file} cannot be read: {str(error).splitlines()[0]}")
            return None
        return None if table.is_empty() else table

    def columns(self, name: str, *needed: str) -> pl.DataFrame | None:
        """The same, if it has the columns that are needed."""
        table = self.table(name)
        if table is None:
            return None
        missing = [column for column in needed if column not in table.columns]
        if missing:
            self.troubles.append(f"{name}.parquet has no column {', '.join(missing)}, so it is not shown")
            return None
        return table

    def text(self, name: str, most: int = 4 << 20) -> str | None:
        """A file of text, such as a picture; None if there is none or it is larger than `most` bytes."""
        if not self._fits(name, most):
            return None
        try:
            return self.run.content(name).decode(errors="replace")
        except RunError as error:
            self.troubles.append(f"{name} cannot be read: {error}")
            return None

    def _fits(self, name: str, most: int) -> bool:
        """Whether the run has a file that is not too large for a report."""
        path = self.run.path / name
        if not path.is_file():
            return False
        try:
            size = path.stat().st_size
        except OSError as error:
            self.troubles.append(f"{name} cannot be read: {error.strerror or error}")
            return False
        if size > most:
            self.troubles.append(f"{name} is larger than {most >> 20} MiB and was left out")
            return False
        if self.run.files and name not in self.run.files:
            self.troubles.append(
                f"{name} is not among the files that the run lists; it may be of something else"
            )
        return True

    @cached_property
    def profiles(self) -> dict[str, dict[str, Any]]:
        """By kernel: what limits it, its roofline and launch; written by runs on simulated GPUs."""
        text = self.text(PROFILES_FILE, _MOST_BYTES)
        if text is None:
            return {}
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            self.troubles.append(f"{PROFILES_FILE} is broken at line {error.lineno}: {error.msg}")
            return {}
        if not isinstance(data, dict):
            self.troubles.append(f"{PROFILES_FILE} is not a table of kernels")
            return {}
        return {str(name): entry for name, entry in data.items() if isinstance(entry, dict)}

    @cached_property
    def timeline(self) -> Timeline | None:
        """Spans and levels over time; None without a timeline."""
        path = self.run.path / TIMELINE_FILE
        if not path.is_file():
            return None
        try:
            return read_timeline(self.run.file(TIMELINE_FILE))
        except RunError as error:
            self.troubles.append(str(error))
            return None

    def kernels(self) -> list[str]:
        """Scopes that are kernels, in their order."""
        return list(self._metrics)

    def longest_kernels(self) -> list[str]:
        """Scopes that are kernels, the longest first."""
        return sorted(self.kernels(), key=lambda kernel: -self.metrics(kernel).get("duration", 0.0))

    @cached_property
    def gpu_time(self) -> GpuTime | None:
        """Of a CUDA program: the time of its kernels and copies; None of other runs and of runs without time."""
        kernels = self.columns("kernels", "begin_ns", "end_ns")
        copies = self.columns("copies", "begin_ns", "end_ns")
        if kernels is None and copies is None:
            return None
        spans = [
            [] if table is None else list(table.select("begin_ns", "end_ns").iter_rows())
            for table in (kernels, copies)
        ]
        running, moving = (_covered(each) for each in (spans[0], spans[0] + spans[1]))
        launches = 0 if kernels is None else kernels.height
        return GpuTime(self.seconds, running / 1e9, (moving - running) / 1e9, launches)

    @cached_property
    def ranges(self) -> Ranges | None:
        """Of a CUDA program: its NVTX ranges; None if it has none."""
        table = self.columns("ranges", "range", "parent", "name")
        needed = ("range", "begin_ns", "end_ns")
        return (
            None
            if table is None
            else Ranges(
                table, self.columns("kernels", "kernel", *needed), self.columns("copies", "kind", *needed)
            )
        )

    @cached_property
    def _rank_table(self) -> pl.DataFrame | None:
        return self.columns("ranks", "rank", "compute", "overhead", "waiting", "transfer", "end")

    @property
    def ranks(self) -> int:
        """Ranks of a job."""
        return 0 if self._rank_table is None else self._rank_table.height

    @cached_property
    def rank_shares(self) -> dict[str, float]:
        """Of a job: the mean over ranks of the share of time for computing, overhead, waiting and transfer."""
        table = self._rank_table
        if table is None:
            return {}
        end = max(float(table["end"].max() or 0.0), 1e-30)  # type: ignore[arg-type]
        return {
            name: float(table[name].mean() or 0.0) / end  # type: ignore[arg-type]
            for name in ("compute", "overhead", "waiting", "transfer")
        }

    @cached_property
    def titles(self) -> dict[str, str]:
        """The kernels' names as people write them, unless two are written alike."""
        names = {kernel: readable(kernel) for kernel in self.kernels()}
        often = Counter(names.values())
        return {kernel: name if often[name] == 1 else kernel for kernel, name in names.items()}

    def metrics(self, kernel: str) -> Mapping[str, float]:
        """The metrics of a kernel, by name."""
        return self._metrics.get(kernel, {})

    @cached_property
    def _metrics(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for (component, statistic, scope), value in self.scalars.items():
            if scope != "run" and component.endswith("gpu"):
                found.setdefault(scope, {})[statistic] = value
        return found


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the spans lasts."""
    whole, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        whole += max(0.0, end - max(begin, until))
        until = max(until, end)
    return whole
