# SPDX-License-Identifier: Apache-2.0
"""Commands on machines: list the presets, show one, list what can be said of one, import a listing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say, tables
from manyscale.cli.listing import listing_wanted, print_table
from manyscale.cli.options import Changes, Force, Json, Quiet, complete_preset

if TYPE_CHECKING:
    from manyscale.machine import Machine, ResolvedMachine

commands = typer.Typer(name="machines")

_KINDS = {"GPU": "GPUs", "processor": "Processors", "memory": "Memories", "network": "Networks"}
_TITLE = ("name", "description")  # shown above the numbers, not among them


@commands.callback(invoke_without_command=True)
def machines(context: typer.Context, json: Json = False) -> None:
    """List the machines that come with Manyscale; its commands look into one."""
    if not listing_wanted(context, json):
        return
    from manyscale.machine import list_presets, load_machine

    presets = {name: load_machine(name) for name in list_presets()}
    if json:
        emit_json(
            [
                {
                    "name": name,
                    "kind": _kind(preset.machine),
                    "description": preset.machine.description,
                    "from": _origins(preset),
                }
                for name, preset in presets.items()
            ]
        )
        return
    _print_by_kind({name: preset.machine for name, preset in presets.items()})


@commands.command()
def show(
    machine: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="A preset's name, or a machine file (TOML or INI).",
            autocompletion=complete_preset,
        ),
    ],
    changes: Changes = None,
    json: Json = False,
) -> None:
    """Show a machine as it will be simulated: each number with its unit and its source."""
    from manyscale.machine import load_machine

    resolved = load_machine(machine, changes or ())
    parameters = _parameters(resolved)
    name, description = resolved.machine.name, resolved.machine.description
    if json:
        emit_json({"name": name, "description": description, "parameters": parameters})
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right", max_width=52)
    grid.add_column(overflow="fold", style="dim")
    section = ""
    for path, entry in parameters.items():
        above, _, last = path.rpartition(".")
        if above != section:
            section = above
            grid.add_row()
            grid.add_row(Text(f"[{section}]", style="bold"))
        grid.add_row(Text(f"  {last}"), Text(entry["text"]), Text(entry["source"]))
    console = tables()
    console.print(Text(f"{name}: {description}" if description else name))
    console.print(grid)


@commands.command()
def parameters(json: Json = False) -> None:
    """List all that can be said of a machine, in files and with --set."""
    from manyscale.machine import Machine
    from manyscale.spec import parameters

    rows = parameters(Machine)
    if json:
        emit_json([row._asdict() for row in rows])
        return
    print_table(
        "Parameters of a machine",
        ("path", "unit", "range", "default", "meaning"),
        [(row.path, row.unit, row.range or "any", row.default or "empty", row.doc) for row in rows],
    )


@commands.command("import")
def import_listing(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The file to read.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.toml", help="The machine file to write.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the machine; else that of the file.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Turn a file of another simulator into a machine file.

    FILE is an INI listing of SST-GPU or UVM Smart, or a gpgpusim.config of
    GPGPU-Sim or Accel-Sim.
    """
    from manyscale.machine import load_machine, to_toml
    from manyscale.machine.gpgpusim import import_gpgpusim, looks_like_gpgpusim
    from manyscale.machine.saving import MACHINE_FILE
    from manyscale.results.files import check_output, write_file

    check_output(out, MACHINE_FILE, force=force)
    left_out: tuple[str, ...] = ()
    if looks_like_gpgpusim(file):
        imported = import_gpgpusim(file, name)
        resolved, left_out = imported.resolved, imported.left_out
    else:
        # With a folder before it, the file cannot be taken for a preset.
        path = str(file) if file.is_absolute() else f"./{file}"
        resolved = load_machine(path, [] if name is None else [f"name={_quoted(name)}"])
    text = to_toml(resolved.machine, resolved.sources)
    content = (_comments("Options that are not simulated:", left_out) + text.rstrip() + "\n").encode()
    write_file(out, lambda file: file.write(content), MACHINE_FILE, force=force)
    say(f"Wrote {len(_parameters(resolved))} parameters to {out}", quiet=quiet)
    for key, value in resolved.workload.items():
        say(f"Left out, since it is of the workload and not of the machine: {key} = {value}", quiet=quiet)
    for option in left_out:
        say(f"Left out, since it is not simulated: {option}", quiet=quiet)


def _kind(machine: Machine) -> str:
    """What a machine is mostly a description of."""
    if machine.gpu is not None and machine.gpu.sm is not None:
        return "GPU"
    if machine.cpu is not None and machine.cpu.core is not None:
        return "processor"
    if machine.network is not None:
        return "network"
    return "memory" if machine.gpu is None else "GPU"


def _print_by_kind(machines: dict[str, Machine]) -> None:
    """A line for each; on a terminal as long as that is wide, `machines show NAME` has the rest."""
    from rich.text import Text

    console = tables()
    width = max(map(len, machines))
    for kind, title in _KINDS.items():
        console.print(Text(title, style="bold"))
        for name, machine in machines.items():
            if _kind(machine) == kind:
                line = Text(f"  {name:{width}}  {machine.description}")
                console.print(line, no_wrap=True, overflow="ellipsis", crop=console.is_terminal)
    console.print(Text("More of one: manyscale machines show NAME", style="dim"))


def _quoted(text: str) -> str:
    """The text as TOML, so that a name such as 3 or true stays a text."""
    import json

    return json.dumps(text)


def _comments(heading: str, lines: Sequence[str]) -> str:
    """Lines for the head of a machine file; none where there is nothing to say."""
    printable = ("".join(letter if letter.isprintable() else " " for letter in line) for line in lines)
    return "".join(f"# {line}\n" for line in (heading, *printable)) + "\n" if lines else ""


def _origins(resolved: ResolvedMachine) -> list[str]:
    """The documents that a machine's numbers come from: what stands before the first comma or colon of a source."""
    stated = (source for path, source in resolved.sources.items() if path not in _TITLE)
    titles = (re.split("[,:]", source)[0] for source in stated if source != "default")
    return list(dict.fromkeys(titles))


def _parameters(resolved: ResolvedMachine) -> dict[str, dict[str, Any]]:
    """Each stated parameter by its path, a section's own before those of the sections within it."""
    from manyscale.machine import Machine
    from manyscale.spec import dump, parameters

    units = {parameter.path.removesuffix("[]"): parameter.unit for parameter in parameters(Machine)}
    texts = dump(resolved.machine)
    entries = {}
    for path, source in resolved.sources.items():
        if path in _TITLE:
            continue
        parts = path.split(".")
        entries[path] = {
            "value": reduce(getattr, parts, resolved.machine),
            "unit": units[path],
            "text": str(reduce(lambda table, part: table[part], parts, texts)),
            "source": source,
        }
    return entries
