# SPDX-License-Identifier: Apache-2.0
"""Small statically linked ELF files written byte by byte, good ones and bad ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from riscv.encoding import Instruction

READ, WRITE, EXECUTE = 4, 2, 1
RISCV, X86_64 = 243, 62


@dataclass
class Segment:
    """A loadable part of a file; `size` in memory may be larger than its content."""

    address: int
    content: bytes
    flags: int
    size: int | None = None
    offset: int | None = None  # where the header says it is; None: where it is
    kind: int = 1  # PT_LOAD


@dataclass
class Elf:
    """What an executable file says; every field can be made wrong."""

    segments: list[Segment]
    entry: int
    machine: int = RISCV
    file_type: int = 2  # ET_EXEC
    bits: int = 2  # ELFCLASS64
    order: int = 1  # little-endian
    magic: bytes = b"\x7fELF"
    header_bytes: int = 56
    header_count: int | None = None
    header_offset: int = 64
    flags: int = 5  # compressed instructions, doubles in registers
    extra: bytes = field(default=b"")

    def encoded(self) -> bytes:
        """The bytes of the file. Contents are at offsets equal to their addresses modulo a page."""
        content = bytearray(self.extra)
        headers = b""
        position = 64 + 56 * len(self.segments) + len(content)
        body = bytearray()
        for segment in self.segments:
            gap = (segment.address - position) % 4096
            body += bytes(gap) + segment.content
            offset = position + gap if segment.offset is None else segment.offset
            position += gap + len(segment.content)
            size = len(segment.content) if segment.size is None else segment.size
            headers += struct.pack(
                "<IIQQQQQQ",
                segment.kind,
                segment.flags,
                offset,
                segment.address,
                segment.address,
                len(segment.content),
                size,
                4096,
            )
        count = len(self.segments) if self.header_count is None else self.header_count
        start = self.magic + bytes([self.bits, self.order, 1, 0]) + bytes(8)
        start += struct.pack(
            "<HHIQQQIHHHHHH",
            self.file_type,
            self.machine,
            1,
            self.entry,
            self.header_offset,
            0,
            self.flags,
            64,
            self.header_bytes,
            count,
            64,
            0,
            0,
        )
        return bytes(start + headers + content + body)


CODE, DATA = 0x10000, 0x20000


def small_elf(code: Iterable[Instruction], data: bytes = b"") -> Elf:
    """An executable of a few instructions at CODE, and data at DATA that may be written."""
    segments = [Segment(CODE, b"".join(each.encoded() for each in code), READ | EXECUTE)]
    if data:
        segments.append(Segment(DATA, data, READ | WRITE))
    return Elf(segments, CODE)


def small_program(folder: Path, code: Iterable[Instruction], data: bytes = b"") -> Path:
    """The same as a file."""
    path = folder / "small"
    path.write_bytes(small_elf(code, data).encoded())
    return path
