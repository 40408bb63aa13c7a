# SPDX-License-Identifier: Apache-2.0
"""Playing a recorded trace on simulated cores: as recorded, on another machine, replicated, or task by task."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyscale import _core
from manyscale.cpu.line_times import transfer_time
from manyscale.cpu.result import CpuResult, Process
from manyscale.cpu.running import counting
from manyscale.cpu.task_assignments import TaskAssignments, read_task_assignments
from manyscale.cpu.trace import Trace
from manyscale.cpu.traced_program import TracedProgram
from manyscale.errors import KEPT_AFTER, DeadlockError, InputError, ManyscaleError, nearest
from manyscale.guard import temporary_folder
from manyscale.machine import ResolvedMachine, load_machine
from manyscale.machine.completing import completed_toml
from manyscale.machine.cpu_system import CpuSystem, build_cpu, openmp_of
from manyscale.machine.loading import PROGRAMS
from manyscale.results import RunWriter
from manyscale.system.dram_over_time import dram_buses
from manyscale.system.running import keep_partial, statistics_columns

SCHEDULERS = ("recorded", "fifo", "work_stealing", "locality", "critical_path", "task2core")
_ADDRESS_BITS = 64
_SECOND = 10**15  # femtoseconds
# How far cores compute ahead of each other where the machine does not state it. What threads do is recorded, so
# it cannot change who wins a race, as it could in a run of the program: only lines that several cores write may be
# given up a little later.
_QUANTUM = "32ns"


def replay(
    trace: Trace | str | os.PathLike[str],
    *,
    machine: str | Path | ResolvedMachine | None = None,
    changes: Sequence[str] = (),
    cores: int | None = None,
    replicate: int = 1,
    offset: bool = True,
    shared: Sequence[tuple[int, int] | str] | None = None,
    scheduler: str = "fifo",
    task2core: str | os.PathLike[str] | TaskAssignments | None = None,
    overheads: Mapping[str, Any] | None = None,
    threads: int = 1,
    seed: int = 0,
    hot_lines: bool = False,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
) -> CpuResult:
    """Plays a trace on cores of a machine, which is the one it was recorded on if none is given.

    `replicate`: so many copies of all streams are played side by side, each on its own share of the cores. With
    `offset` the private data of each copy has addresses of its own, and only `shared` ranges (begin, end; or texts such
    as "0x1000-0x2000"; those that several threads touched if None) are the same for all; without, all copies touch the
    same addresses. `scheduler` decides which core executes a task that may run: with `fifo` the first that has nothing
    else to do, as OpenMP's runtime does; or one chosen as `work_stealing`, `locality`, `critical_path`; with
    `recorded` the one that did when it was recorded; or as `task2core` does, a file of lines "task core", or pairs.
    `overheads` are parameters of `cpu.trace` such as `barrier_latency`; what is not given is as it was measured when
    the trace was recorded.
    """
    opened = contextlib.nullcontext(trace) if isinstance(trace, Trace) else Trace(trace)
    with opened as played:
        resolved = machine if isinstance(machine, ResolvedMachine) else machine_of(played, machine, changes)
        assignments = _assignments(played, scheduler, task2core)
        count = played.header.cores * replicate if cores is None else cores
        if replicate < 1 or count % replicate:
            raise InputError(f"{count} cores cannot be divided among {replicate} copies of the trace")
        parameters: dict[str, Any] = dict(played.overheads) | _queue_latencies(
            played, resolved, count // replicate
        )
        parameters |= dict(overheads or {})
        parameters |= {"copies": replicate, "offset": offset, "scheduler": scheduler}
        watching: dict[str, Any] = {"hot_lines": True} if hot_lines else {}
        stated = resolved.machine.cpu and resolved.machine.cpu.core
        if getattr(stated, "quantum", None) is None:
            watching["quantum"] = _QUANTUM
        parts = build_cpu(resolved.machine, count, seed=seed, trace=_latencies(parameters), **watching)
        resolved.check_read(PROGRAMS)
        columns = played.native_columns()
        if shared is not None:
            columns |= _shared_columns(shared)
        source = _BlockSource(played)
        titles = [region.title for region in played.regions]
        try:
            _core.cpu_play(
                parts.program.native, columns, titles, source, assignments, _slower_hits(played, parts)
            )
        except _core.SimulationError as error:
            raise InputError(f"{played.path}: {error}") from None
        if out is None:
            return _simulate(played, parts, source, threads, progress, None)
        facts = played.header.program.model_dump() | {
            "kind": "cpu-trace",
            "cores": count,
            "copies": replicate,
            "scheduler": scheduler,
        }
        with RunWriter(out, command=list(command) or sys.argv, workload=facts, seed=seed) as writer:
            writer.write_machine(completed_toml(resolved, parts.system))
            try:
                result = _simulate(played, parts, source, threads, progress, writer.directory)
            except KEPT_AFTER:
                keep_partial(writer, lambda: statistics_columns(parts.system))
                raise
            writer.write_stats(result.columns)
            result.write_tables(writer)
            writer.finish(result.headline)
        return result


def _queue_latencies(trace: Trace, machine: ResolvedMachine, cores: int) -> dict[str, int]:
    """What the task queue costs on this machine where tasks of one recorded core are scheduled on several.

    Cores meet at the lock of OpenMP's queue of tasks. Its holder takes some cycles, and for a task also lines of the
    queue that others had last. It takes longer while others poll the lock: for each of them some cycles and a part of
    the time that a line takes from core to core.
    """
    if cores == 1 or trace.header.cores > 1 or not trace.columns["stream.is_task"].any():
        return {}
    runtime = openmp_of(machine)
    transfer = transfer_time(machine)
    clock = machine.machine.cpu and machine.machine.cpu.clock
    cycle = _SECOND // (clock or 10**9)
    own = runtime.queue_lock * cycle
    return {
        "queue_latency": own + runtime.queue_lines * transfer,
        "failed_dequeue_latency": own,
        "failed_dequeue_contention_latency": runtime.polling * cycle
        + round(runtime.polling_lines * transfer),
    }


def _slower_hits(trace: Trace, parts: CpuSystem) -> int:
    """Cycles that an L1 hit takes longer than on the machine recorded on."""
    size, cycles = _core.cpu_l1_size_and_latency(parts.cores[0].native)
    counted = trace.statistics
    filtered = counted.get("filter_bytes", counted.get("near_bytes", 0))  # the latter in older files
    if size < filtered:
        raise InputError(
            f"{trace.path}: accesses that hit an L1 filter cache of {filtered} bytes are not in the trace, but the L1 "
            f"cache holds {size} bytes only; record it with filter_l1={size} or less"
        )
    return int(cycles - trace.statistics.get("hit_cycles", cycles))


class _BlockSource:
    """Gives the core blocks while it plays, and keeps the first error for who asked for the replay."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.error: BaseException | None = None

    def __call__(self, stream: int, number: int) -> bytes:
        try:
            return self._trace.block(stream, number)
        except BaseException as error:
            self.error = self.error or error
            raise


def _simulate(
    trace: Trace,
    parts: CpuSystem,
    source: _BlockSource,
    threads: int,
    progress: Callable[[int, int], None] | None,
    directory: Path | None,
) -> CpuResult:
    try:
        total = trace.instructions
        run = parts.system.run(threads=threads, progress=counting(progress, parts, threads, total))
    except (DeadlockError, MemoryError):
        raise
    except ManyscaleError as error:
        # The core holds the source, which must not hold what refers to the core.
        failure, source.error = source.error, None
        raise failure or trace.refusal(str(error)) from None
    details: dict[str, Any] = _core.cpu_core_details([core.native for core in parts.cores])
    details["regions"] = [region.model_dump() for region in trace.regions]
    details["tasks"] = []
    details["task_runs"] = _core.cpu_task_runs(parts.program.native)
    details["konata"] = [""] * len(parts.cores)
    details["dram"] = dram_buses(parts.system)
    program = TracedProgram.of(trace)
    return CpuResult(program, [Process(trace.run.exit_code, b"", b"")], details, run, parts.clock, directory)


def machine_of(trace: Trace, machine: str | Path | None, changes: Sequence[str]) -> ResolvedMachine:
    """A machine with changes; the one that the trace was recorded on if none is named."""
    if machine is not None:
        return load_machine(machine, changes)
    text = trace.header.machine_toml
    if not text:
        raise InputError(f"{trace.path}: the trace names no machine; say which one to replay it on")
    return _recorded_machine(text, tuple(changes))


@functools.lru_cache(maxsize=16)
def _recorded_machine(text: str, changes: tuple[str, ...]) -> ResolvedMachine:
    """The machine of a trace's header; studies replay one trace many times."""
    with temporary_folder() as folder:
        path = folder / "recorded.toml"
        path.write_text(text)
        return replace(load_machine(path, changes), own=frozenset())  # no file of the user's


def _assignments(
    trace: Trace, scheduler: str, task2core: str | os.PathLike[str] | TaskAssignments | None
) -> list[tuple[int, int]]:
    if scheduler not in SCHEDULERS:
        raise InputError(f"there is no scheduler '{scheduler}'; {nearest(scheduler, SCHEDULERS)}")
    if (scheduler == "task2core") != (task2core is not None):
        raise InputError("the scheduler task2core needs a list of tasks and cores, and no other takes one")
    if task2core is None:
        return []
    if isinstance(task2core, str | os.PathLike):
        return read_task_assignments(task2core)
    return [(int(task), int(core)) for task, core in task2core]


def _latencies(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of `cpu.trace`; whole numbers that are times are femtoseconds."""
    return {
        name: f"{value}fs" if name.endswith("_latency") and isinstance(value, int) else value
        for name, value in parameters.items()
    }


def _shared_columns(shared: Sequence[tuple[int, int] | str]) -> dict[str, bytes]:
    ranges = sorted(_address_range(given) for given in shared)
    columns = {"shared.begin": b"", "shared.end": b""}
    for begin, end in ranges:
        columns["shared.begin"] += begin.to_bytes(8, "little")
        columns["shared.end"] += end.to_bytes(8, "little")
    return columns


def _address_range(given: tuple[int, int] | str) -> tuple[int, int]:
    if isinstance(given, str):
        first, dash, last = given.partition("-")
        try:
            begin, end = int(first, 0), int(last, 0)
        except ValueError:
            dash = ""
        if not dash:
            raise InputError(f"'{given}' is no range of addresses; write such as 0x10000-0x20000")
    else:
        begin, end = given
    if not 0 <= begin < end <= 1 << _ADDRESS_BITS:
        raise InputError(f"the range of addresses {begin:#x}-{end:#x} is empty or out of bounds")
    return begin, end
