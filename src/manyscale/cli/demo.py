# SPDX-License-Identifier: Apache-2.0
"""`manyscale demo`: from a kernel to 1,024 GPUs in less than a minute, and one report of it all."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from manyscale.cli.console import emit_json, say, tables
from manyscale.cli.options import Json, Out, Quiet
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.cli.demo_steps import Facts

commands = typer.Typer()


@commands.command()
def demo(out: Out = None, json: Json = False, quiet: Quiet = False) -> None:
    """Go from a kernel to 1,024 GPUs in less than a minute, and write a report of it all.

    A kernel on a V100 and what limits it, the same after two fixes, with unified memory, an OpenMP program on three
    processors, an MPI job on 512 nodes, and a training step on up to 1,024 GPUs. No GPU is needed.
    """
    from manyscale.cli.demo_report import write_report
    from manyscale.cli.demo_steps import STEPS, Outcome
    from manyscale.cli.run import output_directory

    if out is not None and out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out {out}: it is there already; give a new or empty directory")
    began = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    with output_directory(out, "demo", quiet=True) as directory:
        for number, (name, step) in enumerate(STEPS.items(), 1):
            if not json:
                typer.echo(f"[{number}/{len(STEPS)}] {step.__doc__}")
            outcomes[name] = step(directory / name, quiet or json)
            if not json:
                _show(outcomes[name].facts)
        say("Writing the report", quiet=quiet or json)
        report = write_report(directory, outcomes)
    seconds = time.monotonic() - began
    if json:
        facts = {name: outcome.facts for name, outcome in outcomes.items()}
        emit_json(
            {
                "directory": str(directory),
                "report": str(report),
                "wall_seconds": seconds,
                "processor_seconds": time.process_time(),
                "steps": facts,
            }
        )
        return
    typer.echo(f"Done in {seconds:.0f} s.\n{_what_next(directory, report)}")


def _what_next(directory: Path, report: Path) -> str:
    """How to look at what was made, and how to go on."""
    first, padded = directory / "kernel" / "first", directory / "fixed-kernel" / "padded"
    lines = {
        "open the report": f"{_opener()} {report}",
        "one of its runs": f"manyscale show {first}",
        "before and after": f"manyscale compare {first} {padded}",
        "your own program": "manyscale cuda --machine v100 -- ./program",
    }
    activate = Path(sys.prefix, "bin", "activate")
    if shutil.which("manyscale") is None and activate.exists():
        lines = {"first": f". {_short(activate)}", **lines}
    width = max(map(len, lines))
    return "\n".join(f"  {what:{width}}  {command}" for what, command in lines.items())


def _opener() -> str:
    return next((name for name in ("xdg-open", "open") if shutil.which(name)), "firefox")


def _short(path: Path) -> Path:
    """The path from here, if it is below the working directory."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _show(facts: Facts) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 1, 0, 3))
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(str(fact), overflow="fold"))
    tables().print(table)
