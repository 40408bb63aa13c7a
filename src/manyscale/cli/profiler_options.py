# SPDX-License-Identifier: Apache-2.0
"""Options that make a run of a CUDA program comparable with that of a profiler."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "As under a profiler"

ColdL2 = Annotated[
    bool,
    typer.Option("--cold-l2", help="Empty the L2 before each launch, as ncu does.", rich_help_panel=_PANEL),
]

WarmInstructions = Annotated[
    bool,
    typer.Option(
        "--warm-instructions",
        help="The instruction caches hold a kernel when it begins, as when ncu runs it again and again.",
        rich_help_panel=_PANEL,
    ),
]

LockClock = Annotated[
    str | None,
    typer.Option(
        "--lock-clock",
        metavar="FREQUENCY",
        help="The clock of the SMs, as --set gpu.clock=FREQUENCY; ncu locks it to the base clock.",
        rich_help_panel=_PANEL,
    ),
]

KernelPattern = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="REGEX",
        help="Only launches of kernels whose name matches take time; the others are only executed.",
        rich_help_panel=_PANEL,
    ),
]

Skip = Annotated[
    int,
    typer.Option(
        "--skip",
        min=0,
        metavar="N",
        help="The first launches of these that take no time.",
        rich_help_panel=_PANEL,
    ),
]

Launches = Annotated[
    int | None,
    typer.Option(
        "--launches",
        min=1,
        metavar="N",
        help="The launches of the rest that take time, at most.",
        rich_help_panel=_PANEL,
    ),
]

Stop = Annotated[
    bool,
    typer.Option(
        "--stop", help="End the program after the last of --launches, with success.", rich_help_panel=_PANEL
    ),
]


def clock_change(lock_clock: str | None) -> list[str]:
    """The change of the machine that --lock-clock asks for."""
    return [] if lock_clock is None else [f"gpu.clock={lock_clock}"]
