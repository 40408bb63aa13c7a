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

from manyscale import _core
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
from manyscale.cpu.trace_file import COLUMN_TYPES, TraceWriter
from manyscale.machine import ResolvedMachine, load_machine, to_toml
from manyscale.machine.cpu_system import CpuSystem, build_cpu
from manyscale.results.run_directory import package_version

_SECOND = 10**15  # femtoseconds
# What constructs of OpenMP's runtime take where a run without time cannot tell: cycles by parameter of a replay, as
# measured with four threads on the machine elasticsimmate.
_TYPICAL_CYCLES = {
    "fork_latency": 640,
    "join_latency": 72,
    "barrier_latency": 430,
    "lock_latency": 40,
    "unlock_latency": 20,
    "create_latency": 75,
    "taskwait_latency": 40,
}
# Which parameter stands for the time that a region of this kind takes at least, which is that of who comes last.
_SHORTEST = {
    "barrier": "barrier_latency",
    "critical_wait": "lock_latency",
    "lock": "lock_latency",
    "task_create": "create_latency",
    "taskwait": "taskwait_latency",
}
# … and where no region tells the time, for the instructions that were left out for a kind of sync node: of all of them
# where nobody waits, of the one with the fewest where they may.
_ALL_INSTRUCTIONS = {"fork": "fork_latency", "release": "unlock_latency"}
_LEAST_INSTRUCTIONS = {"join": "join_latency", "barrier": "barrier_latency", "acquire": "lock_latency"}


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
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
) -> RecordingSummary:
    """Runs a program and leaves its trace in the file `out`.

    `functional`: it is run without time, which is quicker, but then threads take turns and not the time that they
    would: what depends on who comes first (dynamic schedules, tasks) is another possible outcome. The machine counts
    either way: its latencies and its branch predictor are in the trace. `limit` is the number of instructions after
    which a run without time is given up.
    """
    work = as_program(program)
    resolved = machine if isinstance(machine, ResolvedMachine) else load_machine(machine, changes)
    parts = build_cpu(resolved.machine, cores, seed=seed)
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
    writer = TraceWriter(out, _header(work, resolved, parts, functional, seed, command))
    try:
        recorder = _core.CpuRecorder(recorded, parts.cores[0].native, writer.add)
        try:
            result = run()
        except BaseException:
            recorder.rethrow()  # where the file could not be written, that is why the run ended
            raise
        recorder.finish()
        return _finish(work, recorder, result, parts.clock, writer)
    except BaseException:
        writer.abandon()
        raise


def _finish(
    program: Program,
    recorder: Any,
    result: CpuResult | FunctionalResult,
    clock: int,
    writer: TraceWriter,
) -> RecordingSummary:
    given = recorder.columns()
    columns = {name: np.frombuffer(column, COLUMN_TYPES[name]) for name, column in given.items()}
    size = writer.finish(_facts(program, recorder, result, clock), columns)
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
    program: Program, recorder: Any, result: CpuResult | FunctionalResult, clock: int
) -> dict[str, Any]:
    sync = [
        dict(zip(("kind", "nodes", "instructions", "least_instructions"), row, strict=True))
        for row in recorder.sync_costs()
    ]
    timed = result if isinstance(result, CpuResult) else None
    return {
        "statistics": recorder.statistics(),
        "sync": sync,
        "overheads": _overheads(sync, result, clock),
        "regions": [region_facts(program.symbols, region) for region in recorder.regions()],
        "run": {
            "exit_code": result.exit_code,
            "instructions": result.instructions,
            "cycles": None if timed is None else timed.cycles,
            "seconds": None if timed is None else timed.simulated_seconds,
        },
    }


def region_facts(symbols: Symbols, region: dict[str, Any]) -> dict[str, Any]:
    """A region with its place in the source, so that a trace can be read without its program."""
    place = symbols.place(region["pc"])
    return region | {
        "function": place.function,
        "offset": place.offset,
        "file": place.file,
        "line": place.line,
    }


def _overheads(
    sync: list[dict[str, Any]], result: CpuResult | FunctionalResult, clock: int
) -> dict[str, int]:
    """Femtoseconds that constructs took, by parameter of a replay."""
    if not isinstance(result, CpuResult):
        return {name: cycles * _SECOND // clock for name, cycles in _TYPICAL_CYCLES.items()}
    found: dict[str, int] = {}
    for row in sync:
        kind, count = row["kind"], row["nodes"]
        if count and kind in _ALL_INSTRUCTIONS:
            found[_ALL_INSTRUCTIONS[kind]] = row["instructions"] * _SECOND // (count * clock)
        elif count and kind in _LEAST_INSTRUCTIONS:
            found[_LEAST_INSTRUCTIONS[kind]] = row["least_instructions"] * _SECOND // clock
    measured: dict[str, int] = {}
    table = result.regions
    for kind, shortest in zip(table["kind"], table["shortest"], strict=True):
        name = _SHORTEST.get(kind)
        if name is not None and shortest is not None:
            time = round(shortest * _SECOND)
            measured[name] = min(time, measured.get(name, time))
    return found | measured
