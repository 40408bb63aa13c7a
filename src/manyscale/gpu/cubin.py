# SPDX-License-Identifier: Apache-2.0
"""Machine code as text: what a GPU executes, with the compiler's schedule and the lines it comes from.

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
from .machine_code import architecture_near
from .parsing import parse
from .sources import machine_file_of

_NO_BARRIER = 7
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"')
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\b")


@dataclass(frozen=True)
class Schedule:
    """What the compiler tells the issue logic with an instruction."""

    stall: int  # cycles until the warp's next instruction
    yields: bool  # another warp should go first
    write_barrier: int | None  # the dependence counter that is released when results are written
    read_barrier: int | None  # and the one when sources have been read
    waits: tuple[int, ...]  # the counters that must be empty before
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
class MachineInstruction:
    """An instruction of 128 bits at an offset of its function."""

    offset: int
    words: tuple[int, int]  # low and high 64 bits
    text: str | None  # None: bits that mean nothing we know
    schedule: Schedule
    ptx: SourceLine | None
    source: SourceLine | None


@dataclass(frozen=True)
class MachineFunction:
    """A kernel, or a function that kernels call, with what it needs of an SM."""

    name: str
    is_kernel: bool
    registers: int
    shared_bytes: int
    local_bytes: int
    instructions: tuple[MachineInstruction, ...]


@dataclass(frozen=True)
class MachineListing:
    """All functions of a file of machine code; `listing["kernel"]` is one of them."""

    name: str
    architecture: str
    functions: tuple[MachineFunction, ...]

    def __getitem__(self, name: str) -> MachineFunction:
        for function in self.functions:
            if function.name == name:
                return function
        known = [function.name for function in self.functions]
        raise InputError(f"{self.name}: there is no function '{name}'; {nearest(name, known)}")


def disassemble(source: Any, *, architecture: str | None = None) -> MachineListing:
    """The machine code of a cubin, or of PTX or CUDA C++ after it is assembled for an architecture ("sm_80").

    `source` is what `Device.load` takes. PTX is assembled for the architecture it names if none is given.
    """
    machine = machine_file_of(source)
    if machine is not None:
        return disassemble_cubin(*machine)
    parsed = parse(source, target=architecture)
    text: bytes = parsed.native.text
    code = assemble(text, parsed.name, architecture or architecture_near(parsed.target))
    return disassemble_cubin(code, parsed.name, text)


def disassemble_cubin(data: bytes, name: str, ptx: bytes | None = None) -> MachineListing:
    """The listing of a cubin; `ptx` is the text whose lines its line table names, None if that is a program's own."""
    try:
        number, files, own_ptx, functions = _core.disassemble_cubin(data, name)
    except _core.CubinError as error:
        raise InputError(str(error)) from None
    if not OLDEST_ARCHITECTURE <= number <= NEWEST_ARCHITECTURE:
        raise InputError(
            f"{name}: its machine code is for sm_{number}; "
            f"that of sm_{OLDEST_ARCHITECTURE} to sm_{NEWEST_ARCHITECTURE} can be read"
        )
    places = _PtxPlaces(name, ptx) if ptx is not None else _ProgramPlaces(name, files, own_ptx)
    return MachineListing(
        name,
        f"sm_{number}",
        tuple(
            MachineFunction(
                function,
                is_kernel,
                registers,
                shared,
                local,
                tuple(_instruction(row, places) for row in rows),
            )
            for function, is_kernel, registers, shared, local, rows in functions
        ),
    )


class _PtxPlaces:
    """Places of machine code that was assembled with the lines of its PTX: the PTX names the lines of the source."""

    def __init__(self, name: str, text: bytes) -> None:
        self._name = name
        self._lines = text.decode("utf-8", "replace").splitlines()
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

    def of(self, place: tuple[int, int] | None, _: int | None) -> tuple[SourceLine | None, SourceLine | None]:
        if place is None or not 0 < place[1] <= len(self._lines):
            return None, None
        at = place[1] - 1
        return SourceLine(self._name, place[1], _one_blank(self._lines[at])), self._sources[at]


class _ProgramPlaces:
    """Places of a program's own machine code: its line table names the source, another one the PTX it carries."""

    def __init__(self, name: str, files: list[str], ptx: list[str]) -> None:
        self._name = name
        self._files = files
        self._ptx = ptx

    def of(
        self, place: tuple[int, int] | None, ptx: int | None
    ) -> tuple[SourceLine | None, SourceLine | None]:
        source = SourceLine(self._files[place[0]], place[1]) if place is not None else None
        if ptx is None or not 0 < ptx <= len(self._ptx):
            return None, source
        return SourceLine("ptx", ptx, _one_blank(self._ptx[ptx - 1])), source


def _one_blank(line: str) -> str:
    return " ".join(line.split())


def _instruction(row: Any, places: _PtxPlaces | _ProgramPlaces) -> MachineInstruction:
    offset, low, high, text, schedule, place, ptx_line = row
    stall, yields, write, read, waits, reuse = schedule
    ptx, source = places.of(place, ptx_line)
    return MachineInstruction(
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
