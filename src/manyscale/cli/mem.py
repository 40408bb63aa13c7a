# SPDX-License-Identifier: Apache-2.0
"""Commands on memory systems: run a pattern or a trace, and measure latency against load."""

from __future__ import annotations

import csv as csv_files
import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from manyscale.cli.console import emit_json, say, simulated, tables
from manyscale.cli.listing import print_table
from manyscale.cli.options import Changes, Force, Json, Machine, Out, Quiet, Replace, Seed, Threads
from manyscale.cli.run import output_directory
from manyscale.errors import KEPT_AFTER, InputError
from manyscale.results.files import FileKind, as_text, check_output, write_file

if TYPE_CHECKING:
    from manyscale.machine import ResolvedMachine
    from manyscale.machine.memory import MemoryWorkload
    from manyscale.system import Result, System
    from manyscale.workloads import MemoryTrace

commands = typer.Typer(name="mem", help="Simulate a machine's memory: caches, interconnect, DRAM.")

_PATTERNS = "stream, triad, stride, random, chase, gups"
_CURVE_INTERVALS = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)  # cycles between two issues of a core
_CURVE_COLUMNS = ("interval_cycles", "bandwidth_bytes_per_second", "latency_seconds")
_CURVE = FileKind.csv(*_CURVE_COLUMNS)
_FEMTOSECONDS = 10**15

Accesses = Annotated[
    int, typer.Option("--accesses", min=0, metavar="N", help="Accesses that each core makes.")
]
Footprint = Annotated[
    str, typer.Option("--footprint", metavar="SIZE", help="Memory that each core touches, such as 16MiB.")
]
Cores = Annotated[
    int | None, typer.Option("--cores", metavar="N", help="Cores, as --set memory.cores=N would say.")
]


@commands.command()
def run(
    machine: Machine,
    pattern: Annotated[
        str | None,
        typer.Argument(metavar="PATTERN", help=f"What each core does: {_PATTERNS}, or trace FILE."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The trace of the first core, if PATTERN is trace."),
    ] = None,
    traces: Annotated[
        list[Path] | None,
        typer.Option("--trace", metavar="FILE", help="A trace to run; repeated, one for each core."),
    ] = None,
    changes: Changes = None,
    accesses: Accesses = 100_000,
    footprint: Footprint = "16MiB",
    stride: Annotated[
        str, typer.Option("--stride", metavar="SIZE", help="Distance of two accesses of the pattern stride.")
    ] = "64B",
    writes: Annotated[
        float, typer.Option("--writes", metavar="SHARE", help="Share of stores (stream, stride, random).")
    ] = 0.0,
    shared: Annotated[
        bool, typer.Option("--shared", help="All cores use the same memory, and not a region each.")
    ] = False,
    cores: Cores = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="N", help="Outstanding accesses of a core at most (memory.core.window)."
        ),
    ] = None,
    threads: Threads = 1,
    seed: Seed = None,
    out: Out = None,
    force: Replace = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Also write what happened when, to look at in ui.perfetto.dev.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a pattern or a trace on a machine's memory and leave a run directory."""
    from manyscale.cli.forecast import ACCESSES, warn_if_long
    from manyscale.cli.progress import SimulationProgress
    from manyscale.machine.completing import completed_toml
    from manyscale.machine.loading import TRAFFIC
    from manyscale.machine.memory import build_memory
    from manyscale.machine.memory_summary import headline, summary
    from manyscale.results.definitions import plain

    files = [*([] if file is None else [file]), *(traces or [])]
    pattern = _chosen(pattern, files)
    resolved = _machine(machine, changes, {"memory.cores": cores, "memory.core.window": window})
    loaded = _read_traces(files, resolved)
    workload = _workload(
        pattern=pattern, accesses=accesses, footprint=footprint, stride=stride, writes=writes, shared=shared
    )
    system = build_memory(
        resolved.machine, workload, traces=[trace.records for trace in loaded], seed=seed or 0
    )
    resolved.check_read(TRAFFIC)
    if not loaded:
        count = getattr(resolved.machine.memory, "cores", None) or 1
        warn_if_long(count * accesses, "accesses", ACCESSES, "--accesses or --cores")
    text = completed_toml(resolved, system)
    with (
        output_directory(out, f"mem-{pattern}", quiet, force=force) as directory,
        SimulationProgress(f"{pattern} on {resolved.machine.name}", None, quiet) as progress,
    ):
        result = _run(system, directory, text, _workload_facts(workload, loaded), threads, timeline, progress)
    facts = summary(system, result) | {"directory": str(directory)}
    if json:
        emit_json(facts | plain(headline(facts, result)))
    elif not quiet:
        _print(facts)


@commands.command()
def curve(
    machine: Machine,
    pattern: Annotated[
        str, typer.Option("--pattern", metavar="PATTERN", help=f"What each core does: {_PATTERNS}.")
    ] = "random",
    changes: Changes = None,
    accesses: Accesses = 5_000,
    footprint: Footprint = "64MiB",
    writes: Annotated[float, typer.Option("--writes", metavar="SHARE", help="Share of stores.")] = 0.0,
    cores: Cores = None,
    threads: Threads = 1,
    seed: Seed = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the points to this CSV file.")
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure latency against bandwidth: the cores issue more and more often, a run for each point."""
    from manyscale.machine.loading import TRAFFIC
    from manyscale.machine.memory import build_memory
    from manyscale.machine.memory_summary import summary
    from manyscale.units import BANDWIDTH, TIME, humanize

    workload = _workload(pattern=pattern, accesses=accesses, footprint=footprint, writes=writes)
    points: list[dict[str, Any]] = []
    if csv is not None:
        check_output(csv, _CURVE, force=force)  # before the work, so that a wrong name costs none
    for interval in _CURVE_INTERVALS:
        wanted = {"memory.cores": cores, "memory.core.interval": interval}
        resolved = _machine(machine, changes, wanted)
        system = build_memory(resolved.machine, workload, seed=seed or 0)
        resolved.check_read(TRAFFIC)
        facts = summary(system, system.run(threads=threads))
        seconds = facts["simulated_seconds"]
        moved = sum(channel["bytes"] for channel in facts["channels"])
        point = (interval, moved / seconds if seconds else 0.0, facts["latency_seconds"])
        points.append(dict(zip(_CURVE_COLUMNS, point, strict=True)))
    if csv is not None:
        _write_csv(csv, points, force)
        say(f"Wrote {len(points)} points to {csv}", quiet=quiet or json)
    if json:
        emit_json({"machine": machine, "pattern": pattern, "points": points})
    elif not quiet:
        print_table(
            f"{pattern} on {machine}: memory bandwidth and mean latency of an access",
            ("cycles between issues", "bandwidth", "latency"),
            [
                (
                    str(point["interval_cycles"]),
                    humanize(round(point["bandwidth_bytes_per_second"]), BANDWIDTH),
                    humanize(round((point["latency_seconds"] or 0) * _FEMTOSECONDS), TIME),
                )
                for point in points
            ],
        )


def _chosen(pattern: str | None, files: Sequence[Path]) -> str:
    if pattern is None and not files:
        raise InputError(f"say what to run: a pattern ({_PATTERNS}) or trace FILE")
    if pattern not in (None, "trace") and files:
        raise InputError(f"give a pattern or a trace, not both: {pattern} and {files[0]}")
    if pattern == "trace" and not files:
        raise InputError("the pattern trace needs a file: manyscale mem run trace FILE")
    return pattern or "trace"


def _machine(name: str, changes: Sequence[str] | None, wanted: dict[str, int | None]) -> ResolvedMachine:
    from manyscale.machine import load_machine

    options = [f"{path}={value}" for path, value in wanted.items() if value is not None]
    return load_machine(name, [*(changes or ()), *options])


def _read_traces(files: Sequence[Path], resolved: ResolvedMachine) -> list[MemoryTrace]:
    from manyscale.workloads import read_memory_trace

    memory = resolved.machine.memory
    first = None if memory is None else memory.l1
    # Without an L1 an error follows that names it.
    return [read_memory_trace(path, getattr(first, "line", 64)) for path in files]


def _workload(**parameters: Any) -> MemoryWorkload:
    from manyscale.machine.memory import MemoryWorkload
    from manyscale.spec import build

    return build(MemoryWorkload, parameters, "command line")


def _workload_facts(workload: MemoryWorkload, traces: Sequence[MemoryTrace]) -> dict[str, Any]:
    """What the run directory keeps of the workload."""
    from manyscale.spec import dump

    facts = {"kind": "memory", **dump(workload)}
    if traces:
        facts["traces"] = [
            {
                "name": trace.name,
                "accesses": trace.accesses,
                "hash": hashlib.sha256(trace.records).hexdigest(),
            }
            for trace in traces
        ]
    return facts


def _run(
    system: System,
    directory: Path,
    machine: str,
    workload: dict[str, Any],
    threads: int,
    timeline: bool,
    progress: Callable[[int, int], None],
) -> Result:
    """Runs the system and leaves a run directory whose machine.toml is the machine, not the system."""
    from manyscale.machine.memory_summary import headline, summary
    from manyscale.results import RunWriter
    from manyscale.system import running

    command = ["manyscale", *sys.argv[1:]]
    with RunWriter(directory, command=command, workload=workload, seed=system.seed) as writer:
        writer.write_machine(machine)
        if timeline:
            system.simulation.enable_timeline()
        try:
            result = system.run(threads=threads, progress=progress)
        except KEPT_AFTER:
            running.keep_partial(writer, lambda: running.statistics_columns(system))
            raise
        writer.write_stats(result.columns)
        if timeline:
            running.write_timeline(system, writer)
        writer.finish(headline(summary(system, result), result))
    return result


def _print(summary: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    wall = summary["wall_seconds"]
    rate = f"{_count(summary['accesses'] / wall)} accesses/s" if wall else ""
    facts = {
        "simulated": simulated(_time(summary["simulated_seconds"]), wall, None, rate),
        "accesses": f"{summary['accesses']:,}",
        "mean latency": _time(summary["latency_seconds"]),
        "bandwidth": _rate(summary["bandwidth_bytes_per_second"]),
        "directory": summary["directory"],
    }
    grid = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        grid.add_row(name, Text(fact, overflow="fold"))
    tables().print(grid)
    causes = ("cold", "capacity", "conflict", "coherence")
    print_table(
        "Caches",
        (
            "level",
            "accesses",
            "hit rate",
            *causes,
            "merged",
            "miss latency",
            "MSHRs used (most)",
            "to below",
            "queueing",
        ),
        [
            (
                level["level"],
                f"{level['accesses']:,}",
                "-" if level["hit_rate"] is None else f"{level['hit_rate']:.2%}",
                *(f"{level['misses'][cause]:,}" for cause in causes),
                f"{level['merged']:,}",
                _time(level["miss_latency_seconds"]),
                f"{level['outstanding_mean']:.1f} ({level['outstanding_max']:.0f})",
                _rate(level["bandwidth_bytes_per_second"]),
                _time(level["queueing_seconds"]),
            )
            for level in summary["levels"]
        ],
    )
    network = summary["interconnect"]
    if network is not None:
        print_table(
            "Interconnect",
            ("messages", "bandwidth", "latency", "queueing"),
            [
                (
                    f"{network['messages']:,}",
                    _rate(network["bandwidth_bytes_per_second"]),
                    _time(network["latency_seconds"]),
                    _time(network["queueing_seconds"]),
                )
            ],
        )
    counts = ("reads", "writes", "row_hits", "row_misses", "row_conflicts")
    print_table(
        "Channels",
        ("channel", *(name.replace("_", " ") for name in counts), "bandwidth", "read latency", "queueing"),
        [
            (
                channel["channel"],
                *(f"{channel[name]:,}" for name in counts),
                _rate(channel["bandwidth_bytes_per_second"]),
                _time(channel["read_latency_seconds"]),
                _time(channel["queueing_seconds"]),
            )
            for channel in summary["channels"]
        ],
    )


def _time(seconds: float | None) -> str:
    from manyscale.units import TIME, humanize

    return "-" if seconds is None else humanize(round(seconds * _FEMTOSECONDS), TIME)


def _rate(bytes_per_second: float) -> str:
    from manyscale.units import BANDWIDTH, humanize

    return humanize(round(bytes_per_second), BANDWIDTH) if bytes_per_second else "-"


def _count(value: float) -> str:
    from manyscale.units import COUNT, humanize

    return humanize(round(value), COUNT)


def _write_csv(path: Path, points: Sequence[dict[str, Any]], force: bool) -> None:
    def write(file: TextIO) -> None:
        writer = csv_files.DictWriter(file, _CURVE_COLUMNS)
        writer.writeheader()
        writer.writerows(points)

    write_file(path, as_text(write), _CURVE, force=force)
