# SPDX-License-Identifier: Apache-2.0
"""The `manyscale` command: gathers the commands and turns errors into messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from manyscale import processes
from manyscale.cli import (
    check,
    cpu,
    cpu_scale,
    cpu_trace,
    cuda,
    demo,
    disassemble,
    gpu,
    machines,
    mem,
    models,
    net,
    new,
    plugins,
    project,
    report,
    run,
    runs,
    sweep,
    validate,
)
from manyscale.cli.console import complain, show_reports
from manyscale.cli.start import answer
from manyscale.errors import ManyscaleError
from manyscale.interrupts import StopSignals, stop_signals

app = typer.Typer(
    name="manyscale",
    help="Simulate parallel machines at every scale, from a warp to an MPI job on thousands of nodes.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# One line per command module. A module has `commands`, a typer.Typer; with a name its commands become a group
# (`manyscale cpu run`). Modules import what is slow (polars, rich, the core) inside their functions.
app.add_typer(demo.commands)
app.add_typer(run.commands)
app.add_typer(runs.commands)
app.add_typer(report.commands)
app.add_typer(machines.commands)
app.add_typer(mem.commands)
gpu.commands.add_typer(disassemble.commands)
app.add_typer(gpu.commands)
cpu.commands.add_typer(cpu_trace.commands)
cpu.commands.add_typer(cpu_scale.commands)
app.add_typer(cpu.commands)
app.add_typer(net.commands)
app.add_typer(cuda.commands)
app.add_typer(check.commands)
app.add_typer(models.commands)
app.add_typer(plugins.commands)
app.add_typer(new.commands)
app.add_typer(sweep.commands)
app.add_typer(project.commands)
app.add_typer(validate.commands)

_TYPER_STOPPED = 130  # typer's own answer to KeyboardInterrupt, which says nothing
_BROKEN_PIPE = 141


def _version(wanted: bool) -> None:
    if wanted:
        from manyscale.results.run_directory import package_version

        typer.echo(f"manyscale {package_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


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


def _run(arguments: Sequence[str] | None, signals: StopSignals) -> int:
    try:
        app(None if arguments is None else list(arguments), prog_name="manyscale")
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
