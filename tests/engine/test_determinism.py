# SPDX-License-Identifier: Apache-2.0
"""The same statistics, to the bit, on any number of threads and with any queue."""

from __future__ import annotations

import random

import pytest

from manyscale import Result, System
from systems import make_phold

pytestmark = pytest.mark.parallel


def random_graph(seed: int) -> System:
    """Relays in random pairs of rings and PHOLD nodes with links of random latencies, some of them zero."""
    draw = random.Random(seed)
    system = System(f"random {seed}", seed=seed)
    nodes = [
        system.add("synthetic.phold", f"node[{i}]", jobs=draw.randint(1, 9), mean_delay="2ns", remote=0.8)
        for i in range(20)
    ]
    for i, node in enumerate(nodes):
        for _ in range(draw.randint(1, 3)):
            latency = draw.choice(["0fs", "100ps", "750ps", "750ps", "3ns", "7ns"])
            system.connect(node.peers, nodes[draw.choice([j for j in range(20) if j != i])].peers, latency)
    for ring in range(3):
        relays = [
            system.add(
                "synthetic.relay",
                f"ring[{ring}].stage[{i}]",
                tokens=draw.randint(1, 3),
                hops=draw.randint(50, 400),
                clock=draw.choice(["1312MHz", "877MHz", "2.4GHz"]),
            )
            for i in range(6)
        ]
        for i, relay in enumerate(relays):
            system.connect(relay.output, relays[(i + 1) % 6].input, draw.choice(["500ps", "1ns", "4ns"]))
    return system


def table(result: Result) -> dict[str, list[object]]:
    return result.columns


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_phold_is_the_same_on_any_number_of_threads(threads: int) -> None:
    one = make_phold().run(until="2us")
    many = make_phold().run(until="2us", threads=threads)
    assert many.threads == threads
    assert (many.events, many.now, many.headline["windows"]) == (one.events, one.now, one.headline["windows"])
    assert table(many) == table(one)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_graph_is_the_same_on_any_number_of_threads(seed: int) -> None:
    one = random_graph(seed).run(until="500ns")
    for threads in (2, 4):
        many = random_graph(seed).run(until="500ns", threads=threads)
        assert table(many) == table(one)
        assert many.events == one.events


def test_the_queue_does_not_show() -> None:
    assert table(make_phold().run(until="1us", queue="heap")) == table(make_phold().run(until="1us"))


def test_stopping_at_a_limit_and_going_on_changes_nothing() -> None:
    """Even when the number of threads changes on the way."""
    whole = make_phold().run(until="1us")
    parts = make_phold()
    for until, threads in (("100ns", 2), ("101ns", 1), ("450ns", 4)):
        parts.run(until=until, threads=threads)
    assert table(parts.run(until="1us", threads=3)) == table(whole)


def test_another_seed_gives_another_result() -> None:
    assert table(make_phold(seed=2).run(until="1us")) != table(make_phold(seed=1).run(until="1us"))


def test_how_the_graph_is_cut_does_not_show_in_the_statistics() -> None:
    free = make_phold().run(until="1us", threads=2)
    uncut = make_phold(cut_latency="1ns").run(until="1us", threads=2)
    assert uncut.threads == 1
    assert table(free) == table(uncut)
