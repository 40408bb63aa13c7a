# SPDX-License-Identifier: Apache-2.0
"""Drives one `memory.dram` with requests at given times, and sees what comes back when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyscale import Component, Port, Result, System, Timer, _core
from manyscale.machine.dram import dram_standard

# memory::Op, in its order, and memory::Flag
READ, WRITE, ATOMIC, DATA, WRITE_ACK = 0, 1, 2, 8, 9
WANTS_ACK = 1


class Requester(Component):
    """Sends a script of (time, message) pairs and notes the answers."""

    memory = Port("memory", "requester", "responder", doc="the channel")
    clock_work = Timer()
    script: list[tuple[int, dict[str, int]]] = []

    def start(self):
        self.answers = []
        for time, message in self.script:
            self.clock_work.after(time, message)

    @clock_work
    def ask(self, message):
        self.memory.send(message)

    @memory
    def answered(self, message, lane):
        self.answers.append((self.now, message))


@dataclass
class Outcome:
    """What a script brought about."""

    answers: list[tuple[int, dict[str, int]]]  # in the order of arrival
    result: Result
    commands: list[tuple[int, str, int, int, int, int, int]]

    def at(self, address: int) -> int:
        """When the only answer for an address came."""
        (time,) = [time for time, message in self.answers if message["address"] == address]
        return time

    def stat(self, name: str) -> int | float:
        return self.result.value("dram", name)

    def cycles(self, *names: str) -> list[int]:
        """The cycles of all commands of those names."""
        return [entry[0] for entry in self.commands if entry[1] in names]


def read(address: int, sectors: int = 1, **fields: int) -> dict[str, int]:
    return {"op": READ, "address": address, "sectors": sectors, **fields}


def write(address: int, sectors: int = 1, **fields: int) -> dict[str, int]:
    return {"op": WRITE, "address": address, "sectors": sectors, **fields}


def drive(script: list[tuple[int, dict[str, int]]], until: str | None = None, **parameters: Any) -> Outcome:
    """Runs a script against a channel with those parameters."""
    system = System("dram")
    dram = system.add("memory.dram", "dram", log_commands=True, **parameters)
    requester = system.add(Requester, "requester")
    requester.script = script
    system.connect(requester.memory, dram.requests, "0fs")
    result = system.run(until=until)
    return Outcome(requester.answers, result, _core.dram_commands(dram.native))


def base_parameters(name: str, **changes: Any) -> dict[str, Any]:
    """A standard's parameters as whole numbers in base units, for closed forms and for `dram_exercise`."""
    return {**dram_standard(name).channel.model_dump(), **changes}


def period(parameters: dict[str, Any]) -> int:
    """Femtoseconds of a cycle, rounded as the core does."""
    hertz = int(parameters["clock"])
    return (10**15 + hertz // 2) // hertz
