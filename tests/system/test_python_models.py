# SPDX-License-Identifier: Apache-2.0
"""Models written in Python: parameters, ports, events, clocks, statistics; and talking to models of the core."""

from __future__ import annotations

import gc
import weakref

import pytest

import manyscale as ms


class Source(ms.Component):
    """Makes tokens for a relay of the core, as its credits allow."""

    class Spec(ms.Spec):
        """How many."""

        tokens: ms.Count = ms.parameter(5, doc="tokens to make", minimum=0)

    output = ms.Port("token", "producer", "consumer", doc="where tokens go")
    credits = ms.Gauge("token", "credits left")
    sent = ms.Counter("token", "tokens sent")

    @output
    def refill(self, credit: dict[str, int], lane: int) -> None:
        for _ in range(credit["slots"]):
            if self.sent.value < self.spec.tokens:
                self.sent.add()
                self.output.send({"hops_left": 0, "born": self.now})
        self.credits.set(credit["slots"])


class Sink(ms.Component):
    """Takes tokens from a relay of the core and gives their slots back."""

    input = ms.Port("token", "consumer", "producer", doc="where tokens come from")
    age = ms.Histogram("fs", "age of the tokens")
    arrivals = ms.Series("token", "arrivals over time")

    def start(self) -> None:
        self.input.send({"slots": 2})

    @input
    def take(self, token: dict[str, int], lane: int) -> None:
        assert token["hops_left"] >= 0
        self.age.record(self.now - token["born"])
        self.arrivals.add(self.now, 1)
        self.input.send({"slots": 1}, delay="1ns")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_python_model_speaks_a_protocol_of_the_core(threads: int) -> None:
    system = ms.System()
    source, relay = system.add(Source, "source", tokens=9), system.add("synthetic.relay", "relay")
    system.connect(source.output, relay.input, "2ns")
    result = system.run(threads=threads)
    assert result.value("source", "sent") == 9
    assert result.value("relay", "retired") == 9


def test_a_python_sink_limits_a_relay_of_the_core() -> None:
    system = ms.System()
    relay, sink = system.add("synthetic.relay", "relay", tokens=10, hops=1), system.add(Sink, "sink")
    system.connect(relay.output, sink.input, "1ns")
    result = system.run(threads=2)
    assert result.value("sink", "age.count") == 10
    # Two slots per round trip of 3 ns (token, the sink's 1 ns, credit): 10 tokens take about 5 trips.
    assert result.now == pytest.approx(5 * 3_000_000, abs=3_000_000)


def test_a_message_of_the_core_is_a_dictionary_of_its_fields() -> None:
    class Wrong(Source):
        """Sends what a relay cannot take."""

        @Source.output
        def refill(self, credit: dict[str, int], lane: int) -> None:
            self.output.send("a string")

    system = ms.System()
    wrong, relay = system.add(Wrong, "wrong"), system.add("synthetic.relay", "relay")
    system.connect(wrong.output, relay.input, "2ns")
    with pytest.raises(ms.InputError, match="send a dictionary of its fields, not 'a string'"):
        system.run()


def test_an_unknown_field_is_named() -> None:
    class Wrong(Source):
        """Misspells a field."""

        @Source.output
        def refill(self, credit: dict[str, int], lane: int) -> None:
            self.output.send({"hop_left": 3})

    system = ms.System()
    wrong, relay = system.add(Wrong, "wrong"), system.add("synthetic.relay", "relay")
    system.connect(wrong.output, relay.input, "2ns")
    with pytest.raises(
        ms.ManyscaleError, match=r"wrong\.output sends .* 'hop_left'; its fields are hops_left, born"
    ):
        system.run()


def test_an_event_without_a_method_is_an_error_that_says_which() -> None:
    class Deaf(ms.Component):
        """Marks no method."""

        alarm = ms.Timer()

        def start(self) -> None:
            self.alarm.after("1ns")

    system = ms.System()
    system.add(Deaf, "deaf")
    with pytest.raises(ms.InputError, match=r"deaf\.alarm got an event but Deaf has no method marked @alarm"):
        system.run()


def test_a_link_that_is_not_there_is_an_error() -> None:
    class Eager(ms.Component):
        """Sends on lane 3."""

        port = ms.Port("x", doc="x", links="many")

        def start(self) -> None:
            self.port.send("x", lane=3)

        @port
        def receive(self, message: object, lane: int) -> None: ...

    system = ms.System()
    a, b = system.add(Eager, "a"), system.add(Eager, "b")
    system.connect(a.port, b.port, "1ns")
    with pytest.raises((ms.ManyscaleError, IndexError)):
        system.run()


def test_random_numbers_depend_on_seed_and_name_alone() -> None:
    class Dice(ms.Component):
        """Throws once."""

        throw = ms.Gauge("1", "the throw")

        def start(self) -> None:
            self.throw.set(self.random.below(1000))

    def throws(names: list[str], seed: int) -> dict[str, float]:
        system = ms.System(seed=seed)
        for name in names:
            system.add(Dice, name)
        result = system.run()
        return {name: result.value(name, "throw") for name in names}

    assert throws(["a", "b"], 1) == throws(["b", "a"], 1)
    assert throws(["a", "b"], 1) != throws(["a", "b"], 2)


def test_statistics_need_a_unit_and_a_description() -> None:
    with pytest.raises(ms.InputError, match="needs a unit"):
        ms.Counter("", "something")


def test_systems_with_python_models_are_freed() -> None:
    system = ms.System()
    source = system.add(Source, "source")
    relay = system.add("synthetic.relay", "relay")
    system.connect(source.output, relay.input, "2ns")
    system.run()
    watch = weakref.ref(source)
    del system, source, relay
    gc.collect()
    assert watch() is None
