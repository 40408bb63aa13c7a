# SPDX-License-Identifier: Apache-2.0
"""Skeletons become programs: recorded once for all ranks, or once for each rank and folded into one.

Ranks that make the same calls share their operations, and what differs between them becomes a column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from manyscale.errors import InputError
from manyscale.network.columns import Column, Formula, IntArray, Table
from manyscale.network.program import Dependencies, Operation, Program
from manyscale.network.recorder import Mpi, Skeleton
from manyscale.network.shared import Shared

MOST_RANKS = 2**22
_VECTORISED = "manyscale_vectorised"

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def vectorised(function: AnyFunction) -> AnyFunction:
    """Marks a skeleton that is called once, with an array of all ranks: no `if rank …`, but masks and arrays."""
    setattr(function, _VECTORISED, True)
    return function


def compile(skeleton: Skeleton, ranks: int, *, name: str = "", **parameters: Any) -> Program:
    """The program of a skeleton for so many ranks; `parameters` are passed on to the function."""
    if not 1 <= ranks <= MOST_RANKS:
        raise InputError(f"a job has from 1 to {MOST_RANKS:,} ranks, not {ranks:,}")
    function = skeleton.func if isinstance(skeleton, functools.partial) else skeleton
    title = name or getattr(function, "__name__", type(skeleton).__name__)
    if getattr(function, _VECTORISED, False):
        return _record_together(skeleton, ranks, title, parameters)
    return _record_one_by_one(skeleton, ranks, title, parameters)


def _record_together(skeleton: Skeleton, ranks: int, name: str, parameters: dict[str, Any]) -> Program:
    shared = Shared(ranks)
    everyone = np.arange(ranks)
    mpi = Mpi(everyone, shared)
    skeleton(mpi, everyone, ranks, **parameters)
    operations = [*mpi.operations, Operation("end")]
    return Program(
        ranks, operations, groups=shared.groups, patterns=shared.patterns, requests=mpi.slots, name=name
    )


class Structure:
    """Ranks that make the same calls, and the values in which their calls differ."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.ranks: list[int] = []
        self.values: list[IntArray] = []  # of each rank: all operands of all operations in turn

    def add(self, rank: int, values: Sequence[int]) -> None:
        """One more rank of this structure, with its own operands."""
        self.ranks.append(rank)
        self.values.append(np.array(values, np.int64))


def structure_key(operations: Sequence[Operation]) -> tuple[Any, ...]:
    """Equal for ranks that can share their operations."""
    return tuple(
        (
            operation.kind,
            operation.communicator,
            operation.algorithm,
            tuple((name, _shape_of(column)) for name, column in operation.operands.items()),
        )
        for operation in operations
    )


def _shape_of(column: Column) -> Any:
    """Of an operand, what must be equal for two ranks to share it."""
    if isinstance(column, Formula):
        return (column.loop, column.step, column.modulus)
    return (column.values.shape[1], column.by_peer) if isinstance(column, Table) else None


def _values_of(operation: Operation) -> list[int]:
    values: list[int] = []
    for column in operation.operands.values():
        if isinstance(column, Table):
            values += column.values[0].tolist()
        else:
            values.append(int(column.base) if isinstance(column, Formula) else int(column))
    return values


def _record_one_by_one(skeleton: Skeleton, ranks: int, name: str, parameters: dict[str, Any]) -> Program:
    shared = Shared(ranks)
    structures: dict[tuple[Any, ...], Structure] = {}
    requests = 0
    for rank in range(ranks):
        mpi = Mpi(rank, shared)
        skeleton(mpi, rank, ranks, **parameters)
        requests = max(requests, mpi.slots)
        key = structure_key(mpi.operations)
        values = [value for operation in mpi.operations for value in _values_of(operation)]
        structures.setdefault(key, Structure(mpi.operations)).add(rank, values)
    return fold(shared, list(structures.values()), requests, name)


class _Columns:
    """Arrays of all ranks that segments share: no two segments have a rank in common."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._arrays: list[IntArray] = []
        self._used = 0

    def begin_segment(self) -> None:
        self._used = 0

    def column(self, members: IntArray, values: IntArray) -> int | IntArray:
        """A column with these values for these ranks."""
        if np.all(values == values[0]):
            return int(values[0])
        if self._used == len(self._arrays):
            self._arrays.append(np.zeros(self._ranks, np.int64))
        array = self._arrays[self._used]
        self._used += 1
        array[members] = values
        return array


def fold(
    shared: Shared,
    structures: Sequence[Structure],
    requests: int,
    name: str,
    dependencies: Dependencies | None = None,
) -> Program:
    """One program of several structures: a segment for each and an `end`, at which its ranks begin."""
    ranks = shared.ranks
    operations: list[Operation] = []
    entry = np.zeros(ranks, np.int64)
    columns = _Columns(ranks)
    for structure in structures:
        members = np.array(structure.ranks)
        values = np.stack(structure.values)
        entry[members] = len(operations)
        columns.begin_segment()
        at = 0
        for operation in structure.operations:
            operands: dict[str, Column] = {}
            for key, given in operation.operands.items():
                if isinstance(given, Table):
                    width = given.values.shape[1]
                    table = np.zeros((ranks, width), np.int64)
                    table[members] = values[:, at : at + width]
                    operands[key] = replace(given, values=table)
                    at += width
                    continue
                column = columns.column(members, values[:, at])
                operands[key] = replace(given, base=column) if isinstance(given, Formula) else column
                at += 1
            operations.append(replace(operation, operands=operands))
        operations.append(Operation("end"))
    start = int(entry[0]) if np.all(entry == entry[0]) else entry
    return Program(
        ranks,
        operations,
        entry=start,
        groups=shared.groups,
        patterns=shared.patterns,
        requests=requests,
        name=name,
        dependencies=dependencies,
    )
