# SPDX-License-Identifier: Apache-2.0
"""The `manyscale` command: gathers the commands and turns errors into messages."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from manyscale import processes
from manyscale.cli.console import complain, show_reports
from manyscale.cli.start import answer
from manyscale.errors import ManyscaleError
from manyscale.interrupts import StopSignals, stop_signals

# One line per module of commands: the module, and the commands that it adds to `manyscale`. A module has `commands`, a
# typer.Typer; with a name its commands become a group (`manyscale cpu run`). Only the modules of the command that is
# given are imported, and these import what is slow (polars, rich, the core) inside their functions.
MODULES: dict[str, tuple[str, ...]] = {
    "demo": ("demo",),
    "cuda": ("cuda",),
    "correlate": ("correlate",),
    "gpu": ("gpu",),
    "cpu": ("cpu",),
    "mem": ("mem",),
    "net": ("net",),
    "project": ("project",),
    "sweep": ("sweep",),
    "runs": ("show", "compare", "export"),
    "report": ("report",),
    "view": ("view",),
    "check": ("check",),
    "machines": ("machines",),
    "models": ("models",),
    "plugins": ("plugins",),
    "new": ("new",),
    "run": ("run",),
    "validate": ("validate",),
}
WITHIN: dict[str, str] = {  # modules that add commands to the group of another
    "disassemble": "gpu",
    "cpu_trace": "cpu",
    "cpu_scale": "cpu",
}

_TYPER_STOPPED = 130  # typer's own answer to KeyboardInterrupt, which says nothing
_BROKEN_PIPE = 141
_COMPLETION = "_MANYSCALE_COMPLETE"


def _version(wanted: bool) -> None:
    if wanted:
        from manyscale.cli.start import version

        typer.echo(version())
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@functools.cache
def application(command: str | None = None) -> typer.Typer:
    """The command line, with all commands, or only with the module of the one that is given."""
    app = typer.Typer(
        name="manyscale",
        help="Simulate parallel machines at every scale, from a warp to an MPI job on thousands of nodes.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name, added in MODULES.items():
        if command is None or command in added:
            app.add_typer(_commands(name))
    return app


@functools.cache
def _commands(name: str) -> typer.Typer:
    module = importlib.import_module(f"manyscale.cli.{name}")
    commands: typer.Typer = module.commands
    for inner, group in WITHIN.items():
        if group == name:
            commands.add_typer(_commands(inner))
    return commands


def __getattr__(name: str) -> typer.Typer:
    """`app` has all commands."""
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 only when the work is done."""
    show_reports()
    try:
        with stop_signals() as signals, processes.command_line() as ended:  # several processes under mpirun
            code = ended[0] = _run(arguments, signals)
        # What is still buffered must meet a closed pipe here, not in the interpreter's last moments.
        sys.stdout.flush()
    except ManyscaleError as error:
        complain(str(error))
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code


def _application(arguments: Sequence[str] | None) -> typer.Typer:
    """What answers these arguments: one module, unless help, a misspelt name or completion needs all of them."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if _COMPLETION in os.environ:  # a shell asks how words go on
        words = os.environ.get("_TYPER_COMPLETE_ARGS", os.environ.get("COMP_WORDS", "")).split()
        given = words[1:] if len(words) > 2 else []
    known = {name for added in MODULES.values() for name in added}
    return application(given[0] if given and given[0] in known else None)


def _run(arguments: Sequence[str] | None, signals: StopSignals) -> int:
    try:
        _application(arguments)(None if arguments is None else list(arguments), prog_name="manyscale")
    except ManyscaleError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain(signals.message)
        return signals.exit_code
    except SystemExit as end:
        if end.code == _TYPER_STOPPED and (signals.number is not None or _is_interrupt(end)):
            complain(signals.message)
            return signals.exit_code
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        code = answer(error)
        if code is None:
            raise
        return code
    return 0


def _is_interrupt(end: SystemExit) -> bool:
    """Whether typer ended because of a KeyboardInterrupt, and not because a command gave 130 as its exit code."""
    cause: BaseException | None = end
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


if __name__ == "__main__":
    sys.exit(main())
