# SPDX-License-Identifier: Apache-2.0
"""`manyscale gpu disassemble`: SASS with its schedule, beside the PTX and the source it comes from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json
from manyscale.cli.options import Json
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.gpu.disassembly import SassFunction, SassListing


commands = typer.Typer()

_GPU_CODE = b"\xbe\x00"  # the kind of processor in the header of an ELF file


@commands.command()
def disassemble(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="SASS (.cubin), PTX (.ptx), CUDA C++ (.cu), or a program with device code in it.",
        ),
    ],
    kernel: Annotated[
        str | None, typer.Option("--kernel", "-k", metavar="NAME", help="Only this kernel or function.")
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            "--architecture",
            "-a",
            metavar="SM",
            help="What PTX is assembled for, or which SASS of a program is shown, such as sm_80.",
        ),
    ] = None,
    hexadecimal: Annotated[
        bool, typer.Option("--hex", help="Show the bits of each instruction too.")
    ] = False,
    json: Json = False,
) -> None:
    """Show SASS: each instruction with its schedule, the line of PTX and the line of source it comes from.

    The schedule stands before the instruction: the dependence counters it waits for (B01----), the counters it
    releases when its sources have been read (R2) and when its results are written (W0), whether other warps should
    go first (Y), and the cycles until the warp's next instruction (S04).
    """
    listings = _listings(file, architecture)
    if kernel is not None:
        listings = [
            dataclasses.replace(listing, functions=(listing[kernel],))
            for listing in listings
            if len(listings) == 1 or any(function.name == kernel for function in listing.functions)
        ]
        if not listings:
            raise InputError(f"{file.name}: there is no function '{kernel}' in its SASS")
    if json:
        emit_json([_data(listing) for listing in listings])
        return
    for listing in listings:
        for function in listing.functions:
            _print(listing, function, hexadecimal)


def _listings(file: Path, architecture: str | None) -> list[SassListing]:
    from manyscale.cuda.executable import Executable
    from manyscale.gpu.disassembly import disassemble, disassemble_cubin
    from manyscale.gpu.sources import cubin_of

    machine = cubin_of(file)
    if machine is None or machine[0][18:20] == _GPU_CODE:
        return [disassemble(file, architecture=architecture)]
    program = Executable.read(file)
    images = [image for image in program.images if not image.is_ptx]
    if architecture is not None:
        images = [image for image in images if f"sm_{image.architecture}" == architecture]
    if images:
        return [
            disassemble_cubin(image.unpacked(), f"{file.name}, sm_{image.architecture}") for image in images
        ]
    if not program.images:
        raise InputError(f"{file.name}: there is no device code in this program")
    if architecture is None:
        raise InputError(
            f"{file.name}: there is only PTX in this program; --architecture says what to assemble for"
        )
    digits = "".join(character for character in architecture if character.isdigit())
    return [disassemble(text, architecture=architecture) for text in program.ptx(int(digits or 0))]


def _print(listing: SassListing, function: SassFunction, hexadecimal: bool) -> None:
    kind = "kernel" if function.is_kernel else "function"
    needs = [f"{function.registers} registers"]
    if function.shared_bytes:
        needs.append(f"{function.shared_bytes} B of shared memory")
    if function.local_bytes:
        needs.append(f"{function.local_bytes} B of local memory")
    typer.echo(f"{kind} {function.name} ({listing.architecture}; {', '.join(needs)})")
    shown = [row.text or "unknown" for row in function.instructions]
    width = min(max(map(len, shown), default=0), 64)
    last = None
    for row, text in zip(function.instructions, shown, strict=True):
        bits = f"  {row.words[1]:016x}{row.words[0]:016x}" if hexadecimal else ""
        line = f"  {row.offset:05x}{bits}  {row.schedule}  {text:{width}}"
        lines = (row.ptx, row.source)
        if lines != last:
            ptx = f"{row.ptx.line}: {row.ptx.text}" if row.ptx is not None else ""
            source = str(row.source) if row.source is not None else ""
            line += f"  // {ptx:48}  {source}" if row.source is not None else f"  // {ptx}" if ptx else ""
            last = lines
        typer.echo(line.rstrip())
    typer.echo("")


def _data(listing: SassListing) -> dict[str, Any]:
    data = dataclasses.asdict(listing)
    for function in data["functions"]:
        for row in function["instructions"]:
            row["words"] = [f"{word:#018x}" for word in row["words"]]
    return data
