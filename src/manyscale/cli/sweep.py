# SPDX-License-Identifier: Apache-2.0
"""The command that runs a study at all of its points."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale import processes
from manyscale.cli.console import emit_json, messages, say, tables
from manyscale.cli.options import Changes, Json, Quiet
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.studies.sweep import Study, Sweep

commands = typer.Typer()

_SOME_FAILED = 1
_ROWS_SHOWN = 40
_ERRORS_SHOWN = 5


@commands.command()
def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="STUDY.toml", help="The study: workload, machine, axes, metrics.")
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on", metavar="WHERE", help="local, dask, slurm, or a Dask scheduler such as tcp://host:8786."
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", "-w", min=1, metavar="N", help="Workers; without it, one for each core here."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The sweep's folder; without it, sweeps/NAME. A sweep in it goes on.",
        ),
    ] = None,
    changes: Changes = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the cluster, such as queue=short (dask, slurm).",
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run points that failed before once more.")] = False,
    points: Annotated[bool, typer.Option("--points", help="Only list the points; run nothing.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a workload at every point of a study, on all cores or on a cluster.

    Results are kept as they arrive. A sweep that was stopped or killed goes on
    where it was when the command is given again; points that have a result are
    not run twice, also after the study was changed. A point that fails is
    reported, and the others go on.

    The exit code is 1 if points failed.
    """
    from manyscale.cli.sweep_progress import SweepProgress
    from manyscale.studies.sweep import Study

    if processes.together() is not None:
        raise InputError("a sweep starts workers of its own: run it without mpirun, on one machine with --on")
    study = Study.load(file, changes or ())
    if points:
        _list_points(study, json)
        return
    directory = Path("sweeps") / study.name if out is None else out
    try:
        with SweepProgress(study, quiet) as progress:
            found = study.run(
                directory,
                on=on,
                workers=workers,
                retry=retry,
                notice=progress.take,
                command=["manyscale", *sys.argv[1:]],
                **_options(options or []),
            )
    except KeyboardInterrupt:
        say(f"What is done is in {directory}; the same command goes on", quiet=quiet)
        raise
    if json:
        emit_json(_data(found, progress.known))
    elif not quiet:
        _print(found, progress.known)
    if found.info["counts"]["failed"]:
        raise typer.Exit(_SOME_FAILED)


def _options(texts: list[str]) -> dict[str, Any]:
    from manyscale.toml_text import toml_value

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--option {text}: write NAME=VALUE, such as queue=short")
        found[name.strip()] = toml_value(value)
    return found


def _list_points(study: Study, json: bool) -> None:
    from manyscale.cli.listing import print_table

    rows = study.points()
    if json:
        emit_json(
            [
                {
                    "point": row.index,
                    "repetition": row.repetition,
                    "seed": row.request.seed,
                    **row.coordinates,
                }
                for row in rows
            ]
        )
        return
    names = [axis.name for axis in study.plan.axes]
    cells = [
        (str(row.index), *(str(row.coordinates[name]) for name in names), str(row.request.seed))
        for row in rows[:_ROWS_SHOWN]
    ]
    print_table(f"{study.name}: {len(rows):,} points", ("point", *names, "seed"), cells)
    if len(rows) > _ROWS_SHOWN:
        say(f"{len(rows) - _ROWS_SHOWN:,} more are not shown (--json gives all)")


def _data(found: Sweep, known: int) -> dict[str, Any]:
    return {
        "directory": str(found.path),
        "status": found.status,
        **found.info["counts"],
        "known_before": known,
        "metrics": found.info["metrics"],
        "rows": found.table.to_dicts(),
    }


def _print(found: Sweep, known: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from manyscale.cli.sweep_progress import cell, shown_columns

    console = tables()
    names = shown_columns(
        found.table.columns, [axis["name"] for axis in found.info["axes"]], found.info["metrics"]
    )
    units = {metric["name"]: metric["unit"] for metric in found.info["metrics"]}
    table = Table(title=Text(str(found.path)), title_justify="left")
    for name in names:
        unit = units.get(name)
        numeric = found.table[name].dtype.is_numeric()
        table.add_column(
            Text(f"{name} [{unit}]" if unit and unit != "1" else name), justify="right" if numeric else "left"
        )
    for row in found.table.head(_ROWS_SHOWN).select(names).iter_rows():
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)
    if found.table.height > _ROWS_SHOWN:
        console.print(f"{found.table.height - _ROWS_SHOWN:,} more rows are in {found.path}/results.parquet")
    counts = found.info["counts"]
    parts = [f"{counts['done']:,} of {counts['distinct']:,} points done"]
    if counts["distinct"] < counts["points"]:
        parts.append(f"{counts['points'] - counts['distinct']:,} rows are of equal points, run once")
    if known:
        parts.append(f"{known:,} were known before")
    if counts["failed"]:
        parts.append(f"{counts['failed']:,} failed (--retry runs them again)")
    console.print("; ".join(parts) + ".")
    for text, number in _errors(found)[:_ERRORS_SHOWN]:
        messages().print(f"{number:,} x {text}", markup=False)


def _errors(found: Sweep) -> list[tuple[str, int]]:
    """Each error once, the most frequent first."""
    counts: dict[str, int] = {}
    for text in found.failed["error"].to_list():
        counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda entry: -entry[1])
