# SPDX-License-Identifier: Apache-2.0
"""SASS as text: each instruction with its schedule and the lines of PTX and source it comes from.

>>> from manyscale import gpu
>>> listing = gpu.disassemble("saxpy.ptx", architecture="sm_80")          # doctest: +SKIP
>>> [row.text for row in listing["saxpy"].instructions][:2]               # doctest: +SKIP
['MOV R1, c[0x0][0x28]', 'S2R R6, SR_CTAID.X']
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from manyscale import _core
from manyscale.errors import InputError, nearest

from .assembler import NEWEST_ARCHITECTURE, OLDEST_ARCHITECTURE, assemble
from .parsing import parse
from .sass import architecture_near
from .sources import cubin_of

_NO_BARRIER = 7
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"')
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\b")


@dataclass(frozen=True)
class Schedule:
    """The control bits of an instruction: when the warp may issue it and the next one."""

    stall: int  # cycles until the warp's next instruction
    yields: bool  # the scheduler should prefer another warp
    write_barrier: int | None  # the dependence counter that is released when results are written
    read_barrier: int | None  # the one that is released when sources are read
    waits: tuple[int, ...]  # the counters that must be zero before issue
    reuse: int  # source slots that stay in the operand cache, a bit each

    def __str__(self) -> str:
        """The usual short form: counters waited for, read and write barrier, yield, stall ("B01----:R-:W2:-:S02")."""
        waits = "".join(str(counter) if counter in self.waits else "-" for counter in range(6))
        read = "-" if self.read_barrier is None else str(self.read_barrier)
        write = "-" if self.write_barrier is None else str(self.write_barrier)
        return f"B{waits}:R{read}:W{write}:{'Y' if self.yields else '-'}:S{self.stall:02}"


@dataclass(frozen=True)
class SourceLine:
    """A line of a file, and its text where that is known."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class SassInstruction:
    """An instruction of 128 bits at an offset of its function."""

    offset: int
    words: tuple[int, int]  # low and high 64 bits
    text: str | None  # None: not an instruction of the architecture
    schedule: Schedule
    ptx: SourceLine | None
    source: SourceLine | None


@dataclass(frozen=True)
class SassFunction:
    """A kernel, or a function that kernels call, with the resources it needs of an SM."""

    name: str
    is_kernel: bool
    registers: int
    shared_bytes: int
    local_bytes: int
    instructions: tuple[SassInstruction, ...]


@dataclass(frozen=True)
class SassListing:
    """All functions of a cubin; `listing["kernel"]` is one of them."""

    name: str
    architecture: str
    functions: tuple[SassFunction, ...]

    def __getitem__(self, name: str) -> SassFunction:
        for function in self.functions:
            if function.name == name:
                return function
        known = [function.name for function in self.functions]
        raise InputError(f"{self.name}: there is no function '{name}'; {nearest(name, known)}")


def disassemble(source: Any, *, architecture: str | None = None) -> SassListing:
    """The SASS of a cubin, or of PTX or CUDA C++ assembled for an architecture ("sm_80").

    `source` is what `Device.load` takes. PTX is assembled for its own target if no architecture is given.
    """
    cubin = cubin_of(source)
    if cubin is not None:
        return disassemble_cubin(*cubin)
    parsed = parse(source, target=architecture)
    text: bytes = parsed.native.text
    code = assemble(text, parsed.name, architecture or architecture_near(parsed.target))
    return disassemble_cubin(code, parsed.name, text)


def disassemble_cubin(data: bytes, name: str, ptx: bytes | None = None) -> SassListing:
    """The listing of a cubin. `ptx`: the text that its line table refers to; None: the table refers to the source."""
    try:
        number, files, own_ptx, functions = _core.disassemble_cubin(data, name)
    except _core.CubinError as error:
        raise InputError(str(error)) from None
    if not OLDEST_ARCHITECTURE <= number <= NEWEST_ARCHITECTURE:
        raise InputError(
            f"{name}: its SASS is for sm_{number}; "
            f"SASS of sm_{OLDEST_ARCHITECTURE} to sm_{NEWEST_ARCHITECTURE} can be read"
        )
    lines = _LinesOfPtx(name, ptx) if ptx is not None else _LinesOfCubin(name, files, own_ptx)
    return SassListing(
        name,
        f"sm_{number}",
        tuple(
            SassFunction(
                function,
                is_kernel,
                registers,
                shared,
                local,
                tuple(_instruction(row, lines) for row in rows),
            )
            for function, is_kernel, registers, shared, local, rows in functions
        ),
    )


class _LinesOfPtx:
    """Lines of SASS that was assembled with the lines of its PTX, whose `.loc` directives name the source."""

    def __init__(self, name: str, text: bytes) -> None:
        self._name = name
        self._lines = text.decode("utf-8", "relocation").splitlines()
        files: dict[int, str] = {}
        for line in self._lines:
            if found := _FILE.match(line):
                files[int(found[1])] = found[2]
        self._sources: list[SourceLine | None] = []
        current: SourceLine | None = None
        for line in self._lines:
            if found := _LOCATION.match(line):
                current = SourceLine(files.get(int(found[1]), "?"), int(found[2]))
            elif line.startswith((".visible", ".entry", ".func", ".weak", "}")):
                current = None
            self._sources.append(current)

    def of(
        self, location: tuple[int, int] | None, _: int | None
    ) -> tuple[SourceLine | None, SourceLine | None]:
        if location is None or not 0 < location[1] <= len(self._lines):
            return None, None
        at = location[1] - 1
        return SourceLine(self._name, location[1], _one_blank(self._lines[at])), self._sources[at]


class _LinesOfCubin:
    """Lines of SASS from a program: one line table names the source, another one the PTX in the cubin."""

    def __init__(self, name: str, files: list[str], ptx: list[str]) -> None:
        self._name = name
        self._files = files
        self._ptx = ptx

    def of(
        self, location: tuple[int, int] | None, ptx: int | None
    ) -> tuple[SourceLine | None, SourceLine | None]:
        source = SourceLine(self._files[location[0]], location[1]) if location is not None else None
        if ptx is None or not 0 < ptx <= len(self._ptx):
            return None, source
        return SourceLine("ptx", ptx, _one_blank(self._ptx[ptx - 1])), source


def _one_blank(line: str) -> str:
    return " ".join(line.split())


def _instruction(row: Any, lines: _LinesOfPtx | _LinesOfCubin) -> SassInstruction:
    offset, low, high, text, schedule, location, ptx_line = row
    stall, yields, write, read, waits, reuse = schedule
    ptx, source = lines.of(location, ptx_line)
    return SassInstruction(
        offset,
        (low, high),
        text,
        Schedule(
            stall,
            yields,
            None if write == _NO_BARRIER else write,
            None if read == _NO_BARRIER else read,
            tuple(counter for counter in range(6) if waits >> counter & 1),
            reuse,
        ),
        ptx,
        source,
    )
