# SPDX-License-Identifier: Apache-2.0
"""`manyscale correlate`: a CUDA program simulated beside what was measured of it on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.options import Changes, CodeChoice, Json, Machine, Out, Quiet, Replace, Threads
from manyscale.cli.profiler_options import KernelPattern, Launches, LockClock, Skip, Stop, clock_change
from manyscale.cli.run import output_directory

commands = typer.Typer()

_STDERR = 2


@commands.command()
def correlate(
    command: Annotated[
        list[str], typer.Argument(metavar="PROGRAM [-- ARGS]…", help="The program and its arguments.")
    ],
    truth: Annotated[
        Path,
        typer.Option(
            "--truth",
            metavar="CSV",
            help="What was measured: ncu --csv (page raw or details), nsys or nvprof traces of the GPU, or a CSV "
            "with columns such as kernel, grid, cycles, ns.",
        ),
    ],
    machine: Machine = "v100",
    changes: Changes = None,
    program: Annotated[
        str | None,
        typer.Option(
            "--program", metavar="NAME", help="Which program of a CSV with several; else its own name."
        ),
    ] = None,
    cold_l2: Annotated[
        bool | None,
        typer.Option(
            "--cold-l2/--warm-l2",
            help="Whether the L2 is emptied before each launch; as the source measures, if neither is given.",
        ),
    ] = None,
    warm_instructions: Annotated[
        bool | None,
        typer.Option(
            "--warm-instructions/--cold-instructions",
            help="Whether instruction caches hold a kernel when it begins; as the source measures, by default.",
        ),
    ] = None,
    lock_clock: LockClock = None,
    kernel: KernelPattern = None,
    skip: Skip = 0,
    launches: Launches = None,
    stop: Stop = False,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Simulate three times more, to see whether latency, bandwidth or issue decides the time of a kernel.",
        ),
    ] = False,
    isa: CodeChoice = None,
    threads: Threads = 1,
    out: Out = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Where the HTML page goes; else correlation.html of the run."
        ),
    ] = None,
    force: Replace = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a CUDA program and compare its launches with measurements of them on a GPU.

    Launches are matched by name, grid and order, or by their number where the measurements have no names. The table
    has the error of each kernel's cycles (or time) and instructions, occupancy and hit rates simulated/measured; the
    page has all quantities, scatter plots, and what explains the differences.
    """
    import dataclasses

    from manyscale.cli.listing import print_table
    from manyscale.cuda import Profiling
    from manyscale.report.page import PAGE
    from manyscale.results.files import check_output
    from manyscale.studies import correlation as study
    from manyscale.studies.correlation.page import TABLE_COLUMNS, table_rows
    from manyscale.studies.correlation.running import default_options

    if report is not None:
        check_output(report, PAGE, force=force)
    name = Path(command[0]).name
    measured = study.read_measurements(truth, program or name)
    node = default_options(measured, isa)
    usual = node.profiling
    selected = kernel is not None or skip > 0 or launches is not None
    profiling = Profiling(
        cold_l2=usual.cold_l2 if cold_l2 is None else cold_l2,
        warm_instructions=usual.warm_instructions if warm_instructions is None else warm_instructions,
        kernel=kernel,
        skip=skip,
        launches=launches if selected else usual.launches,
        stop=stop or (not selected and usual.stop),
    )
    node = dataclasses.replace(node, profiling=profiling, threads=threads)
    for note in measured.notes:
        say(note, quiet=quiet)
    with output_directory(out, f"correlate-{name}", quiet, force=force) as directory:
        found = study.correlate(
            command,
            measured,
            machine,
            changes=[*(changes or []), *clock_change(lock_clock)],
            node=node,
            sensitivity=sensitivity,
            out=directory,
            stdout=_STDERR,
            command=["manyscale", *sys.argv[1:]],
        )
        page = report or directory / "correlation.html"
        study.correlation_page(found).write(page, force=True)
    if json:
        emit_json(study.data(found) | {"directory": str(directory), "page": str(page)})
        return
    print_table(
        f"{name} on {found.machine}, beside {measured.source}", TABLE_COLUMNS, table_rows(found.kernels)
    )
    for each in found.kernels[:3]:
        typer.echo(f"{each.kernel}: {found.explanation(each).text}")
    typer.echo(_summary(found))
    say(f"Wrote {page}", quiet=quiet)


def _summary(found: object) -> str:
    from manyscale.studies.correlation import Correlation

    assert isinstance(found, Correlation)
    matched = found.matched
    text = f"{len(matched.pairs):,} launches compared"
    if matched.only_measured:
        text += f", {matched.only_measured:,} measured ones not simulated"
    if matched.only_simulated:
        text += f", {matched.only_simulated:,} simulated ones not measured"
    if found.mean_error is None or found.weighted_error is None or found.total_error is None:
        return text + "; no times were measured"
    text += (
        f"; absolute error of {len(found.kernels)} kernels: mean {found.mean_error:.1%}, weighted by time "
    )
    return text + f"{found.weighted_error:.1%}; whole time {found.total_error:+.1%}"
