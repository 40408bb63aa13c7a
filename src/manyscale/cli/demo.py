# SPDX-License-Identifier: Apache-2.0
"""`manyscale demo`: every scale once, in under a minute, and one report of it all."""

from __future__ import annotations

import time
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
    """Show what there is: every scale once, in under a minute, and a report of it all as one HTML page."""
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
            {"directory": str(directory), "report": str(report), "wall_seconds": seconds, "steps": facts}
        )
        return
    typer.echo(
        f"Done in {seconds:.1f} s. The runs are in {directory}; look at them:\n"
        f"  manyscale show {directory / 'credits' / '2-slots'}\n"
        f"  manyscale compare {directory / 'credits' / '1-slots'} {directory / 'credits' / '8-slots'}\n"
        f"The report of it all, for a browser:\n{report}"
    )


def _show(facts: Facts) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 1, 0, 3))
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(str(fact), overflow="fold"))
    tables().print(table)
