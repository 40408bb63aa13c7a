# SPDX-License-Identifier: Apache-2.0
"""Where commands write: results to standard output, everything else to standard error.

With `--json`, standard output holds one JSON document and nothing else.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import os
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 160


@functools.cache
def messages() -> Console:
    """The one console on standard error, for messages and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def tables() -> Console:
    """A console on standard output, for tables; wide when piped, so that nothing is cut off, or as COLUMNS says."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_WITHOUT_TERMINAL
    return console


def say(text: str, *, quiet: bool = False) -> None:
    """A message for people; square brackets in it are not markup."""
    if not quiet:
        messages().print(text, markup=False)


def simulated(time: str, wall_seconds: float, threads: int | None = None, rate: str = "") -> str:
    """How much was simulated and how long that took here: "4.2us in 0.8 s on 1 thread (5M instructions/s)"."""
    on = "" if threads is None else f" on {threads} thread{'' if threads == 1 else 's'}"
    return f"{time} in {wall_seconds:.3g} s{on}{f' ({rate})' if rate else ''}"


class _Messages(logging.Handler):
    """Shows what the package reports, such as parameters that a run does not use."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"manyscale: {record.getMessage()}")


def show_reports() -> None:
    """From now on what the package reports is a message, unless `silence_reports` is called."""
    logger = logging.getLogger("manyscale")
    if not any(isinstance(handler, _Messages) for handler in logger.handlers):
        logger.addHandler(_Messages())
    logger.setLevel(logging.WARNING)


def silence_reports(quiet: bool) -> bool:
    """The callback of --quiet."""
    if quiet:
        logging.getLogger("manyscale").setLevel(logging.ERROR)
    return quiet


def complain(text: str) -> None:
    """An error message, without rich's import so that mistakes are answered at once."""
    typer.secho("Error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.echo(text, err=True)


def emit_json(data: Any) -> None:
    """`data` as the one JSON document on standard output; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(data), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data
