# SPDX-License-Identifier: Apache-2.0
"""Commands on finished runs: show, compare, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say, tables
from manyscale.cli.options import Force, Json, Quiet

if TYPE_CHECKING:
    import polars as pl

    from manyscale.results import Run

commands = typer.Typer()

_ROWS_SHOWN = 40

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")]


@commands.command()
def show(run: RunArgument, json: Json = False) -> None:
    """Show how a run ended and its headline numbers."""
    from rich.table import Table
    from rich.text import Text

    from manyscale.results import load
    from manyscale.results.run import show as shown

    loaded = load(run)
    _say_note(loaded)
    if json:
        emit_json({"path": str(loaded.path), **loaded.info})
        return
    info = loaded.info
    facts = {
        "status": loaded.status + (" (partial results)" if info.get("partial") else ""),
        "error": info.get("error"),
        "command": " ".join(info["command"]),
        "seed": info["seed"],
        "created": info["created"],
        "version": info["versions"].get("manyscale"),
        "statistics": f"{loaded.stats.height:,} rows" if loaded.has_stats else "none",
    }
    table = Table(title=Text(str(loaded.path)), show_header=False, title_justify="left")
    for name, fact in facts.items():
        if fact is not None:
            table.add_row(name, Text(str(fact), overflow="fold"))
    table.add_section()
    for name, entry in loaded.headline.items():
        table.add_row(Text(name), Text(shown(entry)))
    tables().print(table)


@commands.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The run to compare with.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The run that is compared.")],
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0.0, help="Leave out statistics that differ by no more percent."),
    ] = 0.0,
    json: Json = False,
) -> None:
    """Show what differs between two runs, the largest change first."""
    from manyscale.results import compare as compare_statistics
    from manyscale.results import compare_headline, identical, load

    runs = load(a), load(b)
    for run in runs:
        _say_note(run)
    headline = compare_headline(*runs)
    differences = compare_statistics(*runs, threshold_percent=threshold)
    same = identical(*runs)
    if json:
        emit_json(
            {
                "a": str(a),
                "b": str(b),
                "identical": same,
                "headline": headline.to_dicts(),
                "statistics": differences.to_dicts(),
            }
        )
        return
    console = tables()
    console.print(_table("Headline", headline))
    if same:
        console.print("The runs gave identical statistics.")
    elif differences.is_empty():
        console.print(f"No statistic differs by more than {threshold:g}%.")
    else:
        console.print(_table("Statistics", differences.head(_ROWS_SHOWN)))
        console.print(_summary(differences))


@commands.command()
def export(
    run: RunArgument,
    csv: Annotated[Path, typer.Option("--csv", metavar="FILE", help="The CSV file to write.")],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a run's statistics as CSV."""
    from manyscale.results import load

    loaded = load(run)
    _say_note(loaded)
    loaded.to_csv(csv, force=force)
    say(f"Wrote {loaded.stats.height:,} rows to {csv}", quiet=quiet)


def _say_note(run: Run) -> None:
    if run.note is not None:
        say(f"Note: {run.note}")


def _table(title: str, data: pl.DataFrame) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name, kind in data.schema.items():
        table.add_column(name, justify="right" if kind.is_numeric() else "left", overflow="fold")
    for row in data.iter_rows():
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _summary(differences: pl.DataFrame) -> str:
    only_a, only_b = differences["b"].null_count(), differences["a"].null_count()
    parts = [f"Statistics that differ: {differences.height - only_a - only_b:,}"]
    parts += [f"only in A: {only_a:,}"] if only_a else []
    parts += [f"only in B: {only_b:,}"] if only_b else []
    hidden = differences.height - _ROWS_SHOWN
    parts += [f"not shown here: {hidden:,} (--json gives all)"] if hidden > 0 else []
    return "; ".join(parts) + "."
