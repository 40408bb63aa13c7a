# SPDX-License-Identifier: Apache-2.0
"""The options that commands on programs share, and the program that they describe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyscale.errors import InputError, ProgramError

if TYPE_CHECKING:
    from manyscale.cpu import Program

ProgramFile = Annotated[
    Path, typer.Argument(metavar="PROG", help="A RISC-V Linux program (RV64GC), statically linked.")
]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="-- ARGS…", help="What the program is given.")]
CpuMachine = Annotated[
    str, typer.Option("--machine", "-m", metavar="NAME|FILE", help="A machine with a cpu section.")
]
Cores = Annotated[
    int | None,
    typer.Option("--cores", "-n", min=1, metavar="N", help="Cores of the machine to use; 1 by default."),
]
Ranks = Annotated[
    int, typer.Option("--ranks", min=1, metavar="N", help="Processes to start, for MPI programs.")
]
Functions = Annotated[
    list[str] | None,
    typer.Option("--function", metavar="NAME", help="A function to be a region of its own; may be repeated."),
]
Root = Annotated[
    Path | None, typer.Option("--root", metavar="DIR", help="The folder that the program sees as /.")
]
Writable = Annotated[bool, typer.Option("--writable", help="The program may change what is in that folder.")]
Environment = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="A variable of its environment; may be repeated."),
]
Stdin = Annotated[
    Path | None, typer.Option("--stdin", metavar="FILE", help="What it reads from standard input.")
]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory that each process may touch.")]


def program_of(
    file: Path,
    arguments: list[str] | None,
    root: Path | None,
    writable: bool,
    environment: list[str] | None,
    stdin: Path | None,
    ranks: int,
    memory: str,
) -> Program:
    """The program that the options of a command describe, its file read."""
    from manyscale.cpu import Program

    program = Program(
        file,
        arguments or [],
        environment=_environment(environment or []),
        root=root,
        writable=writable,
        stdin=b"" if stdin is None else _bytes(stdin),
        ranks=ranks,
        memory=memory,
    )
    program.data  # noqa: B018 - a file that is not there is an error before a directory is made
    return program


def show_output(stdout: bytes, stderr: bytes, json: bool) -> None:
    """What the program wrote; with --json all of it goes to standard error."""
    for written, stream in ((stdout, sys.stderr if json else sys.stdout), (stderr, sys.stderr)):
        stream.flush()
        stream.buffer.write(written)
        stream.flush()


@contextlib.contextmanager
def output_of_failures(json: bool) -> Iterator[None]:
    """Shows what a program had written before it failed."""
    try:
        yield
    except ProgramError as error:
        show_output(error.stdout, error.stderr, json)
        raise


def _environment(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--env {text}: write NAME=VALUE, such as OMP_NUM_THREADS=4")
        found[name] = value
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
