# SPDX-License-Identifier: Apache-2.0
"""Studies that replay one trace many times: on more cores, with more copies of it, or on changed machines."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.cpu.replaying import machine_of, replay
from manyscale.cpu.result import L1_CACHES, CpuResult
from manyscale.cpu.running import Work, as_program, run
from manyscale.cpu.trace import Trace
from manyscale.errors import InputError
from manyscale.machine import ResolvedMachine, load_machine
from manyscale.results.line_chart import line_chart
from manyscale.results.notebook import NotebookView, plot, rows_table

if TYPE_CHECKING:
    import polars as pl

# Short names of sections that studies vary most.
_SECTIONS = {
    "core": "cpu.core",
    "l1": "memory.l1",
    "l1i": "cpu.core.l1i",
    "l2": "memory.l2",
    "l3": "memory.shared.cache",
    "shared": "memory.shared.cache",
    "dram": "memory.dram",
    "interconnect": "memory.interconnect",
}
_MOST_REPLAYS = 10_000  # in one study
_WORK_SHARING = ("loop", "sections")  # regions that threads divide among themselves
_NEARLY_IDEAL = 0.95  # of the ideal speed-up

Lines = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Point:
    """What one replay of a study came to."""

    label: str
    cores: int
    seconds: float
    instructions: int
    mpki: dict[str, float]  # misses in 1000 instructions, by level of cache
    miss_rates: dict[
        str, float
    ]  # misses of accesses, of the levels beyond the first: a trace leaves hits of that out
    waiting: float  # the share of all cores' cycles in which they waited for others or had nothing to do
    dram_bytes: int
    wall_seconds: float

    @classmethod
    def of(cls, label: str, result: CpuResult) -> Point:
        """From the result of a replay."""
        levels = result.caches.to_dicts()
        mpki = {row["level"]: row["mpki"] for row in levels if row["mpki"] is not None}
        beyond = [row for row in levels if row["level"] not in L1_CACHES]
        rates = {row["level"]: row["miss_rate"] for row in beyond if row["miss_rate"] is not None}
        shares = result.shares
        waiting = sum(shares.get(cause, 0.0) for cause in ("idle", "sleeping", "synchronisation"))
        return cls(
            label,
            result.cores,
            result.simulated_seconds,
            result.instructions,
            mpki,
            rates,
            waiting,
            result.dram_bytes,
            result.wall_seconds,
        )


@dataclass(frozen=True)
class FixedWork:
    """What strong scaling leaves where it was recorded: all but explicit tasks, as a share of the instructions."""

    share: float  # outside tasks, of all threads
    longest: float  # the same, of the thread that has most of it
    loops: int  # OpenMP loops and sections of the program, which are outside tasks

    @classmethod
    def of(cls, trace: Trace) -> FixedWork:
        """From the index of a trace."""
        columns = trace.columns
        instructions = columns["stream.instructions"].astype(float)
        outside = instructions[columns["stream.is_task"] == 0]
        total = max(float(instructions.sum()), 1.0)
        loops = sum(region.kind in _WORK_SHARING for region in trace.regions)
        return cls(float(outside.sum()) / total, float(outside.max(initial=0.0)) / total, loops)

    def bound(self, first: int, cores: int) -> float:
        """The speed-up from `first` to `cores` cores that the fixed work allows at most (Amdahl's law)."""
        return (self.longest + (1 - self.longest) / first) / (self.longest + (1 - self.longest) / cores)

    def limits(self, first: int, cores: int) -> bool:
        """Whether it keeps a study from ideal speed-ups."""
        return self.bound(first, cores) < _NEARLY_IDEAL * cores / first

    def text(self, first: int, cores: int) -> str:
        """In words: how much, and what that allows."""
        loops = f" ({self.loops} OpenMP loops among it)" if self.loops else ""
        return (
            f"{self.share:.1%} of the instructions are outside tasks{loops} and stay on the threads that they were "
            f"recorded on: from {first} to {cores} cores they allow a speed-up of at most "
            f"{self.bound(first, cores):.2f}"
            + ("; loops are not rescheduled: record the program with as many threads" if self.loops else "")
        )


@dataclass(frozen=True)
class Study(NotebookView):
    """Replays of one trace, compared with the first of them."""

    title: str
    kind: str  # weak, strong or vary
    points: list[Point]
    fixed: FixedWork | None = None  # of strong scaling

    def speedup(self, point: Point) -> float:
        """How much more work in the same time than the first replay did: copies are work, too."""
        first = self.points[0]
        work = point.cores / first.cores if self.kind == "weak" else 1.0
        return work * first.seconds / point.seconds if point.seconds else 0.0

    def efficiency(self, point: Point) -> float:
        """The speed-up for each core, beside the first replay's."""
        return self.speedup(point) * self.points[0].cores / point.cores

    def table(self) -> pl.DataFrame:
        """A row for each replay."""
        import polars as pl

        levels = list(dict.fromkeys(level for point in self.points for level in point.mpki))
        rows = [
            {
                "replay": point.label,
                "cores": point.cores,
                "time": point.seconds,
                "speedup": self.speedup(point),
                "efficiency": self.efficiency(point),
                **(
                    {}
                    if self.fixed is None
                    else {
                        "fixed_share": self.fixed.share,
                        "speedup_bound": self.fixed.bound(self.points[0].cores, point.cores),
                    }
                ),
                **{f"{level}_mpki": point.mpki.get(level) for level in levels},
                **{
                    f"{level}_miss_rate": point.miss_rates.get(level)
                    for level in levels
                    if level not in L1_CACHES
                },
                "waiting": point.waiting,
                "dram_bytes": point.dram_bytes,
                "instructions": point.instructions,
                "wall_seconds": point.wall_seconds,
            }
            for point in self.points
        ]
        return pl.DataFrame(rows)

    def lines(self) -> dict[str, Lines]:
        """Time, speed-up, efficiency and miss rate as lines over cores, or over the number of the replay."""
        x = [float(point.cores if self.kind != "vary" else at + 1) for at, point in enumerate(self.points)]
        levels = list(dict.fromkeys(level for point in self.points for level in point.mpki))

        def line(value: Callable[[Point], float]) -> list[tuple[float, float]]:
            return list(zip(x, map(value, self.points), strict=True))

        return {
            "time": {"time in us": line(lambda point: 1e6 * point.seconds)},
            "speedup": {
                "replayed": line(self.speedup),
                "ideal": line(lambda point: point.cores / self.points[0].cores),
            }
            | ({} if self.fixed is None else {"allowed by work outside tasks": line(self._bound)}),
            "efficiency": {"efficiency": line(self.efficiency)},
            "mpki": {level: line(partial(_mpki, level)) for level in levels},
        }

    def _bound(self, point: Point) -> float:
        assert self.fixed is not None
        return self.fixed.bound(self.points[0].cores, point.cores)

    @property
    def warning(self) -> str:
        """What keeps speed-ups from being those of the program; empty if nothing does."""
        if self.fixed is None:
            return ""
        first, most = self.points[0].cores, max(point.cores for point in self.points)
        return self.fixed.text(first, most) if self.fixed.limits(first, most) else ""

    def _notebook(self) -> Iterable[str]:
        if self.warning:
            yield f"<p>{self.warning}</p>"
        table = self.table()
        yield rows_table(self.title, table.columns, table.iter_rows())
        axis = "replay" if self.kind == "vary" else "cores"
        for name in ("speedup", "mpki"):
            lines = {key: points for key, points in self.lines()[name].items() if points}
            if lines:
                yield plot(line_chart(f"{self.title}: {name}", axis, name, lines, log_x=self.kind != "vary"))


def weak(
    trace: Trace | str | os.PathLike[str],
    cores: Sequence[int],
    *,
    machine: str | Path | None = None,
    changes: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Study:
    """The work grows with the cores: so many copies of the trace are replayed as fill them.

    `options` are those of `replay`, such as `offset` and `shared`. A machine with fewer cores than asked for is given
    more, with the rest of it as it is.
    """
    with _opened(trace) as played:
        recorded = played.header.cores
        for count in cores:
            if count < 1 or count % recorded:
                raise InputError(
                    f"weak scaling: the trace is of {recorded} cores, and {count} is no multiple of that"
                )
        points = []
        for count in cores:
            _tell(progress, f"{count} cores")
            grown = _with_cores(played, machine, changes, count)
            result = replay(played, machine=grown, cores=count, replicate=count // recorded, **options)
            points.append(Point.of(f"{count} cores", result))
        return Study(f"{_name(played)}, weak scaling", "weak", points)


def strong(
    trace: Trace | str | os.PathLike[str],
    cores: Sequence[int],
    *,
    machine: str | Path | None = None,
    changes: Sequence[str] = (),
    scheduler: str = "fifo",
    progress: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
    **options: Any,
) -> Study:
    """The work stays, and its tasks are scheduled on more cores.

    What is outside tasks stays on the threads that it was recorded on. `warn` is called before the first replay if that
    keeps the speed-up from being ideal; the study has the bound (`Study.fixed`).
    """
    with _opened(trace) as played:
        if not played.columns["stream.is_task"].any():
            raise InputError(
                f"{played.path}: strong scaling schedules tasks on cores, and this trace has none; record a program "
                "with OpenMP tasks, or use weak scaling"
            )
        fixed = FixedWork.of(played)
        if cores and fixed.limits(cores[0], max(cores)):
            _tell(warn, fixed.text(cores[0], max(cores)))
        points = []
        for count in cores:
            _tell(progress, f"{count} cores")
            grown = _with_cores(played, machine, changes, count)
            result = replay(played, machine=grown, cores=count, scheduler=scheduler, **options)
            points.append(Point.of(f"{count} cores", result))
        return Study(f"{_name(played)}, strong scaling, {scheduler}", "strong", points, fixed)


def detailed(
    program: Callable[[int], Work],
    cores: Sequence[int],
    *,
    machine: str | Path,
    changes: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Study:
    """What `strong` foretells: a program on more and more cores, not replayed but executed.

    `program` gives the program for a number of cores, since it must make as many threads. `options` are
    those of `run`.
    """
    points = []
    title = ""
    for count in cores:
        _tell(progress, f"{count} cores")
        work = as_program(program(count))
        title = title or f"{work.name}, executed"
        grown = _grown(lambda more: load_machine(machine, [*changes, *more]), count)
        points.append(Point.of(f"{count} cores", run(work, machine=grown, cores=count, **options)))
    return Study(title, "strong", points)


def vary(
    trace: Trace | str | os.PathLike[str],
    varied: Mapping[str, Sequence[str]],
    *,
    machine: str | Path | None = None,
    changes: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Study:
    """Replays with all combinations of values of some parameters, the last of them changing first."""
    with _opened(trace) as played:
        paths = [full_path(machine_of(played, machine, changes), name) for name in varied]
        combinations = list(itertools.product(*varied.values()))
        if len(combinations) > _MOST_REPLAYS:
            raise InputError(f"{len(combinations):,} combinations are more than {_MOST_REPLAYS:,}")
        points = []
        for values in combinations:
            label = " ".join(f"{name}={value}" for name, value in zip(varied, values, strict=True))
            _tell(progress, label)
            stated = [f"{path}={value}" for path, value in zip(paths, values, strict=True)]
            result = replay(played, machine=machine_of(played, machine, [*changes, *stated]), **options)
            points.append(Point.of(label, result))
        return Study(f"{_name(played)}, {' and '.join(varied)} varied", "vary", points)


def full_path(machine: ResolvedMachine, name: str) -> str:
    """The path of a parameter that may be named shortly: l2.size is that of the machine's L2 cache."""
    section, dot, rest = name.partition(".")
    if not dot or section not in _SECTIONS:
        return name
    memory = machine.machine.memory
    if section == "l2" and memory is not None and memory.l2 is None:
        section = "shared"  # the L2 cache is one that cores share
    return f"{_SECTIONS[section]}.{rest}"


def parse_counts(text: str) -> list[int]:
    """Numbers of cores: "1,2,6", or "1..16", which doubles from the first to the last."""
    try:
        if ".." in text:
            first, last = (int(part) for part in text.split("..", 1))
            if not 1 <= first <= last:
                raise ValueError
            counts = [first]
            while counts[-1] * 2 <= last:
                counts.append(counts[-1] * 2)
            return counts if counts[-1] == last else [*counts, last]
        counts = [int(part) for part in text.split(",")]
        if min(counts) < 1:
            raise ValueError
    except ValueError:
        raise InputError(f"'{text}' are no numbers of cores; write such as 1,2,4 or 1..16") from None
    return counts


def parse_varied(texts: Sequence[str]) -> dict[str, list[str]]:
    """Parameters and their values: "l2.size=256KiB,1MiB"."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",")]
        if not equals or not name or not all(listed):
            raise InputError(f"--vary {text}: write NAME=VALUE,VALUE, such as l2.size=256KiB,512KiB,1MiB")
        if name in found:
            raise InputError(f"--vary {text}: {name} is varied twice; list all its values at once")
        found[name] = listed
    return found


class _opened:  # noqa: N801 - used as a function
    """A trace that is closed afterwards if it was opened here."""

    def __init__(self, trace: Trace | str | os.PathLike[str]) -> None:
        self._given = trace
        self._trace = trace if isinstance(trace, Trace) else Trace(trace)

    def __enter__(self) -> Trace:
        return self._trace

    def __exit__(self, *_: object) -> None:
        if self._trace is not self._given:
            self._trace.close()


def _with_cores(
    trace: Trace, machine: str | Path | None, changes: Sequence[str], count: int
) -> ResolvedMachine:
    return _grown(lambda more: machine_of(trace, machine, [*changes, *more]), count)


def _grown(machine: Callable[[list[str]], ResolvedMachine], count: int) -> ResolvedMachine:
    """A machine that has so many cores: as it is if it has them, else with more."""
    resolved = machine([])
    cpu = resolved.machine.cpu
    if cpu is None or cpu.cores is None or cpu.cores >= count:
        return resolved
    return machine([f"cpu.cores={count}"])


def _mpki(level: str, point: Point) -> float:
    return point.mpki.get(level, 0.0)


def _name(trace: Trace) -> str:
    program = trace.header.program
    return " ".join([program.name, *program.arguments])


def _tell(progress: Callable[[str], None] | None, what: str) -> None:
    if progress is not None:
        progress(what)
