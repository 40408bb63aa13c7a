# SPDX-License-Identifier: Apache-2.0
"""Programs as GOAL schedules: loops unrolled, collectives as the messages of their algorithms.

The algorithms are those that a simulated job runs: the one that is named, or the one that the MPI library chooses. The
arithmetic of reductions is left out. GOAL has no distributions: a phase that is drawn gets the mean of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyscale import _core
from manyscale.errors import InputError
from manyscale.network.columns import Column, Formula, Table, as_array
from manyscale.network.encoding import algorithm_number, core_kind
from manyscale.network.goal import ANYONE, CALC, MOST_OPERATIONS, RECV, SEND, GoalRank, GoalSchedule
from manyscale.network.program import ANY, COLLECTIVES, NOBODY, Dependencies, Program, Step

_NANOSECOND = 10**6  # femtoseconds
_MILLION = 10**6
_COLLECTIVE_TAG = 2**30  # and the number of the communicator: the tag of a collective's messages

_WITH_PARTS = (
    "gather",
    "scatter",
    "allgather",
    "reduce_scatter",
)  # whose bytes are those of each rank's part


@dataclass(frozen=True)
class Library:
    """What the choice of collective algorithms depends on: whose defaults, the segment, and ranks on a node."""

    library: str = "openmpi"
    segment: int = 0
    ranks_per_node: int = 1

    def node(self, rank: int) -> int:
        """The node of a rank; ranks are put on nodes in blocks."""
        return rank // self.ranks_per_node


def schedule_of(program: Program, library: Library = Library()) -> GoalSchedule:
    """The schedule that a program amounts to."""
    schedule = GoalSchedule(program.ranks, name=program.name)
    if program.dependencies is not None:
        _write_dependencies(program, program.dependencies, schedule)
        return schedule
    total = 0
    for rank in range(program.ranks):
        part = schedule.rank(rank)
        writer = _Writer(program, rank, part, library)
        for step in program.steps(rank):
            writer.step(step)
            if total + len(part.kinds) > MOST_OPERATIONS:
                raise InputError(
                    f"{program.name} would be a schedule of more than {MOST_OPERATIONS:,} operations"
                )
        total += len(part.kinds)
    return schedule


def _write_dependencies(program: Program, dependencies: Dependencies, schedule: GoalSchedule) -> None:
    """A program whose operations have no order is a schedule already."""
    entries = as_array(program.entry, program.ranks)
    starts = np.unique(entries)
    pairs: dict[int, tuple[list[tuple[int, int]], ...]] = {int(start): ([], []) for start in starts}
    for index, table in enumerate((dependencies.ended, dependencies.begun)):
        segments = starts[np.searchsorted(starts, table[:, 0], side="right") - 1]
        for start, (later, earlier) in zip(segments.tolist(), table.tolist(), strict=True):
            pairs[start][index].append((later - start, earlier - start))
    for rank in range(program.ranks):
        part = schedule.rank(rank)
        for step in program.steps(rank):
            if step.kind == "compute":
                part.add(CALC, round(step["time"] / _NANOSECOND))
                continue
            peer, tag = (ANYONE if step[name] == ANY else step[name] for name in ("peer", "tag"))
            part.add(RECV if step.kind == "recv" else SEND, step["bytes"], peer, tag)
        part.requires, part.follows = (list(found) for found in pairs[int(entries[rank])])


class _Writer:
    """Writes one rank: each operation begins after what was completed before it."""

    def __init__(self, program: Program, rank: int, part: GoalRank, library: Library) -> None:
        self._program = program
        self._rank = rank
        self._part = part
        self._library = library
        self._needs: list[int] = []  # what the next operation requires
        self._begun: int | None = None  # what it follows without waiting
        self._requests: dict[int, list[int]] = {}  # what each waits for
        self._collectives: dict[int, int] = {}  # how many there were, by communicator
        self._groups: dict[int, list[int]] = {}

    def step(self, step: Step) -> None:
        kind = step.kind
        if kind == "compute":
            self._block(self._add(CALC, round(step["time"] / _NANOSECOND)))
        elif kind == "draw":
            mean = self._program.patterns[step["pattern"]].at(step.occurrence).mean
            scaled = mean * step.operands.get("scale", _MILLION) / _MILLION
            self._block(self._add(CALC, round(scaled / _NANOSECOND)))
        elif kind in COLLECTIVES:
            self._collective(step)
        elif kind == "sendrecv":
            pair = [
                self._message(SEND, step["peer"], step["bytes"], step["tag"], step.communicator),
                self._message(RECV, step["source"], step["received"], step["tag"], step.communicator),
            ]
            self._block(*(index for index in pair if index is not None))
        elif kind in ("send", "ssend", "recv", "isend", "issend", "irecv"):
            way = RECV if "recv" in kind else SEND
            index = self._message(way, step["peer"], step["bytes"], step["tag"], step.communicator)
            if index is None:
                return
            if kind.startswith("i"):
                self._requests[step["request"]] = [index]
                self._begun = index
            else:
                self._block(index)
        elif kind in ("wait", "waitall"):
            slots = range(step["request"], step["request"] + step.operands.get("count", 1))
            done = [index for slot in slots for index in self._requests.pop(slot, ())]
            self._needs = [*self._needs, *(index for index in done if index not in self._needs)]
        else:
            raise InputError(f"{self._program.name}: rank {self._rank} calls {kind}, which GOAL cannot say")

    def _add(self, kind: str, amount: int, peer: int = ANYONE, tag: int = 0) -> int:
        index = self._part.add(kind, amount, peer, tag)
        self._part.requires += [(index, earlier) for earlier in self._needs]
        if self._begun is not None and self._begun not in self._needs:
            self._part.follows.append((index, self._begun))
        return index

    def _block(self, *indices: int) -> None:
        """What comes next waits for these."""
        if indices:
            self._needs = list(indices)
            self._begun = None

    def _message(self, kind: str, peer: int, amount: int, tag: int, communicator: int) -> int | None:
        if peer == NOBODY:
            return None
        if peer < ANY:
            raise InputError(
                f"{self._program.name}: rank {self._rank} answers its last message; GOAL cannot say that"
            )
        whom = ANYONE if peer == ANY else self._members(communicator)[peer]
        return self._add(kind, amount, whom, ANYONE if tag == ANY else tag)

    def _members(self, communicator: int) -> list[int]:
        if communicator not in self._groups:
            group = self._program.groups[communicator]
            self._groups[communicator] = group.members(self._rank, self._program.ranks).tolist()
        return self._groups[communicator]

    def _collective(self, step: Step) -> None:
        """The messages that the simulated library sends for it; others go on beside one that was only begun."""
        members = self._members(step.communicator)
        index = int(
            as_array(self._program.groups[step.communicator].position, self._program.ranks)[self._rank]
        )
        if step.kind in _WITH_PARTS and _differs(self._program.operations[step.operation].operands["bytes"]):
            raise InputError(
                f"{self._program.name}: the parts of a {step.kind} differ between ranks, which is not written as GOAL"
            )
        actions = _core.mpi_collective_actions(
            core_kind(step.kind),
            algorithm_number(step.kind, step.algorithm),
            self._library.library,
            index,
            [self._library.node(member) for member in members],
            step["bytes"],
            step.operands.get("peer", 0),
            self._library.segment,
        )
        number = self._collectives.get(step.communicator, 0)
        self._collectives[step.communicator] = number + 1
        # Collectives of one communicator have different tags, since several may be outstanding.
        tag = _COLLECTIVE_TAG + (number * len(self._program.groups) + step.communicator) % _COLLECTIVE_TAG
        before = self._needs, self._begun
        first = len(self._part.kinds)
        begun: list[int] = []
        for to, sent, source, received, waits in actions:
            if source >= 0:
                begun.append(self._add(RECV, received, members[source], tag))
            if to >= 0:
                begun.append(self._add(SEND, sent, members[to], tag))
            if waits:
                self._block(*begun)
                begun = []
            elif begun:
                self._begun = begun[-1]
        self._block(*begun)
        if "request" in step.operands and len(self._part.kinds) > first:
            self._requests[step["request"]] = self._needs
            self._needs, self._begun = before[0], first


def _differs(column: Column) -> bool:
    """Whether ranks may have different values."""
    base = column.base if isinstance(column, Formula) else column
    return isinstance(base, Table) or (isinstance(base, np.ndarray) and bool((base != base[0]).any()))
