# SPDX-License-Identifier: Apache-2.0
"""Records of a run: the calls, kernels and copies of a program, and notes."""

from __future__ import annotations

import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .wire import Call

if TYPE_CHECKING:
    import polars as pl

    from .commands import CopyRecord, LaunchRecord
    from .node import Node
    from .ranges import Range

MOST_CALLS = 4_000_000
"""Rows of the table of calls; of later calls only the number is kept."""

_NANOSECOND = 10**6


class CallLog(NamedTuple):
    """A call of the program: who made it, when it began and ended in simulated femtoseconds, and its status."""

    process: int
    thread: int
    call: Call
    device: int
    begin: int
    end: int
    status: int


class Calls:
    """The calls of all processes in the order they were answered."""

    def __init__(self) -> None:
        self._numbers = array.array("q")  # row after row
        self.count = 0

    def add(self, row: CallLog) -> None:
        self.count += 1
        if self.count <= MOST_CALLS:
            self._numbers.extend(row)

    def frame(self) -> pl.DataFrame:
        """A row for each call; times in nanoseconds."""
        import polars as pl

        rows = np.frombuffer(self._numbers, np.int64).reshape(-1, len(CallLog._fields))
        table = pl.DataFrame({name: rows[:, index] for index, name in enumerate(CallLog._fields)})
        names = {int(call): call.name.lower() for call in Call}
        return table.select(
            "process",
            "thread",
            pl.col("call").replace_strict(names, return_dtype=pl.String),
            pl.col("device").cast(pl.Int32),
            (pl.col("begin") / _NANOSECOND).alias("begin_ns"),
            (pl.col("end") / _NANOSECOND).alias("end_ns"),
            pl.col("status").cast(pl.Int32),
        )


@dataclass
class Records:
    """The records of a run."""

    calls: Calls = field(default_factory=Calls)
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # of checks
    ptx: dict[str, bytes] = field(default_factory=dict)  # the modules that were loaded, by name
    ranges: list[Range] = field(default_factory=list)  # of NVTX, in which something was queued


def launches_of(node: Node) -> list[LaunchRecord]:
    """The kernels that have ended on all GPUs, in the order of their ends."""
    records = [record for gpu in (*node.retired, *node.gpus) for record in gpu.launches_ended]
    return sorted(records, key=lambda record: record.end) if len(node.gpus) > 1 else records


def copies_of(node: Node) -> list[CopyRecord]:
    """The copies and fills that have ended on all GPUs, in the order of their ends."""
    records = [record for gpu in (*node.retired, *node.gpus) for record in gpu.copies_ended]
    return sorted(records, key=lambda record: record.end) if len(node.gpus) > 1 else records
