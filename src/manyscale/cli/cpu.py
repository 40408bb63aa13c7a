# SPDX-License-Identifier: Apache-2.0
"""Commands on processors: run a RISC-V program on simulated cores, or without time; list its instructions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.cpu_options import (
    Arguments,
    Cores,
    CpuMachine,
    Environment,
    Functions,
    Memory,
    ProgramFile,
    Ranks,
    Root,
    Stdin,
    Writable,
    output_of_failures,
    program_of,
    show_output,
)
from manyscale.cli.options import Changes, Force, Json, Out, Quiet, Seed, Threads
from manyscale.cli.run import output_directory
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.cpu import CpuResult, Program

commands = typer.Typer(name="cpu", help="Simulate RISC-V programs on out-of-order multicores.")

_MOST_INSTRUCTIONS = 10_000_000  # in a log of a pipeline


@commands.command()
def run(
    file: ProgramFile,
    arguments: Arguments = None,
    machine: CpuMachine = "broadwell",
    cores: Cores = None,
    ranks: Ranks = 1,
    functional: Annotated[
        bool, typer.Option("--functional", help="Only execute the program: no machine, no time.")
    ] = False,
    regions: Annotated[
        bool,
        typer.Option("--regions", help="Show every region of every thread, not only the ten that took most."),
    ] = False,
    functions: Functions = None,
    roi: Annotated[
        str | None,
        typer.Option(
            "--roi", metavar="NAME", help="Count only what happens in this region: a mark or a function."
        ),
    ] = None,
    hot_lines: Annotated[
        bool, typer.Option("--hot-lines", help="Show the lines of source that took the most cycles.")
    ] = False,
    konata: Annotated[
        Path | None,
        typer.Option("--konata", metavar="FILE", help="Write a log of the pipelines for the viewer Konata."),
    ] = None,
    konata_from: Annotated[
        int, typer.Option("--konata-from", min=0, metavar="N", help="First instruction of that log.")
    ] = 0,
    konata_count: Annotated[
        int,
        typer.Option(
            "--konata-count", min=1, max=_MOST_INSTRUCTIONS, metavar="N", help="Instructions in that log."
        ),
    ] = 1000,
    root: Root = None,
    writable: Writable = False,
    environment: Environment = None,
    stdin: Stdin = None,
    memory: Memory = "4GiB",
    changes: Changes = None,
    threads: Threads = 1,
    seed: Seed = None,
    out: Out = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a program on a machine's cores and leave a run directory.

    The exit code is that of the program if it ends by itself. Its output goes to
    standard output, or to standard error with --json. With --functional there is
    a run directory only with --out. --force replaces a run that is there, and the file of --konata.

    Example: manyscale cpu run ./solver --machine broadwell --cores 8 -- input.txt
    """
    program = program_of(file, arguments, root, writable, environment, stdin, ranks, memory)
    if functional:
        if roi is not None:
            raise InputError(
                "--roi: a run without time counts only instructions; --regions shows them by region"
            )
        if konata is not None or hot_lines:
            raise InputError("--konata, --hot-lines: a run without time has no pipelines and no cycles")
        _run_functional(program, cores or ranks, seed or 0, regions, functions or [], out, json, quiet)
        return
    from manyscale import cpu
    from manyscale.cli.progress import SimulationProgress

    if konata is not None:
        _check_konata(konata, cores or ranks, force)

    with (
        output_of_failures(json),
        output_directory(out, f"cpu-{program.name}", quiet, force=force) as directory,
        SimulationProgress(program.name, None, quiet or json) as progress,
    ):
        result = cpu.run(
            program,
            machine=machine,
            changes=changes or [],
            cores=cores or ranks,
            threads=threads,
            seed=seed or 0,
            functions=functions or [],
            roi=roi,
            hot_lines=hot_lines,
            konata=None if konata is None else (konata_from, konata_count),
            out=directory,
            progress=progress,
            command=["manyscale", *sys.argv[1:]],
        )
    if konata is not None:
        result.write_konata(konata, force=force)
    for process in result.processes:
        show_output(process.stdout, process.stderr, json)
    if json:
        emit_json(summary(result) | {"directory": str(directory)})
    elif not quiet:
        from manyscale.cli.cpu_report import print_hot_lines, print_regions, print_result

        print_result(result, directory)
        print_regions(result, everything=regions)
        if hot_lines:
            print_hot_lines(result)
    if result.exit_code:
        say(f"{program.name} ended with exit code {result.exit_code}", quiet=quiet)
        raise typer.Exit(result.exit_code)


@commands.command()
def disassemble(
    file: ProgramFile,
    function: Annotated[
        list[str] | None,
        typer.Option("--function", "-f", metavar="NAME", help="A function to list; may be repeated."),
    ] = None,
    hot: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="A run with --hot-lines, whose cycles are shown beside."),
    ] = None,
) -> None:
    """List a program's instructions by function, with source lines, and with the cycles of a run."""
    from manyscale.cpu import Program
    from manyscale.cpu.listing import listing

    for line in listing(Program(file), function or [], hot):
        typer.echo(line)


@commands.command()
def cc(
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCE…", help="Files of C or C++.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="PROG", help="The program to make.")],
    mpi: Annotated[
        bool, typer.Option("--mpi", help="With mpi.h and the MPI library of this package.")
    ] = False,
    host: Annotated[bool, typer.Option("--host", help="For this machine instead of RISC-V.")] = False,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="TEXT", help="For the compiler, such as -fopenmp; may be repeated."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Compile a program for simulated processors with the RISC-V cross-compiler of this machine.

    Example: manyscale cpu cc solver.c -o solver --option=-fopenmp
    """
    from manyscale.cpu.building import build

    build(sources, output, mpi=mpi, host=host, options=options or [], force=force)
    say(f"Made {output}", quiet=quiet)


def _run_functional(
    program: Program,
    cores: int,
    seed: int,
    regions: bool,
    functions: list[str],
    out: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    from manyscale import cpu

    with output_of_failures(json):
        result = cpu.run_functional(
            program,
            cores=cores,
            seed=seed,
            regions=regions,
            functions=functions,
            out=out,
            command=["manyscale", *sys.argv[1:]],
        )
    for process in result.processes:
        show_output(process.stdout, process.stderr, json)
    if json:
        emit_json(
            {
                "cycles": None,
                "instructions": result.instructions,
                "simulated_seconds": None,
                "wall_seconds": result.wall_seconds,
                "cores": cores,
                "exit_code": result.exit_code,
            }
            | ({} if out is None else {"directory": str(out)})
        )
    elif not quiet:
        from manyscale.cli.cpu_report import print_functional

        print_functional(result, regions)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def summary(result: CpuResult) -> dict[str, Any]:
    """A run as JSON."""
    from manyscale.results.definitions import plain

    return plain(result.headline) | {"shares": result.shares, "caches": result.caches.to_dicts()}


def _check_konata(path: Path, cores: int, force: bool) -> None:
    """Looked at before the run, so that a slip costs no time; how many cores have a log is known only after it."""
    from manyscale.cpu.result import KONATA, konata_paths
    from manyscale.results.files import check_output

    for file in dict.fromkeys([path, *konata_paths(path, range(cores))]):
        check_output(file, KONATA, force=force)
