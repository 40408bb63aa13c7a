# SPDX-License-Identifier: Apache-2.0
"""Runs a program without time or network: who waits for whom for ever, and which messages were delivered."""

from collections import Counter
from dataclasses import dataclass, field

from manyscale.network import ANY, NOBODY, Program
from manyscale.network.program import COLLECTIVES, Step


@dataclass
class Rank:
    steps: object
    current: Step | None = None
    posted: bool = False  # whether the message of the current step is in flight
    active: dict = field(default_factory=dict)  # request slot -> [done]
    called: Counter = field(default_factory=Counter)  # collectives, by communicator


class Untimed:
    """Sends are buffered, or (synchronous) done only when received."""

    def __init__(self, program: Program, synchronous: bool = False):
        self.program = program
        self.synchronous = synchronous
        self.ranks = [Rank(program.steps(rank)) for rank in range(program.ranks)]
        self.messages = [
            [] for _ in range(program.ranks)
        ]  # waiting at the receiver: (source, tag, comm, flag)
        self.receives = [[] for _ in range(program.ranks)]
        self.delivered = Counter()
        self.waiting = Counter()  # ranks that have come to the n-th collective of a group
        self.groups = {}

    def run(self) -> list[tuple[int, Step]]:
        """Ranks that can never go on, with the step at which they stand; empty if all came to their end."""
        moved = True
        while moved:
            moved = False
            for number in range(len(self.ranks)):
                moved |= self._advance(number)
        return [(number, rank.current) for number, rank in enumerate(self.ranks) if rank.current is not None]

    def _advance(self, number: int) -> bool:
        rank = self.ranks[number]
        moved = False
        while True:
            if rank.current is None:
                rank.current = next(rank.steps, None)
                rank.posted = False
                if rank.current is None:
                    return moved
            if not self._done(number, rank, rank.current):
                return moved
            rank.current = None
            moved = True

    def _done(self, number: int, rank: Rank, step: Step) -> bool:
        kind = step.kind
        if kind in ("compute", "draw", "request_free"):
            return True
        if kind in COLLECTIVES:
            return self._collective(number, rank, step)
        if kind in ("wait", "waitall"):
            slots = range(step["request"], step["request"] + step["count"])
            if all(rank.active.get(slot, [True])[0] for slot in slots):
                for slot in slots:
                    rank.active.pop(slot, None)
                return True
            return False
        if kind in ("isend", "irecv"):
            assert step["request"] not in rank.active or rank.active[step["request"]][0], "slot is taken"
            rank.active[step["request"]] = self._post(number, step, kind == "isend")
            return True
        assert kind in ("send", "recv"), kind
        if not rank.posted:
            rank.flag = self._post(number, step, kind == "send")
            rank.posted = True
        return rank.flag[0]

    def _post(self, number: int, step: Step, send: bool) -> list[bool]:
        if step["peer"] == NOBODY:
            return [True]
        if send:
            members = self._members(number, step.communicator)
            target = members[step["peer"]]
            own = members.index(number)
            message = (own, step["tag"], step.communicator, [not self.synchronous], number)
            for index, (source, tag, communicator, flag) in enumerate(self.receives[target]):
                if communicator == step.communicator and source in (ANY, own) and tag in (ANY, step["tag"]):
                    del self.receives[target][index]
                    flag[0] = message[3][0] = True
                    self.delivered[number, target] += 1
                    return message[3]
            self.messages[target].append(message)
            return message[3]
        for index, (source, tag, communicator, flag, world) in enumerate(self.messages[number]):
            if (
                communicator == step.communicator
                and step["peer"] in (ANY, source)
                and step["tag"] in (ANY, tag)
            ):
                del self.messages[number][index]
                flag[0] = True
                self.delivered[world, number] += 1
                return [True]
        entry = (step["peer"], step["tag"], step.communicator, [False])
        self.receives[number].append(entry)
        return entry[3]

    def _collective(self, number: int, rank: Rank, step: Step) -> bool:
        members = self._members(number, step.communicator)
        key = (step.communicator, members[0], rank.called[step.communicator])
        if not rank.posted:
            rank.posted = True
            self.waiting[key] += 1
        if self.waiting[key] < len(members):
            return False
        rank.called[step.communicator] += 1
        return True

    def _members(self, number: int, communicator: int) -> list[int]:
        if communicator == 0:
            return self.groups.setdefault(0, list(range(self.program.ranks)))
        if (communicator, number) not in self.groups:
            members = self.program.groups[communicator].members(number, self.program.ranks).tolist()
            for member in members:
                self.groups[communicator, member] = members
        return self.groups[communicator, number]
