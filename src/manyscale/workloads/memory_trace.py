# SPDX-License-Identifier: Apache-2.0
"""Memory traces as text: one access on each line, such as `R 0x1000 8` or `W 0x1040 8`.

The kind is R (load), W (store) or A (atomic addition), the address is hexadecimal with 0x, the size is in
bytes. A `#` begins a comment, blank lines are skipped, and every line ends with a newline, so that a file
that was cut off is known as such. Files whose name ends in `.gz` are decompressed.

Text in the plain form (one space between fields, no comments) is read by whole blocks at about a
million lines a second; other text is read line by line, at half of that.
"""

from __future__ import annotations

import gzip
import operator
import os
import sys
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import IO

from manyscale.errors import InputError
from manyscale.units import shown

LARGEST_TRACE = 2**25  # accesses; 16 bytes each here, and 32 in the core
LARGEST_ACCESS = 32  # bytes
_BEYOND = 2**63
_BLOCK = 2**18  # bytes read at a time
_LONGEST_LINE = 2**16  # bytes

_KINDS = {b"R": 0, b"W": 1, b"A": 2}
_SIZES = {str(size).encode(): size for size in range(1, LARGEST_ACCESS + 1)}
# The second half of a record (see bindings/traffic.cpp) by the text of its kind and size.
_PACKED = {
    (kind, size): number | value << 32 for kind, number in _KINDS.items() for size, value in _SIZES.items()
}
_PLAIN = b"0123456789abcdefABCDEFxRW \n"
_ALL_BUT_SPACES = bytes(set(range(256)) - set(b" \n"))


@dataclass(frozen=True)
class MemoryTrace:
    """A trace as the core takes it: records of 16 bytes, an address and then kind and size."""

    name: str
    records: bytes

    @property
    def accesses(self) -> int:
        """How many accesses it has."""
        return len(self.records) // 16


def read_memory_trace(path: str | os.PathLike[str], line_size: int = 64) -> MemoryTrace:
    """The trace in a file, for caches with lines of `line_size` bytes; the first thing wrong is an `InputError`."""
    name = os.fspath(path)
    records = array("Q")
    number = 1
    try:
        with _opened(Path(path)) as file:
            for block in _blocks(file, name):
                lines = block.count(b"\n")
                packed = _read_plain(block, lines, line_size)
                records.extend(packed if packed is not None else _read_lines(block, name, number, line_size))
                number += lines
                if len(records) > 2 * LARGEST_TRACE:
                    raise InputError(
                        f"{name} has more than {LARGEST_TRACE:,} accesses, the most a trace can have; "
                        "split it and run the parts one after the other"
                    )
    except (EOFError, zlib.error) as error:
        raise InputError(f"{name} is cut off or damaged: it cannot be decompressed ({error})") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    if sys.byteorder == "big":
        records.byteswap()
    return MemoryTrace(name, records.tobytes())


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _blocks(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The file in pieces that end with a line."""
    line = 1
    while block := file.read(_BLOCK):
        if not block.endswith(b"\n"):
            block += file.readline(_LONGEST_LINE)
        if not block.endswith(b"\n"):
            _refuse_end(block, name, line)
        line += block.count(b"\n")
        yield block


def _refuse_end(block: bytes, name: str, line: int) -> None:
    last = block.rpartition(b"\n")[2]
    line += block.count(b"\n")
    where = f"{name}, line {line}"
    if len(last) >= _LONGEST_LINE:
        raise InputError(f"{where}: the line is longer than {_LONGEST_LINE} bytes; that is no memory trace")
    raise InputError(
        f"{where}: the trace ends in the middle of a record ({_text(last)}): it was cut off, "
        "or its last line has no newline"
    )


def _read_plain(block: bytes, lines: int, line_size: int) -> array[int] | None:
    """The records of a block in the plain form; None where it is not, or where something is wrong with it."""
    # Two spaces on each line make three fields at most, so three on average are three on each.
    if block.translate(None, _PLAIN) or block.translate(None, _ALL_BUT_SPACES) != b"  \n" * lines:
        return None
    fields = block.split()
    if len(fields) != 3 * lines or block.count(b" 0x") != lines:
        return None
    sizes = fields[2::3]
    try:
        addresses = list(map(int, fields[1::3], repeat(16)))
        packed = array("Q", map(_PACKED.__getitem__, zip(fields[::3], sizes, strict=True)))
    except (KeyError, ValueError):
        return None
    offsets = map(operator.and_, addresses, repeat(line_size - 1))
    if (
        max(map(operator.add, offsets, map(_SIZES.__getitem__, sizes))) > line_size
        or max(addresses) >= _BEYOND
    ):
        return None
    records = array("Q", bytes(16 * lines))
    records[::2] = array("Q", addresses)
    records[1::2] = packed
    return records


def _read_lines(block: bytes, name: str, first: int, line_size: int) -> array[int]:
    records = array("Q")
    for number, line in enumerate(block.split(b"\n")[:-1], start=first):
        fields = line.partition(b"#")[0].split()
        if not fields:
            continue
        problem = _problem(fields, line_size)
        if problem:
            raise InputError(f"{name}, line {number}: {problem}")
        records.append(int(fields[1], 16))
        records.append(_PACKED[fields[0], fields[2]])
    return records


def _problem(fields: list[bytes], line_size: int) -> str:
    """What is wrong with a record; empty if nothing is."""
    if len(fields) != 3:
        return f"expected kind, address and size, such as 'R 0x1000 8', got {_text(b' '.join(fields))}"
    kind, address, size = fields
    if kind not in _KINDS:
        return f"there is no kind {_text(kind)}; known: R (load), W (store), A (atomic addition)"
    if not address.startswith(b"0x") or not address[2:].isalnum():
        return f"expected a hexadecimal address such as 0x1000, got {_text(address)}"
    try:
        begin = int(address, 16)
    except ValueError:
        return f"expected a hexadecimal address such as 0x1000, got {_text(address)}"
    if begin >= _BEYOND:
        return f"the address {_text(address)} is beyond 2**63 - 1, the last one there can be"
    if size not in _SIZES:
        if size.isdigit() and (len(size) > 2 or int(size) > LARGEST_ACCESS):
            return f"an access of {_text(size)} bytes is too large: split it into accesses of at most 32"
        return f"expected a size from 1 to 32 bytes, got {_text(size)}"
    over = begin % line_size + _SIZES[size] - line_size
    if over > 0:
        kind_name, within = kind.decode(), _SIZES[size] - over
        return (
            f"the access crosses a line of {line_size} bytes: split it into "
            f"'{kind_name} {begin:#x} {within}' and '{kind_name} {begin + within:#x} {over}'"
        )
    return ""


def _text(data: bytes) -> str:
    return shown(data[:100].decode("utf-8", "replace"))
