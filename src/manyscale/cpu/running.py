# SPDX-License-Identifier: Apache-2.0
"""Running a RISC-V program: with time on a simulated processor, or without."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manyscale import _core
from manyscale.cpu.listing import Labels
from manyscale.cpu.openmp import watch_points
from manyscale.cpu.program import Program
from manyscale.cpu.result import CpuResult, FunctionalResult, Process
from manyscale.errors import DeadlockError, InputError, ManyscaleError, ProgramError
from manyscale.machine import ResolvedMachine, load_machine, to_toml
from manyscale.machine.cpu_system import CpuSystem, build_cpu
from manyscale.machine.memory import complete
from manyscale.results import RunWriter
from manyscale.system.running import statistics_columns

DEFAULT_MACHINE = "broadwell"
KONATA_FILE = "pipeline.kanata"

Work = Program | str | os.PathLike[str]


def run(
    program: Work,
    *,
    machine: str | Path | ResolvedMachine = DEFAULT_MACHINE,
    changes: Sequence[str] = (),
    cores: int | None = None,
    threads: int = 1,
    seed: int = 0,
    regions: bool = True,
    hot_lines: bool = False,
    konata: tuple[int, int] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
) -> CpuResult:
    """Runs a program on so many cores of a machine, with changes such as "cpu.core.rob=64".

    `threads` are those of the host, on which results do not depend. `regions`: OpenMP constructs are told apart.
    `hot_lines`: cycles of each instruction are kept. `konata`: the first instruction of each core, and how many, of
    which a log of the pipeline is kept. With `out`, leaves a run directory.
    """
    program = _program(program)
    resolved = machine if isinstance(machine, ResolvedMachine) else load_machine(machine, changes)
    watching: dict[str, Any] = {"hot_lines": True} if hot_lines else {}
    if konata is not None:
        watching |= {"konata_from": konata[0], "konata_count": konata[1]}
    parts = build_cpu(resolved.machine, cores, seed=seed, **watching)
    with _program_errors(program, lambda: None):
        _core.cpu_launch(parts.program.native, _launch(program, regions))
    if out is None:
        return _simulate(program, parts, threads, progress, None)
    facts = program.description() | {"cores": len(parts.cores)}
    with RunWriter(out, command=list(command) or sys.argv, workload=facts, seed=seed) as writer:
        writer.write_machine(to_toml(*complete(resolved.machine, resolved.sources, parts.system)))
        try:
            result = _simulate(program, parts, threads, progress, writer.directory)
        except (KeyboardInterrupt, DeadlockError, ProgramError):
            writer.partial(statistics_columns(parts.system))
            raise
        writer.write_stats(result.columns)
        result.write_tables(writer.directory)
        result.write_konata(writer.directory / KONATA_FILE)
        writer.finish(result.headline)
    return result


def run_functional(
    program: Work,
    *,
    cores: int = 1,
    seed: int = 0,
    regions: bool = False,
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FunctionalResult:
    """Runs a program without time: what it writes, how it ends, how many instructions it executes.

    It sees `cores` cores. `limit` is the number of instructions after which it is given up.
    """
    program = _program(program)
    if cores < 1:
        raise InputError(f"a program cannot run on {cores} cores; give at least 1")
    began = time.perf_counter()
    with _program_errors(program, lambda: None):
        native = _core.CpuFunctionalRun(_launch(program, regions), cores, seed)
    with _program_errors(program, native.failure):
        outcome = native.run(0 if limit is None else limit, progress)
    wall = time.perf_counter() - began
    if outcome == "interrupted":
        raise KeyboardInterrupt
    if outcome == "limit":
        raise ProgramError(f"{program.path}: it was given up after {native.instructions:,} instructions")
    processes = [Process(*process) for process in native.processes()]
    return FunctionalResult(program, processes, wall, native.instructions, native.details())


def _program(work: Work) -> Program:
    return work if isinstance(work, Program) else Program(work)


def _launch(program: Program, regions: bool) -> dict[str, Any]:
    points = watch_points(program.symbols.addresses) if regions else []
    return program.launch() | {"watch": points}


def _simulate(
    program: Program,
    parts: CpuSystem,
    threads: int,
    progress: Callable[[int, int], None] | None,
    directory: Path | None,
) -> CpuResult:
    with _program_errors(program, lambda: _core.cpu_failure(parts.program.native)):
        run = parts.system.run(threads=threads, progress=progress)
    processes = [Process(*process) for process in _core.cpu_processes(parts.program.native)]
    cores = [core.native for core in parts.cores]
    details: dict[str, Any] = _core.cpu_details(parts.program.native, cores)
    label = functools.cache(Labels(program))
    details["konata"] = [_core.cpu_konata(core, label) for core in cores]
    return CpuResult(program, processes, details, run, parts.clock, directory)


@contextmanager
def _program_errors(program: Program, failure: Callable[[], dict[str, Any] | None]) -> Iterator[None]:
    """What the core says against a program, with the function and line where it was."""
    try:
        yield
    except _core.BadProgram as error:
        raise InputError(str(error)) from None
    except (ManyscaleError, _core.SimulationError) as error:
        found = failure()
        if found is None:
            raise error if isinstance(error, ManyscaleError) else ManyscaleError(str(error)) from None
        raise ProgramError(_explained(program, found)) from None


def _explained(program: Program, failure: dict[str, Any]) -> str:
    who = f" (process {failure['process']}, thread {failure['thread']})" if failure["several"] else ""
    return f"{program.path}{who}: {failure['what']}, at {program.symbols.place(failure['pc'])}"
