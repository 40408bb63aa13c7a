# SPDX-License-Identifier: Apache-2.0
"""A program as the arrays that the core runs: rows of operations, rows of columns, the arrays they refer to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError, nearest
from manyscale.network.columns import Column, Formula, IntArray, Table, extremes
from manyscale.network.durations import Pattern
from manyscale.network.program import Group, Operation, Program

# What the core calls a kind of operation, where it is not the same word.
_CORE_KINDS = {
    "loop": "loop_begin",
    "end_loop": "loop_end",
    "where": "branch",
    "ssend": "synchronous_send",
    "recv": "receive",
    "irecv": "ireceive",
    "recv_init": "receive_init",
    "sendrecv": "send_receive",
    "bcast": "broadcast",
}
# What the core calls an operand, where it is not the same word.
_CORE_OPERANDS = {
    "time": "bytes",
    "pattern": "bytes",
    "scale": "count",
    "request": "slot",
    "source": "from",
    "received": "receive_bytes",
}
_NONE = -1
# As the loop of a column: how often the rank has met the phase, and the other rank's number.
_OCCURRENCE, _PEER = -2, -3


def encode(program: Program) -> dict[str, Any]:
    """The arrays of a program."""
    return _Encoder(program).encoded()


def core_operations(program: Program) -> list[Operation]:
    """The operations by their number in the core, which has no ends of where: they are what comes next."""
    return [operation for operation in program.operations if operation.kind != "end_where"]


def core_kind(kind: str) -> str:
    """What the core calls a kind of operation."""
    return _CORE_KINDS.get(kind, kind)


def _algorithms() -> dict[str, dict[str, int]]:
    return _core.mpi_algorithms()


def algorithm_number(kind: str, name: str) -> int:
    """The core's number of a collective's algorithm; 0, which leaves the choice to the library, for no name."""
    if not name:
        return 0
    known = _algorithms().get(core_kind(kind), {})
    if name not in known:
        raise InputError(f"there is no algorithm '{name}' of {core_kind(kind)}; {nearest(name, known)}")
    return int(known[name])


class _Encoder:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._columns: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._arrays: list[npt.NDArray[Any]] = []
        self._array_numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # arrays whose identity is a key, so that it stays theirs
        self._fields = list(_core.mpi_operation_fields())
        self._kinds = _core.mpi_operations()

    def encoded(self) -> dict[str, Any]:
        program = self._program
        indices = self._indices()
        rows = []
        phase = named = self._named_phases()
        for index, operation in enumerate(program.operations):
            if operation.kind == "end":
                phase = named  # segments have no rank in common, so they share the phases' counters
            if operation.kind == "end_where":
                continue
            row = self._row(operation)
            if operation.kind in ("loop", "end_loop", "where"):
                row["target"] = indices[program.partner[index]]
            if "phase" in operation.operands:
                row["slot"] = self._column(operation.operands["phase"])
            elif operation.kind == "draw" or isinstance(operation.operands.get("time"), Table):
                row["slot"] = self._column(phase)
                phase += 1
            rows.append([row[name] for name in self._fields])
        entry = self._entry(indices)  # one of the columns, so before they are listed
        encoded = {
            "ranks": program.ranks,
            "operations": np.array(rows, np.int32).reshape(len(rows), len(self._fields)),
            "columns": np.array(self._columns, np.int64).reshape(len(self._columns), 9),
            "arrays": self._arrays,
            "communicators": [_communicator(group, program.ranks) for group in program.groups],
            "patterns": [_pattern(pattern) for pattern in program.patterns],
            "entry": entry,
        }
        if program.dependencies is not None:
            encoded["dependencies"] = {
                "ended": np.ascontiguousarray(program.dependencies.ended, np.uint32),
                "begun": np.ascontiguousarray(program.dependencies.begun, np.uint32),
            }
        return encoded

    def _named_phases(self) -> int:
        """How many phases have numbers of their own."""
        given = [
            operation.operands["phase"]
            for operation in self._program.operations
            if "phase" in operation.operands
        ]
        return 1 + max((extremes(column)[1] for column in given), default=-1)

    def _indices(self) -> list[int]:
        """The number of each operation in the core."""
        indices, at = [], 0
        for operation in self._program.operations:
            indices.append(at)
            at += operation.kind != "end_where"
        return indices

    def _entry(self, indices: list[int]) -> int:
        entry = self._program.entry
        if isinstance(entry, int) and entry == 0:
            return _NONE
        moved = np.array(indices, np.int64)[entry]
        return self._column(int(moved) if np.ndim(moved) == 0 else moved)

    def _row(self, operation: Operation) -> dict[str, int]:
        row = dict.fromkeys(self._fields, _NONE)
        row["kind"] = self._kinds[core_kind(operation.kind)]
        row["algorithm"] = algorithm_number(operation.kind, operation.algorithm)
        row["communicator"] = operation.communicator
        for name, column in operation.operands.items():
            if name == "phase":
                continue
            row[_CORE_OPERANDS.get(name, name)] = self._column(column)
        if operation.kind == "sendrecv":
            row["receive_tag"] = row["tag"]
        return row

    def _column(self, column: Column) -> int:
        row = self._column_row(column)
        number = self._numbers.setdefault(row, len(self._columns))
        if number == len(self._columns):
            self._columns.append(row)
        return number

    def _column_row(self, column: Column) -> tuple[int, ...]:
        """constant, rank_step, loop_step, modulus, array_stride, iteration_stride, period, array, loop."""
        if isinstance(column, Table):
            period = column.values.shape[1]
            loop = _PEER if column.by_peer else _OCCURRENCE
            return (0, 0, 0, 0, period, 1, period, self._array(column.values), loop)
        if isinstance(column, Formula):
            constant, rank_step, array = self._plain(column.base)
            return (constant, rank_step, column.step, column.modulus, 1, 0, 1, array, column.loop)
        constant, rank_step, array = self._plain(column)
        return (constant, rank_step, 0, 0, 1, 0, 1, array, _NONE)

    def _plain(self, column: int | IntArray) -> tuple[int, int, int]:
        """A constant, a step from rank to rank and an array; values in equal steps need no array."""
        if not isinstance(column, np.ndarray):
            return column, 0, _NONE
        if id(column) in self._array_numbers:
            return 0, 0, self._array_numbers[id(column)]
        step = int(column[1] - column[0]) if len(column) > 1 else 0
        if np.array_equal(column, column[0] + step * np.arange(len(column))):
            return int(column[0]), step, _NONE
        return 0, 0, self._array(column)

    def _array(self, values: IntArray) -> int:
        if id(values) not in self._array_numbers:
            flat = values.reshape(-1)
            small = flat.size and np.abs(flat).max() < 2**31
            self._array_numbers[id(values)] = len(self._arrays)
            self._arrays.append(np.ascontiguousarray(flat, np.int32 if small else np.int64))
            self._kept.append(values)
        return self._array_numbers[id(values)]


def _communicator(group: Group, ranks: int) -> dict[str, Any]:
    """A group of ranks as the core takes it: the world, ranks at equal distances, or arrays."""
    if isinstance(group.size, int) and group.size == ranks:
        return {"kind": "world"}
    colors, positions, sizes = (np.asarray(part) for part in (group.color, group.position, group.size))
    first = np.flatnonzero(colors == colors[0])
    stride = int(first[1] - first[0]) if len(first) > 1 else 1
    count = int(sizes[0])
    everyone = np.arange(ranks)
    if np.all(sizes == count) and count and np.array_equal(positions, everyone // stride % count):
        base = everyone - positions * stride
        pairs = np.unique(np.stack([base, colors]), axis=1).shape[1]
        if colors.min() >= 0 and pairs == np.unique(base).size == np.unique(colors).size:
            return {"kind": "strided", "stride": stride, "count": count}
    return {"kind": "groups", "group": colors.astype(np.int32), "key": positions.astype(np.int32)}


def _pattern(pattern: Pattern) -> dict[str, Any]:
    return {
        "sequence": np.array(pattern.order, np.int64),
        "clusters": [
            {"low": cluster.low, "high": cluster.high, "weight": cluster.weights}
            for cluster in pattern.clusters
        ],
    }
