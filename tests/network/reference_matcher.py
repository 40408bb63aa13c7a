# SPDX-License-Identifier: Apache-2.0
"""A simple model of MPI's point-to-point semantics, without time, to compare the simulator with.

Ranks take turns; a message is there at once, in plain lists that are searched from the front. What comes out is right
for programs whose result does not depend on timing: those in which every receive names its source, or in which only
one rank can send to it at the time. Calls are those of mpi_programs.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mpi_programs import ANY, Call

_BLOCKING_SENDS = ("send", "ssend")


@dataclass
class _Message:
    source: int
    tag: int
    comm: int
    number: int
    waits: bool  # its sender waits until it is received
    received: bool = False


@dataclass
class _Receive:
    source: int
    tag: int
    comm: int
    call: int
    message: _Message | None = None

    def fits(self, message: _Message) -> bool:
        return (
            self.comm == message.comm
            and self.source in (ANY, message.source)
            and self.tag in (ANY, message.tag)
        )


@dataclass
class _Rank:
    calls: list[Call]
    at: int = 0
    sent: int = 0
    posted: list[_Receive] = field(default_factory=list)
    unexpected: list[_Message] = field(default_factory=list)
    slots: dict[int, _Message | _Receive] = field(default_factory=dict)
    begun: list[_Message | _Receive] = field(default_factory=list)  # of the current blocking call
    matched: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # call: (source, tag, number)


def _complete(request: _Message | _Receive) -> bool:
    if isinstance(request, _Message):
        return request.received or not request.waits
    return request.message is not None


class Matcher:
    """Runs the calls of all ranks; `matched[rank][call]` is (source, tag, number of the message at its source).

    `groups[comm][rank]` lists the members of the group of that communicator to which a rank belongs.
    `eager_limit` is the size above which a send waits for its receive.
    """

    def __init__(self, calls: list[list[Call]], groups: list[list[list[int]]], eager_limit: int) -> None:
        self._ranks = [_Rank(own) for own in calls]
        self._groups = groups
        self._limit = eager_limit
        moved = True
        while moved:
            moved = False
            for number in range(len(calls)):
                moved |= self._step(number)

    @property
    def matched(self) -> list[dict[int, tuple[int, int, int]]]:
        return [rank.matched for rank in self._ranks]

    @property
    def stuck(self) -> dict[int, int]:
        """The ranks that did not come to their end, and the call in which they are."""
        return {n: rank.at for n, rank in enumerate(self._ranks) if rank.at < len(rank.calls)}

    def _step(self, number: int) -> bool:
        """Lets a rank go on as far as it can; whether it did."""
        rank, moved = self._ranks[number], False
        while rank.at < len(rank.calls) and self._call(number, rank, rank.calls[rank.at]):
            rank.at += 1
            rank.begun = []
            moved = True
        return moved

    def _call(self, number: int, rank: _Rank, call: Call) -> bool:
        comm = 0
        if isinstance(call[-1], dict):
            comm, call = call[-1]["comm"], call[:-1]
        name = call[0]
        if name in _BLOCKING_SENDS:
            rank.begun = rank.begun or [self._send(number, comm, *call[1:], synchronous=name == "ssend")]
        elif name == "recv":
            rank.begun = rank.begun or [self._receive(number, comm, *call[1:])]
        elif name == "sendrecv":
            rank.begun = rank.begun or [
                self._receive(number, comm, *call[4:]),
                self._send(number, comm, *call[1:4], synchronous=False),
            ]
        elif name in ("isend", "issend"):
            rank.slots[call[1]] = self._send(number, comm, *call[2:], synchronous=name == "issend")
        elif name == "irecv":
            rank.slots[call[1]] = self._receive(number, comm, *call[2:])
        elif name == "wait":
            return self._wait(rank, call[1], 1)
        elif name == "waitall":
            return self._wait(rank, call[1], call[2])
        elif name == "barrier":
            return self._barrier(rank)
        return all(map(_complete, rank.begun))

    def _send(self, number: int, comm: int, to: int, tag: int, size: int, *, synchronous: bool) -> _Message:
        rank = self._ranks[number]
        message = _Message(number, tag, comm, rank.sent, synchronous or size > self._limit)
        rank.sent += 1
        target = self._ranks[self._groups[comm][number][to]]
        for receive in target.posted:
            if receive.fits(message):
                target.posted.remove(receive)
                self._match(target, receive, message)
                return message
        target.unexpected.append(message)
        return message

    def _receive(self, number: int, comm: int, source: int, tag: int) -> _Receive:
        rank = self._ranks[number]
        world = source if source == ANY else self._groups[comm][number][source]
        receive = _Receive(world, tag, comm, rank.at)
        for message in rank.unexpected:
            if receive.fits(message):
                rank.unexpected.remove(message)
                self._match(rank, receive, message)
                return receive
        rank.posted.append(receive)
        return receive

    def _match(self, rank: _Rank, receive: _Receive, message: _Message) -> None:
        receive.message = message
        message.received = True
        rank.matched[receive.call] = (message.source, message.tag, message.number)

    def _wait(self, rank: _Rank, first: int, count: int) -> bool:
        slots = [slot for slot in range(first, first + count) if slot in rank.slots]
        if not all(_complete(rank.slots[slot]) for slot in slots):
            return False
        for slot in slots:
            del rank.slots[slot]
        return True

    def _barrier(self, rank: _Rank) -> bool:
        occurrence = sum(call[0] == "barrier" for call in rank.calls[: rank.at])
        return all(self._reached(other, occurrence) for other in self._ranks)

    @staticmethod
    def _reached(rank: _Rank, occurrence: int) -> bool:
        barriers = [index for index, call in enumerate(rank.calls) if call[0] == "barrier"]
        return rank.at >= barriers[occurrence]


def violations(calls: list[list[Call]], matched: list[dict[int, tuple[int, int, int]]]) -> list[str]:
    """What contradicts MPI's order in the outcome of a program in which ranks only send and receive in the world.

    For each receive: its message fits it; no message is received twice; and no earlier message of the same source that
    fits it too was left for a later receive or for none (messages do not overtake each other).
    """
    found = []
    sends = [[call[-3:] for call in own if call[0] in ("send", "ssend", "isend", "issend")] for own in calls]
    for rank, own in enumerate(calls):
        taken: dict[tuple[int, int], int] = {}
        for index, (source, tag, number) in sorted(matched[rank].items()):
            to, sent_tag, _ = sends[source][number]
            wanted_source, wanted_tag = own[index][-2:]
            if (
                to != rank
                or sent_tag != tag
                or wanted_source not in (ANY, source)
                or wanted_tag not in (ANY, tag)
            ):
                found.append(f"rank {rank}, call {index} took a message that does not fit it")
            if (source, number) in taken:
                found.append(f"rank {rank}, call {index} took a message twice")
            taken[source, number] = index
            for earlier in range(number):
                to, sent_tag, _ = sends[source][earlier]
                if (
                    to == rank
                    and wanted_tag in (ANY, sent_tag)
                    and taken.get((source, earlier), index) >= index
                ):
                    found.append(f"rank {rank}, call {index} passed over an earlier message of rank {source}")
    return found


def random_program(random: Any, ranks: int, phases: int, messages: int) -> list[list[Call]]:
    """Calls whose outcome does not depend on timing, with barriers between phases.

    In a phase messages go between random pairs. Receives name their source; or, in phases where each rank receives from
    one rank only, they may take any source. Tags may be wildcards. Sends and receives are blocking or not; receives
    without wildcards may be posted in another order than their messages are sent in.
    """
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    for _ in range(phases):
        single = random.random() < 0.4
        source_of = [random.choice([s for s in range(ranks) if s != r]) for r in range(ranks)]
        used = [0] * ranks
        waiting: list[list[int]] = [[] for _ in range(ranks)]
        for _ in range(messages):
            to = random.randrange(ranks)
            source = source_of[to] if single else random.choice([s for s in range(ranks) if s != to])
            tag, size = random.randrange(3), random.choice([0, 8, 64, 4096, 70000])
            wanted_source = ANY if single and random.random() < 0.5 else source
            wanted_tag = ANY if random.random() < 0.3 else tag
            calls[source].append(_random_send(random, used, waiting, source, to, tag, size))
            if random.random() < 0.6:
                calls[to].append(("irecv", used[to], wanted_source, wanted_tag))
                waiting[to].append(used[to])
                used[to] += 1
            else:
                calls[to].append(("recv", wanted_source, wanted_tag))
            for rank in (source, to):
                if waiting[rank] and random.random() < 0.2:
                    calls[rank].append(("wait", waiting[rank].pop(random.randrange(len(waiting[rank])))))
        for rank in range(ranks):
            calls[rank].append(("waitall", 0, max(used[rank], 1)))
            calls[rank].append(("barrier",))
    return calls


def _random_send(
    random: Any, used: list[int], waiting: list[list[int]], source: int, to: int, tag: int, size: int
) -> Call:
    kind = random.choice(["send", "isend", "isend", "issend"])
    if kind == "send":
        return (kind, to, tag, size)
    slot = used[source]
    used[source] += 1
    waiting[source].append(slot)
    return (kind, slot, to, tag, size)
