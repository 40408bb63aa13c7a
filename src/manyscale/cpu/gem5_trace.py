# SPDX-License-Identifier: Apache-2.0
"""gem5's elastic traces: files of dependent nodes and of fetches, read, written, and made of and into our own traces.

Both files are messages behind their lengths, mostly packed by gzip. They are read and written piece by piece.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from manyscale import _core
from manyscale.cpu.recording import RecordingSummary
from manyscale.cpu.trace import KINDS, Trace
from manyscale.cpu.trace_file import COLUMN_TYPES, TRACE, Columns, TraceError, TraceWriter
from manyscale.errors import InputError
from manyscale.results.files import FileGroup, FileKind, OutputFile, check_output
from manyscale.results.run_directory import package_version
from manyscale.units import FREQUENCY, parse

PIECE_BYTES = 1 << 16  # unpacked, of a file that is read
TICKS_PER_SECOND = 10**12
FETCH_BYTES = 64
WINDOW = 1536  # window of dependences in what is written: three times its reorder buffer of 512
_GZIP = b"\x1f\x8b"
GEM5_TRACE = FileKind.magic("a trace of gem5", _GZIP, b"gem5")
_MOST_NAME = 4096

NODE_TYPES = {
    "number": "<u8",
    "type": "<u1",
    "address": "<u8",
    "size": "<u4",
    "flags": "<u4",
    "delay": "<u8",
    "weight": "<u4",
    "pc": "<u8",
    "virtual_address": "<u8",
    "address_space": "<u4",
    "present": "<u2",
    "orders": "<u4",
    "datas": "<u4",
    "order": "<u8",
    "data": "<u8",
}
"""Columns of nodes. "present" has a bit for each optional field that is there; "order" and "data" are lists of the
nodes that it comes after, or whose results it needs: "orders" and "datas" of them for each node."""

PACKET_TYPES = {
    "tick": "<u8",
    "command": "<u4",
    "address": "<u8",
    "size": "<u4",
    "flags": "<u4",
    "id": "<u8",
    "pc": "<u8",
    "present": "<u2",
}
LOAD, STORE, COMPUTE = 1, 2, 3


@dataclass(frozen=True)
class Gem5Header:
    """The header of such a file."""

    object: str
    ticks_per_second: int = TICKS_PER_SECOND
    version: int | None = 0
    window: int = 0  # of files of nodes

    def native(self) -> dict[str, Any]:
        """As the core takes it."""
        return {
            "object": self.object.encode(errors="surrogateescape"),
            "version": self.version,
            "ticks_per_second": self.ticks_per_second,
            "window": self.window,
        }


_Reader = TypeVar("_Reader", _core.Gem5NodeReader, _core.Gem5PacketReader)


class _MessageFile(Generic[_Reader]):
    """Reads such a file from its beginning to its end, any number of times; some messages at a time, as columns."""

    _types: Mapping[str, str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        reader = self._reader()
        for piece in pieces(self.path):
            self._take(reader, piece)
            if reader.header is not None:
                break
        else:
            self._finish(reader)
        found: Any = reader.header
        self.header = Gem5Header(
            found["object"][:_MOST_NAME].decode(errors="surrogateescape"),
            found["ticks_per_second"],
            found["version"],
            found["window"],
        )

    def _reader(self) -> _Reader:
        raise NotImplementedError

    def batches(self) -> Iterator[Columns]:
        """The messages."""
        reader = self._reader()
        for piece in pieces(self.path):
            columns = self._take(reader, piece)
            yield {name: np.frombuffer(columns[name], kind) for name, kind in self._types.items()}
        self._finish(reader)

    def _take(self, reader: _Reader, piece: bytes) -> dict[str, bytes]:
        with bad_trace(self.path):
            found: dict[str, bytes] = reader.take(piece)
            return found

    def _finish(self, reader: _Reader) -> None:
        with bad_trace(self.path):
            reader.finish()


class NodeFile(_MessageFile[_core.Gem5NodeReader]):
    """A data-dependency trace."""

    _types = NODE_TYPES

    def _reader(self) -> _core.Gem5NodeReader:
        return _core.Gem5NodeReader()


class FetchFile(_MessageFile[_core.Gem5PacketReader]):
    """A fetch trace."""

    _types = PACKET_TYPES

    def _reader(self) -> _core.Gem5PacketReader:
        return _core.Gem5PacketReader()


def write_nodes(
    path: str | os.PathLike[str], header: Gem5Header, batches: Iterable[Columns], *, force: bool = False
) -> None:
    """Writes a data-dependency trace."""
    with _written(Path(path), force) as file:
        file.write(_core.gem5_begin_nodes(header.native()))
        for columns in batches:
            file.write(_core.gem5_write_nodes(_bytes_of(columns, NODE_TYPES)))


def write_fetches(
    path: str | os.PathLike[str], header: Gem5Header, batches: Iterable[Columns], *, force: bool = False
) -> None:
    """Writes a fetch trace."""
    with _written(Path(path), force) as file:
        file.write(_core.gem5_begin_packets(header.native()))
        for columns in batches:
            file.write(_core.gem5_write_packets(_bytes_of(columns, PACKET_TYPES)))


@dataclass(frozen=True)
class ImportSummary(RecordingSummary):
    """What was made of gem5's files, and what nodes could not hold."""

    dropped_producers: int = 0
    clipped_delays: int = 0
    skipped_fetches: int = 0


def import_gem5(
    data: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    fetch: Sequence[str | os.PathLike[str]] = (),
    clock: str | int = "1GHz",
    force: bool = False,
    command: Sequence[str] = (),
) -> ImportSummary:
    """Makes a trace of the data-dependency traces of one or more cores, and of their fetch traces if there are any.

    A trace of the name `out` is replaced only with `force`, and another file never is.

    `clock` is that of the cores that were recorded, which the files do not state: delays become cycles of it. Each core
    becomes a thread. Such traces hold no synchronisation: threads run independently.
    """
    if not data:
        raise InputError("there is no data-dependency trace to make a trace of")
    if fetch and len(fetch) != len(data):
        raise InputError(
            f"there are {len(data)} data-dependency traces and {len(fetch)} fetch traces; give pairs"
        )
    check_output(out, TRACE, force=force)
    hertz = int(parse(clock, FREQUENCY) if isinstance(clock, str) else clock)
    nodes = [NodeFile(path) for path in data]
    fetches = [FetchFile(path) for path in fetch]
    writer = TraceWriter(out, _imported_header(nodes, hertz, command), force=force)
    try:
        return _import(writer, nodes, fetches, hertz)
    except BaseException:
        writer.abandon()
        raise


def export_gem5(
    trace: Trace | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    latencies: Mapping[str, int] | None = None,
    window: int = WINDOW,
    force: bool = False,
) -> list[tuple[Path, Path]]:
    """Writes the threads of a trace as gem5's files: a data-dependency trace and a fetch trace for each, in `folder`.

    They appear together when all are whole; files of that kind that are there are replaced only with `force`.

    `latencies` are the cycles of each kind of ALU instruction, 1 where not given. Traces with tasks are refused,
    since gem5's have none; so is what would be lost of several threads that wait for each other.
    """
    if not isinstance(trace, Trace):
        with Trace(trace) as opened:
            return export_gem5(opened, folder, latencies=latencies, window=window, force=force)
    tasks = int(trace.columns["stream.is_task"].sum())
    if tasks:
        raise InputError(f"{trace.path}: gem5's traces have no tasks, and this one has {tasks:,}")
    known = {"divide": 1, **dict(latencies or {})}
    for name in known:
        if name not in KINDS:
            raise InputError(f"there is no kind of instruction '{name}'; known: {', '.join(KINDS)}")
    cycles = [known.get(name, 1) for name in KINDS]
    ticks = max(1, round(TICKS_PER_SECOND / trace.header.clock))
    written = []
    with FileGroup(folder, GEM5_TRACE, force=force) as group:
        for stream in range(trace.threads):
            names = [f"core{stream}.{kind}.gz" for kind in ("data", "inst")]
            exporter = _core.Gem5Export(ticks, window, FETCH_BYTES, cycles)
            header = Gem5Header(f"core{stream}", window=window).native()
            files = [group.open(name) for name in names]
            with group.writing(names[0]):
                with _packed(files[0]) as data, _packed(files[1]) as fetch:
                    data.write(_core.gem5_begin_nodes(header))
                    fetch.write(_core.gem5_begin_packets(header))
                    for number in range(trace.blocks(stream)):
                        nodes, packets = exporter.take(trace.block(stream, number))
                        data.write(nodes)
                        fetch.write(packets)
                for file in files:
                    file.sync()  # so that not all of them stay open
            written.append((Path(folder) / names[0], Path(folder) / names[1]))
    return written


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked if it is packed by gzip, some at a time."""
    count = 0
    try:
        with path.open("rb") as start:
            packed = start.read(2) == _GZIP
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                count += len(piece)
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(path, count, f"it cannot be unpacked any further ({error})") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


class bad_trace:  # noqa: N801 - used as a statement
    """The core's error about a file, as an error for people."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, _core.BadGem5Trace):
            what, _, offset = str(error).rpartition(", at byte ")
            raise TraceError(self._path, int(offset), what) from None
        if isinstance(error, ValueError):
            raise InputError(f"{self._path}: {error}") from None


@contextlib.contextmanager
def _written(path: Path, force: bool) -> Iterator[Any]:
    """A file that is packed if its name ends in .gz."""
    with FileGroup(path.parent, GEM5_TRACE, force=force) as group:
        file = group.open(path.name)
        with group.writing(path.name):
            if path.suffix == ".gz":
                with _packed(file) as packed:
                    yield packed
            else:
                yield file


def _packed(file: OutputFile) -> gzip.GzipFile:
    return gzip.GzipFile("", "wb", 6, file, mtime=0)


def _bytes_of(columns: Columns, types: Mapping[str, str]) -> dict[str, bytes]:
    return {name: np.ascontiguousarray(columns[name], kind).tobytes() for name, kind in types.items()}


def _imported_header(nodes: Sequence[NodeFile], clock: int, command: Sequence[str]) -> dict[str, Any]:
    return {
        "manyscale": package_version(),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": list(command) or sys.argv,
        "program": {
            "kind": "gem5-trace",
            "name": nodes[0].path.name,
            "hash": None,
            "arguments": [],
            "environment": {},
            "ranks": 1,
            "input_hash": None,
        },
        "machine": "",
        "machine_toml": "",
        "clock": clock,
        "cores": len(nodes),
        "functional": False,
        "seed": 0,
    }


def _import(
    writer: TraceWriter, nodes: Sequence[NodeFile], fetches: Sequence[FetchFile], clock: int
) -> ImportSummary:
    totals: dict[str, int] = {}
    streams: dict[str, list[int]] = {name: [] for name in COLUMN_TYPES if name.startswith("stream.")}
    block_bytes = 0
    for thread, file in enumerate(nodes):
        fetch = fetches[thread] if fetches else None
        found = None
        for found in _import_stream(file, fetch, thread, clock):
            if isinstance(found, dict):
                break
            number, (block, count, instructions) = found
            writer.add(thread, number, count, instructions, block)
            block_bytes += len(block)
        assert isinstance(found, dict)
        totals = {name: totals.get(name, 0) + value for name, value in found.items()}
        for name in streams:
            streams[name].append(0)
        streams["stream.subject"][-1] = streams["stream.thread"][-1] = thread
        streams["stream.region"][-1] = _core.cpu_no_region
        streams["stream.instructions"][-1] = found["instructions"]
        streams["stream.nodes"][-1] = found["nodes"]
    facts = {
        "statistics": totals,
        "sync": [],
        "overheads": {},
        "regions": [],
        "run": {"exit_code": 0, "instructions": totals["instructions"], "cycles": None, "seconds": None},
    }
    empty: dict[str, list[int]] = {name: [] for name in COLUMN_TYPES}
    size = writer.finish(facts, empty | streams)
    return ImportSummary(
        path=writer.path,
        instructions=totals["instructions"],
        nodes=totals["nodes"],
        threads=len(nodes),
        tasks=0,
        bytes=size,
        block_bytes=block_bytes,
        left_out=0,
        exit_code=0,
        stdout="",
        wall_seconds=0.0,
        dropped_producers=totals["dropped_producers"],
        clipped_delays=totals["clipped_delays"],
        skipped_fetches=totals["skipped_packets"],
    )


def _import_stream(
    file: NodeFile, fetch: FetchFile | None, thread: int, clock: int
) -> Iterator[tuple[int, tuple[bytes, int, int]] | dict[str, int]]:
    """The blocks of a stream, numbered, and at last what was counted."""
    instructions = sum(
        len(batch["number"]) + int(batch["weight"].sum(dtype=np.uint64)) for batch in file.batches()
    )
    packets = 0 if fetch is None else sum(len(batch["tick"]) for batch in fetch.batches())
    native = _core.Gem5Import(thread, clock, instructions, packets)
    fetched = iter(()) if fetch is None else pieces(fetch.path)
    number = 0
    for piece in pieces(file.path):
        with bad_trace(file.path):
            found = native.take_nodes(piece)
        while native.wants_packets and (packed := next(fetched, None)) is not None:
            with bad_trace(fetch.path if fetch is not None else file.path):
                found += native.take_packets(packed)
        for block in found:
            yield number, block
            number += 1
    for packed in fetched:
        with bad_trace(fetch.path if fetch is not None else file.path):
            native.take_packets(packed)
    with bad_trace(file.path):
        found = native.finish()
    for block in found:
        yield number, block
        number += 1
    counted: dict[str, int] = native.statistics()
    yield counted
