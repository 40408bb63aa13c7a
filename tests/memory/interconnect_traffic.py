# SPDX-License-Identifier: Apache-2.0
"""Nodes that send what a test plans to an interconnect and write down what arrives, and what they measure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import manyscale as ms

CYCLE = 1_000_000  # femtoseconds, of the clock of all tests: 1 GHz
READ, WRITE, DATA = 0, 1, 8  # the order of memory::Op


def flits(sectors: int, flit: int) -> int:
    """Of a message that carries so many sectors of 32 bytes besides its header of 8."""
    return -(-(8 + 32 * sectors) // flit)


@dataclass
class Send:
    """A message to send; `sectors` of 0 is one without data."""

    time: int
    source: int
    destination: int
    sectors: int = 0
    number: int = 0


@dataclass
class Arrival:
    """A message that arrived."""

    time: int
    source: int
    destination: int
    number: int


class Requester(ms.Component):
    """Sends its plan and writes down what arrives."""

    port = ms.Port("memory", "requester", "responder", doc="the interconnect")
    op = WRITE

    def start(self) -> None:
        self.log: list[Arrival] = []
        for send in self.plan:
            message = {
                "op": self.op if send.sectors else READ,
                "sectors": (1 << send.sectors) - 1,
                "value": send.number,
                "source": 77,  # the interconnect writes the true one
                "destination": send.destination,
            }
            self.port.send(message, delay=send.time)

    @port
    def take(self, message: dict[str, int], lane: int) -> None:
        self.log.append(Arrival(self.now, message["source"], message["destination"], message["value"]))


class Responder(Requester):
    """The same on the other side."""

    port = ms.Port("memory", "responder", "requester", doc="the interconnect")
    op = DATA

    @port
    def take(self, message: dict[str, int], lane: int) -> None:
        self.log.append(Arrival(self.now, message["source"], message["destination"], message["value"]))


class Traffic:
    """A run of an interconnect under planned traffic."""

    def __init__(
        self,
        model: str,
        nodes: tuple[int, int],
        requests: list[Send],
        responses: list[Send] | None = None,
        *,
        latency: str = "0fs",
        threads: int = 1,
        seed: int = 0,
        **parameters: Any,
    ) -> None:
        system = ms.System(seed=seed)
        net = system.add(model, "net", **{"clock": "1GHz", **parameters})
        self.sent = (requests, responses or [])
        sides: list[list[Requester]] = []
        for kind, port, number, plan in (
            (Requester, net.requesters, nodes[0], requests),
            (Responder, net.responders, nodes[1], responses or []),
        ):
            side = [system.add(kind, f"{kind.__name__.lower()}[{i}]") for i in range(number)]
            for i, node in enumerate(side):
                node.plan = [send for send in plan if send.source == i]
                system.connect(node.port, port, latency)
            sides.append(side)
        self.result = system.run(threads=threads)
        self.requests = [arrival for node in sides[1] for arrival in node.log]
        self.responses = [arrival for node in sides[0] for arrival in node.log]
        self.at_responder = [node.log for node in sides[1]]

    def value(self, statistic: str) -> int | float:
        return self.result.value("net", statistic)

    def latencies(self, direction: int = 0) -> dict[int, int]:
        """By the number of the message, which must be unique."""
        sent = {send.number: send.time for send in self.sent[direction]}
        arrivals = (self.requests, self.responses)[direction]
        assert len(arrivals) == len(sent)
        return {arrival.number: arrival.time - sent[arrival.number] for arrival in arrivals}

    def cycles(self) -> float:
        """From the beginning to the last arrival of a request."""
        return max(arrival.time for arrival in self.requests) / CYCLE

    def overtakings(self) -> int:
        """Requests that arrived after one of the same pair with a higher number."""
        last: dict[tuple[int, int], int] = {}
        count = 0
        for arrival in self.requests:
            pair = (arrival.source, arrival.destination)
            count += arrival.number < last.get(pair, -1)
            last[pair] = max(arrival.number, last.get(pair, -1))
        return count

    def mean_occupancy(self) -> float:
        """Requests in flight, sampled at even intervals from what the nodes saw."""
        sent = sorted(send.time for send in self.sent[0])
        arrived = sorted(arrival.time for arrival in self.requests)
        samples, into, out = 0, 0, 0
        times = range(0, arrived[-1], max(1, arrived[-1] // 20_000))
        for time in times:
            while into < len(sent) and sent[into] <= time:
                into += 1
            while out < len(arrived) and arrived[out] <= time:
                out += 1
            samples += into - out
        return samples / len(times)


def each_pair(sources: int, destinations: int, sectors: int, offset: int = 0) -> list[Send]:
    """A message for each pair, so far apart that none meets another."""
    return [
        Send(offset + 1000 * CYCLE * (s * destinations + d), s, d, sectors, s * destinations + d)
        for s in range(sources)
        for d in range(destinations)
    ]


def burst(sources: int, rounds: int, destination: Any, sectors: int = 0, every: int = 0) -> list[Send]:
    """So many messages from each source, `every` so many cycles; `destination` of (source, round)."""
    return [
        Send(k * every * CYCLE, s, destination(s, k), sectors, k)
        for k in range(rounds)
        for s in range(sources)
    ]


def permutations(nodes: int, rounds: int, seed: int = 1) -> Any:
    """Uniform traffic in which each destination gets as much as any other: a random permutation a round."""
    draw = random.Random(seed)
    table = [draw.sample(range(nodes), nodes) for _ in range(rounds)]
    return lambda source, k: table[k][source]


def random_sends(seed: int, sources: int, destinations: int, count: int, mean_cycles: float) -> list[Send]:
    """From each source, at random intervals, to random destinations, of random sizes."""
    draw = random.Random(seed)
    sends = []
    for source in range(sources):
        time = 0.0
        for number in range(count):
            time += draw.expovariate(1 / mean_cycles) * CYCLE
            sends.append(
                Send(int(time), source, draw.randrange(destinations), draw.choice([0, 1, 4]), number)
            )
    return sends
