# SPDX-License-Identifier: Apache-2.0
"""The ring: latency to the cycle, the shorter way, bandwidth of its segments, order, and errors."""

from __future__ import annotations

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

# Three responders and five requesters on eight stops of their own.
RESPONDERS = [1, 4, 6]
REQUESTERS = [0, 2, 3, 5, 7]


def hops(a: int, b: int, stops: int) -> int:
    """The shorter way round."""
    return min((a - b) % stops, (b - a) % stops)


@pytest.mark.parametrize(("sectors", "hop", "stop_latency"), [(0, 1, 1), (1, 3, 0), (4, 2, 5)])
def test_unloaded_latency_is_hops_and_a_cycle_per_flit(sectors: int, hop: int, stop_latency: int) -> None:
    """latency = stop_latency + hops x hop + ceil(bytes / flit) cycles, with the hops of the shorter way."""
    traffic = Traffic(
        "memory.ring",
        (5, 3),
        each_pair(5, 3, sectors),
        each_pair(3, 5, sectors),
        hop=hop,
        stop_latency=stop_latency,
        flit="32B",
    )
    for direction, (sources, destinations) in enumerate([(REQUESTERS, RESPONDERS), (RESPONDERS, REQUESTERS)]):
        for number, latency in traffic.latencies(direction).items():
            source, destination = divmod(number, len(destinations))
            distance = hops(sources[source], destinations[destination], 8)
            assert latency == (stop_latency + distance * hop + flits(sectors, 32)) * CYCLE
    assert traffic.value("queueing.max") == 0
    assert traffic.value("hops.max") == 4


def test_positions_can_be_given_and_shared() -> None:
    """Requesters 0 and 1 at stops 0 and 9 of 10, the responder at stop 9: 1 hop back, and none."""
    traffic = Traffic(
        "memory.ring",
        (2, 1),
        each_pair(2, 1, 0),
        stops=10,
        requester_positions="0, 9",
        responder_positions="9",
    )
    assert [traffic.latencies()[number] for number in (0, 1)] == [(1 + 1 + 1) * CYCLE, (1 + 0 + 1) * CYCLE]
    assert traffic.value("counterclockwise_busy") == CYCLE
    assert traffic.value("clockwise_busy") == 0


def test_a_message_on_the_ring_has_the_right_of_way() -> None:
    """Stops 0 and 2 send 4 flits to stop 4 over the same segments, hop 1.

    The message from stop 0 is at segment 2 in cycles 2 to 5. One that gets on at stop 2 in cycle 0 takes it in
    cycles 0 to 3, so it has to wait till cycle 6; one of a single flit gets on before, at once.
    """
    positions = {"stops": 10, "requester_positions": "0,2", "responder_positions": "4"}
    long = Traffic("memory.ring", (2, 1), [Send(0, 0, 0, 4, 0), Send(0, 1, 0, 4, 1)], **positions)
    assert long.latencies() == {0: (1 + 4 + 4) * CYCLE, 1: (6 + 1 + 2 + 4) * CYCLE}
    short = Traffic("memory.ring", (2, 1), [Send(0, 0, 0, 4, 0), Send(0, 1, 0, 0, 1)], **positions)
    assert short.latencies() == {0: (1 + 4 + 4) * CYCLE, 1: (1 + 2 + 1) * CYCLE}


def test_all_to_one_takes_the_segments_on_both_sides() -> None:
    """2 flits per cycle: a segment from the left and one from the right of the responder."""
    traffic = Traffic("memory.ring", (8, 1), burst(8, 200, lambda s, k: 0, sectors=4))
    assert traffic.value("flits") / traffic.cycles() == pytest.approx(2, rel=0.03)


def test_neighbours_do_not_disturb_each_other() -> None:
    """Each requester sends to the responder at the next stop: a flit per cycle and pair."""
    sends = burst(6, 200, lambda s, k: s, sectors=4)
    traffic = Traffic("memory.ring", (6, 6), sends)
    assert traffic.value("flits") / traffic.cycles() == pytest.approx(6, rel=0.03)


@pytest.mark.parametrize(("sectors", "hop"), [(1, 1), (1, 2), (4, 2)])
def test_opposite_traffic_fills_both_ways(sectors: int, hop: int) -> None:
    """8 tiles, each sends halfway round (4 hops); even ones clockwise, odd ones back.

    2 x 8 segments / 4 hops = 4 flits per cycle at most. It comes within 3% of it, where messages leave no gaps
    too short for another: they do not with a single flit, nor where all stops are a message's length apart.
    """
    positions = ",".join(map(str, range(8)))
    traffic = Traffic(
        "memory.ring",
        (8, 8),
        burst(8, 200, lambda s, k: (s + 4) % 8, sectors=sectors),
        stops=8,
        hop=hop,
        requester_positions=positions,
        responder_positions=positions,
    )
    assert traffic.value("hops.min") == traffic.value("hops.max") == 4
    assert traffic.value("flits") / traffic.cycles() == pytest.approx(4, rel=0.03)
    assert traffic.value("clockwise_busy") == traffic.value("counterclockwise_busy")


def test_uniform_traffic_stays_below_what_the_segments_can_take() -> None:
    """Flits x hops <= 2 x stops x cycles; a ring whose sources wait for gaps reaches more than half of it."""
    positions = ",".join(map(str, range(8)))
    traffic = Traffic(
        "memory.ring",
        (8, 8),
        burst(8, 300, permutations(8, 300), sectors=1),
        stops=8,
        requester_positions=positions,
        responder_positions=positions,
    )
    used = (traffic.value("clockwise_busy") + traffic.value("counterclockwise_busy")) / CYCLE
    assert used == traffic.value("requests_busy") / CYCLE
    share = used / (2 * 8 * traffic.cycles())
    assert 0.5 < share <= 1, share


@pytest.mark.parametrize("parameters", [{}, {"stops": 3}, {"jitter": "40ns"}])
def test_messages_of_a_pair_keep_their_order(parameters: dict[str, object]) -> None:
    traffic = Traffic("memory.ring", (4, 3), random_sends(1, 4, 3, 400, 2), **parameters)
    assert len(traffic.requests) == 1600
    assert traffic.overtakings() == 0


def test_littles_law() -> None:
    """Mean number in flight = messages per time x mean latency."""
    traffic = Traffic("memory.ring", (4, 4), random_sends(3, 4, 4, 500, 4))
    rate = traffic.value("messages") / (traffic.cycles() * CYCLE)
    assert traffic.mean_occupancy() == pytest.approx(rate * traffic.value("latency.mean"), rel=0.01)


def test_statistics_do_not_depend_on_threads() -> None:
    def run(threads: int) -> Traffic:
        sends, answers = random_sends(5, 4, 3, 150, 3), random_sends(6, 3, 4, 150, 3)
        return Traffic("memory.ring", (4, 3), sends, answers, latency="2ns", threads=threads, jitter="3ns")

    one, two = run(1), run(2)
    assert two.result.threads == 2
    assert one.result.stats.rows() == two.result.stats.rows()


def test_a_destination_that_is_not_there_is_named() -> None:
    with pytest.raises(ms.ManyscaleError, match=r"net: requester 1 sends to responder 3, but the last .* 2"):
        Traffic("memory.ring", (2, 3), [Send(0, 1, 3)])


@pytest.mark.parametrize(
    "parameters", [{"flit": "0B"}, {"clock": "0Hz"}, {"hop": 0}, {"stops": -1}, {"stop_latency": -1}]
)
def test_bad_parameters_are_named(parameters: dict[str, object]) -> None:
    with pytest.raises(ms.InputError, match=next(iter(parameters))):
        Traffic("memory.ring", (1, 1), [], **parameters)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ("0,1", r"requester_positions is '0,1': it has 2 positions for 3 requesters"),
        ("0,1,9", r"requester_positions is '0,1,9': there is no position 9, the last one is 3"),
        ("0,1,x", r"requester_positions is '0,1,x': write whole numbers with commas"),
    ],
)
def test_bad_positions_are_explained(positions: str, message: str) -> None:
    with pytest.raises(ms.ManyscaleError, match=message):
        Traffic("memory.ring", (3, 1), [], requester_positions=positions)
