# SPDX-License-Identifier: Apache-2.0
"""GOAL schedules as programs: the operations of a rank are put into an order in which they can run.

A schedule lets a rank begin whatever is ready. A program is a sequence, so the order is found first, by running the
schedule of all ranks on a network that takes no time: messages begin when they are ready, and a rank waits for one
only when something that requires it is next.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque

from manyscale.errors import InputError
from manyscale.network.goal import ANYONE, CALC, SEND, GoalRank, GoalSchedule
from manyscale.network.program import ANY, Operation, Program
from manyscale.network.shared import Shared
from manyscale.network.skeleton import Structure, fold

_NANOSECOND = 10**6  # femtoseconds


def program_of(schedule: GoalSchedule) -> Program:
    """The program that runs a schedule."""
    orders = _Order(schedule).run()
    shared = Shared(schedule.ranks)
    structures: dict[tuple[str, ...], Structure] = {}
    requests = 0
    idle = GoalRank()
    for rank in range(schedule.ranks):
        kinds, values, slots = _sequence(schedule.by_rank.get(rank, idle), orders.get(rank, []))
        requests = max(requests, slots)
        key = tuple(kinds)
        if key not in structures:
            structures[key] = Structure(
                [Operation(kind, dict.fromkeys(_OPERANDS[kind], 0)) for kind in kinds]
            )
        structures[key].add(rank, values)
    return fold(shared, list(structures.values()), requests, schedule.name)


_OPERANDS = {
    "compute": ("time",),
    "isend": ("peer", "bytes", "tag", "request"),
    "irecv": ("peer", "bytes", "tag", "request"),
    "wait": ("request", "count"),
    "request_free": ("request",),
}


def _sequence(part: GoalRank, order: list[int]) -> tuple[list[str], list[int], int]:
    """A rank's operations in their order, the values of all their operands, and how many requests they need."""
    needed: dict[int, list[int]] = defaultdict(list)
    awaited = set()
    for later, earlier in part.requires:
        needed[later].append(earlier)
        awaited.add(earlier)
    kinds: list[str] = []
    values: list[int] = []
    slot_of: dict[int, int] = {}
    free: list[int] = []
    slots = 0

    def wait(operation: int) -> None:
        slot = slot_of.pop(operation)
        kinds.append("wait")
        values.extend((slot, 1))
        heapq.heappush(free, slot)

    for place in order:
        for earlier in needed[place]:
            if earlier in slot_of:
                wait(earlier)
        kind, amount = part.kinds[place], part.amounts[place]
        if kind == CALC:
            kinds.append("compute")
            values.append(amount * _NANOSECOND)
            continue
        if free:
            slot = heapq.heappop(free)
        else:
            slot, slots = slots, slots + 1
        peer, tag = (ANY if number == ANYONE else number for number in (part.peers[place], part.tags[place]))
        kinds.append("isend" if kind == SEND else "irecv")
        values.extend((peer, amount, tag, slot))
        if kind == SEND and place not in awaited:
            kinds.append("request_free")  # nobody asks when it has left
            values.append(slot)
            heapq.heappush(free, slot)
        else:
            slot_of[place] = slot
    for operation in list(slot_of):
        wait(operation)
    return kinds, values, slots


class _Order:
    """Runs a schedule without a network, to find for each rank an order in which its operations can begin."""

    def __init__(self, schedule: GoalSchedule) -> None:
        self._schedule = schedule
        self._orders: dict[int, list[int]] = {}
        self._ready: list[tuple[int, int, int]] = []  # time, rank, operation
        self._missing: dict[int, list[int]] = {}  # requirements that are not met yet, by operation
        self._after: dict[int, dict[int, list[int]]] = {}  # who requires an operation
        self._following: dict[int, dict[int, list[int]]] = {}
        self._earliest: dict[int, list[int]] = {}
        self._busy: dict[int, int] = defaultdict(int)
        self._posted: dict[int, _Waiting] = defaultdict(_Waiting)
        self._arrived: dict[int, _Waiting] = defaultdict(_Waiting)

    def run(self) -> dict[int, list[int]]:
        for rank, part in self._schedule.by_rank.items():
            self._prepare(rank, part)
        while self._ready:
            time, rank, operation = heapq.heappop(self._ready)
            self._begin(time, rank, operation)
        for rank, part in self._schedule.by_rank.items():
            self._rest(rank, part)
        return self._orders

    def _prepare(self, rank: int, part: GoalRank) -> None:
        count = len(part.kinds)
        missing = [0] * count
        after, following = defaultdict(list), defaultdict(list)
        for later, earlier in part.requires:
            missing[later] += 1
            after[earlier].append(later)
        for later, earlier in part.follows:
            missing[later] += 1
            following[earlier].append(later)
        _check_no_circle(rank, part, self._schedule.name)
        self._missing[rank], self._after[rank], self._following[rank] = missing, after, following
        self._earliest[rank] = [0] * count
        self._orders[rank] = []
        for operation in range(count):
            if not missing[operation]:
                heapq.heappush(self._ready, (0, rank, operation))

    def _begin(self, time: int, rank: int, operation: int) -> None:
        part = self._schedule.by_rank[rank]
        begin = max(time, self._busy[rank])
        self._orders[rank].append(operation)
        self._release(rank, self._following[rank].get(operation, ()), begin)
        kind = part.kinds[operation]
        if kind == CALC:
            self._busy[rank] = begin + part.amounts[operation]
            self._end(rank, operation, self._busy[rank])
        elif kind == SEND:
            self._end(rank, operation, begin)
            self._send(rank, part.peers[operation], part.tags[operation], begin)
        else:
            found = self._arrived[rank].take(part.peers[operation], part.tags[operation])
            if found is not None:
                self._end(rank, operation, max(begin, found))
            else:
                self._posted[rank].put(part.peers[operation], part.tags[operation], operation)

    def _send(self, source: int, rank: int, tag: int, time: int) -> None:
        operation = self._posted[rank].take_for(source, tag)
        if operation is None:
            self._arrived[rank].put(source, tag, time)
        else:
            self._end(rank, operation, time)

    def _end(self, rank: int, operation: int, time: int) -> None:
        self._release(rank, self._after[rank].get(operation, ()), time)

    def _release(self, rank: int, operations: list[int] | tuple[()], time: int) -> None:
        missing, earliest = self._missing[rank], self._earliest[rank]
        for operation in operations:
            earliest[operation] = max(earliest[operation], time)
            missing[operation] -= 1
            if not missing[operation]:
                heapq.heappush(self._ready, (earliest[operation], rank, operation))

    def _rest(self, rank: int, part: GoalRank) -> None:
        """What is never ready, because a message is missing, comes last: the run will say who waits for whom."""
        done = set(self._orders[rank])
        if len(done) < len(part.kinds):
            self._orders[rank] += _topological([n for n in range(len(part.kinds)) if n not in done], part)


class _Waiting:
    """Messages or receives of one rank that wait for each other, in their order, by source and tag."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, int], deque[tuple[int, int]]] = {}
        self._count = 0

    def put(self, source: int, tag: int, value: int) -> None:
        self._queues.setdefault((source, tag), deque()).append((self._count, value))
        self._count += 1

    def take(self, source: int, tag: int) -> int | None:
        """The first that a receive with these (or any) takes."""
        if source != ANYONE and tag != ANYONE:
            return self._first([(source, tag)])
        keys = [key for key in self._queues if source in (ANYONE, key[0]) and tag in (ANYONE, key[1])]
        return self._first(keys)

    def take_for(self, source: int, tag: int) -> int | None:
        """The first receive that takes a message with these."""
        return self._first([(source, tag), (ANYONE, tag), (source, ANYONE), (ANYONE, ANYONE)])

    def _first(self, keys: list[tuple[int, int]]) -> int | None:
        found = [(self._queues[key][0], key) for key in keys if self._queues.get(key)]
        if not found:
            return None
        (_, value), key = min(found)
        queue = self._queues[key]
        queue.popleft()
        if not queue:
            del self._queues[key]
        return value


def _topological(left: list[int], part: GoalRank) -> list[int]:
    """Operations in an order in which what they require comes before them."""
    wanted = set(left)
    missing = dict.fromkeys(left, 0)
    after: dict[int, list[int]] = defaultdict(list)
    for later, earlier in (*part.requires, *part.follows):
        if later in wanted and earlier in wanted:
            missing[later] += 1
            after[earlier].append(later)
    ready = [operation for operation in left if not missing[operation]]
    heapq.heapify(ready)
    order = []
    while ready:
        operation = heapq.heappop(ready)
        order.append(operation)
        for later in after[operation]:
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, later)
    return order


def _check_no_circle(rank: int, part: GoalRank, name: str) -> None:
    order = set(_topological(list(range(len(part.kinds))), part))
    stuck = next((place for place in range(len(part.kinds)) if place not in order), None)
    if stuck is not None:
        raise InputError(
            f"{name}: rank {rank}: operations require each other in a circle, among them number {stuck + 1} "
            f"({part.kinds[stuck]})"
        )
