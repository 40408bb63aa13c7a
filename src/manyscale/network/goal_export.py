# SPDX-License-Identifier: Apache-2.0
"""Programs as GOAL schedules: loops unrolled, collectives as the messages of a simple algorithm.

GOAL knows no distributions: a phase that is drawn gets the mean of its distribution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyscale.errors import InputError
from manyscale.network.columns import as_array
from manyscale.network.goal import ANYONE, CALC, MOST_OPERATIONS, RECV, SEND, GoalRank, GoalSchedule
from manyscale.network.program import ANY, COLLECTIVES, NOBODY, Dependencies, Program, Step

_NANOSECOND = 10**6  # femtoseconds
_COLLECTIVE_TAG = 2**30  # and the number of the communicator: the tag of a collective's messages

Round = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
"""What a rank sends and receives in a step of a collective: pairs of (rank in the group, bytes)."""


def schedule_of(program: Program) -> GoalSchedule:
    """The schedule that a program amounts to."""
    schedule = GoalSchedule(program.ranks, name=program.name)
    if program.dependencies is not None:
        _write_dependencies(program, program.dependencies, schedule)
        return schedule
    total = 0
    for rank in range(program.ranks):
        part = schedule.rank(rank)
        writer = _Writer(program, rank, part)
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
    for place, table in enumerate((dependencies.ended, dependencies.begun)):
        segments = starts[np.searchsorted(starts, table[:, 0], side="right") - 1]
        for start, (later, earlier) in zip(segments.tolist(), table.tolist(), strict=True):
            pairs[start][place].append((later - start, earlier - start))
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

    def __init__(self, program: Program, rank: int, part: GoalRank) -> None:
        self._program = program
        self._rank = rank
        self._part = part
        self._needs: list[int] = []  # what the next operation requires
        self._begun: int | None = None  # what it follows without waiting
        self._requests: dict[int, int] = {}
        self._groups: dict[int, list[int]] = {}

    def step(self, step: Step) -> None:
        kind = step.kind
        if kind == "compute":
            self._block(self._add(CALC, round(step["time"] / _NANOSECOND)))
        elif kind == "draw":
            mean = self._program.patterns[step["pattern"]].at(step.occurrence).mean
            self._block(self._add(CALC, round(mean / _NANOSECOND)))
        elif kind in COLLECTIVES:
            self._collective(step)
        elif kind == "sendrecv":
            pair = [
                self._message(SEND, step["peer"], step["bytes"], step["tag"], step.communicator),
                self._message(RECV, step["source"], step["received"], step["tag"], step.communicator),
            ]
            self._block(*(place for place in pair if place is not None))
        elif kind in ("send", "ssend", "recv", "isend", "issend", "irecv"):
            way = RECV if "recv" in kind else SEND
            place = self._message(way, step["peer"], step["bytes"], step["tag"], step.communicator)
            if place is None:
                return
            if kind.startswith("i"):
                self._requests[step["request"]] = place
                self._begun = place
            else:
                self._block(place)
        elif kind in ("wait", "waitall"):
            slots = range(step["request"], step["request"] + step.operands.get("count", 1))
            self._needs += [self._requests.pop(slot) for slot in slots if slot in self._requests]
        else:
            raise InputError(f"{self._program.name}: rank {self._rank} calls {kind}, which GOAL cannot say")

    def _add(self, kind: str, amount: int, peer: int = ANYONE, tag: int = 0) -> int:
        place = self._part.add(kind, amount, peer, tag)
        self._part.requires += [(place, earlier) for earlier in self._needs]
        if self._begun is not None and self._begun not in self._needs:
            self._part.follows.append((place, self._begun))
        return place

    def _block(self, *places: int) -> None:
        """What comes next waits for these."""
        if places:
            self._needs = list(places)
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
        members = self._members(step.communicator)
        place = int(as_array(self._program.groups[step.communicator].place, self._program.ranks)[self._rank])
        tag = _COLLECTIVE_TAG + step.communicator
        root = step.operands.get("peer", 0)
        for sends, receives in _rounds(step.kind, place, len(members), step["bytes"], root):
            places = [self._add(SEND, amount, members[to], tag) for to, amount in sends]
            places += [self._add(RECV, amount, members[source], tag) for source, amount in receives]
            self._block(*places)


def _rounds(kind: str, rank: int, size: int, amount: int, root: int) -> Iterator[Round]:
    """The steps of one rank of a collective.

    Barrier: dissemination. Broadcast, reduce, gather, scatter: binomial trees, the last two with the amounts of
    whole subtrees. Allreduce: recursive doubling, for the nearest power of two. Allgather: ring. All-to-all:
    pairwise. Reduce-scatter: pairwise. Scans: a chain.
    """
    if kind == "barrier":
        distance = 1
        while distance < size:
            yield (((rank + distance) % size, 0),), (((rank - distance) % size, 0),)
            distance *= 2
    elif kind == "allreduce":
        yield from _doubling(rank, size, amount)
    elif kind in ("bcast", "scatter"):
        yield from _tree(rank, size, root, amount, kind == "scatter", down=True)
    elif kind in ("reduce", "gather"):
        yield from _tree(rank, size, root, amount, kind == "gather", down=False)
    elif kind == "allgather":
        for _ in range(size - 1):
            yield (((rank + 1) % size, amount),), (((rank - 1) % size, amount),)
    elif kind in ("alltoall", "reduce_scatter"):
        for distance in range(1, size):
            yield (((rank + distance) % size, amount),), (((rank - distance) % size, amount),)
    elif kind in ("scan", "exscan"):
        if rank > 0:
            yield (), ((rank - 1, amount),)
        if rank + 1 < size:
            yield ((rank + 1, amount),), ()
    else:
        raise InputError(f"GOAL cannot say {kind}")


def _doubling(rank: int, size: int, amount: int) -> Iterator[Round]:
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    # Of the first 2 x extra ranks, even ones give theirs to the odd ones and get the result from them.
    if rank < 2 * extra:
        partner = rank ^ 1
        if rank % 2 == 0:
            yield ((partner, amount),), ()
            yield (), ((partner, amount),)
            return
        yield (), ((partner, amount),)
    place = rank // 2 if rank < 2 * extra else rank - extra
    distance = 1
    while distance < power:
        other = place ^ distance
        peer = 2 * other + 1 if other < extra else other + extra
        yield ((peer, amount),), ((peer, amount),)
        distance *= 2
    if rank < 2 * extra:
        yield ((rank ^ 1, amount),), ()


def _tree(rank: int, size: int, root: int, amount: int, subtrees: bool, *, down: bool) -> Iterator[Round]:
    place = (rank - root) % size
    lowest = place & -place if place else 1 << (size - 1).bit_length()

    def moved(child: int, span: int) -> int:
        return amount * min(span, size - child) if subtrees else amount

    children = []
    span = lowest >> 1
    while span:
        if place + span < size:
            children.append(((place + span + root) % size, moved(place + span, span)))
        span >>= 1
    parent = ((place - lowest + root) % size, moved(place, lowest))
    if down:
        if place:
            yield (), (parent,)
        for child in children:
            yield (child,), ()
    else:
        for child in reversed(children):
            yield (), (child,)
        if place:
            yield (parent,), ()
