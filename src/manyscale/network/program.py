# SPDX-License-Identifier: Apache-2.0
"""The program of a job: one list of operations for all ranks, whose operands are columns.

Loops stay loops, so a program is as long as its text and not as long as its run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from manyscale.errors import InputError
from manyscale.network.columns import Column, Formula, IntArray, Table, as_array, value_at
from manyscale.network.durations import Pattern

NOBODY = -1
"""The peer of an operation that is left out, as MPI_PROC_NULL: beyond the edge of a grid, for example."""
ANY = -2
"""Any source or any tag, in a receive or a probe."""
LAST = -3
"""The source (or tag) of the last receive or probe that was completed, to answer it."""

SENDS = ("send", "ssend", "isend", "issend", "send_init")
RECEIVES = ("recv", "irecv", "recv_init", "probe", "iprobe")
COMPLETIONS = ("wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome")
COLLECTIVES = (
    *("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"),
    *("alltoallv", "reduce_scatter", "scan", "exscan"),
)
CONTROL = ("end", "loop", "end_loop", "where", "end_where", "compute", "draw")
_GOLDEN = 0.6180339887
_COUNTED_RANKS = 16  # of which operations are counted for those of all
KINDS = (*CONTROL, *SENDS, *RECEIVES, "sendrecv", "start", "request_free", *COMPLETIONS, *COLLECTIVES)


@dataclass(frozen=True, eq=False)
class Operation:
    """One call of all ranks (or of those that a `where` around it lets through).

    `operands` by name: `peer`, `bytes`, `tag`, `request` (a slot), `count` (of slots, of a loop), `mask` of a where,
    `time` of a compute, `pattern` of a draw and the `phase` it shares with others; for sendrecv also `source` and
    `received`. The root of a collective is its peer.
    """

    kind: str
    operands: Mapping[str, Column] = field(default_factory=dict)
    communicator: int = 0
    algorithm: str = ""


@dataclass(frozen=True, eq=False)
class Group:
    """The ranks of a communicator: `color` says who is together (negative: in none), `position` the rank therein."""

    color: int | IntArray
    position: int | IntArray
    size: int | IntArray

    def members(self, rank: int, ranks: int) -> IntArray:
        """World ranks of the group that a world rank is in, by their rank in the communicator."""
        colors, positions = as_array(self.color, ranks), as_array(self.position, ranks)
        found = np.flatnonzero(colors == colors[rank])
        return found[np.argsort(positions[found], kind="stable")]


@dataclass(frozen=True, eq=False)
class Dependencies:
    """What operations wait for where those of a rank have no fixed order: rows of (operation, the one it waits for)."""

    ended: IntArray  # begins after the other has ended
    begun: IntArray  # begins after the other has begun


@dataclass(frozen=True)
class Step:
    """One operation as one rank meets it, with its operands as numbers."""

    kind: str
    operands: dict[str, int]
    communicator: int
    algorithm: str
    occurrence: int  # how many times this rank has met the operation, or its phase, before
    operation: int  # its index in the program

    def __getitem__(self, name: str) -> int:
        return self.operands[name]


class Program:
    """What all ranks of a job do. `entry` is the operation at which each rank begins.

    With `dependencies` a rank runs its operations, up to an `end`, as soon as each can begin; without, in their order.
    """

    def __init__(
        self,
        ranks: int,
        operations: Sequence[Operation],
        *,
        entry: int | IntArray = 0,
        groups: Sequence[Group] = (),
        patterns: Sequence[Pattern] = (),
        requests: int = 0,
        name: str = "program",
        dependencies: Dependencies | None = None,
    ) -> None:
        self.ranks = ranks
        self.operations = tuple(operations)
        self.entry = entry
        self.groups = tuple(groups)
        self.patterns = tuple(patterns)
        self.requests = requests
        self.name = name
        self.dependencies = dependencies
        self.partner = _partners(self.operations)

    @property
    def memory(self) -> int:
        """Bytes of the columns, each array counted once."""
        columns: list[Column] = [self.entry]
        columns += [column for operation in self.operations for column in operation.operands.values()]
        columns += [column for group in self.groups for column in (group.color, group.position, group.size)]
        arrays = {}
        for column in columns:
            held = (
                column.base
                if isinstance(column, Formula)
                else column.values
                if isinstance(column, Table)
                else column
            )
            if isinstance(held, np.ndarray):
                arrays[id(held)] = held.nbytes
        return sum(arrays.values())

    def executed(self) -> int:
        """MPI operations of all ranks together, by those of some ranks; loops count as often as they are run."""
        if np.ndim(self.entry):  # each rank has operations of its own
            return self._executed(0)
        # Spread without a period, since neighbours may differ in turn.
        chosen = {round(_GOLDEN * number * self.ranks) % self.ranks for number in range(_COUNTED_RANKS)}
        return round(self.ranks * sum(map(self._executed, chosen)) / len(chosen))

    def _executed(self, rank: int) -> int:
        """Those of a rank, from the first to the last, as they are in the first iteration of loops around them."""
        total, factor = 0, [1]
        for operation in self.operations:
            nested = dict.fromkeys(range(len(factor) - 1), 0)
            if operation.kind == "loop":
                factor.append(factor[-1] * max(0, value_at(operation.operands["count"], rank, nested)))
            elif operation.kind == "where":
                factor.append(factor[-1] if value_at(operation.operands["mask"], rank, nested) else 0)
            elif operation.kind in ("end_loop", "end_where"):
                factor.pop()
            elif operation.kind not in CONTROL:
                total += factor[-1]
        return total

    def steps(self, rank: int) -> Iterator[Step]:
        """The operations of one rank as they are written, loops unrolled, what it leaves out left out."""
        if not 0 <= rank < self.ranks:
            raise InputError(f"{self.name}: there is no rank {rank}; the ranks are 0 to {self.ranks - 1}")
        met: dict[int, int] = {}
        running: list[list[int]] = []  # of each active loop: its index, iteration and count
        at = value_at(self.entry, rank)
        while at < len(self.operations):
            operation = self.operations[at]
            iterations = {depth: loop[1] for depth, loop in enumerate(running)}
            if operation.kind == "end":
                return
            if operation.kind == "loop":
                count = value_at(operation.operands["count"], rank, iterations)
                if count > 0:
                    running.append([at, 0, count])
                    at += 1
                else:
                    at = self.partner[at] + 1
            elif operation.kind == "end_loop":
                running[-1][1] += 1
                if running[-1][1] < running[-1][2]:
                    at = running[-1][0] + 1
                else:
                    running.pop()
                    at += 1
            elif operation.kind == "where":
                taken = value_at(operation.operands["mask"], rank, iterations)
                at = at + 1 if taken else self.partner[at] + 1
            elif operation.kind == "end_where":
                at += 1
            else:
                # Operations of a named phase count together.
                shared = operation.operands.get("phase")
                counter = at if shared is None else -1 - value_at(shared, rank)
                occurrence = met.get(counter, 0)
                met[counter] = occurrence + 1
                values = {
                    name: value_at(column, rank, iterations, occurrence)
                    for name, column in operation.operands.items()
                }
                yield Step(
                    operation.kind, values, operation.communicator, operation.algorithm, occurrence, at
                )
                at += 1

    def __repr__(self) -> str:
        return f"Program({self.name}: {self.ranks:,} ranks, {len(self.operations):,} operations)"


_ENDS = {"end_loop": "loop", "end_where": "where"}


def _partners(operations: Sequence[Operation]) -> dict[int, int]:
    """For each begin of a block its end, and the other way round."""
    partners: dict[int, int] = {}
    open_blocks: list[int] = []
    for index, operation in enumerate(operations):
        if operation.kind not in KINDS:
            raise InputError(f"operation {index} is '{operation.kind}', which is none of {', '.join(KINDS)}")
        if operation.kind in ("loop", "where"):
            open_blocks.append(index)
        elif operation.kind in _ENDS:
            if not open_blocks or operations[open_blocks[-1]].kind != _ENDS[operation.kind]:
                raise InputError(f"operation {index} ends a {_ENDS[operation.kind]} that has not begun")
            begin = open_blocks.pop()
            partners[begin], partners[index] = index, begin
    if open_blocks:
        raise InputError(f"the {operations[open_blocks[-1]].kind} at operation {open_blocks[-1]} has no end")
    return partners
