# SPDX-License-Identifier: Apache-2.0
"""The command that runs a saved system."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyscale.cli.console import emit_json, say, simulated, tables
from manyscale.cli.options import Changes, Json, Out, Quiet, Replace, Seed, Threads
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.system import Result

commands = typer.Typer()

_OUTCOMES = {
    "finished": "nothing was left to do",
    "limit": "at the time limit",
    "stopped": "a model ended it",
}


@commands.command()
def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="SYSTEM.toml",
            exists=True,
            dir_okay=False,
            help="A saved system, or a run's machine.toml.",
        ),
    ],
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Stop at this simulated time, such as 1ms."),
    ] = None,
    changes: Changes = None,
    threads: Threads = 1,
    seed: Seed = None,
    out: Out = None,
    force: Replace = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Also write what happened when, to look at in ui.perfetto.dev.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a saved system and leave a run directory."""
    from manyscale.cli.progress import SimulationProgress
    from manyscale.results.definitions import plain
    from manyscale.system import System

    limit = None if until is None else _time(until)
    system = System.load(file, changes=changes or (), seed=seed)
    system.check()
    with (
        output_directory(out, system.name, quiet, force=force) as directory,
        SimulationProgress(system.name, limit, quiet) as progress,
    ):
        result = system.run(
            until=until,
            threads=threads,
            out=directory,
            timeline=timeline,
            progress=progress,
            command=["manyscale", *sys.argv[1:]],
        )
    if json:
        emit_json(plain(result.headline) | {"outcome": result.outcome, "directory": str(directory)})
    elif not quiet:
        _print_headline(result, directory)


def _time(text: str) -> int:
    from manyscale.units import TIME, parse

    try:
        time = int(parse(text, TIME))
    except InputError as error:
        raise InputError(f"--until: {error}") from None
    if time < 0:
        raise InputError(f"--until: {text} is before the start; give a time of at least 0fs")
    return time


@contextlib.contextmanager
def output_directory(out: Path | None, name: str, quiet: bool, *, force: bool = False) -> Iterator[Path]:
    """The directory of the run: tells where partial results are, and goes if the run never began.

    With `force`, a run that is there is replaced.
    """
    from manyscale.results.run_directory import RUN_FILE, default_directory, remove_run

    directory = default_directory(Path(), name) if out is None else out
    if force and out is not None:
        remove_run(out)
    try:
        yield directory
    except KeyboardInterrupt:
        if (directory / RUN_FILE).exists():
            say(f"Partial results are in {directory}", quiet=quiet)
        raise
    finally:
        if out is None:
            with contextlib.suppress(OSError):  # it holds a run
                directory.rmdir()


def _print_headline(result: Result, directory: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from manyscale.units import COUNT, TIME, humanize

    rate = humanize(round(result.events / result.wall_seconds), COUNT) if result.wall_seconds else "?"
    facts = {
        "simulated": simulated(
            humanize(result.now, TIME), result.wall_seconds, result.threads, f"{rate} events/s"
        ),
        "outcome": _OUTCOMES.get(result.outcome, result.outcome),
        "events": f"{result.events:,}",
        "directory": str(directory),
    }
    grid = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        grid.add_row(name, Text(fact, overflow="fold"))
    tables().print(grid)
