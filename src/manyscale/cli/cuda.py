# SPDX-License-Identifier: Apache-2.0
"""`manyscale cuda`: an unmodified CUDA program on simulated GPUs."""

from __future__ import annotations

import contextlib
import json as json_text
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from manyscale.cli.console import complain, messages, say
from manyscale.cli.findings import Finding, Junit, Sarif, findings_to
from manyscale.cli.options import (
    AllowNewer,
    Changes,
    CodeChoice,
    Json,
    Machine,
    Out,
    Quiet,
    Replace,
    Seed,
    Threads,
)
from manyscale.cli.profiler_options import (
    ColdL2,
    KernelPattern,
    Launches,
    LockClock,
    Skip,
    Stop,
    WarmInstructions,
    clock_change,
)
from manyscale.cli.run import output_directory
from manyscale.errors import InputError, ManyscaleError

if TYPE_CHECKING:
    from manyscale.cuda import Program

commands = typer.Typer()

_STDERR = 2
_FOUND_SOMETHING = 1  # the exit code


class LimitError(ManyscaleError):
    """The limit of simulated time is reached."""

    exit_code = 124  # as that of timeout(1)


@commands.command(context_settings={"allow_interspersed_args": False})
def cuda(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM [ARGS]…", help="The program and its arguments.")
    ] = None,
    environment: Annotated[
        bool,
        typer.Option(
            "--env",
            help='Run nothing, but print what makes the CUDA programs of a shell simulated: eval "$(… --env)".',
        ),
    ] = False,
    machine: Machine = "v100",
    changes: Changes = None,
    gpus: Annotated[
        int, typer.Option("--gpus", "-n", min=1, max=64, metavar="N", help="GPUs that the program sees.")
    ] = 1,
    functional: Annotated[
        bool, typer.Option("--functional", "-f", help="Only compute the results; nothing takes time.")
    ] = False,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="NAMES",
            help="Look for races and the like: memcheck, racecheck, initcheck, synccheck, or all; without time.",
        ),
    ] = None,
    bounds: Annotated[
        Literal["exact", "pages"],
        typer.Option(
            "--bounds",
            help="Where an access past the end of memory is a fault: at the end, or as on hardware, of its 2 MiB page.",
        ),
    ] = "exact",
    host_time: Annotated[
        Literal["zero", "measured"],
        typer.Option(
            "--host-time",
            help="Whether the program's own time between its CUDA calls counts, as measured here; results then vary.",
        ),
    ] = "zero",
    host_clock: Annotated[
        Literal["real", "simulated"],
        typer.Option(
            "--host-clock",
            help="What clock_gettime, gettimeofday, std::chrono and the like tell the program.",
        ),
    ] = "real",
    operators: Annotated[
        bool,
        typer.Option(
            "--operators",
            help="Say what the operators of PyTorch cost: they are NVTX ranges, as those of any program.",
        ),
    ] = False,
    call_time: Annotated[
        str | None,
        typer.Option(
            "--call-time",
            metavar="TIME",
            help="What a call of the runtime costs the host, as --set cuda.call_time=TIME; else 1us.",
        ),
    ] = None,
    pageable: Annotated[
        str | None,
        typer.Option(
            "--pageable-bandwidth",
            metavar="RATE",
            help="At which the host copies pageable memory to and from the driver's pinned buffer; else 6GB/s.",
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            "--limit", "-l", metavar="TIME", help="End the program at this simulated time, such as 10ms."
        ),
    ] = None,
    instructions: Annotated[
        int,
        typer.Option(
            "--instructions", min=0, metavar="N", help="Warp instructions of a launch at most; 0: any."
        ),
    ] = 0,
    cold_l2: ColdL2 = False,
    warm_instructions: WarmInstructions = False,
    lock_clock: LockClock = None,
    kernel: KernelPattern = None,
    skip: Skip = 0,
    launches: Launches = None,
    stop: Stop = False,
    isa: CodeChoice = None,
    allow_newer: AllowNewer = False,
    threads: Threads = 1,
    seed: Seed = None,
    out: Out = None,
    force: Replace = False,
    junit: Junit = None,
    sarif: Sarif = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an unmodified CUDA program; no GPU is needed.

    The program may have the CUDA runtime of CUDA 11, 12 or 13 linked in, as nvcc
    does, or shared. One that has SASS only, and no PTX, needs a
    --machine of the same generation. Its output and its exit code are its own;
    after a signal that code is 128 and the number of the signal, as in a shell.
    The run is done only if the exit code is 0, and failed otherwise. What the
    program leaves running when it ends is ended too.
    A table of its kernels and copies follows on standard error; the run
    directory keeps all of them, each call of the runtime, and the statistics of
    the GPUs.

    With --json, standard output holds one line of JSON and nothing else: what
    the program writes there goes to standard error.

    The exit code is 124 if --limit was reached, and 1 if the program's own is 0 and
    --check found something.

    With eval "$(manyscale cuda --env --machine a100)", each CUDA program that
    the shell then starts (by make, ctest, pytest, …) runs on simulated GPUs of
    its own, and leaves a run directory below runs/, or below --out.
    """
    from manyscale.cli.cuda_report import print_report, report_data
    from manyscale.cuda import HostOptions, NodeOptions, Profiling, Program
    from manyscale.cuda.checks import checks_of
    from manyscale.cuda.run_directory import run_recorded
    from manyscale.machine import load_machine

    costs = {"cuda.call_time": call_time, "cuda.pageable_bandwidth": pageable}
    options = [f"{path}={value}" for path, value in costs.items() if value is not None]
    resolved = load_machine(machine, [*(changes or []), *clock_change(lock_clock), *options])
    node = NodeOptions(
        gpus=gpus,
        functional=functional or check is not None,
        threads=threads,
        seed=seed or 0,
        maximum_instructions=instructions,
        until=None if limit is None else _time("--limit", limit),
        isa=isa,
        allow_newer=allow_newer,
        profiling=Profiling(cold_l2, warm_instructions, kernel, skip, launches, stop),
        checks=() if check is None else checks_of(check),
        page_bounds=bounds == "pages",
    )
    host = HostOptions(host_time == "measured", host_clock == "simulated", operators)
    if environment:
        from manyscale.cuda.environment import Settings, exports, start

        if command:
            raise InputError('--env runs no program: start it after eval "$(manyscale cuda --env …)"')
        address = start(Settings(resolved, node, host, (out or Path()).absolute(), quiet))
        typer.echo(exports(address, host))
        return
    if not command:
        raise InputError("say which program: manyscale cuda [OPTIONS] -- PROGRAM [ARGS]")
    program = Program(command, resolved, node, host, lambda text: say(f"manyscale: {text}"))
    with output_directory(out, f"cuda-{program.path.name}", quiet, force=force) as directory:
        with _progress(program, quiet):
            run = run_recorded(
                program,
                directory,
                stdout=_STDERR if json else None,
                command=["manyscale", *sys.argv[1:]],
            )
        with findings_to(junit, sarif, program.path.name) as findings:
            faults = [gpu.fault for gpu in (*run.node.retired, *run.node.gpus) if gpu.fault is not None]
            findings.found = [Finding.of_fault(fault, program.path.name) for fault in faults]
            findings.found += [Finding.of_warning(text, program.path.name) for text in run.records.findings]
            if run.failure is not None:
                findings.found.append(Finding("exit", program.path.name, run.failure))
        if run.limit_reached:
            raise LimitError(str(run.failure))
        sys.stdout.flush()
        if json:
            typer.echo(json_text.dumps(report_data(run) | {"directory": str(directory)}))
        elif not quiet:
            print_report(messages(), run, directory)
        if run.killed_by is not None:
            complain(str(run.failure))
    raise typer.Exit(run.exit_code or (_FOUND_SOMETHING if run.records.findings else 0))


@contextlib.contextmanager
def _progress(program: Program, quiet: bool) -> Iterator[None]:
    """A line of progress, where the program's own output goes elsewhere and is not disturbed."""
    from manyscale.cli.progress import SimulationProgress

    with SimulationProgress(program.path.name, None, quiet or sys.stdout.isatty()) as progress:
        program.node.monitor.progress = progress.update
        yield


def _time(option: str, text: str) -> int:
    from manyscale.units import TIME, parse

    try:
        value = int(parse(text, TIME))
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
    if value < 0:
        raise InputError(f"{option} {text}: it must not be negative")
    return value
