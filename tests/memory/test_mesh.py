# SPDX-License-Identifier: Apache-2.0
"""The mesh: latency to the cycle, hops, credits, back pressure, bisection, order, and errors."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

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


def distance(a: int, b: int, width: int) -> int:
    """Between two routers, counted along the rows."""
    return abs(a % width - b % width) + abs(a // width - b // width)


@pytest.mark.parametrize(("sectors", "router", "link"), [(0, 2, 1), (1, 0, 3), (4, 3, 2)])
def test_unloaded_latency_is_that_of_routers_and_links(sectors: int, router: int, link: int) -> None:
    """latency = (hops + 1) x router + (hops + 2) x link + ceil(bytes / flit) - 1 cycles.

    A message passes one router more than links between them, and a link from and one to its node; the flits
    after the first follow a cycle apart. Requesters are at routers 0 to 5 of 4 x 3, responders at 1, 4, 7, 10.
    """
    traffic = Traffic(
        "memory.mesh",
        (6, 4),
        each_pair(6, 4, sectors),
        each_pair(4, 6, sectors),
        width=4,
        height=3,
        router=router,
        link=link,
        flit="32B",
    )
    requesters, responders = list(range(6)), [1, 4, 7, 10]
    total = 0
    for direction, (sources, destinations) in enumerate([(requesters, responders), (responders, requesters)]):
        for number, latency in traffic.latencies(direction).items():
            source, destination = divmod(number, len(destinations))
            hops = distance(sources[source], destinations[destination], 4)
            total += hops
            cycles = (hops + 1) * router + (hops + 2) * link + flits(sectors, 32) - 1
            assert latency == cycles * CYCLE, (direction, number, hops)
    assert traffic.value("queueing.max") == 0
    assert traffic.value("credit_stall") == 0
    assert traffic.value("hops.mean") * traffic.value("hops.count") == pytest.approx(total)


def test_nodes_with_routers_of_their_own() -> None:
    """On 3 x 2 routers two responders are at 1 and 4, four requesters at 0, 2, 3 and 5."""
    traffic = Traffic("memory.mesh", (4, 2), each_pair(4, 2, 0), width=3, height=2, share_routers=False)
    for number, latency in traffic.latencies().items():
        hops = distance([0, 2, 3, 5][number // 2], [1, 4][number % 2], 3)
        assert latency == ((hops + 1) * 2 + hops + 2) * CYCLE


def test_messages_go_along_the_row_first() -> None:
    """From router 0 to router 8 of 3 x 3: two links east, then two south; the answer west, then north."""
    traffic = Traffic(
        "memory.mesh",
        (1, 1),
        [Send(0, 0, 0)],
        [Send(0, 0, 0, 4)],
        width=3,
        height=3,
        requester_positions="0",
        responder_positions="8",
        flit="32B",
    )
    busy = {
        heading: traffic.value(f"{heading}_busy") / CYCLE for heading in ("east", "west", "south", "north")
    }
    assert busy == {"east": 2, "south": 2, "west": 2 * 5, "north": 2 * 5}
    assert traffic.value("requests_busy") == 4 * CYCLE
    assert traffic.value("responses_busy") == 20 * CYCLE


@pytest.mark.parametrize(("depth", "router", "link", "credit"), [(1, 2, 1, 1), (2, 2, 1, 1), (3, 2, 1, 1)])
@pytest.mark.parametrize("more", [0, 3])
def test_credits_limit_a_flow_to_depth_by_round_trip(
    depth: int, router: int, link: int, credit: int, more: int
) -> None:
    """Flits per cycle = min(1, depth / (link + router + credit)): a credit is back after a round trip."""
    link += more
    rounds = 300
    traffic = Traffic(
        "memory.mesh",
        (1, 1),
        burst(1, rounds, lambda s, k: 0),
        width=4,
        height=1,
        requester_positions="0",
        responder_positions="3",
        router=router,
        link=link,
        credit=credit,
        depth=depth,
    )
    times = [arrival.time for arrival in traffic.requests]
    rate = (rounds - 1) * CYCLE / (times[-1] - times[0])
    assert rate == pytest.approx(min(1, depth / (link + router + credit)), rel=0.02)
    assert traffic.value("credit_stall") > 0


def test_messages_of_several_flits_and_deep_buffers() -> None:
    """The same closed form with messages of 4 flits in buffers of 8, and none of it once depth >= round trip."""
    for depth, round_trip_link in ((8, 9), (16, 9)):
        traffic = Traffic(
            "memory.mesh",
            (1, 1),
            burst(1, 200, lambda s, k: 0, sectors=4),
            width=2,
            height=1,
            responder_positions="1",
            link=round_trip_link,
            depth=depth,
        )
        times = [arrival.time for arrival in traffic.requests]
        rate = 4 * 199 * CYCLE / (times[-1] - times[0])
        assert rate == pytest.approx(min(1, depth / (round_trip_link + 2 + 1)), rel=0.02)


def test_merging_flows_share_links_in_turn() -> None:
    """On a line of 4 routers all send to the last: the nearer half of what is left, so 1/2, 1/4, 1/8, 1/8.

    The output is full all the time: a flit per cycle.
    """
    sends = burst(4, 400, lambda s, k: 0)
    traffic = Traffic("memory.mesh", (4, 1), sends, width=4, height=1, responder_positions="3", depth=4)
    first = traffic.at_responder[0][:640]
    shares = Counter(arrival.source for arrival in first)
    for source, share in enumerate([1 / 8, 1 / 8, 1 / 4, 1 / 2]):
        assert shares[source] / 640 == pytest.approx(share, rel=0.06), shares
    assert 640 * CYCLE / (first[-1].time - first[0].time) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(("depth", "cycles_per_message"), [(4, 4), (2000, 2)])
def test_back_pressure_reaches_the_source_and_those_who_share_its_way(
    depth: int, cycles_per_message: int
) -> None:
    """On a line of 4 routers 0, 2 and 3 send to the last, and 1 to responder 0, at router 2.

    The exit to the last gives router 0 a quarter of its cycles. With small buffers those on the way fill with
    its messages, and router 1, which shares them in turn, gets no more than it: a message in 4 cycles. Buffers
    that take all that is ever sent never fill, and router 1 gets half of the link it shares.
    """
    rounds = 400
    sends = burst(4, rounds, lambda s, k: 0 if s == 1 else 1)
    traffic = Traffic("memory.mesh", (4, 2), sends, width=4, height=1, responder_positions="2,3", depth=depth)
    half = traffic.at_responder[0][: rounds // 2]
    assert half[-1].time / CYCLE / len(half) == pytest.approx(cycles_per_message, rel=0.08)
    assert (traffic.value("credit_stall") > 0) == (depth == 4)


def test_a_full_request_network_does_not_hold_up_responses() -> None:
    """A response against jammed requests shares links with none of them and takes its unloaded latency."""
    sends = burst(4, 200, lambda s, k: 0, sectors=4)
    traffic = Traffic(
        "memory.mesh",
        (4, 1),
        sends,
        [Send(300 * CYCLE, 0, 0, 4)],
        width=4,
        height=1,
        responder_positions="3",
        depth=4,
    )
    assert traffic.latencies(1)[0] == (4 * 2 + 5 * 1 + 3) * CYCLE


@pytest.mark.parametrize(("depth", "reached"), [(4, 0.55), (16, 0.65)])
def test_uniform_traffic_stays_below_the_bisection(depth: int, reached: float) -> None:
    """4 x 4: the messages that cross the middle are at most 4 per cycle each way.

    Buffers that are emptied in order keep a mesh from the whole of that; see the next test for how far.
    """
    rounds = 250
    sends = burst(16, rounds, permutations(16, rounds))
    traffic = Traffic("memory.mesh", (16, 16), sends, width=4, height=4, depth=depth)
    cycles = sorted(arrival.time for arrival in traffic.requests)[len(traffic.requests) * 3 // 4] / CYCLE
    early = [arrival for arrival in traffic.requests if arrival.time <= cycles * CYCLE]
    for left in (True, False):
        crossing = sum(
            (arrival.source % 4 < 2) == left and (arrival.destination % 4 < 2) != left for arrival in early
        )
        assert reached < crossing / (4 * cycles) <= 1, crossing / (4 * cycles)
    expected = sum(distance(send.source, send.destination, 4) for send in sends)
    assert traffic.value("hops.mean") * len(sends) == pytest.approx(expected)


def cycle_by_cycle(
    sends: list[Send], side: int, depth: int, router: int, link: int, credit: int
) -> list[tuple[int, int, int]]:
    """A mesh of tiles in its plainest form, for messages of a flit: (cycle of arrival, source, number) of each.

    In each cycle each output looks at the heads of all inputs of its router, beginning after the one it served
    last. Inputs are numbered as headings: from the node, eastward, westward, to the next row, to the one before.
    """
    step = [0, 1, -1, side, -side]
    buffers: dict[tuple[int, int], deque[tuple[int, Send]]] = defaultdict(deque)  # (ready, message)
    sources: dict[int, deque[Send]] = defaultdict(deque)
    credits: dict[tuple[int, int], int] = defaultdict(lambda: depth)
    returning: deque[tuple[int, tuple[int, int]]] = deque()
    turn: dict[tuple[int, int], int] = defaultdict(int)
    for send in sends:
        sources[send.source].append(send)
    arrivals: list[tuple[int, int, int]] = []
    cycle = 0
    while len(arrivals) < len(sends):
        while returning and returning[0][0] <= cycle:
            credits[returning.popleft()[1]] += 1
        for node in range(side * side):
            if sources[node] and credits[node, 0] > 0:
                credits[node, 0] -= 1
                buffers[node, 0].append((cycle + link + router, sources[node].popleft()))
        served = set()
        for here in range(side * side):
            for output in range(5):
                for k in range(5):
                    entry = (here, (turn[here, output] + k) % 5)
                    if entry in served or not buffers[entry] or buffers[entry][0][0] > cycle:
                        continue
                    message = buffers[entry][0][1]
                    x, y = (
                        message.destination % side - here % side,
                        message.destination // side - here // side,
                    )
                    wanted = 1 if x > 0 else 2 if x < 0 else 3 if y > 0 else 4 if y < 0 else 0
                    after = (here + step[output], output)
                    if wanted != output or (output and credits[after] == 0):
                        continue
                    buffers[entry].popleft()
                    served.add(entry)
                    returning.append((cycle + credit, entry))
                    turn[here, output] = (entry[1] + 1) % 5
                    if output:
                        credits[after] -= 1
                        buffers[after].append((cycle + link + router, message))
                    else:
                        arrivals.append((cycle + link, message.source, message.number))
                    break
        cycle += 1
    return sorted(arrivals)


@pytest.mark.parametrize(("depth", "router", "link", "credit"), [(1, 2, 1, 1), (3, 1, 2, 2), (16, 2, 1, 1)])
def test_every_arrival_is_that_of_a_cycle_by_cycle_model(
    depth: int, router: int, link: int, credit: int
) -> None:
    sends = burst(16, 60, permutations(16, 60, seed=depth))
    parameters = {"depth": depth, "router": router, "link": link, "credit": credit}
    traffic = Traffic("memory.mesh", (16, 16), sends, width=4, height=4, **parameters)
    arrivals = sorted((arrival.time // CYCLE, arrival.source, arrival.number) for arrival in traffic.requests)
    assert arrivals == cycle_by_cycle(sends, 4, **parameters)


def test_all_to_one_takes_the_whole_bandwidth_of_the_exit() -> None:
    """A flit per cycle, whatever the number of sources."""
    traffic = Traffic("memory.mesh", (16, 1), burst(16, 60, lambda s, k: 0, sectors=4))
    assert traffic.value("flits") / traffic.cycles() == pytest.approx(1, rel=0.03)


@pytest.mark.parametrize("parameters", [{}, {"depth": 5}, {"jitter": "40ns"}])
def test_messages_of_a_pair_keep_their_order(parameters: dict[str, object]) -> None:
    traffic = Traffic("memory.mesh", (9, 3), random_sends(1, 9, 3, 200, 3), width=3, height=3, **parameters)
    assert len(traffic.requests) == 1800
    assert traffic.overtakings() == 0


def test_littles_law() -> None:
    """Mean number in flight = messages per time x mean latency."""
    traffic = Traffic("memory.mesh", (9, 9), random_sends(3, 9, 9, 250, 8), width=3, height=3)
    rate = traffic.value("messages") / (traffic.cycles() * CYCLE)
    assert traffic.mean_occupancy() == pytest.approx(rate * traffic.value("latency.mean"), rel=0.01)


def test_statistics_do_not_depend_on_threads() -> None:
    def run(threads: int) -> Traffic:
        sends, answers = random_sends(5, 6, 4, 120, 3), random_sends(6, 4, 6, 120, 3)
        return Traffic("memory.mesh", (6, 4), sends, answers, latency="2ns", threads=threads, jitter="3ns")

    one, two = run(1), run(2)
    assert two.result.threads == 2
    assert one.result.stats.rows() == two.result.stats.rows()


def test_latencies_beyond_the_span_of_the_wheel() -> None:
    """Longer than the 256 cycles that are looked ahead: latency = 2 x 700 + 3 x 1000."""
    traffic = Traffic(
        "memory.mesh",
        (2, 1),
        [Send(0, 1, 0)],
        width=2,
        height=1,
        responder_positions="0",
        router=700,
        link=1000,
    )
    assert traffic.requests[0].time == (2 * 700 + 3 * 1000) * CYCLE


def test_a_destination_that_is_not_there_is_named() -> None:
    with pytest.raises(ms.ManyscaleError, match=r"net: requester 1 sends to responder 3, but the last .* 2"):
        Traffic("memory.mesh", (2, 3), [Send(0, 1, 3)])


@pytest.mark.parametrize(
    "parameters",
    [{"width": 0}, {"height": 0}, {"depth": 0}, {"link": 0}, {"credit": 0}, {"router": -1}, {"flit": "0B"}],
)
def test_bad_parameters_are_named(parameters: dict[str, object]) -> None:
    with pytest.raises(ms.InputError, match=next(iter(parameters))):
        Traffic("memory.mesh", (1, 1), [], **parameters)


@pytest.mark.parametrize(
    ("nodes", "parameters", "message"),
    [
        ((5, 1), {}, r"net: a mesh of 2 x 2 routers is too small for 5 requesters and 1 responders"),
        ((3, 2), {"share_routers": False}, r"too small for 3 requesters and 2 responders with a router each"),
        ((2, 1), {"requester_positions": "1,1"}, r"net: router 1 is the position of two nodes of one kind"),
        ((2, 1), {"requester_positions": "1,4"}, r"requester_positions is '1,4': there is no position 4"),
    ],
)
def test_nodes_that_do_not_fit_are_explained(
    nodes: tuple[int, int], parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(ms.ManyscaleError, match=message):
        Traffic("memory.mesh", nodes, [], width=2, height=2, **parameters)


def test_a_message_longer_than_a_buffer_is_refused() -> None:
    with pytest.raises(ms.ManyscaleError, match=r"net: a message of 4 flits does not fit into a buffer of 3"):
        Traffic("memory.mesh", (1, 1), [Send(0, 0, 0, 4)], depth=3)
