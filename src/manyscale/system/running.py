# SPDX-License-Identifier: Apache-2.0
"""Running a system: from the graph to statistics, headline numbers and a run directory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale import _core, host_memory, processes, units
from manyscale.errors import KEPT_AFTER, DeadlockError, InputError, ManyscaleError
from manyscale.results import RunWriter
from manyscale.results.definitions import headline
from manyscale.results.notebook import NotebookView, headline_table
from manyscale.results.run_directory import Columns, Headline
from manyscale.results.statistics import frame, scalar
from manyscale.system.component import Component

if TYPE_CHECKING:
    import polars as pl

    from manyscale.system.system import System

TIMELINE_FILE = "timeline.pftrace"
TIMELINE_TICK = 1000  # femtoseconds of simulated time shown as one nanosecond


class Result(NotebookView):
    """What came out of a run: how it ended, headline numbers with units, statistics."""

    def __init__(self, report: dict[str, Any], columns: dict[str, list[Any]], directory: Path | None) -> None:
        self.outcome: str = report["outcome"]
        """"finished", "limit" (of time), "stopped" (by a model) or "interrupted" (Ctrl-C)."""
        self.now: int = report["now"]
        """Simulated time at the end, in femtoseconds."""
        self.events: int = report["events"]
        self.threads: int = report["threads"]
        self.processes: int = report.get("processes", 1)
        self.wall_seconds: float = report["wall_seconds"]
        self.directory = directory
        self.headline = headline(
            simulated_seconds=self.now / 10**15,
            events=self.events,
            windows=report["windows"],
            pending_events=report["pending_events"],
            wall_seconds=self.wall_seconds,
            wall_events_per_second=self.events / self.wall_seconds if self.wall_seconds else None,
            wall_threads=self.threads,
        )
        if self.processes > 1:
            self.headline |= headline(wall_processes=self.processes)
        self.columns = columns

    @cached_property
    def stats(self) -> pl.DataFrame:
        """The tidy table of statistics."""
        return frame(self.columns)

    def value(self, component: str, statistic: str) -> int | float:
        """One scalar statistic."""
        return scalar(self.stats, component, statistic)

    def _notebook(self) -> Iterable[str]:
        yield headline_table(repr(self), self.headline)

    def __repr__(self) -> str:
        return (
            f"Result({self.outcome} at {units.humanize(self.now, units.TIME)}, {self.events:,} events in "
            f"{self.wall_seconds:.3g} s on {self.threads} thread{'s' if self.threads > 1 else ''}"
            f"{f' of {self.processes} processes' if self.processes > 1 else ''})"
        )


def run_system(
    system: System,
    *,
    until: int | None,
    threads: int,
    out: str | os.PathLike[str] | None,
    timeline: bool,
    progress: Callable[[int, int], None] | None,
    command: Iterable[str],
    queue: str,
) -> Result:
    """See `System.run`."""
    if threads < 1:
        raise InputError(f"cannot run on {threads} threads; give at least 1")
    if queue not in _core.queue_names():
        raise InputError(f"there is no event queue '{queue}'; known: {', '.join(_core.queue_names())}")
    if until is not None and until < 0:
        raise InputError("the time limit is before the start; give a time of at least 0fs")
    if timeline and out is None:
        raise InputError("a timeline is written to the run directory: give out= as well")
    system.check()
    _check_processes(system, timeline)
    if timeline:
        with core_errors():
            system.simulation.enable_timeline()
    with attached(system):
        return _run_attached(system, until, threads, queue, out, timeline, progress, command)


def _run_attached(
    system: System,
    until: int | None,
    threads: int,
    queue: str,
    out: str | os.PathLike[str] | None,
    timeline: bool,
    progress: Callable[[int, int], None] | None,
    command: Iterable[str],
) -> Result:
    options = {"until": _core.never if until is None else until, "threads": threads, "queue": queue}
    if out is None:
        result = _simulate(system, options, progress, None)
        if result.outcome == "interrupted":
            raise KeyboardInterrupt
        return result
    workload = {
        "kind": "system",
        "name": system.name,
        "until": None if until is None else units.format(until, units.TIME),
    }
    with RunWriter(out, command=list(command) or sys.argv, workload=workload, seed=system.seed) as writer:
        writer.write_machine(system.to_toml())
        try:
            result = _simulate(system, options, progress, writer.directory)
        except KEPT_AFTER:
            keep_partial(writer, lambda: statistics_columns(system))
            raise
        if result.outcome == "interrupted":
            writer.partial(result.columns, result.headline)
        else:
            writer.write_stats(result.columns)
        if timeline:
            write_timeline(system, writer)
        if result.outcome == "interrupted":
            raise KeyboardInterrupt
        writer.finish(result.headline)
    return result


def _simulate(
    system: System,
    options: dict[str, Any],
    progress: Callable[[int, int], None] | None,
    directory: Path | None,
) -> Result:
    report = run_simulation(system.simulation, progress, **options)
    if report["outcome"] == "deadlock":
        raise DeadlockError(explain_deadlock(report))
    return Result(report, statistics_columns(system), directory)


def run_simulation(
    simulation: Any, progress: Callable[[int, int], None] | None, **options: Any
) -> dict[str, Any]:
    """Runs the core: alone, or together with the processes that this one has joined."""
    others = processes.together()
    report: dict[str, Any]
    if others is None:
        with core_errors():
            report = simulation.run(**options, progress=host_memory.MemoryWatch(progress))
    else:
        if options.get("threads", 1) > 1:
            raise InputError("each process runs on one thread; start more processes instead of threads")
        shown = progress if others.is_first else None
        with core_errors(), processes.noted_interrupts(shown) as noted:
            report = simulation.run(**options, progress=noted, processes=others)
    return report


def _check_processes(system: System, timeline: bool) -> None:
    """Whether the processes that run a system together have the same one, and ask for what they can do."""
    others = processes.together()
    if others is None:
        return
    if timeline:
        raise InputError("a timeline is recorded by one process only; run the system without mpirun for it")
    facts = [(name, repr(component.spec)) for name, component in system.components.items()]
    description = repr((system.seed, system.cut_latency, system.hints, facts, system.links))
    digest = hashlib.sha256(description.encode()).hexdigest()
    if len(set(others.gather(digest))) > 1:
        raise InputError(
            "the processes have built different systems; start all with the same files and options"
        )


def keep_partial(
    writer: RunWriter, columns: Callable[[], Columns], headline: Callable[[], Headline] = dict
) -> None:
    """Keeps what a run has so far, while its error is handled; where that fails, too, the first error is the one."""
    with contextlib.suppress(Exception):
        writer.partial(columns(), headline())


@contextlib.contextmanager
def attached(system: System) -> Iterator[None]:
    """Lends the Python models to the core for the length of a run, until their statistics are read."""
    models = [component for component in system.components.values() if isinstance(component, Component)]
    for model in models:
        model.native.attach(model)
    try:
        yield
    finally:
        for model in models:
            model.native.attach(None)


def write_timeline(system: System, writer: RunWriter) -> None:
    """Keeps the spans and counters so far as a Perfetto trace."""
    writer.write_by_name(TIMELINE_FILE, lambda name: system.simulation.write_timeline(name, TIMELINE_TICK))


def statistics_columns(system: System) -> dict[str, list[Any]]:
    """The statistics so far, as the columns of the tidy table."""
    columns = simulation_columns(system.simulation)
    columns["scope"] = ["run"] * len(columns["component"])
    columns["key"] = [None if key != key else key for key in columns["key"]]
    return columns


def simulation_columns(simulation: Any) -> dict[str, list[Any]]:
    """The statistics of all components, also of those that other processes run."""
    columns: dict[str, list[Any]] = simulation.statistics()
    if processes.together() is None:
        return columns
    return processes.gathered_columns(columns, simulation.component_names())


def explain_deadlock(report: dict[str, Any]) -> str:
    """Who waits for what, and the circle they wait in if there is one."""
    waits: list[tuple[str, str, str]] = report["waits"]
    at = units.humanize(report["now"], units.TIME)
    lines = [f"deadlock at {at}: no event is left, but {len(waits)} wait"]
    for component, what, holder in waits[:20]:
        lines.append(f"  {component}: {what}" + (f" (held by {holder})" if holder else ""))
    if len(waits) > 20:
        lines.append(f"  … and {len(waits) - 20} more")
    circle = _circle({component: holder for component, _, holder in waits if holder})
    if circle:
        lines.append("  they wait in a circle: " + " -> ".join([*circle, circle[0]]))
    return "\n".join(lines)


def _circle(waits_for: dict[str, str]) -> list[str]:
    done: set[str] = set()
    for first in waits_for:
        path: list[str] = []
        at = first
        while at in waits_for and at not in done:
            if at in path:
                return path[path.index(at) :]
            path.append(at)
            at = waits_for[at]
        done.update(path)
    return []


@contextlib.contextmanager
def core_errors() -> Iterator[None]:
    """What the core says against a run, without a traceback of its own."""
    try:
        yield
    except _core.SimulationError as error:
        raise ManyscaleError(str(error)) from None
    except MemoryError as error:
        raise host_memory.shortage(error, "the simulation") or error from None
