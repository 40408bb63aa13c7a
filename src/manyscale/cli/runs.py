# SPDX-License-Identifier: Apache-2.0
"""Commands on finished runs: show, compare, export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say, tables
from manyscale.cli.options import Force, Json, Quiet
from manyscale.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from manyscale.report.comparison import Comparison
    from manyscale.results import Run

commands = typer.Typer()

_ROWS_SHOWN = 40

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")]


@commands.command()
def show(run: RunArgument, json: Json = False) -> None:
    """Show how a run ended, what limits it, and its headline numbers."""
    from rich.table import Table
    from rich.text import Text

    from manyscale.report.evidence import Evidence
    from manyscale.report.headline import is_internal
    from manyscale.report.numbers import shown
    from manyscale.report.verdict import verdict
    from manyscale.results import load

    loaded = load(run)
    _say_note(loaded)
    if json:
        emit_json({"path": str(loaded.path), **loaded.info})
        return
    info, found = loaded.info, verdict(Evidence(loaded))
    facts = {
        "verdict": found.text,
        "advice": found.advice or None,
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
    for name, entry in sorted(loaded.headline.items(), key=lambda each: is_internal(each[0])):
        table.add_row(Text(name), Text(shown(entry["value"], entry["unit"])))
    tables().print(table)


@commands.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The run to compare with.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The run that is compared.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Also show every statistic that differs, the largest change first.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", min=0.0, help="As --all, without statistics that differ by no more percent."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the comparison as a page.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what was changed between two runs, what that did, and what explains it.

    Example: manyscale compare runs/near runs/far --out compared.html
    """
    from manyscale.report.comparison import Comparison
    from manyscale.report.page import PAGE
    from manyscale.results import compare as compare_statistics
    from manyscale.results import compare_headline, identical, load
    from manyscale.results.files import check_output

    if out is not None:
        check_output(out, PAGE, force=force)
    runs = load(a), load(b)
    for run in runs:
        _say_note(run)
    found = Comparison(*runs)
    same = identical(*runs)
    everything = everything or threshold is not None
    least = threshold or 0.0
    differences = compare_statistics(*runs, threshold_percent=least) if json or everything else None
    if out is not None:
        from manyscale.report.comparison_page import comparison_page

        comparison_page(runs, everything=everything).write(out, force=force)
    if json:
        emit_json(
            {
                "a": str(a),
                "b": str(b),
                "identical": same,
                **found.data(),
                "headline": compare_headline(*runs).to_dicts(),
                "statistics": [] if differences is None else differences.to_dicts(),
                "report": None if out is None else str(out),
            }
        )
        return
    _print_comparison(found, same)
    if differences is not None:
        _print_statistics(differences, least, same)
    if out is not None:
        typer.echo(str(out))


def _print_comparison(found: Comparison, same: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from manyscale.report.numbers import shown

    console = tables()
    for run, words in zip("AB", found.verdicts, strict=True):
        console.print(Text(f"{run}: {words.text}"))
    console.print(Text(found.sentence, style="bold"))
    console.print(
        _rows("Changed", ("parameter", "A", "B"), [(c.name, c.a or "-", c.b or "-") for c in found.changes])
    )
    console.print(_rows("Headline", ("number", "A", "B"), found.headline))
    if same:
        console.print("The runs gave identical statistics.")
        return
    table = Table(title="What explains it", title_justify="left")
    for name in ("what", "share of the change", "A", "B", "change"):
        table.add_column(name, justify="left" if name == "what" else "right", overflow="fold")
    for each in found.differences:
        part = "" if each.share is None else shown(100 * each.share, "%")
        cells = (each.what, part, shown(each.a, each.unit), shown(each.b, each.unit), each.change)
        table.add_row(*map(Text, cells))
    console.print(table)
    console.print("Every statistic: --all; as a page: --out FILE.")


def _rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return f"{title}: nothing"
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _print_statistics(differences: pl.DataFrame, threshold: float, same: bool) -> None:
    console = tables()
    if differences.is_empty():
        if not same:
            console.print(f"No statistic differs by more than {threshold:g}%.")
        return
    console.print(_table("Statistics", differences.head(_ROWS_SHOWN)))
    console.print(_summary(differences))


@commands.command()
def export(
    run: RunArgument,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="A CSV file for the statistics.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--chrome-trace",
            metavar="FILE",
            help="A JSON file for chrome://tracing or Perfetto: what a CUDA program did on its GPUs.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a run's statistics as CSV, or what a CUDA program did as a trace."""
    from manyscale.results import load

    if csv is None and trace is None:
        raise InputError("say what to write: --csv FILE or --chrome-trace FILE")
    loaded = load(run)
    _say_note(loaded)
    if csv is not None:
        loaded.to_csv(csv, force=force)
        say(f"Wrote {loaded.stats.height:,} rows to {csv}", quiet=quiet)
    if trace is not None:
        loaded.to_chrome_trace(trace, force=force)
        say(f"Wrote {trace}; open it at https://ui.perfetto.dev or chrome://tracing", quiet=quiet)


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
