# SPDX-License-Identifier: Apache-2.0
"""The command that lists plug-ins: models, topologies, policies and all else that is found by name."""

from __future__ import annotations

from typing import Annotated

import typer

from manyscale.cli.console import emit_json
from manyscale.cli.listing import print_table
from manyscale.cli.options import Json

commands = typer.Typer()


def complete_kind(incomplete: str) -> list[str]:
    """For the shell: the kinds whose names begin so."""
    from manyscale.plugins import kinds

    return [kind for kind in kinds() if kind.startswith(incomplete)]


@commands.command()
def plugins(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="Such as topology; all kinds if not stated.", autocompletion=complete_kind
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List plug-ins by kind: those of the package and those that MANYSCALE_PLUGINS names."""
    from manyscale import plugins

    wanted = plugins.kinds() if kind is None else [kind]
    found = [plugin for name in wanted for plugin in plugins.plugins(name).values()]
    if json:
        emit_json(
            [
                {"kind": plugin.kind, "name": plugin.name, "doc": plugin.doc, "parameters": plugin.parameters}
                for plugin in found
            ]
        )
        return
    rows = [
        (plugin.kind, plugin.name, plugin.doc, ", ".join(row["name"] for row in plugin.parameters))
        for plugin in found
    ]
    print_table("Plug-ins", ("kind", "name", "what it does", "parameters"), rows)
