# SPDX-License-Identifier: Apache-2.0
"""`manyscale report`: a run or a sweep as one HTML page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.options import Json, Quiet

if TYPE_CHECKING:
    from manyscale.report import Page

commands = typer.Typer()

REPORT_FILE = "report.html"


@commands.command()
def report(
    target: Annotated[
        Path, typer.Argument(metavar="RUN|SWEEP", help="The directory of a run, or of a sweep or study.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page to write; RUN/report.html without it."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Also write the charts there as files for a paper."),
    ] = None,
    formats: Annotated[
        str,
        typer.Option(
            "--format", metavar="KINDS", help="Of the charts in --figures: png, svg, pdf, or several."
        ),
    ] = "svg",
    open_it: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report of a run or a sweep: one HTML page that needs nothing else and works offline.

    Example: manyscale report runs/net-halo3d-1 --figures figures --format pdf,png
    """
    page = _page(target)
    saved = []
    if figures is not None:  # before the page, so that an error is the last word
        saved = page.save_charts(figures, [kind.strip() for kind in formats.split(",") if kind.strip()])
        say(f"Wrote {len(saved)} charts to {figures}", quiet=quiet or json)
    path = page.write(out if out is not None else target / REPORT_FILE)
    if json:
        emit_json(
            {"report": str(path), "bytes": path.stat().st_size, "figures": [str(file) for file in saved]}
        )
    else:
        typer.echo(str(path))
    if open_it:
        import webbrowser

        if not webbrowser.open(path.resolve().as_uri()):
            say(f"No browser was found; open {path.resolve().as_uri()}")
    sys.stdout.flush()


def _page(target: Path) -> Page:
    """The page of a sweep, if the directory holds one; else that of a run."""
    if (target / "sweep.json").exists():
        from manyscale.report.sweep_page import sweep_page
        from manyscale.studies.sweep.sweep_directory import load_sweep

        sweep = load_sweep(target)
        return sweep_page(target, sweep.info, sweep.table)
    from manyscale.report.run_page import run_page
    from manyscale.results import load

    return run_page(load(target))
