# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: the reference, made of what the package says of itself, so that it cannot be out of date."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

    from manyscale.spec import Parameter


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages; called by mkdocs."""
    from mkdocs.structure.files import File

    for path, write in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    return files


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _parameters(rows: Iterable[Parameter]) -> str:
    return table(
        ("name", "unit", "range", "default", "meaning"),
        [(f"`{row.path}`", row.unit, row.range or "any", row.default or "empty", row.doc) for row in rows],
    )


def machine() -> str:
    """All that can be said of a machine."""
    from manyscale.machine import Machine
    from manyscale.spec import parameters

    sections: dict[str, list[Parameter]] = {}
    for row in parameters(Machine):
        sections.setdefault(row.path.partition(".")[0] if "." in row.path else "", []).append(row)
    text = "# Parameters of a machine\n\nIn machine files, and with `--set NAME=VALUE`.\n"
    for name, rows in sections.items():
        text += f"\n## {name or 'About it'}\n\n{_parameters(rows)}"
    return text


def presets() -> str:
    """The machines that come with the package."""
    from manyscale.machine import list_presets, load_machine

    rows = [(f"`{name}`", load_machine(name).machine.description) for name in list_presets()]
    listing = table(("name", "what it is"), rows)
    return f"# Presets\n\n`manyscale machines show NAME` shows each number with its source.\n\n{listing}"


def models() -> str:
    """The models of the core: parameters, ports, statistics."""
    from manyscale.spec import parameters
    from manyscale.system import models as all_models

    text = "# Models\n\nParameters, ports and statistics of each model of the core.\n"
    for info in all_models().values():
        text += f"\n## {info.name}\n\n{info.doc}\n"
        if described := parameters(info.spec):
            text += f"\n{_parameters(described)}"
        if ports := info.ports():
            rows = [(f"`{port.name}`", port.protocol, port.role, port.links, port.doc) for port in ports]
            text += "\n" + table(("port", "protocol", "role", "links", "meaning"), rows)
        if statistics := info.statistics():
            counted = [(f"`{entry.name}`", entry.kind, entry.unit, entry.doc) for entry in statistics]
            text += "\n" + table(("statistic", "kind", "unit", "meaning"), counted)
    return text


def skeletons() -> str:
    """The built-in skeletons of MPI jobs."""
    from manyscale.network import MOTIFS
    from manyscale.spec import parameters

    text = "# Skeletons\n\nMPI jobs for `manyscale net run NAME --param NAME=VALUE`.\n"
    for name, kind in MOTIFS.items():
        text += f"\n## {name}\n\n{' '.join((kind.__doc__ or '').split())}\n\n{_parameters(parameters(kind))}"
    return text


def commands() -> str:
    """All commands with their arguments and options."""
    import typer.main

    from manyscale.cli.app import app

    text = "# Commands\n"
    for name, command in _leaves(typer.main.get_command(app), "manyscale"):
        rows = [
            (f"`{_usage(parameter)}`", getattr(parameter, "help", None) or "")
            for parameter in command.params
            if not getattr(parameter, "hidden", False)
        ]
        described = " ".join((command.help or "").split())
        text += f"\n## {name}\n\n{described}\n\n{table(('argument or option', 'meaning'), rows)}"
    return text


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner: dict[str, Any] = getattr(command, "commands", {})
    if not inner or getattr(command, "invoke_without_command", False):
        yield name, command
    for word, each in inner.items():
        yield from _leaves(each, f"{name} {word}")


def _usage(parameter: Any) -> str:
    metavar = parameter.metavar or ("" if getattr(parameter, "is_flag", False) else parameter.name.upper())
    if parameter.param_type_name == "argument":
        return str(metavar)
    return f"{', '.join(parameter.opts)} {metavar}".strip()


def top_level(name: str) -> Callable[[], str]:
    """A page at the top of the repository, with its links as they are seen from `docs/`."""

    def page() -> str:
        text = (Path(__file__).resolve().parents[1] / name).read_text(encoding="utf-8")
        return re.sub(r"\]\((?!https?:|#)(docs/)?", lambda link: "](" if link[1] else "](../", text)

    return page


PAGES: dict[str, Callable[[], str]] = {
    "contributing.md": top_level("CONTRIBUTING.md"),
    "changelog.md": top_level("CHANGELOG.md"),
    "reference/machine.md": machine,
    "reference/presets.md": presets,
    "reference/models.md": models,
    "reference/skeletons.md": skeletons,
    "reference/commands.md": commands,
}
