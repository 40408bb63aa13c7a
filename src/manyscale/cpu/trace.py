# SPDX-License-Identifier: Apache-2.0
"""A recorded trace as it can be looked at: where it comes from, its streams, teams, regions, tasks and nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manyscale import _core
from manyscale.cpu.openmp import region_title
from manyscale.cpu.symbols import SourceLocation
from manyscale.cpu.trace_file import Columns, TraceReader
from manyscale.errors import InputError

if TYPE_CHECKING:
    import polars as pl

KINDS = (
    *("integer", "multiply", "divide", "float_add", "float_multiply", "float_fused", "float_divide"),
    *("float_root", "float_convert", "load", "store", "atomic", "fence", "branch", "jump", "indirect"),
    *("system", "marker"),
)
SYSTEM, MARKER = KINDS.index("system"), KINDS.index("marker")
DEPENDENCE_KINDS = ("in", "out", "mutexinoutset", "inoutset")
# The columns of nodes, as the core gives them.
NODE_TYPES = {
    "pc": "<u8",
    "address": "<u8",
    "producers": "<u2",
    "delays": "<u1",
    "kind": "<u1",
    "flags": "<u1",
    "size": "<u1",
    "format": "<u1",
    "thread": "<u2",
    "weight": "<u1",
}
_BLOCK = re.compile(r"block (?P<number>\d+) of stream (?P<stream>\d+)")  # as the core names it
_OPERANDS = 3  # of a node: columns "producers" and "delays" have so many for each
_MOST_THREADS = 65_536
_NUMBER = 2**63 - 1

_Count = Field(ge=0, le=_NUMBER)


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class ProgramFacts(_Part):
    """The program that was recorded."""

    kind: str
    name: str
    hash: str | None
    arguments: list[str]
    environment: dict[str, str]
    ranks: int = Field(ge=1, le=_MOST_THREADS)
    input_hash: str | None


class TraceHeader(_Part):
    """The header of a trace, before its first block."""

    manyscale: str
    created: str
    command: list[str]
    program: ProgramFacts
    machine: str = Field(description="name of the machine that it was recorded on, or for")
    machine_toml: str
    clock: int = Field(ge=1, le=_NUMBER)
    cores: int = Field(ge=1, le=_MOST_THREADS)
    functional: bool
    seed: int


class RegionFacts(_Part):
    """A region of the program, and where it is in the source."""

    kind: str
    name: str
    pc: int = Field(ge=0, lt=2**64)
    object: int = Field(ge=0, lt=2**64)
    function: str
    offset: int
    file: str
    line: int

    @property
    def location(self) -> SourceLocation:
        """Where it is."""
        return SourceLocation(self.pc, self.function, self.offset, self.file, self.line)

    @property
    def title(self) -> str:
        """What it is called in tables."""
        known = self.location.source or self.function or f"{self.pc:#x}"
        return region_title(self.kind, self.name, known)


class SyncFacts(_Part):
    """What was left out for one kind of sync node: instructions of OpenMP's runtime, system calls among them.

    The least is that of the node with the fewest instructions, in which there is hardly any waiting.
    """

    kind: str
    nodes: int = _Count
    instructions: int = _Count
    least_instructions: int = _Count
    system_calls: int = _Count
    least_system_calls: int = _Count


class RecordedRun(_Part):
    """How the recorded run ended; cycles and time only if it was a run with time."""

    exit_code: int
    instructions: int = _Count
    cycles: int | None = Field(ge=0, le=_NUMBER)
    seconds: float | None


class TraceFacts(_Part):
    """The summary at the end of a trace."""

    statistics: dict[str, int]
    sync: list[SyncFacts]
    overheads: dict[str, int] = Field(
        description="femtoseconds that constructs took at least, by parameter of a replay"
    )
    regions: list[RegionFacts]
    run: RecordedRun


_Facts = TypeVar("_Facts", bound=_Part)


class Trace:
    """A recorded trace, open for reading; its blocks are read when they are needed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Reads the header and the index. `TraceError` names what is wrong with a file, and where."""
        self._reader = TraceReader(path)
        try:
            self.header = self._checked(TraceHeader, self._reader.header, 0)
            self._facts = self._checked(TraceFacts, self._reader.facts, self._reader.index_offset)
            self._check_columns()
        except BaseException:
            self._reader.close()
            raise

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """No block can be read any more."""
        self._reader.close()

    @property
    def path(self) -> str:
        """Its file."""
        return str(self._reader.path)

    @property
    def size(self) -> int:
        """Bytes of its file."""
        return self._reader.size

    @property
    def columns(self) -> Columns:
        """The index as columns."""
        return self._reader.columns

    @property
    def regions(self) -> list[RegionFacts]:
        """The program's regions, by number."""
        return self._facts.regions

    @property
    def sync_costs(self) -> list[SyncFacts]:
        """What was left out where threads met."""
        return self._facts.sync

    @property
    def overheads(self) -> dict[str, int]:
        """What constructs took at least in the recorded run: femtoseconds by parameter of a replay."""
        return self._facts.overheads

    @property
    def run(self) -> RecordedRun:
        """How the recorded run ended."""
        return self._facts.run

    @property
    def statistics(self) -> dict[str, int]:
        """Instructions, nodes and bytes of blocks, and what was left out."""
        return self._facts.statistics

    @property
    def instructions(self) -> int:
        """Instructions that its nodes stand for."""
        return int(self.columns["stream.instructions"].sum())

    @property
    def nodes(self) -> int:
        """Nodes of all streams; markers are not counted."""
        return int(self.columns["stream.nodes"].sum())

    @property
    def threads(self) -> int:
        """Streams that are threads and not tasks."""
        return int((self.columns["stream.is_task"] == 0).sum())

    @cached_property
    def streams(self) -> pl.DataFrame:
        """A row for each stream: a thread, or the body of a task."""
        import polars as pl

        columns = self.columns
        region = columns["stream.region"]
        titles = [found.title for found in self.regions]
        return pl.DataFrame(
            {
                "stream": np.arange(len(region), dtype=np.int64),
                "is_task": columns["stream.is_task"] != 0,
                "subject": columns["stream.subject"],
                "process": columns["stream.process"],
                "thread": columns["stream.thread"],
                "region": [
                    None if number == _core.cpu_no_region else titles[number] for number in region.tolist()
                ],
                "parent": pl.Series(
                    [parent - 1 if parent else None for parent in columns["stream.parent"].tolist()],
                    dtype=pl.Int64,
                ),
                "dependences": columns["stream.dependences"],
                "instructions": columns["stream.instructions"],
                "nodes": columns["stream.nodes"],
                "blocks": self._blocks,
            }
        )

    @cached_property
    def parts(self) -> pl.DataFrame:
        """Where streams begin their parts of the work of teams, by region: block, and node in it."""
        import polars as pl

        columns, titles = self.columns, [found.title for found in self.regions]
        regions = columns["team.region"]
        return pl.DataFrame(
            {
                "team": columns["part.team"],
                "region": [titles[regions[team]] for team in columns["part.team"].tolist()],
                "stream": columns["part.stream"],
                "block": columns["part.block"],
                "node": columns["part.node"],
            }
        )

    @property
    def shared(self) -> list[tuple[int, int]]:
        """The ranges of addresses that several threads touched."""
        begin, end = self.columns["shared.begin"], self.columns["shared.end"]
        return list(zip(begin.tolist(), end.tolist(), strict=True))

    def task_stream(self, task: int) -> int:
        """The number of the stream that is the body of a task."""
        found = np.flatnonzero(
            (self.columns["stream.is_task"] != 0) & (self.columns["stream.subject"] == task)
        )
        if not len(found):
            raise InputError(f"{self.path}: there is no task {task}")
        return int(found[0])

    def blocks(self, stream: int) -> int:
        """How many blocks a stream has."""
        return int(self._blocks[stream])

    def block(self, stream: int, number: int) -> bytes:
        """The bytes of one block of a stream."""
        return self._reader.block(stream, number)

    def nodes_of(self, stream: int, number: int) -> Columns:
        """The nodes of one block as columns; "producers" and "delays" have three numbers for each node."""
        try:
            found = _core.cpu_decode_block(self.block(stream, number))
        except _core.BadBlock as error:
            raise self.refusal(f"block {number} of stream {stream}: {error}") from None
        return columns_of(found)

    def refusal(self, what: str) -> InputError:
        """The error for a trace that the core refuses; if it names a block, with the block's offset in the file."""
        named = _BLOCK.search(what)
        if named is None:
            return InputError(f"{self.path}: {what}")
        offset = self._reader.block_offset(int(named["stream"]), int(named["number"]))
        return self._reader.fail(offset, f"{what}; its chunk begins")

    def check(self) -> None:
        """Reads all of it: every block must be whole, and hold as many nodes as the index states."""
        expected = self.columns["block.nodes"]
        for stream in range(len(self._blocks)):
            counted = 0
            for number, row in enumerate(self._reader.blocks(stream)):
                nodes = self.nodes_of(stream, number)
                counted += int((nodes["kind"] != MARKER).sum())
                if len(nodes["pc"]) != expected[row]:
                    raise self._reader.fail(
                        self._reader.block_offset(stream, number),
                        f"block {number} of stream {stream} has {len(nodes['pc'])} nodes and not {expected[row]}",
                    )
            if counted != self.columns["stream.nodes"][stream]:
                raise self._reader.fail(
                    self._reader.index_offset, f"the index miscounts the nodes of stream {stream}"
                )

    def native_columns(self) -> dict[str, bytes]:
        """The index as the core takes it."""
        names = ("stream", "dependence", "team", "shared")
        found = {
            name: column.tobytes() for name, column in self.columns.items() if name.partition(".")[0] in names
        }
        return found | {"stream.blocks": self._blocks.astype("<u4").tobytes()}

    @cached_property
    def _blocks(self) -> np.ndarray[Any, np.dtype[Any]]:
        return np.bincount(self.columns["block.stream"], minlength=len(self.columns["stream.subject"]))

    def _checked(self, kind: type[_Facts], given: dict[str, Any], offset: int) -> _Facts:
        try:
            return kind.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise self._reader.fail(offset, f"it says nothing usable of {where}: {first['msg']}") from None

    def _check_columns(self) -> None:
        """That numbers of regions, tasks and streams are of some that are there."""
        columns, regions = self.columns, len(self.regions)
        streams, teams = len(columns["stream.subject"]), len(columns["team.region"])
        region = columns["stream.region"]
        wrong = {
            "a stream of an unknown region": np.any((region >= regions) & (region != _core.cpu_no_region)),
            "a team of an unknown region": np.any(columns["team.region"] >= max(regions, 1)),
            "a team without threads": np.any(columns["team.threads"] == 0),
            "a part of an unknown team": np.any(columns["part.team"] >= max(teams, 1)),
            "a part of an unknown stream": np.any(columns["part.stream"] >= max(streams, 1)),
            "other dependences than its tasks": int(columns["stream.dependences"].sum(dtype=np.uint64))
            != len(columns["dependence.kind"]),
            "an unknown kind of dependence": np.any(columns["dependence.kind"] >= len(DEPENDENCE_KINDS)),
            "an empty shared range": np.any(columns["shared.begin"] >= columns["shared.end"]),
            "no region of a team": teams and not regions,
            "no thread": not np.any(columns["stream.is_task"] == 0),
        }
        for what, found in wrong.items():
            if found:
                raise self._reader.fail(self._reader.index_offset, f"its index has {what}")

    def __repr__(self) -> str:
        return (
            f"Trace({self.header.program.name}: {self.threads} threads, "
            f"{len(self._blocks) - self.threads} tasks, {self.instructions:,} instructions, {self.nodes:,} nodes, "
            f"{self.size:,} bytes)"
        )


def columns_of(found: Mapping[str, bytes]) -> Columns:
    """Columns of nodes that the core gave as bytes."""
    columns = {name: np.frombuffer(found[name], kind) for name, kind in NODE_TYPES.items()}
    for name in ("producers", "delays"):
        columns[name] = columns[name].reshape(-1, _OPERANDS)
    return columns
