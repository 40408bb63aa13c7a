# SPDX-License-Identifier: Apache-2.0
"""Where an address of a program is: its function, and the line of its source where debug information has it."""

from __future__ import annotations

import bisect
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from manyscale.errors import InputError

MOST_SYMBOLS = 2_000_000
MOST_LINES = 4_000_000
MOST_SECTION_BYTES = 1 << 29  # of one section, unpacked
_SYMBOL = struct.Struct("<IBBHQQ")  # name, type, visibility, section, value, size: of ELF with 64 bits
_FUNCTION_TYPES = (2, 10, 0)  # STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE
_EXECUTABLE = 0x4  # SHF_EXECINSTR
# What pyelftools raises for files that are damaged depends on where they are broken.
_BROKEN = Exception


@dataclass(frozen=True)
class SourceLocation:
    """An address of a program, in the words of its author."""

    address: int
    function: str = ""
    offset: int = 0
    file: str = ""
    line: int = 0

    @property
    def source(self) -> str:
        """The file and line, such as sum.c:12; empty without debug information."""
        return f"{PurePosixPath(self.file).name}:{self.line}" if self.line else ""

    def __str__(self) -> str:
        text = f"{self.address:#x}"
        if self.function:
            text += f" in {self.function}" + (f"+{self.offset:#x}" if self.offset else "")
        return text + (f" ({self.source})" if self.source else "")


class Symbols:
    """The functions and source lines of an ELF file; `base` is what its addresses were moved by when loaded."""

    def __init__(self, data: bytes, name: str = "the program", *, base: int = 0) -> None:
        self._data, self._name, self._base = data, name, base

    def locate(self, address: int) -> SourceLocation:
        """What is known of an address; a file without symbols or lines gives the address alone."""
        function, offset = self._function(address)
        file, line = self._line(address) if function or not self._starts else ("", 0)
        return SourceLocation(address, function, offset, file, line)

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Where each function begins, by name; of several of one name, the first."""
        found: dict[str, int] = {}
        for start, _, name in self._functions:
            found.setdefault(name, start + self._base)
        return found

    @cached_property
    def code(self) -> list[tuple[str, int, bytes]]:
        """The sections with instructions: name, address, bytes."""
        found = []
        try:
            for section in self._sections(self._open()):
                if section["sh_flags"] & _EXECUTABLE and section["sh_type"] == "SHT_PROGBITS":
                    found.append((section.name, section["sh_addr"] + self._base, bytes(section.data())))
        except _BROKEN as error:
            raise InputError(f"{self._name}: its sections cannot be read: {error}") from None
        return found

    def _open(self) -> ELFFile:
        return ELFFile(io.BytesIO(self._data))

    def _sections(self, elf: ELFFile) -> Iterator[Any]:
        """The sections that lie within the file and are no larger, unpacked, than a program's can be."""
        for section in elf.iter_sections():
            inside = section["sh_type"] == "SHT_NOBITS" or (
                section["sh_offset"] + section["sh_size"] <= len(self._data)
            )
            if inside and section.data_size <= MOST_SECTION_BYTES:
                yield section

    @cached_property
    def _functions(self) -> list[tuple[int, int, str]]:
        """Start, end (0 if not stated) and name of each function, by start."""
        found: set[tuple[int, int, str]] = set()
        try:
            elf = self._open()
            code = [
                (section["sh_addr"], section["sh_addr"] + section["sh_size"])
                for section in self._sections(elf)
                if section["sh_flags"] & _EXECUTABLE
            ]
            for section in self._sections(elf):
                if not isinstance(section, SymbolTableSection) or section.num_symbols() > MOST_SYMBOLS:
                    continue
                names = section.stringtable.data()
                for at, information, _, _, start, size in _SYMBOL.iter_unpack(section.data()):
                    if information & 15 not in _FUNCTION_TYPES:
                        continue
                    if not any(low <= start < high for low, high in code):
                        continue  # what is no code
                    end = names.find(b"\0", at)
                    name = names[at : end if end >= 0 else at].decode("utf-8", "replace")
                    if name and not name.startswith("$"):  # mapping symbols
                        found.add((start, start + size if size else 0, name))
        except _BROKEN:
            return []
        return sorted(found)

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self._functions]

    def _function(self, address: int) -> tuple[str, int]:
        at = bisect.bisect_right(self._starts, address - self._base) - 1
        if at < 0:
            return "", 0
        start, end, name = self._functions[at]
        offset = address - self._base - start
        # Of several names of one address, the one with a size goes first.
        while at > 0 and not end and self._functions[at - 1][0] == start:
            at -= 1
            start, end, name = self._functions[at]
        return ("", 0) if end and address - self._base >= end else (name, offset)

    @cached_property
    def _lines(self) -> tuple[list[int], list[tuple[str, int]]]:
        """Addresses at which a source line begins, and which; an empty file name ends a sequence."""
        rows: list[tuple[int, int, str, int]] = []
        try:
            elf = self._open()
            if any(section.data_size > MOST_SECTION_BYTES for section in elf.iter_sections()):
                return [], []
            if not elf.has_dwarf_info():
                return [], []
            dwarf = elf.get_dwarf_info(follow_links=False)
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is None:
                    continue
                for row in _rows(program):
                    rows.append(row)
                    if len(rows) > MOST_LINES:
                        return [], []
        except _BROKEN:  # what was read so far is as right as it was
            pass
        rows.sort(key=lambda row: row[:2])
        return [row[0] for row in rows], [(row[2], row[3]) for row in rows]

    def _line(self, address: int) -> tuple[str, int]:
        starts, lines = self._lines
        at = bisect.bisect_right(starts, address - self._base) - 1
        return lines[at] if at >= 0 else ("", 0)


def _rows(program: Any) -> Iterator[tuple[int, int, str, int]]:
    """Address, whether a line begins there (1) or a sequence ends (0), file and line."""
    names: dict[int, str] = {}
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            yield state.address, 0, "", 0
            continue
        if state.file not in names:
            names[state.file] = _file_name(program, state.file)
        if state.line:
            yield state.address, 1, names[state.file], state.line


def _file_name(program: Any, number: int) -> str:
    entries = program["file_entry"]
    index = number if program["version"] >= 5 else number - 1
    return entries[index].name.decode(errors="replace") if 0 <= index < len(entries) else ""
