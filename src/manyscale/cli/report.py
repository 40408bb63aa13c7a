# SPDX-License-Identifier: Apache-2.0
"""`manyscale report`: a run or a sweep as one HTML page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.options import Force, Json, Quiet

if TYPE_CHECKING:
    from manyscale.report import Page
    from manyscale.results import Run

commands = typer.Typer()

REPORT_FILE = "report.html"
COMPARED_FILE = "compared.html"


@commands.command()
def report(
    targets: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|SWEEP...", help="The directory of a run, of a sweep or study, or of several runs."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The page to write; without it RUN/report.html, or compared.html of several.",
        ),
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
    force: Force = False,
    open_it: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report of a run, a sweep or several runs: one HTML page that needs nothing else and works offline.

    Of several runs, the page says what was changed from the first, what that did, and what explains it.

    A report in the directory itself is replaced if it is as Manyscale left it; other files are replaced only with
    --force.

    Example: manyscale report runs/net-halo3d-1 --figures figures --format pdf,png
    """
    from manyscale.report.page import PAGE
    from manyscale.results.files import check_output

    target, several = targets[0], len(targets) > 1
    if several and out is None:
        out = Path(COMPARED_FILE)
    path = out if out is not None else target / REPORT_FILE
    is_sweep = not several and (target / "sweep.json").exists()
    if out is not None or not _is_own(target, is_sweep):
        check_output(path, PAGE, force=force)
    page = _several_page(targets) if several else _sweep_page(target) if is_sweep else _run_page(target)
    saved = []
    if figures is not None:  # before the page, so that an error is the last word
        saved = page.save_charts(
            figures, [kind.strip() for kind in formats.split(",") if kind.strip()], force=force
        )
        say(f"Wrote {len(saved)} charts to {figures}", quiet=quiet or json)
    if out is not None:
        page.write(out, force=force)
    else:
        _add(target, is_sweep, page)
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


def _is_own(target: Path, is_sweep: bool) -> bool:
    """Whether the directory has no report, or one that is as Manyscale wrote it."""
    from manyscale.results.integrity import damage
    from manyscale.results.run import read_info
    from manyscale.studies.sweep import sweep_directory

    if not (target / REPORT_FILE).exists():
        return True
    listed = (sweep_directory.read_info if is_sweep else read_info)(target).get("files", {})
    return REPORT_FILE in listed and not damage(target, {REPORT_FILE: listed[REPORT_FILE]})


def _add(target: Path, is_sweep: bool, page: Page) -> None:
    from manyscale.results.additions import add_file
    from manyscale.studies.sweep.sweep_directory import add_to_sweep

    (add_to_sweep if is_sweep else add_file)(
        target, REPORT_FILE, lambda file: file.write(page.html().encode())
    )


def _sweep_page(target: Path) -> Page:
    from manyscale.report.sweep_page import sweep_page
    from manyscale.studies.sweep.sweep_directory import load_sweep

    sweep = load_sweep(target, ignoring=(REPORT_FILE,))
    if sweep.note is not None:
        say(f"Note: {sweep.note}")
    return sweep_page(target, sweep.info, sweep.table)


def _run_page(target: Path) -> Page:
    from manyscale.report.run_page import run_page

    return run_page(_loaded(target))


def _several_page(targets: Sequence[Path]) -> Page:
    from manyscale.report.comparison_page import comparison_page

    return comparison_page([_loaded(target) for target in targets])


def _loaded(target: Path) -> Run:
    from manyscale.results import load

    run = load(target, ignoring=(REPORT_FILE,))
    if run.note is not None:
        say(f"Note: {run.note}")
    return run
