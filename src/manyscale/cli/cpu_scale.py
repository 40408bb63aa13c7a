# SPDX-License-Identifier: Apache-2.0
"""`manyscale cpu scale`, and what `manyscale cpu replay --vary` shows: one trace replayed many times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.options import Changes, Force, Json, Quiet, Threads
from manyscale.errors import InputError
from manyscale.results.files import FileGroup, FileKind, check_output

if TYPE_CHECKING:
    from manyscale.cpu.scaling import Study

commands = typer.Typer()

_TABLE_FILE = "study.csv"
_TABLE = FileKind.csv("replay", "cores", "time")
_CHART = FileKind.magic("an SVG chart", b"<svg", b"<?xml")
_LABELS = {
    "time": "us",
    "speedup": "times",
    "efficiency": "of the first",
    "mpki": "misses in 1000 instructions",
}


@commands.command()
def scale(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A trace that `manyscale cpu record` has made.")
    ],
    weak: Annotated[
        str | None,
        typer.Option(
            "--weak",
            metavar="CORES",
            help="Copies of the trace on so many cores: 1,2,6 or 1..128, which doubles.",
        ),
    ] = None,
    strong: Annotated[
        str | None, typer.Option("--strong", metavar="CORES", help="The trace's tasks on so many cores.")
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            metavar="NAME",
            help="Who executes a task: fifo, work_stealing, locality, critical_path.",
        ),
    ] = "fifo",
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="All copies touch the same addresses, private data too.")
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine", "-m", metavar="NAME|FILE", help="The machine; that of the recording without it."
        ),
    ] = None,
    changes: Changes = None,
    threads: Threads = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="A folder for the table and charts.")
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Replay a trace on more and more cores: with more copies of it, or with its tasks scheduled on them.

    Example: manyscale cpu scale matrix.trace --weak 1..128 --out study
    """
    from manyscale.cpu import scaling

    if (weak is None) == (strong is None):
        raise InputError("say either --weak CORES or --strong CORES")
    check_folder(out, force)

    def progress(what: str) -> None:
        say(f"Replaying on {what}", quiet=quiet or json)

    options: dict[str, Any] = {
        "machine": machine,
        "changes": changes or [],
        "threads": threads,
        "progress": progress,
    }
    if weak is not None:
        study = scaling.weak(trace, scaling.parse_counts(weak), offset=not no_offset, **options)
    else:
        study = scaling.strong(
            trace,
            scaling.parse_counts(strong or ""),
            scheduler=scheduler,
            warn=lambda text: say(f"Warning: {text}"),
            **options,
        )
    show(study, out, force, json, quiet)


def show_varied(
    trace: Path, varied: list[str], out: Path | None, force: bool, json: bool, quiet: bool, **options: Any
) -> None:
    """Replays a trace with each value of the parameters in `varied`, and shows a table."""
    from manyscale.cpu import scaling

    def progress(what: str) -> None:
        say(f"Replaying with {what}", quiet=quiet or json)

    check_folder(out, force)
    study = scaling.vary(trace, scaling.parse_varied(varied), progress=progress, **options)
    show(study, out, force, json, quiet)


def check_folder(out: Path | None, force: bool) -> None:
    """Looks whether a study can be written, before the work."""
    if out is None or not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"--out {out}: it is a file; give a folder for the table and charts")
    for name in (_TABLE_FILE, *(f"{name}.svg" for name in _LABELS)):
        check_output(out / name, _kind(name), force=force)


def show(study: Study, out: Path | None, force: bool, json: bool, quiet: bool) -> None:
    """Prints a study, and writes it to a folder if there is one."""
    if out is not None:
        write(study, out, force=force)
    if json:
        warning = {} if study.fixed is None else {"warning": study.warning or None}
        emit_json({"title": study.title, "kind": study.kind, **warning, "replays": study.table().to_dicts()})
        return
    from manyscale.cli.listing import print_table

    levels = [level for level in study.points[0].mpki if level != "l1i"]
    fixed = study.fixed
    print_table(
        study.title,
        (
            "replay",
            "time us",
            "speed-up",
            *([] if fixed is None else ["at most"]),
            "efficiency",
            *(f"{level} MPKI" for level in levels),
            "waiting",
            "wall s",
        ),
        [
            (
                point.label,
                f"{1e6 * point.seconds:,.1f}",
                f"{study.speedup(point):.2f}",
                *([] if fixed is None else [f"{fixed.bound(study.points[0].cores, point.cores):.2f}"]),
                f"{study.efficiency(point):.2f}",
                *(f"{point.mpki.get(level, 0.0):.2f}" for level in levels),
                f"{point.waiting:.1%}",
                f"{point.wall_seconds:.1f}",
            )
            for point in study.points
        ],
    )
    if study.warning:
        say(f"Warning: {study.warning}", quiet=quiet)
    if out is not None:
        say(f"Table and charts are in {out}", quiet=quiet)


def write(study: Study, folder: Path, *, force: bool = False) -> None:
    """Leaves the table as CSV, and a chart of each quantity."""
    from manyscale.results.line_chart import line_chart

    axis = "replay" if study.kind == "vary" else "cores"
    with FileGroup(folder, _kind, force=force) as group:
        group.add(_TABLE_FILE, lambda file: study.table().write_csv(file))
        for name, lines in study.lines().items():
            chart = line_chart(study.title, axis, _LABELS[name], lines, log_x=study.kind != "vary").encode()
            group.add(f"{name}.svg", lambda file, chart=chart: file.write(chart))  # type: ignore[misc]


def _kind(name: str) -> FileKind:
    return _TABLE if name == _TABLE_FILE else _CHART
