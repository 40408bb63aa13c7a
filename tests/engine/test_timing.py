# SPDX-License-Identifier: Apache-2.0
"""Events arrive exactly when links, clocks and timers say: not a femtosecond earlier or later."""

from __future__ import annotations

from typing import ClassVar

import pytest

import manyscale as ms
from systems import make_phold, make_ring


class Probe(ms.Component):
    """Sends what it is told and remembers when things arrive."""

    plan: ClassVar[list[tuple[str, str | int, int]]] = []

    port = ms.Port("probe", doc="the other probe")
    alarm = ms.Timer()

    def start(self) -> None:
        self.seen: list[tuple[int, object]] = []
        for message, delay, priority in self.plan if self.name == "a" else []:
            self.port.send(message, delay=delay, priority=priority)

    @port
    def receive(self, message: object, lane: int) -> None:
        self.seen.append((self.now, message))

    @alarm
    def ring(self, payload: object) -> None:
        self.seen.append((self.now, payload))


def pair(latency: str, plan: list[tuple[str, str | int, int]]) -> tuple[ms.System, Probe, Probe]:
    system = ms.System("pair")
    probe = type("Probe", (Probe,), {"plan": plan})
    a, b = system.add(probe, "a"), system.add(probe, "b")
    system.connect(a.port, b.port, latency)
    return system, a, b


@pytest.mark.parametrize("threads", [1, 2])
def test_a_message_takes_latency_and_delay(threads: int) -> None:
    system, _, b = pair("750ps", [("plain", 0, 128), ("late", "20fs", 128)])
    system.run(threads=threads)
    assert b.seen == [(750_000, "plain"), (750_020, "late")]


def test_messages_that_meet_are_taken_by_priority_then_in_the_order_sent() -> None:
    system, _, b = pair("1ns", [("second", 0, 128), ("third", 0, 128), ("first", 0, 5), ("last", 0, 255)])
    system.run()
    assert [message for _, message in b.seen] == ["first", "second", "third", "last"]


def test_of_sources_that_meet_the_first_added_goes_first() -> None:
    class Sink(ms.Component):
        """Remembers the lanes."""

        port = ms.Port("probe", doc="many probes", links="many")

        def start(self) -> None:
            self.lanes: list[int] = []

        @port
        def receive(self, message: object, lane: int) -> None:
            self.lanes.append(lane)

    system = ms.System("fan in")
    probe = type("Probe", (Probe,), {"plan": [("x", 0, 128)], "name": "a"})
    sources = [system.add(probe, f"s[{i}]") for i in range(4)]
    for source in sources:
        source.start = lambda source=source: source.port.send("x")
    sink = system.add(Sink, "sink")
    for source in reversed(sources):
        system.connect(source.port, sink.port, "1ns")
    system.run(threads=2)
    assert sink.lanes == [3, 2, 1, 0]


def test_a_limit_includes_its_own_moment() -> None:
    system, _, b = pair("1ns", [("x", 0, 128)])
    assert system.run(until="999999fs").outcome == "limit"
    assert b.seen == []
    assert system.run(until="1ns").outcome == "finished"
    assert b.seen == [(1_000_000, "x")]


def test_one_token_round_a_ring_takes_hops_times_link_and_clock() -> None:
    """A hop is the link (2 ns) and the wait for the next edge: arrivals on an edge are passed on at that edge.

    So with 1 GHz and 2 ns links a token makes h hops in exactly h x 2 ns.
    """
    system = make_ring(stages=5, tokens=0, hops=0)
    ring = ms.System("one token")
    relays = [ring.add("synthetic.relay", f"s[{i}]", tokens=1 if i == 0 else 0, hops=50) for i in range(5)]
    for i in range(5):
        ring.connect(relays[i].output, relays[(i + 1) % 5].input, "2ns")
    result = ring.run(threads=2)
    assert result.value("s[0]", "retired") == 1
    # Nothing leaves before the first credit, which takes one link: 2 ns.
    assert result.value("s[0]", "age.max") == 2_000_000 + 50 * 2_000_000
    assert system.run().events == 5  # nothing but the first credits


def test_an_edge_is_waited_for() -> None:
    """Links of 2.3 ns and a 1 GHz clock: each hop ends at the next edge, 3 ns later."""
    system = make_ring(stages=1, tokens=0)
    line = ms.System("line")
    first = line.add("synthetic.relay", "first", tokens=1, hops=1)
    last = line.add("synthetic.relay", "last")
    line.connect(first.output, last.input, "2300ps")
    result = line.run()
    # Credit at 2.3 ns, passed on at 3 ns, arrives at 5.3 ns, retired at 6 ns.
    assert result.value("last", "age.max") == 6_000_000
    assert system.run().outcome == "finished"


def test_a_sleeping_clock_costs_no_events() -> None:
    """A token in flight for a millisecond between two idle relays: as many events as with a nanosecond."""
    short = make_ring(stages=2, tokens=1, hops=10, latency="1ns").run()
    long = make_ring(stages=2, tokens=1, hops=10, latency="1ms").run()
    assert long.events == short.events


def test_throughput_is_one_token_a_cycle_when_credits_suffice() -> None:
    """With S slots and a round trip R of 4 cycles (token there, credit back), S >= 4 gives 1 a cycle and S < 4
    gives S per R: the time for n tokens is n x max(1, R / S) cycles and a constant."""
    times = {}
    for slots in (1, 2, 4, 8):
        line = ms.System("line")
        first = line.add("synthetic.relay", "first", tokens=1000, hops=1)
        last = line.add("synthetic.relay", "last", slots=slots)
        line.connect(first.output, last.input, "2ns")
        times[slots] = line.run().now / 10**6
    for slots, cycles in times.items():
        assert cycles == pytest.approx(1000 * max(1, 4 / slots), abs=8), times


class Ticker(ms.Component):
    """Ticks every `step` cycles."""

    class Spec(ms.Spec):
        """How it ticks."""

        clock: ms.Frequency = ms.parameter("1312MHz", doc="its clock")
        step: ms.Cycles = ms.parameter(3, doc="cycles between ticks")

    beat = ms.Clock("clock")

    def start(self) -> None:
        self.ticks: list[tuple[int, int]] = []
        self.beat.wake_at(2)
        self.beat.wake_at(1)

    @beat
    def tick(self, cycle: int) -> int | None:
        self.ticks.append((cycle, self.now))
        return cycle + self.spec.step if cycle < 10 else None


def test_ticks_come_at_the_edges_asked_for() -> None:
    """1312 MHz has a period of 762,195 fs; an earlier wake replaces a later one."""
    system = ms.System()
    ticker = system.add(Ticker, "t")
    system.run()
    assert ticker.ticks == [(cycle, cycle * 762_195) for cycle in (1, 4, 7, 10)]


def test_a_tick_that_wants_the_past_is_refused() -> None:
    system = ms.System()
    system.add(Ticker, "t", step=0)
    with pytest.raises(ms.InputError, match="a tick at cycle 1 wants its next at 1, which is not later"):
        system.run()


@pytest.mark.parametrize("delay", [-1, -(10**6)])
def test_sending_into_the_past_is_refused(delay: int) -> None:
    system, _, _ = pair("1ns", [("x", delay, 128)])
    with pytest.raises(ms.ManyscaleError, match=r"a\.port sends with a negative delay"):
        system.run()


def test_sending_beyond_the_end_of_time_is_refused() -> None:
    system, _, _ = pair("1ns", [("x", 2**63 - 1, 128)])
    with pytest.raises(ms.ManyscaleError, match="beyond the end of time"):
        system.run()


def test_many_events_in_one_run_are_counted() -> None:
    result = make_phold().run(until="1us")
    received = sum(result.value(f"node[{i}]", "received") for i in range(12))
    assert result.events == received
    assert result.headline["pending_events"]["value"] == 12 * 20
