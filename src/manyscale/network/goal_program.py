# SPDX-License-Identifier: Apache-2.0
"""GOAL schedules as programs: operations without an order, each of which begins as soon as it can."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from manyscale.errors import InputError
from manyscale.network.columns import IntArray
from manyscale.network.goal import ANYONE, CALC, RECV, SEND, GoalRank, GoalSchedule
from manyscale.network.program import ANY, Dependencies, Operation, Program
from manyscale.network.shared import Shared
from manyscale.network.skeleton import Structure, fold

_NANOSECOND = 10**6  # femtoseconds
_KINDS = {CALC: "compute", SEND: "send", RECV: "recv"}
_OPERANDS = {"compute": ("time",), "send": ("peer", "bytes", "tag"), "recv": ("peer", "bytes", "tag")}
_Pairs = Sequence[tuple[int, int]]


def program_of(schedule: GoalSchedule) -> Program:
    """The program that runs a schedule; ranks with the same operations and requirements share them."""
    structures: dict[tuple[object, ...], Structure] = {}
    ended: list[IntArray] = []
    begun: list[IntArray] = []
    first = 0
    idle = GoalRank()
    for rank in range(schedule.ranks):
        part = schedule.by_rank.get(rank, idle)
        key = (tuple(part.kinds), tuple(part.requires), tuple(part.follows))
        if key not in structures:
            _check_no_circle(rank, part, schedule.name)
            kinds = [_KINDS[kind] for kind in part.kinds]
            structures[key] = Structure(
                [Operation(kind, dict.fromkeys(_OPERANDS[kind], 0)) for kind in kinds]
            )
            ended.append(_moved(part.requires, first))
            begun.append(_moved(part.follows, first))
            first += len(kinds) + 1
        structures[key].add(rank, _values(part))
    dependencies = Dependencies(np.concatenate(ended), np.concatenate(begun))
    return fold(Shared(schedule.ranks), list(structures.values()), 0, schedule.name, dependencies)


def _moved(pairs: _Pairs, first: int) -> IntArray:
    """Pairs of operations of a rank as pairs of the program's."""
    return np.array(pairs, np.int64).reshape(-1, 2) + first


def _values(part: GoalRank) -> list[int]:
    """The values of all operands of a rank's operations."""
    values: list[int] = []
    for kind, amount, peer, tag in zip(part.kinds, part.amounts, part.peers, part.tags, strict=True):
        if kind == CALC:
            values.append(amount * _NANOSECOND)
        else:
            values += (ANY if peer == ANYONE else peer, amount, ANY if tag == ANYONE else tag)
    return values


def _check_no_circle(rank: int, part: GoalRank, name: str) -> None:
    """Refuses operations that require each other."""
    missing = [0] * len(part.kinds)
    after: list[list[int]] = [[] for _ in part.kinds]
    for later, earlier in (*part.requires, *part.follows):
        missing[later] += 1
        after[earlier].append(later)
    ready = deque(operation for operation, count in enumerate(missing) if not count)
    while ready:
        for later in after[ready.popleft()]:
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    stuck = next((index for index, count in enumerate(missing) if count), None)
    if stuck is not None:
        raise InputError(
            f"{name}: rank {rank}: operations require each other in a circle, among them number {stuck + 1} "
            f"({part.kinds[stuck]})"
        )
