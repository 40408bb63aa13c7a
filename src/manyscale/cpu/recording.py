# SPDX-License-Identifier: Apache-2.0
"""Recording a program as a trace, from a run with time or without."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manyscale import _core, units
from manyscale.cpu.program import Program
from manyscale.cpu.result import CpuResult, FunctionalResult
from manyscale.cpu.running import (
    DEFAULT_MACHINE,
    Work,
    as_program,
    finish_functional,
    launch_of,
    program_errors,
    simulate,
    start_functional,
)
from manyscale.cpu.symbols import Symbols
from manyscale.cpu.trace_file import COLUMN_TYPES, TRACE, TraceWriter
from manyscale.errors import InputError
from manyscale.machine import ResolvedMachine, load_machine, to_toml
from manyscale.machine.cpu_system import CpuSystem, build_cpu, compaction_of, openmp_of
from manyscale.machine.loading import PROGRAMS
from manyscale.results.files import check_output
from manyscale.results.run_directory import package_version
from manyscale.spec import dump

_SECOND = 10**15  # femtoseconds
_REGION_LOG = 500_000  # beginnings and ends of regions that each core keeps, to measure what constructs take
# Parameters of a replay by the parameter of the machine's [cpu.openmp] that states their cycles.
_LATENCIES = {
    "fork_latency": "fork",
    "join_latency": "join",
    "barrier_latency": "barrier",
    "lock_latency": "lock",
    "create_latency": "create",
    "schedule_latency": "schedule",
    "taskwait_latency": "taskwait",
    "thread_latency": "thread",
    "await_latency": "event",
    "wake_latency": "wake",
    "pool_latency": "pool",
    "worker_latency": "worker",
}
_NODE_CYCLES = 10  # that a sync node takes by itself in a replay
_LARGEST_FILTER = 1 << 24  # bytes
_MOST_WAITING = 3  # times the least that a construct took; where more is usual, it waited for another thread


@dataclass(frozen=True)
class RecordingSummary:
    """What was recorded, and how large it became."""

    path: Path
    instructions: int  # that nodes stand for
    nodes: int
    threads: int
    tasks: int
    bytes: int  # of the file
    block_bytes: int  # before they were packed
    left_out: int  # instructions of OpenMP's runtime, and of threads outside parallel regions
    exit_code: int
    stdout: str
    wall_seconds: float

    @property
    def bytes_per_instruction(self) -> float:
        """Bytes of the file for each instruction that was recorded."""
        return self.bytes / self.instructions if self.instructions else 0.0

    @property
    def nodes_per_instruction(self) -> float:
        """How much was kept of what was executed."""
        return self.nodes / self.instructions if self.instructions else 0.0


def record(
    program: Work,
    out: str | os.PathLike[str],
    *,
    machine: str | Path | ResolvedMachine = DEFAULT_MACHINE,
    changes: Sequence[str] = (),
    cores: int | None = None,
    functional: bool = False,
    threads: int = 1,
    seed: int = 0,
    functions: Sequence[str] = (),
    limit: int | None = None,
    filter_l1: int | str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
) -> RecordingSummary:
    """Runs a program and leaves its trace in the file `out`, which appears when all is recorded.

    A trace of that name is replaced only with `force`, and another file never is.

    Accesses that hit an L1 filter cache are compacted into what needs them, so that a replay looks up no cache for
    them. `filter_l1` is the size of that cache, such as "4KiB": by default half of the machine's L1 cache; with 0 every
    access is kept. A trace can be replayed on L1 caches of that size and more.

    `functional`: it is run without time, which is quicker, but then threads take turns and not the time that they
    would: what depends on who comes first (dynamic schedules, tasks) is another possible outcome. The machine counts
    either way: its latencies and its branch predictor are in the trace. `limit` is the number of instructions after
    which a run without time is given up.
    """
    check_output(out, TRACE, force=force)
    work = as_program(program)
    resolved = machine if isinstance(machine, ResolvedMachine) else load_machine(machine, changes)
    watching: dict[str, Any] = {} if functional else {"region_log": _REGION_LOG}
    parts = build_cpu(resolved.machine, cores, seed=seed, **watching)
    typical = _typical_times(resolved, parts.clock)
    compaction = dump(compaction_of(resolved))
    resolved.check_read(PROGRAMS)
    recorded: Any
    run: Callable[[], CpuResult | FunctionalResult]
    if functional:
        recorded = start_functional(work, len(parts.cores), seed, True, functions)
        run = partial(finish_functional, work, recorded, limit, progress)
    else:
        recorded = parts.program.native
        with program_errors(work):
            _core.cpu_launch(recorded, launch_of(work, True, functions))
        run = partial(simulate, work, parts, threads, progress, None)
    writer = TraceWriter(out, _header(work, resolved, parts, functional, seed, command), force=force)
    try:
        recorder = _core.CpuRecorder(recorded, parts.cores[0].native, compaction, writer.add)
        if filter_l1 is not None:
            recorder.set_l1_filter(_filter_bytes(filter_l1))
        try:
            result = run()
        except BaseException:
            recorder.rethrow()  # where the file could not be written, that is why the run ended
            raise
        recorder.finish()
        return _finish(work, recorder, result, parts, typical, writer)
    except BaseException:
        writer.abandon()
        raise


def _filter_bytes(given: int | str) -> int:
    try:
        # Nothing needs no unit.
        size = units.parse(given, units.BYTES) if isinstance(given, str) and given != "0" else int(given)
    except InputError as error:
        raise InputError(f"filter_l1: {error}") from None
    if not 0 <= size <= _LARGEST_FILTER:
        largest = units.format(_LARGEST_FILTER, units.BYTES)
        raise InputError(f"filter_l1: {given} is not a size from 0 to {largest}")
    return int(size)


def _finish(
    program: Program,
    recorder: Any,
    result: CpuResult | FunctionalResult,
    parts: CpuSystem,
    typical: dict[str, int],
    writer: TraceWriter,
) -> RecordingSummary:
    unknown = recorder.statistics()["unknown_threads"]
    if unknown:
        raise InputError(
            f"{program.name}: {unknown} of its threads cannot be recorded, since nobody saw how they were made: "
            "threads of OpenMP (GCC's libgomp) and of pthreads are known by the names of their functions; link it "
            "statically, and leave its symbols in it"
        )
    given = recorder.columns()
    columns = {name: np.frombuffer(column, COLUMN_TYPES[name]) for name, column in given.items()}
    size = writer.finish(_facts(program, recorder, result, parts, typical), columns)
    counted = recorder.statistics()
    tasks = int(columns["stream.is_task"].sum())
    return RecordingSummary(
        path=writer.path,
        instructions=counted["instructions"],
        nodes=counted["nodes"],
        threads=len(columns["stream.is_task"]) - tasks,
        tasks=tasks,
        bytes=size,
        block_bytes=counted["block_bytes"],
        left_out=counted["runtime_instructions"] + counted["outside_instructions"],
        exit_code=result.exit_code,
        stdout=result.stdout,
        wall_seconds=result.wall_seconds,
    )


def _header(
    program: Program,
    resolved: ResolvedMachine,
    parts: CpuSystem,
    functional: bool,
    seed: int,
    command: Sequence[str],
) -> dict[str, Any]:
    return {
        "manyscale": package_version(),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": list(command) or sys.argv,
        "program": program.description(),
        "machine": resolved.machine.name or "",
        "machine_toml": to_toml(resolved.machine, resolved.sources),
        "clock": parts.clock,
        "cores": len(parts.cores),
        "functional": functional,
        "seed": seed,
    }


def _facts(
    program: Program,
    recorder: Any,
    result: CpuResult | FunctionalResult,
    parts: CpuSystem,
    typical: dict[str, int],
) -> dict[str, Any]:
    sync = recorder.sync_costs()
    timed = result if isinstance(result, CpuResult) else None
    return {
        "statistics": recorder.statistics(),
        "sync": sync,
        "overheads": _overheads(sync, result, parts, typical),
        "regions": [region_facts(program.symbols, region) for region in recorder.regions()],
        "run": {
            "exit_code": result.exit_code,
            "instructions": result.instructions,
            "cycles": None if timed is None else timed.cycles,
            "seconds": None if timed is None else timed.simulated_seconds,
        },
    }


def region_facts(symbols: Symbols, region: dict[str, Any]) -> dict[str, Any]:
    """A region with its source location, so that a trace can be read without its program."""
    location = symbols.locate(region["pc"])
    return region | {
        "function": location.function,
        "offset": location.offset,
        "file": location.file,
        "line": location.line,
    }


def _typical_times(machine: ResolvedMachine, clock: int) -> dict[str, int]:
    """Femtoseconds that constructs take on this machine, by parameter of a replay."""
    cycle = _SECOND // clock
    runtime = openmp_of(machine)
    return {name: getattr(runtime, source) * cycle for name, source in _LATENCIES.items()}


def _overheads(
    sync: list[dict[str, Any]],
    result: CpuResult | FunctionalResult,
    parts: CpuSystem,
    typical: dict[str, int],
) -> dict[str, int]:
    """Femtoseconds that constructs take without waiting for others, by parameter of a replay.

    They are measured, but for runs without time and those of several processes, whose threads cannot be told apart,
    and for what a recording cannot show: the making of threads that a replay adds to it, and what threads that share a
    core take to begin and to be woken.
    What threads do to form teams and to make tasks is in the trace of a run with time.
    """
    cycle = _SECOND // parts.clock
    if not isinstance(result, CpuResult):
        return typical
    names = ("pool_latency", "worker_latency", "thread_latency", "wake_latency")
    unseen = {name: typical[name] for name in names}
    if len(result.processes) > 1:
        return typical | {"fork_latency": 0, "create_latency": 0}
    measured = _core.cpu_construct_times(parts.program.native, [core.native for core in parts.cores])
    found = unseen | {name: max(0, time - _NODE_CYCLES * cycle) for name, time in measured}
    # Making tasks is in the trace. Of short tasks, most of what lies between two of them is waiting for one: the
    # least that was seen shows how much is not.
    found["create_latency"] = 0
    between = next(row for row in sync if row["kind"] == "schedule")
    if between["nodes"]:
        usual = between["instructions"] // between["nodes"]
        most = min(usual, _MOST_WAITING * between["least_instructions"]) * cycle
        found["schedule_latency"] = min(found.get("schedule_latency", most), most)
    return found
