# SPDX-License-Identifier: Apache-2.0
"""Commands on recorded traces: record a program, replay it on other machines, look at it, exchange it with gem5."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json
from manyscale.cli.cpu import summary
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
from manyscale.cli.cpu_scale import show_varied
from manyscale.cli.options import Changes, Force, Json, Out, Quiet, Seed, Threads
from manyscale.cli.run import output_directory
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.cpu import RecordingSummary

commands = typer.Typer()

TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace that `manyscale cpu record` left.")]
TraceOut = Annotated[Path, typer.Option("--out", "-o", metavar="TRACE", help="The file to write.")]


@commands.command()
def record(
    file: ProgramFile,
    out: TraceOut,
    arguments: Arguments = None,
    machine: CpuMachine = "broadwell",
    cores: Cores = None,
    ranks: Ranks = 1,
    functional: Annotated[
        bool,
        typer.Option("--functional", help="Run it without time, which is quicker; threads then take turns."),
    ] = False,
    filter_l1: Annotated[
        str | None,
        typer.Option(
            "--filter-l1",
            metavar="SIZE",
            help="Size of the L1 filter cache, whose hits are compacted away; 0 keeps every access. By default half of "
            "the machine's L1 cache.",
        ),
    ] = None,
    near: Annotated[str | None, typer.Option("--near", hidden=True)] = None,
    functions: Functions = None,
    root: Root = None,
    writable: Writable = False,
    environment: Environment = None,
    stdin: Stdin = None,
    memory: Memory = "4GiB",
    changes: Changes = None,
    threads: Threads = 1,
    seed: Seed = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a program once and keep what it did as a trace, to be replayed on other machines.

    Example: manyscale cpu record ./solver --machine broadwell --cores 8 --out solver.trace -- input.txt
    """
    from manyscale import cpu
    from manyscale.cli.progress import SimulationProgress

    program = program_of(file, arguments, root, writable, environment, stdin, ranks, memory)
    with output_of_failures(json), SimulationProgress(program.name, None, quiet or json) as progress:
        found = cpu.record(
            program,
            out,
            machine=machine,
            changes=changes or [],
            cores=cores or ranks,
            functional=functional,
            filter_l1=filter_l1 if filter_l1 is not None else near,
            force=force,
            threads=threads,
            seed=seed or 0,
            functions=functions or [],
            progress=progress,
            command=["manyscale", *sys.argv[1:]],
        )
    show_output(found.stdout.encode(), b"", json)
    _show_recording(found, json, quiet)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


@commands.command()
def replay(
    trace: TraceFile,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine", "-m", metavar="NAME|FILE", help="The machine; by default the one it was recorded on."
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(
            "--cores", "-n", min=1, metavar="N", help="Cores to use; by default as many as recorded."
        ),
    ] = None,
    replicate: Annotated[
        int,
        typer.Option(
            "--replicate", "-r", min=1, metavar="N", help="Copies of the trace to play side by side."
        ),
    ] = 1,
    offset: Annotated[
        bool,
        typer.Option(
            "--offset/--no-offset", help="Whether each copy has private data at addresses of its own."
        ),
    ] = True,
    shared: Annotated[
        list[str] | None,
        typer.Option(
            "--shared",
            metavar="BEGIN-END",
            help="Addresses that all copies share; may be repeated. By default what several threads touched.",
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            metavar="NAME",
            help="Who executes tasks: fifo, work_stealing, locality, critical_path, recorded, task2core.",
        ),
    ] = "fifo",
    task2core: Annotated[
        Path | None,
        typer.Option("--task2core", metavar="FILE", help="Lines of a task and its core, for that scheduler."),
    ] = None,
    overheads: Annotated[
        list[str] | None,
        typer.Option(
            "--overhead",
            metavar="NAME=TIME",
            help="What a construct takes, such as barrier_latency=1us; may be repeated. By default as recorded.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=V,V…",
            help="Replay once for each value of a parameter, such as l2.size=256KiB,1MiB; may be repeated.",
        ),
    ] = None,
    changes: Changes = None,
    threads: Threads = 1,
    seed: Seed = None,
    out: Out = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Play a trace on simulated cores and leave a run directory as `cpu run` does.

    With --vary it is a table of replays, and --out a folder for charts. --force replaces those, or a run.

    Example: manyscale cpu replay solver.trace --set memory.l2.size=1MiB
    """
    from manyscale import cpu
    from manyscale.cli.progress import SimulationProgress

    options: dict[str, Any] = {
        "machine": machine,
        "changes": changes or [],
        "cores": cores,
        "replicate": replicate,
        "offset": offset,
        "shared": shared or None,
        "scheduler": "task2core" if task2core is not None else scheduler,
        "task2core": task2core,
        "overheads": _overheads(overheads or []),
        "threads": threads,
        "seed": seed or 0,
    }
    if vary:
        show_varied(trace, vary, out, force, json, quiet, **options)
        return
    with cpu.Trace(trace) as opened:
        name = opened.header.program.name
        with (
            output_directory(out, f"replay-{name}", quiet, force=force) as directory,
            SimulationProgress(name, None, quiet or json) as progress,
        ):
            result = cpu.replay(
                opened,
                **options,
                out=directory,
                progress=progress,
                command=["manyscale", *sys.argv[1:]],
            )
    if json:
        emit_json(summary(result) | {"directory": str(directory)})
    elif not quiet:
        from manyscale.cli.cpu_report import print_regions, print_result

        print_result(result, directory)
        print_regions(result, everything=False)


@commands.command()
def trace(
    file: TraceFile,
    check: Annotated[
        bool, typer.Option("--check", help="Read all of it, and report what is damaged.")
    ] = False,
    json: Json = False,
) -> None:
    """Show where a trace comes from, its threads and tasks."""
    from manyscale import cpu

    with cpu.Trace(file) as opened:
        if check:
            opened.check()
        tasks = len(opened.columns["stream.is_task"]) - opened.threads
        facts: dict[str, Any] = {
            "program": opened.header.program.name,
            "machine": opened.header.machine,
            "cores": opened.header.cores,
            "command": " ".join(opened.header.command),
            "threads": opened.threads,
            "tasks": tasks,
            "regions": len(opened.regions),
            "instructions": opened.instructions,
            "nodes": opened.nodes,
            "bytes": opened.size,
        }
    if json:
        emit_json(facts)
        return
    for name, value in facts.items():
        typer.echo(f"{name:13}{value:,}" if isinstance(value, int) else f"{name:13}{value}")


@commands.command(name="import-gem5")
def import_gem5(
    data: Annotated[
        list[Path], typer.Argument(metavar="DATA…", help="Data-dependency traces, one for each core.")
    ],
    out: TraceOut,
    fetch: Annotated[
        list[Path] | None,
        typer.Option(
            "--fetch", metavar="FILE", help="The fetch trace of each core; as often as there are cores."
        ),
    ] = None,
    clock: Annotated[
        str, typer.Option("--clock", metavar="FREQUENCY", help="Clock of the cores that were recorded.")
    ] = "1GHz",
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a trace of gem5's elastic traces.

    Example: manyscale cpu import-gem5 system.cpu.data.gz --fetch system.cpu.inst.gz --clock 2GHz --out gem5.trace
    """
    from manyscale.cpu import gem5_trace

    found = gem5_trace.import_gem5(
        data, out, fetch=fetch or (), clock=clock, force=force, command=["manyscale", *sys.argv[1:]]
    )
    _show_recording(found, json, quiet)


@commands.command(name="export-gem5")
def export_gem5(
    trace: TraceFile,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write to.")],
    force: Force = False,
) -> None:
    """Write the threads of a trace as elastic traces of gem5: a data-dependency and a fetch trace for each."""
    from manyscale.cpu import gem5_trace

    for pair in gem5_trace.export_gem5(trace, out, force=force):
        for path in pair:
            typer.echo(str(path))


def _show_recording(found: RecordingSummary, json: bool, quiet: bool) -> None:
    if json:
        emit_json(
            {
                "trace": str(found.path),
                "instructions": found.instructions,
                "nodes": found.nodes,
                "threads": found.threads,
                "tasks": found.tasks,
                "bytes": found.bytes,
                "bytes_per_instruction": found.bytes_per_instruction,
                "exit_code": found.exit_code,
                "wall_seconds": found.wall_seconds,
            }
        )
    elif not quiet:
        typer.echo(
            f"{found.path}: {found.instructions:,} instructions of {found.threads:,} threads and {found.tasks:,} tasks "
            f"as {found.nodes:,} nodes ({found.nodes_per_instruction:.0%}) in {found.bytes:,} bytes, "
            f"{found.bytes_per_instruction:.3g} for each instruction"
        )


def _overheads(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise InputError(f"--overhead {text}: write NAME=TIME, such as barrier_latency=1us")
        found[name] = value
    return found
