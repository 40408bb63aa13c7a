# SPDX-License-Identifier: Apache-2.0
"""The file of a recorded trace: a header, chunks of blocks, and at the end an index; written as it comes.

All numbers are little-endian, and all parts have a check sum (CRC-32).

    header   magic (8 bytes), version, bytes of the JSON, check sum (4 bytes each), JSON
    chunk    "CHNK", bytes in the file, bytes unpacked, check sum (4 bytes each), blocks one after the other (zstd)
    index    "INDX", bytes in the file, bytes unpacked (8 bytes each), check sum (4 bytes), JSON and columns (zstd)
    end      offset of the index (8 bytes), check sum (4 bytes), magic (8 bytes)

A block is read by unpacking its chunk alone. A recording that did not come to its end has no index, and is refused.
"""

from __future__ import annotations

import json
import os
import struct
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import zstandard

from manyscale.errors import InputError
from manyscale.results.files import FileKind, OutputFile, cannot_write

VERSION = 1
MAGIC = b"\x93MSTRACE"
END_MAGIC = b"MSTREND\n"
CHUNK_BYTES = 1 << 18  # unpacked, from which on a chunk is complete
MOST_CHUNK_BYTES = 1 << 22  # unpacked; a block of the core has at most a quarter of it
MOST_HEADER_BYTES = 1 << 24
CHUNKS_KEPT = 64  # unpacked, of a file that is read
_LEVEL = 6  # of zstd: 9 saves 3% and takes twice the time
_WINDOW_BYTES = 1 << 27  # that unpacking may ask for
_MOST_EXPANSION = 256  # of an index; one that packs better is stored as it is

TRACE = FileKind.magic("a trace", MAGIC)
_HEADER = struct.Struct("<8sIII")
_CHUNK = struct.Struct("<4sIII")
_INDEX = struct.Struct("<4sQQI")
_END = struct.Struct("<QI8s")

Columns = dict[str, "np.ndarray[Any, np.dtype[Any]]"]

# The index: each column with its type; the sets of columns that are as long as each other have one prefix.
COLUMN_TYPES = {
    "chunk.offset": "<u8",
    "chunk.stored": "<u4",
    "chunk.bytes": "<u4",
    "block.stream": "<u4",
    "block.number": "<u4",
    "block.nodes": "<u4",
    "block.instructions": "<u8",
    "block.chunk": "<u4",
    "block.offset": "<u4",
    "block.bytes": "<u4",
    "stream.is_task": "<u1",
    "stream.subject": "<u8",
    "stream.process": "<u4",
    "stream.region": "<u4",
    "stream.parent": "<u8",
    "stream.thread": "<u2",
    "stream.instructions": "<u8",
    "stream.nodes": "<u8",
    "stream.dependences": "<u4",
    "dependence.address": "<u8",
    "dependence.kind": "<u1",
    "team.region": "<u4",
    "team.master": "<u2",
    "team.process": "<u4",
    "team.threads": "<u4",
    "part.team": "<u4",
    "part.stream": "<u4",
    "part.block": "<u4",
    "part.node": "<u4",
    "shared.begin": "<u8",
    "shared.end": "<u8",
}


class TraceError(InputError):
    """A file that is no trace, or no whole one: what is wrong, and at which byte of it."""

    def __init__(self, path: str | os.PathLike[str], offset: int, what: str) -> None:
        super().__init__(f"{os.fspath(path)}: {what}, at byte {offset:,}")
        self.offset = offset


class IncompleteTraceError(TraceError):
    """A trace whose recording did not come to its end, or that was cut off."""


class TraceWriter:
    """Writes a trace block by block; holds one chunk in memory, and some bytes for each block.

    The file appears when the trace is finished. Another trace of that name is replaced then, if `force` allows it.
    """

    def __init__(
        self, path: str | os.PathLike[str], header: Mapping[str, Any], *, force: bool = False
    ) -> None:
        self.path = Path(path)
        text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
        if len(text) > MOST_HEADER_BYTES:
            raise InputError(
                f"{self.path}: what the trace is to say of its program has {len(text):,} bytes; "
                f"at most {MOST_HEADER_BYTES:,} can be written"
            )
        try:
            self._file = OutputFile(self.path, TRACE, force=force)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._packer = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self._pending = bytearray()
        self._chunks: list[tuple[int, int, int]] = []
        self._blocks: list[tuple[int, int, int, int, int, int, int]] = []
        self._parts: list[tuple[int, int, int, int]] = []
        check = zlib.crc32(text, zlib.crc32(struct.pack("<II", VERSION, len(text))))
        self._write(_HEADER.pack(MAGIC, VERSION, len(text), check), text)

    def add(
        self,
        stream: int,
        number: int,
        nodes: int,
        instructions: int,
        block: bytes,
        parts: list[tuple[int, int]] | None = None,
    ) -> None:
        """The next block of a stream; `parts` are the nodes in it at which it begins a part of a team's work."""
        if len(block) > MOST_CHUNK_BYTES - CHUNK_BYTES:
            raise InputError(f"{self.path}: a block of {len(block):,} bytes cannot be written")
        at = len(self._pending)
        self._blocks.append((stream, number, nodes, instructions, len(self._chunks), at, len(block)))
        self._parts += [(team, stream, number, node) for team, node in parts or ()]
        self._pending += block
        if len(self._pending) >= CHUNK_BYTES:
            self._close_chunk()

    def finish(self, facts: Mapping[str, Any], columns: Mapping[str, Any]) -> int:
        """Writes the index: `facts` as JSON, and the columns of streams, dependences, teams and shared ranges.

        Returns the size of the file.
        """
        if self._pending:
            self._close_chunk()
        offset = self._file.tell()
        everything = {
            **columns,
            **_transposed("chunk", ("offset", "stored", "bytes"), self._chunks),
            **_transposed(
                "block",
                ("stream", "number", "nodes", "instructions", "chunk", "offset", "bytes"),
                sorted(self._blocks),
            ),
            **_transposed("part", ("team", "stream", "block", "node"), sorted(self._parts)),
        }
        arrays = {name: np.asarray(everything[name], kind) for name, kind in COLUMN_TYPES.items()}
        text = json.dumps(
            {"facts": facts, "columns": {name: len(array) for name, array in arrays.items()}},
            ensure_ascii=False,
            allow_nan=False,
        ).encode()
        raw = struct.pack("<I", len(text)) + text + b"".join(array.tobytes() for array in arrays.values())
        packed = self._packer.compress(raw)
        if len(raw) > _MOST_EXPANSION * len(packed):
            packed = raw
        check = zlib.crc32(packed, zlib.crc32(struct.pack("<QQ", len(packed), len(raw))))
        self._write(_INDEX.pack(b"INDX", len(packed), len(raw), check), packed)
        self._write(_END.pack(offset, zlib.crc32(struct.pack("<Q", offset)), END_MAGIC))
        size = self._file.tell()
        try:
            self._file.commit()
        except OSError as error:
            raise cannot_write(self.path, error) from None
        return size

    def abandon(self) -> None:
        """Gives up: what was written so far is removed, and what was there before stays."""
        self._file.discard()

    def _close_chunk(self) -> None:
        packed = self._packer.compress(bytes(self._pending))
        sizes = (len(packed), len(self._pending))
        self._chunks.append((self._file.tell(), *sizes))
        self._write(_CHUNK.pack(b"CHNK", *sizes, zlib.crc32(packed, zlib.crc32(struct.pack("<II", *sizes)))))
        self._write(packed)
        self._pending.clear()

    def _write(self, *pieces: bytes) -> None:
        try:
            for piece in pieces:
                self._file.write(piece)
        except OSError as error:
            raise cannot_write(self.path, error) from None


@dataclass(frozen=True)
class _Chunk:
    offset: int
    stored: int
    bytes: int


class TraceReader:
    """Reads blocks of a trace in any order; what it holds is the index and the last chunks that were read.

    The columns of the index are checked for types, lengths and for chunks and blocks that lie where they can; what the
    facts and other columns mean is for others to check.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise self._unread(error) from None
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size
        self._lock = Lock()
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        try:
            self.header, self._body = self._read_header()
            self.index_offset = self._read_end()
            self.facts, self.columns = self._read_index()
            self._check_chunks()
            self._first_block = self._check_blocks()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """No block can be read any more."""
        self._close()

    def blocks(self, stream: int) -> range:
        """The rows of a stream's blocks in the columns of blocks."""
        return range(int(self._first_block[stream]), int(self._first_block[stream + 1]))

    def block(self, stream: int, number: int) -> bytes:
        """The bytes of a block, as they were given to the writer."""
        rows = self.blocks(stream)
        if not 0 <= number < len(rows):
            raise IndexError(
                f"{self.path}: stream {stream} has {len(rows)} blocks, so there is none numbered {number}"
            )
        row = rows[number]
        at = int(self.columns["block.offset"][row])
        chunk = self._chunk(int(self.columns["block.chunk"][row]))
        return chunk[at : at + int(self.columns["block.bytes"][row])]

    def fail(self, offset: int, what: str) -> TraceError:
        """The error about this file."""
        return TraceError(self.path, offset, what)

    def block_offset(self, stream: int, number: int) -> int:
        """Where in the file the chunk of a block begins."""
        row = self.blocks(stream)[number]
        return int(self.columns["chunk.offset"][int(self.columns["block.chunk"][row])])

    def _at(self, offset: int, count: int) -> bytes:
        if not self._close.alive:
            raise ValueError(f"{self.path} was closed")
        try:
            return os.pread(self._descriptor, count, offset)
        except OSError as error:
            raise self._unread(error) from None

    def _unread(self, error: OSError) -> InputError:
        return InputError(f"cannot read {self.path}: {error.strerror or error}")

    def _read_header(self) -> tuple[dict[str, Any], int]:
        start = self._at(0, _HEADER.size)
        if not MAGIC.startswith(start[:8]) or not start:
            raise self.fail(0, "it does not begin as a trace does (manyscale cpu record writes them)")
        if len(start) < _HEADER.size:
            raise IncompleteTraceError(self.path, self.size, "it ends within its header")
        _, version, length, check = _HEADER.unpack(start)
        if version != VERSION:
            raise self.fail(8, f"it is of version {version}, and only version {VERSION} can be read")
        if length > MOST_HEADER_BYTES:
            raise self.fail(12, f"its header is said to have {length:,} bytes, which is too many")
        text = self._at(_HEADER.size, length)
        if len(text) < length:
            raise IncompleteTraceError(self.path, self.size, "it ends within its header")
        if zlib.crc32(text, zlib.crc32(start[8:16])) != check:
            raise self.fail(_HEADER.size, "its header is damaged (wrong check sum)")
        return self._object(text, _HEADER.size), _HEADER.size + length

    def _read_end(self) -> int:
        at = self.size - _END.size
        end = self._at(at, _END.size) if at >= self._body else b""
        if len(end) < _END.size or end[-8:] != END_MAGIC:
            whole = self._whole_chunks()
            raise IncompleteTraceError(
                self.path,
                whole,
                "the recording did not come to its end, or the file was cut off; what is whole of it ends",
            )
        offset, check, _ = _END.unpack(end)
        if zlib.crc32(end[:8]) != check or not self._body <= offset <= at - _INDEX.size:
            raise self.fail(at, "the offset of its index is damaged")
        return int(offset)

    def _whole_chunks(self) -> int:
        """Where the last chunk ends that is there in full."""
        at = self._body
        while True:
            start = self._at(at, _CHUNK.size)
            if len(start) < _CHUNK.size or start[:4] != b"CHNK":
                return at
            after = at + _CHUNK.size + _CHUNK.unpack(start)[1]
            if after > self.size:
                return at
            at = after

    def _read_index(self) -> tuple[dict[str, Any], Columns]:
        at = self.index_offset
        tag, stored, length, check = _INDEX.unpack(self._at(at, _INDEX.size))
        room = self.size - _END.size - at - _INDEX.size
        if tag != b"INDX" or stored != room or length > _MOST_EXPANSION * stored:
            raise self.fail(at, "its index does not fill the bytes between its chunks and its end")
        packed = self._at(at + _INDEX.size, stored)
        if zlib.crc32(packed, zlib.crc32(struct.pack("<QQ", stored, length))) != check:
            raise self.fail(at, "its index is damaged (wrong check sum)")
        raw = packed if stored == length else self._unpacked(packed, length, at)
        (text_length,) = struct.unpack_from("<I", raw) if length >= 4 else (length,)
        if text_length + 4 > length:
            raise self.fail(at, "its index is damaged")
        index = self._object(raw[4 : 4 + text_length], at)
        return self._facts(index, at), self._columns(index, raw, 4 + text_length, at)

    def _facts(self, index: dict[str, Any], at: int) -> dict[str, Any]:
        facts = index.get("facts")
        if not isinstance(facts, dict):
            raise self.fail(at, "its index says nothing of the recording")
        return facts

    def _columns(self, index: dict[str, Any], raw: bytes, at: int, offset: int) -> Columns:
        lengths = index.get("columns")
        if not isinstance(lengths, dict) or set(lengths) != set(COLUMN_TYPES):
            raise self.fail(offset, "its index has other columns than a trace has")
        columns: Columns = {}
        rows: dict[str, int] = {}
        for name, kind in COLUMN_TYPES.items():
            count, size = lengths[name], np.dtype(kind).itemsize
            if type(count) is not int or not 0 <= count <= (len(raw) - at) // size:
                raise self.fail(offset, f"the column {name} of its index is longer than the index")
            if rows.setdefault(name.partition(".")[0], count) != count:
                raise self.fail(
                    offset, f"the column {name} of its index has not as many rows as its neighbours"
                )
            columns[name] = np.frombuffer(raw, kind, count, at)
            at += count * size
        if at != len(raw):
            raise self.fail(offset, "its index is longer than its columns")
        return columns

    def _check_chunks(self) -> None:
        begin = self.columns["chunk.offset"]
        end = begin + self.columns["chunk.stored"] + np.uint64(_CHUNK.size)
        expected = np.concatenate(([np.uint64(self._body)], end)).astype(np.uint64)
        given = np.concatenate((begin, [np.uint64(self.index_offset)])).astype(np.uint64)
        wrong = np.flatnonzero(expected != given)
        if len(wrong):
            raise self.fail(
                self.index_offset, f"its index says of chunk {wrong[0]} that it is where it cannot be"
            )
        if len(begin) and int(self.columns["chunk.bytes"].max()) > MOST_CHUNK_BYTES:
            raise self.fail(
                self.index_offset, f"a chunk is said to have more than {MOST_CHUNK_BYTES:,} bytes"
            )

    def _check_blocks(self) -> np.ndarray[Any, np.dtype[Any]]:
        """That blocks are in the order of streams and lie within their chunks; where those of each stream begin."""
        columns, streams = self.columns, len(self.columns["stream.subject"])
        stream = columns["block.stream"].astype(np.int64)
        chunk = columns["block.chunk"].astype(np.int64)
        count = len(stream)
        if count and (int(stream.max()) >= streams or int(chunk.max()) >= len(columns["chunk.bytes"])):
            raise self.fail(self.index_offset, "its index has a block of a stream or chunk that is not there")
        first = np.searchsorted(stream, np.arange(streams + 1))
        number = np.arange(count) - first[stream] if count else np.zeros(0, np.int64)
        if np.any(np.diff(stream) < 0) or np.any(number != columns["block.number"]):
            raise self.fail(
                self.index_offset, "the blocks of its index are not in the order of their streams"
            )
        end = columns["block.offset"].astype(np.int64) + columns["block.bytes"]
        if count and np.any(end > columns["chunk.bytes"][chunk]):
            raise self.fail(self.index_offset, "its index has a block that is longer than its chunk")
        return first

    def _chunk(self, number: int) -> bytes:
        with self._lock:
            kept = self._kept.get(number)
            if kept is not None:
                self._kept.move_to_end(number)
                return kept
        chunk = _Chunk(
            *(int(self.columns[f"chunk.{name}"][number]) for name in ("offset", "stored", "bytes"))
        )
        content = self._at(chunk.offset, _CHUNK.size + chunk.stored)
        tag, stored, length, check = _CHUNK.unpack_from(content.ljust(_CHUNK.size, b"\0"))
        packed = content[_CHUNK.size :]
        if (tag, stored, length) != (b"CHNK", chunk.stored, chunk.bytes):
            raise self.fail(chunk.offset, f"chunk {number} is not what the index says")
        if zlib.crc32(packed, zlib.crc32(struct.pack("<II", stored, length))) != check:
            raise self.fail(chunk.offset, f"chunk {number} is damaged (wrong check sum)")
        unpacked = self._unpacked(packed, length, chunk.offset)
        with self._lock:
            self._kept[number] = unpacked
            while len(self._kept) > CHUNKS_KEPT:
                self._kept.popitem(last=False)
        return unpacked

    def _unpacked(self, packed: bytes, length: int, offset: int) -> bytes:
        try:
            # The size that a frame states is what unpacking would allocate, whatever is asked for.
            if zstandard.frame_content_size(packed) != length:
                raise self.fail(offset, "what is packed there has not the size that is stated")
            unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
            unpacked = unpacker.decompress(packed, max_output_size=length, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise self.fail(offset, f"it cannot be unpacked: {error}") from None
        if len(unpacked) != length:
            raise self.fail(offset, "what is packed there has not the size that is stated")
        return unpacked

    def _object(self, text: bytes, offset: int) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise self.fail(offset, "what should be JSON there is not") from None
        if not isinstance(found, dict):
            raise self.fail(offset, "what should be a JSON object there is not")
        return found


def _transposed(prefix: str, names: tuple[str, ...], rows: list[Any]) -> dict[str, list[int]]:
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {f"{prefix}.{name}": list(column) for name, column in zip(names, columns, strict=True)}
