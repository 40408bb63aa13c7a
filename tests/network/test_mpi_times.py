# SPDX-License-Identifier: Apache-2.0
"""How long messages take: LogGP and LogGOPS closed forms on a network without contention."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from mpi_programs import NANOSECOND, Call, CoreProgram, core_program, finished, make_job
from reference_matcher import Matcher, random_program

pytestmark = pytest.mark.core

# L = 220 + 100 + 220 ns, G = 0.08 ns/B
IDEAL = {
    "fidelity": "ideal",
    "link.latency": 220 * NANOSECOND,
    "switch.latency": 100 * NANOSECOND,
    "link.bandwidth": 12_500_000_000,
    "packet.header": 0,
}
LATENCY = 540 * NANOSECOND
PER_BYTE = 80_000
# Everything different from everything else, so that no two can be mistaken for each other.
COSTS = {
    "send_overhead": 201 * NANOSECOND,
    "receive_overhead": 307 * NANOSECOND,
    "send_overhead_per_byte": 3_000,
    "receive_overhead_per_byte": 7_000,
    "copy_bandwidth": 20_000_000_000,
    "match_overhead": 31 * NANOSECOND,
    "control_overhead": 113 * NANOSECOND,
    "page_overhead": 17 * NANOSECOND,
    "eager_limit": 16384,
}
SIZES = [0, 1, 8, 100, 1024, 4096, 16384, 16385, 65536, 10**6, 10**8]


def ends(calls: list[list[Call]], **options: Any) -> Any:
    program, _ = core_program(calls)
    return finished(make_job(program, **{"network": IDEAL, "mpi": COSTS} | options)).ranks()["end"]


def eager(size: int) -> int:
    """o_s + O_s n + copy + L + G n + match + o_r + O_r n."""
    sender = COSTS["send_overhead"] + COSTS["send_overhead_per_byte"] * size + 50_000 * size
    receiver = COSTS["match_overhead"] + COSTS["receive_overhead"] + COSTS["receive_overhead_per_byte"] * size
    return sender + LATENCY + PER_BYTE * size + receiver


def rendezvous(size: int) -> int:
    """o_s, three times L, match and answer at the receiver, answer at the sender, then the data."""
    pages = -(-size // 4096)
    answer = COSTS["control_overhead"] + COSTS["page_overhead"] * pages
    handshake = COSTS["send_overhead"] + LATENCY + COSTS["match_overhead"] + answer + LATENCY + answer
    data = (COSTS["send_overhead_per_byte"] + PER_BYTE + COSTS["receive_overhead_per_byte"]) * size
    return handshake + LATENCY + data + COSTS["receive_overhead"]


@pytest.mark.parametrize("size", SIZES)
def test_ping_pong_of_all_sizes(size: int) -> None:
    rounds = 5
    one_way = eager(size) if size <= COSTS["eager_limit"] else rendezvous(size)
    calls: list[list[Call]] = [
        [("send", 1, 0, size), ("recv", 1, 0)] * rounds,
        [("recv", 0, 0), ("send", 0, 0, size)] * rounds,
    ]
    assert ends(calls)[0] == pytest.approx(2 * rounds * one_way, abs=100)


def test_plain_loggp() -> None:
    """With o and G alone the time of one message is 2 o + L + n G, and a fit over sizes gives them back."""
    sizes = np.array([8, 64, 512, 4096, 16384])
    times = [ends([[("send", 1, 0, int(n))], [("recv", 0, 0)]], mpi={})[1] for n in sizes]
    slope, offset = np.polyfit(sizes, times, 1)
    assert slope == pytest.approx(PER_BYTE, rel=1e-6)
    assert offset == pytest.approx(2 * 200 * NANOSECOND + LATENCY, rel=1e-6)


@pytest.mark.parametrize("gap", [0, 500])
def test_messages_follow_each_other_at_the_gap_or_the_overhead(gap: int) -> None:
    """n messages one way: the last arrives after o + (n - 1) max(o, g) + L + o."""
    count = 10
    network = IDEAL | {"nic.gap": gap * NANOSECOND}
    calls: list[list[Call]] = [[("send", 1, 0, 0)] * count, [("recv", 0, 0)] * count]
    expected = 200 + (count - 1) * max(200, gap) + 540 + 200
    assert ends(calls, network=network, mpi={})[1] == expected * NANOSECOND


def test_a_late_receiver_finds_its_message_there() -> None:
    """It came while the receiver computed, which has only to match and take it."""
    late = 100_000 * NANOSECOND
    calls: list[list[Call]] = [[("send", 1, 0, 1000)], [("compute", late), ("recv", 0, 0)]]
    taking = COSTS["match_overhead"] + COSTS["receive_overhead"] + 1000 * COSTS["receive_overhead_per_byte"]
    assert ends(calls)[1] == late + taking


def test_an_unexpected_message_is_copied() -> None:
    """It came while the receiver waited for another: put aside then, matched and copied when it is wanted."""
    size = 8000
    calls: list[list[Call]] = [
        [("send", 2, 0, size)],
        [("compute", 50_000 * NANOSECOND), ("send", 2, 1, 0)],
        [("recv", 1, 1), ("recv", 0, 0)],
    ]
    other = 50_000 * NANOSECOND + eager(0)
    assert ends(calls)[2] == other + COSTS["match_overhead"] + 50_000 * size


def test_messages_within_a_node() -> None:
    """o + n / bandwidth + latency + o; above the limit three latencies and the answers."""
    local = {
        "local.latency": 130 * NANOSECOND,
        "local.bandwidth": 10_000_000_000,
        "local.send_overhead": 41 * NANOSECOND,
        "local.receive_overhead": 59 * NANOSECOND,
        "local.eager_limit": 4096,
        "control_overhead": 113 * NANOSECOND,
    }
    for size in (0, 4096):
        calls: list[list[Call]] = [[("send", 1, 0, size)], [("recv", 0, 0)]]
        assert ends(calls, mpi=local, per_node=2)[1] == (41 + 130 + 59) * NANOSECOND + 100_000 * size
    calls = [[("send", 1, 0, 10**6)], [("recv", 0, 0)]]
    sender, receiver = ends(calls, mpi=local, per_node=2)
    assert receiver == (41 + 3 * 130 + 2 * 113 + 59) * NANOSECOND + 100_000 * 10**6
    assert sender == (41 + 2 * 130 + 2 * 113) * NANOSECOND + 100_000 * 10**6


def test_a_small_message_does_not_overtake_a_large_one_within_a_node() -> None:
    """Both are copied by the same processor, one after the other."""
    calls: list[list[Call]] = [
        [("isend", 0, 1, 0, 4000), ("isend", 1, 1, 0, 0), ("waitall", 0, 2)],
        [("recv", 0, 0), ("recv", 0, 0)],
    ]
    program, _ = core_program(calls)
    done = finished(make_job(program, per_node=2, check=True)).completions()
    assert list(done["value"]) == [0, 1]


@pytest.mark.parametrize("offload", [False, True])
def test_large_messages_overlap_computing_only_with_offloading(offload: bool) -> None:
    """Without it nobody answers while both compute; with it the transfer is over when they have."""
    size, work = 10**7, 2_000_000 * NANOSECOND
    transfer = PER_BYTE * size
    calls: list[list[Call]] = [
        [("isend", 0, 1, 0, size), ("compute", work), ("wait", 0)],
        [("irecv", 0, 0, 0), ("compute", work), ("wait", 0)],
    ]
    end = ends(calls, mpi={"offload": offload}).max()
    slack = 5000 * NANOSECOND
    assert end == pytest.approx(work if offload else work + transfer, abs=slack)


@pytest.mark.parametrize("seed", range(6))
def test_the_parts_of_a_ranks_time_add_up_to_its_end(seed: int) -> None:
    """Compute, overhead, waiting and transfer leave nothing out."""
    generator = random.Random(100 + seed)
    while True:
        calls = random_program(generator, 6, phases=3, messages=12)
        if not Matcher(calls, [[list(range(6))] * 6], 16384).stuck:
            break
    for rank in range(6):
        for position in sorted(generator.sample(range(len(calls[rank]) + 1), 3), reverse=True):
            calls[rank].insert(position, ("compute", generator.randrange(20_000 * NANOSECOND)))
    program, _ = core_program(calls)
    for network, per_node in ((IDEAL, 1), ({"fidelity": "packet"}, 2)):
        times = finished(make_job(program, network=network, mpi=COSTS, per_node=per_node)).ranks()
        assert all(times[part].min() >= 0 for part in times)
        total = times["compute"] + times["overhead"] + times["waiting"] + times["transfer"]
        assert list(total) == list(times["end"])


def test_waiting_is_for_partners_and_transfer_for_the_network() -> None:
    """A receiver waits until the sender begins, from then on for the message."""
    work = 10_000 * NANOSECOND
    calls: list[list[Call]] = [[("compute", work), ("send", 1, 0, 1000)], [("recv", 0, 0)]]
    program, _ = core_program(calls)
    times = finished(make_job(program, network=IDEAL)).ranks()
    assert times["compute"][0] == work
    assert times["waiting"][1] == work
    assert times["transfer"][1] == 200 * NANOSECOND + LATENCY + 1000 * PER_BYTE
    assert times["overhead"][1] == 200 * NANOSECOND


def test_latencies_are_counted_for_every_message() -> None:
    calls: list[list[Call]] = [[("send", 1, 0, 8)] * 7, [("recv", 0, 0)] * 7]
    program, _ = core_program(calls)
    found = finished(
        make_job(program, network=IDEAL, mpi={"send_overhead": 10**9, "receive_overhead": 0})
    ).latency()
    assert list(found["count"]) == [7]
    expected = 10**9 + LATENCY + 8 * PER_BYTE
    assert found["lower"][0] <= expected < found["lower"][0] * 1.26


def test_compute_phases_follow_columns_loops_and_occurrences() -> None:
    """Constants, per-rank values, values that grow with a loop, and a table by occurrence."""
    ranks = 3
    program = CoreProgram(ranks)
    program.add("compute", bytes=7)
    program.add("compute", bytes=[100, 200, 300])
    program.loop([1, 2, 3])
    growing = program.column(1000, loop=0, step=10)
    program.add("compute", bytes=("column", growing))
    program.arrays.append(np.array([[1, 2], [3, 4], [5, 6]], np.int64).reshape(-1) * 10**6)
    program.columns.append((0, 0, 0, 0, 2, 1, 2, len(program.arrays) - 1, -2))
    program.add("compute", bytes=("column", len(program.columns) - 1), slot=0)
    program.end_loop()
    compute = finished(make_job(program)).ranks()["compute"]
    grown = [1000, 1000 + 1010, 1000 + 1010 + 1020]
    table = [1, 3 + 4, 5 + 6 + 5]
    assert list(compute) == [7 + 100 * (r + 1) + grown[r] + table[r] * 10**6 for r in range(ranks)]


def drawn(pattern: dict[str, Any], ranks: int, times: int, seed: int = 0, **operands: Any) -> Any:
    """What ranks have computed after so many drawn phases."""
    program = CoreProgram(ranks)
    program.patterns.append(pattern)
    program.loop(times)
    program.add("draw", bytes=0, slot=0, **operands)
    program.end_loop()
    return finished(make_job(program, per_node=ranks, seed=seed)).ranks()["compute"]


def cluster(low: list[int], high: list[int], weight: list[float]) -> dict[str, Any]:
    return {"low": np.array(low), "high": np.array(high), "weight": np.array(weight, float)}


def test_drawn_times_follow_their_distribution() -> None:
    """Two bins, one three times as likely; the mean of many draws comes close, and the seed decides which."""
    pattern = {"sequence": np.array([0]), "clusters": [cluster([0, 10_000], [1000, 10_000], [3, 1])]}
    total = drawn(pattern, 100, 200)
    assert total.mean() / 200 == pytest.approx(0.75 * 500 + 0.25 * 10_000, rel=0.02)
    assert len(set(total)) > 90  # ranks differ
    assert list(total) == list(drawn(pattern, 100, 200))
    assert list(total) != list(drawn(pattern, 100, 200, seed=1))
    half = drawn(pattern, 100, 200, count=500_000)
    assert half.mean() == pytest.approx(total.mean() / 2, rel=0.01)


def test_patterns_repeat_their_clusters_in_order() -> None:
    """0 1 2 2 2 1 0 over and over, as in the phases of a multigrid solver."""
    sequence = [0, 1, 2, 2, 2, 1, 0]
    clusters = [cluster([size], [size], [1]) for size in (10**6, 10**3, 1)]
    pattern = {"sequence": np.array(sequence), "clusters": clusters}
    for times in (1, 3, 7, 10, 14):
        expected = sum([10**6, 10**3, 1][sequence[i % 7]] for i in range(times))
        assert set(drawn(pattern, 2, times)) == {expected}
