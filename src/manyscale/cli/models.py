# SPDX-License-Identifier: Apache-2.0
"""Commands on the core's models: list them, show the parameters, ports and statistics of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from manyscale.cli.console import emit_json, tables
from manyscale.cli.listing import listing_wanted, print_table
from manyscale.cli.options import Json

commands = typer.Typer(name="models")


def complete_model(incomplete: str) -> list[str]:
    """For the shell: the models whose names begin so."""
    from manyscale.system import models

    return [name for name in models() if name.startswith(incomplete)]


@commands.callback(invoke_without_command=True)
def models(context: typer.Context, json: Json = False) -> None:
    """List the models of the core; `show` tells all about one."""
    if not listing_wanted(context, json):
        return
    from manyscale.system import models

    infos = models().values()
    if json:
        emit_json([{"name": info.name, "doc": info.doc} for info in infos])
        return
    print_table("Models", ("name", "what it is"), [(info.name, info.doc) for info in infos])


@commands.command()
def plugins(json: Json = False) -> None:
    """List what is chosen by name within models, such as branch predictors, with a sentence on each."""
    from manyscale import _core

    found = {kind: entries for kind, entries in _core.plugins().items() if kind != "model"}
    if json:
        emit_json({kind: {name: info["doc"] for name, info in found[kind].items()} for kind in found})
        return
    rows = [(kind, name, info["doc"]) for kind, entries in found.items() for name, info in entries.items()]
    print_table("Plug-ins", ("kind", "name", "what it is"), rows)


@commands.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A model, such as synthetic.relay.", autocompletion=complete_model
        ),
    ],
    json: Json = False,
) -> None:
    """Show a model's parameters, ports and statistics."""
    from manyscale.spec import parameters
    from manyscale.system import model

    info = model(name)
    described, ports, statistics = parameters(info.spec), info.ports(), info.statistics()
    if json:
        emit_json(
            {
                "name": info.name,
                "doc": info.doc,
                "parameters": [row._asdict() for row in described],
                "ports": [asdict(port) for port in ports],
                "statistics": [asdict(statistic) for statistic in statistics],
            }
        )
        return
    tables().print(f"{info.name}: {info.doc}", markup=False)
    if described:
        print_table(
            "Parameters",
            ("name", "unit", "range", "default", "meaning"),
            [(row.path, row.unit, row.range or "any", row.default or "empty", row.doc) for row in described],
        )
    if ports:
        print_table(
            "Ports",
            ("name", "protocol", "role", "links", "meaning"),
            [(port.name, port.protocol, port.role, port.links, port.doc) for port in ports],
        )
    if statistics:
        print_table(
            "Statistics",
            ("name", "kind", "unit", "meaning"),
            [(entry.name, entry.kind, entry.unit, entry.doc) for entry in statistics],
        )
