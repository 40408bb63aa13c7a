# SPDX-License-Identifier: Apache-2.0
"""The options that commands share, each declared once.

Use them as annotations: `def run(machine: Machine, changes: Changes = None, json: Json = False)`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from manyscale.cli.console import silence_reports


def complete_preset(incomplete: str) -> list[str]:
    """For the shell: the presets whose names begin so. Where there is none, bash completes files."""
    from manyscale.machine.presets import list_presets

    return [name for name in list_presets() if name.startswith(incomplete)]


def complete_change(context: typer.Context, incomplete: str) -> list[str]:
    """For the shell: the parameters whose paths begin so, one part of the path at a time."""
    from manyscale.machine import Machine
    from manyscale.spec import parameters

    depth = incomplete.count(".") + 1
    found: dict[str, None] = {}
    for row in parameters(Machine):
        if row.path.startswith(incomplete) and "[]" not in row.path:
            parts = row.path.split(".")
            found[".".join(parts[:depth]) + ("." if len(parts) > depth else "=")] = None
    return list(found)


Machine = Annotated[
    str,
    typer.Option(
        "--machine",
        "-m",
        metavar="NAME|FILE",
        help="The machine: a preset's name or a TOML file.",
        autocompletion=complete_preset,
    ),
]

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Change one parameter; may be repeated.",
        autocompletion=complete_change,
    ),
]

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Where to leave the run; without it, the next free runs/NAME-N."
    ),
]

Threads = Annotated[
    int,
    typer.Option(
        "--threads", "-t", min=1, metavar="N", help="Threads to use; the results do not depend on it."
    ),
]

Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, metavar="N", help="Seed of every random number of the run."),
]

Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files that are there already, if they are of the same kind."),
]

Replace = Annotated[
    bool,
    typer.Option("--force", help="Replace a run that --out holds already."),
]

Json = Annotated[
    bool,
    typer.Option("--json", help="Write the result as JSON to standard output, and nothing else there."),
]

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=silence_reports,
        help="No progress and no messages; errors are still shown.",
    ),
]

CodeChoice = Annotated[
    Literal["auto", "sass", "ptx"] | None,
    typer.Option(
        "--isa",
        help="What kernels run as: SASS, PTX (less accurate times), or SASS where it can be had (auto, if neither this "
        "option nor the machine says otherwise).",
    ),
]

AllowNewer = Annotated[
    bool,
    typer.Option(
        "--allow-newer",
        help="Take PTX that was built for GPUs that can do more than the machine's, with a warning.",
    ),
]
