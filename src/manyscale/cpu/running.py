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
from manyscale.cpu.interest import run_interest
from manyscale.cpu.listing import Labels
from manyscale.cpu.openmp import watch_points
from manyscale.cpu.program import Program
from manyscale.cpu.result import CpuResult, FunctionalResult, Process
from manyscale.errors import KEPT_AFTER, InputError, ManyscaleError, ProgramError, nearest
from manyscale.machine import ResolvedMachine, load_machine
from manyscale.machine.completing import completed_toml
from manyscale.machine.cpu_system import CpuSystem, build_cpu
from manyscale.machine.loading import PROGRAMS
from manyscale.results import RunWriter
from manyscale.system.dram_over_time import dram_buses
from manyscale.system.running import keep_partial, statistics_columns

DEFAULT_MACHINE = "broadwell"

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
    functions: Sequence[str] = (),
    roi: str | None = None,
    hot_lines: bool = False,
    konata: tuple[int, int] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
) -> CpuResult:
    """Runs a program on so many cores of a machine (one for each rank if not stated), with changes of parameters.

    Changes are such as "cpu.core.reorder_buffer=64". `threads` are those of the host, on which results do not depend.
    `regions`: OpenMP constructs are measured one by one, and so are the named `functions`. `hot_lines`: cycles of each
    instruction are kept. `konata`: the first instruction of each core, and how many, of which a log of the pipeline is
    kept. With `roi`, a region of interest (a mark of the program or a function), statistics are those of its visits.
    With `out`, leaves a run directory.
    """
    program = as_program(program)
    if roi is not None and roi in program.symbols.addresses:
        functions = [*functions, roi]
    resolved = machine if isinstance(machine, ResolvedMachine) else load_machine(machine, changes)
    watching: dict[str, Any] = {"hot_lines": True} if hot_lines else {}
    if konata is not None:
        watching |= {"konata_from": konata[0], "konata_count": konata[1]}
    parts = build_cpu(resolved.machine, cores or program.ranks, seed=seed, **watching)
    resolved.check_read(PROGRAMS)
    with program_errors(program):
        _core.cpu_launch(parts.program.native, launch_of(program, regions, functions))
    if out is None:
        return simulate(program, parts, threads, progress, None, roi)
    facts = program.description() | {"cores": len(parts.cores)}
    with RunWriter(out, command=list(command) or sys.argv, workload=facts, seed=seed) as writer:
        writer.write_machine(completed_toml(resolved, parts.system))
        try:
            result = simulate(program, parts, threads, progress, writer.directory, roi)
        except KEPT_AFTER:
            keep_partial(writer, lambda: statistics_columns(parts.system))
            raise
        writer.write_stats(result.columns)
        result.write_tables(writer)
        writer.finish(result.headline)
    return result


def run_functional(
    program: Work,
    *,
    cores: int = 1,
    seed: int = 0,
    regions: bool = False,
    functions: Sequence[str] = (),
    limit: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
) -> FunctionalResult:
    """Runs a program without time: what it writes, how it ends, how many instructions it executes.

    It sees `cores` cores. `limit` is the number of instructions after which it is given up. With `out`, leaves a run
    directory, which has no machine and no statistics.
    """
    program = as_program(program)
    if cores < 1:
        raise InputError(f"a program cannot run on {cores} cores; give at least 1")
    native = start_functional(program, cores, seed, regions, functions)
    if out is None:
        return finish_functional(program, native, limit, progress)
    facts = program.description() | {"cores": cores, "functional": True}
    with RunWriter(out, command=list(command) or sys.argv, workload=facts, seed=seed) as writer:
        result = finish_functional(program, native, limit, progress)
        result.write_tables(writer)
        writer.finish(result.headline)
    return result


def start_functional(
    program: Program, cores: int, seed: int, regions: bool, functions: Sequence[str]
) -> _core.CpuFunctionalRun:
    """A program that is loaded and can be run without time."""
    with program_errors(program):
        return _core.CpuFunctionalRun(launch_of(program, regions, functions), cores, seed)


def finish_functional(
    program: Program,
    native: _core.CpuFunctionalRun,
    limit: int | None,
    progress: Callable[[int, int], None] | None,
) -> FunctionalResult:
    """Runs it to its end."""
    began = time.perf_counter()
    with program_errors(program, lambda: (native.failure(), native.processes())):
        outcome = native.run(0 if limit is None else limit, progress)
    wall = time.perf_counter() - began
    if outcome == "interrupted":
        raise KeyboardInterrupt
    if outcome == "limit":
        raise ProgramError(f"{program.path}: it was given up after {native.instructions:,} instructions")
    processes = [Process(*process) for process in native.processes()]
    return FunctionalResult(program, processes, wall, native.instructions, native.details())


def as_program(work: Work) -> Program:
    """A program, or the one of a file."""
    return work if isinstance(work, Program) else Program(work)


def launch_of(program: Program, regions: bool, functions: Sequence[str]) -> dict[str, Any]:
    """The core's launch parameters of a program, with the addresses to watch in it."""
    if not regions and not functions:
        return program.launch() | {"watch": []}
    known = program.symbols.addresses
    for name in functions:
        if name not in known:
            raise InputError(f"{program.path}: there is no function '{name}'; {nearest(name, known)}")
    return program.launch() | {"watch": watch_points(known, functions)}


def simulate(
    program: Program,
    parts: CpuSystem,
    threads: int,
    progress: Callable[[int, int], None] | None,
    directory: Path | None,
    roi: str | None = None,
) -> CpuResult:
    """Runs a program that was launched on a system to its end."""
    native = parts.program.native
    with program_errors(program, lambda: (_core.cpu_failure(native), _core.cpu_processes(native))):
        if roi is None:
            run = parts.system.run(threads=threads, progress=counting(progress, parts, threads))
        else:
            run = run_interest(program, parts, roi, threads, counting(progress, parts, threads))
    processes = [Process(*process) for process in _core.cpu_processes(native)]
    cores = [core.native for core in parts.cores]
    details: dict[str, Any] = _core.cpu_details(native, cores)
    label = functools.cache(Labels(program))
    details["konata"] = [_core.cpu_konata(core, label) for core in cores]
    details["dram"] = dram_buses(parts.system)
    return CpuResult(program, processes, details, run, parts.clock, directory)


def counting(
    progress: Callable[[int, int], None] | None, parts: CpuSystem, threads: int, total: int | None = None
) -> Callable[[int, int], None] | None:
    """The same progress, which knows how many instructions are committed; only a run on one thread can be asked."""
    measure = getattr(progress, "measure", None)
    if measure is not None and threads == 1:
        cores = [core.native for core in parts.cores]
        measure("instructions", lambda: _core.cpu_instructions(cores), total)
    return progress


@contextmanager
def program_errors(
    program: Program, ended: Callable[[], tuple[Any, Any]] = lambda: (None, [])
) -> Iterator[None]:
    """The core's error about a program, with the function and line where it was.

    `ended` gives the failure that ended the run, if one did, and the processes.
    """
    try:
        yield
    except _core.BadProgram as error:
        raise InputError(str(error)) from None
    except (ManyscaleError, _core.SimulationError) as error:
        failure, processes = ended()
        if failure is None:
            raise error if isinstance(error, ManyscaleError) else ManyscaleError(str(error)) from None
        who = f" (process {failure['process']}, thread {failure['thread']})" if failure["several"] else ""
        raise ProgramError(
            f"{program.path}{who}: {failure['what']}, at {program.symbols.locate(failure['pc'])}",
            b"".join(stdout for _, stdout, _ in processes),
            b"".join(stderr for _, _, stderr in processes),
        ) from None
