# SPDX-License-Identifier: Apache-2.0
"""The crossbar: latency to the cycle, bandwidth of its ports, fairness, order, and errors."""

from __future__ import annotations

from collections import Counter

import pytest

import manyscale as ms
from memory.interconnect_traffic import (
    CYCLE,
    Send,
    Traffic,
    burst,
    each_pair,
    flits,
    permutations,
    random_sends,
)

pytestmark = pytest.mark.core


@pytest.mark.parametrize("sectors", [0, 1, 2, 4])
@pytest.mark.parametrize(("traversal", "flit"), [(4, 40), (0, 32), (7, 16)])
def test_unloaded_latency_is_traversal_and_a_cycle_per_flit(sectors: int, traversal: int, flit: int) -> None:
    """latency = traversal + ceil(bytes / flit) cycles, for each pair, in both directions."""
    traffic = Traffic(
        "memory.crossbar",
        (3, 4),
        each_pair(3, 4, sectors),
        each_pair(4, 3, sectors),
        traversal=traversal,
        flit=f"{flit}B",
    )
    expected = (traversal + flits(sectors, flit)) * CYCLE
    for direction in (0, 1):
        assert set(traffic.latencies(direction).values()) == {expected}
    assert traffic.value("queueing.max") == 0
    assert traffic.value("latency.min") == traffic.value("latency.max") == expected


def test_a_message_enters_at_the_next_edge() -> None:
    """Sent 0.3 cycles after an edge it enters 0.7 cycles later; sent at an edge it enters at once."""
    late = Traffic("memory.crossbar", (1, 1), [Send(300_000, 0, 0)])
    assert late.requests[0].time == (1 + 4 + 1) * CYCLE
    exact = Traffic("memory.crossbar", (1, 1), [Send(CYCLE, 0, 0)])
    assert exact.requests[0].time == (1 + 4 + 1) * CYCLE


def test_of_two_messages_for_one_output_the_second_waits_for_the_flits_of_the_first() -> None:
    sends = [Send(0, 1, 0, 4, 1), Send(0, 0, 0, 4, 0), Send(0, 2, 1, 4, 2)]
    traffic = Traffic("memory.crossbar", (3, 2), sends)
    first, second = 4 + 4, 4 + 4 + 4
    assert [arrival.time for arrival in traffic.at_responder[0]] == [first * CYCLE, second * CYCLE]
    assert [arrival.source for arrival in traffic.at_responder[0]] == [0, 1]
    assert traffic.at_responder[1][0].time == first * CYCLE
    assert traffic.value("queueing.max") == 4 * CYCLE
    assert traffic.value("requests_busy") == 12 * CYCLE
    assert traffic.value("responses_busy") == 0


def test_responses_do_not_wait_for_requests() -> None:
    requests = burst(2, 200, lambda s, k: 0, sectors=4)
    traffic = Traffic("memory.crossbar", (2, 1), requests, [Send(100 * CYCLE, 0, 1, 4)])
    assert traffic.responses[0].time == (100 + 4 + 4) * CYCLE


@pytest.mark.parametrize("outputs", [1, 2])
def test_all_to_one_takes_the_whole_bandwidth_of_the_output(outputs: int) -> None:
    """flits per cycle = output ports, whatever the number of sources."""
    traffic = Traffic(
        "memory.crossbar", (6, 1), burst(6, 100, lambda s, k: 0, sectors=4), output_ports=outputs
    )
    rate = traffic.value("flits") / traffic.cycles()
    assert rate == pytest.approx(outputs, rel=0.03)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_one_to_all_takes_the_whole_bandwidth_of_the_input(inputs: int) -> None:
    """flits per cycle = input ports, whatever the number of destinations."""
    traffic = Traffic(
        "memory.crossbar", (1, 8), burst(1, 800, lambda s, k: k % 8, sectors=4), input_ports=inputs
    )
    rate = traffic.value("flits") / traffic.cycles()
    assert rate == pytest.approx(inputs, rel=0.03)


@pytest.mark.parametrize("sectors", [0, 4])
def test_uniform_traffic_takes_the_whole_bandwidth_of_all_outputs(sectors: int) -> None:
    """Bytes per second = destinations x flit x clock (8 B in one flit, 136 B in four: none is part-filled)."""
    rounds = 400
    sends = burst(8, rounds, permutations(8, rounds), sectors)
    flit = 8 if sectors == 0 else 34
    traffic = Traffic("memory.crossbar", (8, 8), sends, flit=f"{flit}B")
    bandwidth = traffic.value("bytes") / (traffic.cycles() * 1e-9)
    assert bandwidth == pytest.approx(8 * flit * 1e9, rel=0.03)


def test_sources_share_an_output_fairly() -> None:
    """While all have something to send, each has a quarter of the output."""
    traffic = Traffic("memory.crossbar", (4, 1), burst(4, 200, lambda s, k: 0, sectors=1, every=1))
    log = traffic.at_responder[0]
    shares = Counter(arrival.source for arrival in log[: len(log) // 2])
    assert all(share == pytest.approx(100, abs=2) for share in shares.values()), shares


@pytest.mark.parametrize("parameters", [{}, {"output_ports": 3}, {"jitter": "40ns"}])
def test_messages_of_a_pair_keep_their_order(parameters: dict[str, object]) -> None:
    traffic = Traffic("memory.crossbar", (4, 3), random_sends(1, 4, 3, 400, 2), **parameters)
    assert len(traffic.requests) == 1600
    assert traffic.overtakings() == 0


def test_jitter_reorders_where_it_is_asked_to_and_stays_within_its_bound() -> None:
    sends = random_sends(1, 4, 3, 400, 20)
    plain = Traffic("memory.crossbar", (4, 3), sends)
    wild = Traffic("memory.crossbar", (4, 3), sends, jitter="40ns", reorder=True)
    assert wild.overtakings() > 50
    again = Traffic("memory.crossbar", (4, 3), sends, jitter="40ns", reorder=True)
    other = Traffic("memory.crossbar", (4, 3), sends, jitter="40ns", reorder=True, seed=1)
    assert wild.requests == again.requests
    assert wild.requests != other.requests

    def times(traffic: Traffic) -> dict[tuple[int, int], int]:
        return {(arrival.source, arrival.number): arrival.time for arrival in traffic.requests}

    extra = [times(wild)[key] - time for key, time in times(plain).items()]
    assert 0 <= min(extra) < CYCLE
    assert 39 * CYCLE < max(extra) <= 40 * CYCLE
    assert sum(extra) / len(extra) == pytest.approx(20 * CYCLE, rel=0.05)


def test_littles_law() -> None:
    """Mean number in flight = messages per time x mean latency."""
    traffic = Traffic("memory.crossbar", (4, 4), random_sends(3, 4, 4, 500, 4))
    rate = traffic.value("messages") / (traffic.cycles() * CYCLE)
    assert traffic.mean_occupancy() == pytest.approx(rate * traffic.value("latency.mean"), rel=0.01)


def test_what_is_counted() -> None:
    sends = [Send(0, 0, 0, 0, 0), Send(0, 0, 1, 4, 1)]
    traffic = Traffic("memory.crossbar", (1, 2), sends, [Send(0, 1, 0, 1)])
    assert traffic.value("messages") == 3
    assert traffic.value("bytes") == 8 + 136 + 40
    assert traffic.value("flits") == 1 + 4 + 1
    assert traffic.responses[0].source == 1
    assert {arrival.source for arrival in traffic.requests} == {0}


def test_statistics_do_not_depend_on_threads() -> None:
    def run(threads: int) -> Traffic:
        sends, answers = random_sends(5, 4, 3, 150, 3), random_sends(6, 3, 4, 150, 3)
        return Traffic(
            "memory.crossbar", (4, 3), sends, answers, latency="2ns", threads=threads, jitter="3ns"
        )

    one, two = run(1), run(2)
    assert two.result.threads == 2
    assert one.result.stats.rows() == two.result.stats.rows()


def test_a_destination_that_is_not_there_is_named() -> None:
    with pytest.raises(ms.ManyscaleError, match=r"net: requester 1 sends to responder 3, but the last .* 2"):
        Traffic("memory.crossbar", (2, 3), [Send(0, 1, 3)])
    with pytest.raises(ms.ManyscaleError, match=r"net: responder 2 sends to requester 2, but the last .* 1"):
        Traffic("memory.crossbar", (2, 3), [], [Send(0, 2, 2)])


@pytest.mark.parametrize(
    "parameters",
    [{"flit": "0B"}, {"clock": "0Hz"}, {"input_ports": 0}, {"output_ports": 0}, {"traversal": -1}],
)
def test_bad_parameters_are_named(parameters: dict[str, object]) -> None:
    with pytest.raises(ms.InputError, match=next(iter(parameters))):
        Traffic("memory.crossbar", (1, 1), [], **parameters)
