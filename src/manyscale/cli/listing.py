# SPDX-License-Identifier: Apache-2.0
"""Helpers of the commands that list machines, models and plug-ins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

from manyscale.cli.console import tables


def listing_wanted(context: typer.Context, json: bool) -> bool:
    """Whether a group of commands was called without one of them, which means its listing."""
    if context.invoked_subcommand is None:
        return True
    if json:
        raise typer.BadParameter(f"write --json after '{context.invoked_subcommand}'", param_hint="--json")
    return False


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on standard output; square brackets in its cells are not markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    tables().print(table)
