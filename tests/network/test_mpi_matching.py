# SPDX-License-Identifier: Apache-2.0
"""Which message each receive gets: against a simple matcher, and against MPI's rules where timing decides."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from mpi_programs import ANY, LAST, NANOSECOND, NOBODY, Call, core_program, finished, make_job, split
from reference_matcher import Matcher, random_program, violations

pytestmark = pytest.mark.core

EAGER_LIMIT = 16384


def simulated(
    calls: list[list[Call]], communicators: list[dict[str, Any]] | None = None, **options: Any
) -> list[dict[int, tuple[int, int, int]]]:
    """For each rank and receiving call the message it got: source, tag and its number among those of its source."""
    program, origin = core_program(calls, communicators)
    job = finished(make_job(program, check=True, **options))
    matched: list[dict[int, tuple[int, int, int]]] = [{} for _ in calls]
    done = job.completions()
    for rank, operation, source, tag, value in zip(*done.values(), strict=True):
        owner, index = origin[operation]
        assert owner == rank
        if calls[owner][index][0] != "barrier":
            matched[rank][index] = (source, tag, value)
    return matched


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_match_as_the_reference_does(seed: int) -> None:
    """Programs whose outcome does not depend on timing: the same messages, or the same ranks stuck in the same calls.

    Messages go over the network and within nodes, by both protocols.
    """
    generator = random.Random(seed)
    ranks = generator.randrange(2, 9)
    calls = random_program(generator, ranks, phases=3, messages=12)
    world = [[list(range(ranks))] * ranks]
    reference = Matcher(calls, world, EAGER_LIMIT)
    options: dict[str, Any] = {
        "per_node": generator.choice([1, 2, ranks]),
        "mpi": {
            "eager_limit": EAGER_LIMIT,
            "local.eager_limit": EAGER_LIMIT,
            "offload": generator.random() < 0.5,
        },
    }
    if reference.stuck:
        program, origin = core_program(calls)
        job = make_job(program, **options)
        assert job.run()["outcome"] == "deadlock"
        text = job.explain_deadlock()
        for rank, index in list(reference.stuck.items())[:16]:
            operation = origin.index((rank, index))
            assert f"rank {rank} in " in text
            assert f"(operation {operation})" in text
    else:
        assert simulated(calls, **options) == reference.matched


def test_most_random_programs_come_to_their_end() -> None:
    """So that the comparison above compares something."""
    completed = 0
    for seed in range(30):
        generator = random.Random(seed)
        ranks = generator.randrange(2, 9)
        calls = random_program(generator, ranks, phases=3, messages=12)
        completed += not Matcher(calls, [[list(range(ranks))] * ranks], EAGER_LIMIT).stuck
    assert completed >= 10


@pytest.mark.parametrize("seed", range(10))
def test_messages_do_not_overtake_each_other_whatever_the_wildcards(seed: int) -> None:
    """Many small and large messages over several nodes, taken by receives with and without wildcards."""
    generator = random.Random(seed)
    ranks = 5
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    received = [0] * ranks
    for rank in range(ranks):
        for slot in range(20):
            to = generator.choice([r for r in range(ranks) if r != rank])
            calls[rank].append(
                ("isend", slot, to, generator.randrange(2), generator.choice([1, 3000, 9000, 50000]))
            )
            received[to] += 1
    for rank in range(ranks):
        for i in range(received[rank]):
            # Only wildcards in the end take everything that is left, whatever came before.
            calls[rank].append(("irecv", 20 + i, ANY, ANY))
        calls[rank].append(("waitall", 0, 20 + received[rank]))
    assert violations(calls, simulated(calls, per_node=2)) == []


def test_wildcards_take_messages_in_the_order_they_come() -> None:
    """Workers that compute for different times are received in the order of those times."""
    ranks = 9
    times = np.random.default_rng(4).permutation(ranks - 1) * 5000 * NANOSECOND
    calls: list[list[Call]] = [[("recv", ANY, ANY)] * (ranks - 1)]
    calls += [[("compute", int(time)), ("send", 0, rank, 8)] for rank, time in enumerate(times, 1)]
    got = simulated(calls)[0]
    assert [got[index][0] for index in range(ranks - 1)] == list(1 + np.argsort(times))


def test_a_receive_posted_first_gets_the_message_first() -> None:
    """A wildcard posted before an exact receive takes the first message, the exact one the second."""
    calls: list[list[Call]] = [
        [("irecv", 0, ANY, ANY), ("irecv", 1, 1, 7), ("waitall", 0, 2)],
        [("compute", 1000 * NANOSECOND), ("send", 0, 7, 8), ("send", 0, 7, 8)],
    ]
    assert simulated(calls)[0] == {0: (1, 7, 0), 1: (1, 7, 1)}


def test_communicators_keep_messages_apart() -> None:
    """The same tag in three communicators; ranks are counted within them."""
    ranks = 6
    group, key = [0, 1, 0, 1, 0, 1], [5, 4, 3, 2, 1, 0]
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    # Odd ranks in falling order: 5, 3, 1. Rank 5 is number 0 there, rank 1 number 2.
    calls[5] = [("send", 2, 3, 8, {"comm": 1}), ("send", 1, 3, 8), ("send", 1, 3, 8, {"comm": 2})]
    calls[1] = [
        ("recv", ANY, 3, {"comm": 2}),
        ("recv", 5, ANY),
        ("recv", 0, 3, {"comm": 1}),
    ]
    communicators = [split(group, key), {"kind": "strided", "stride": 1, "count": 6}]
    matched = simulated(calls, communicators)[1]
    assert matched == {0: (5, 3, 2), 1: (5, 3, 1), 2: (5, 3, 0)}


def test_strided_groups_are_the_axes_of_a_grid() -> None:
    """In a 2 x 3 grid, each rank sends to its next neighbour along the rows."""
    calls: list[list[Call]] = [
        [("sendrecv", (rank % 3 + 1) % 3, 0, 8, (rank % 3 + 2) % 3, 0, {"comm": 1})] for rank in range(6)
    ]
    matched = simulated(calls, [{"kind": "strided", "stride": 1, "count": 3}])
    assert [matched[rank][0][0] for rank in range(6)] == [2, 0, 1, 5, 3, 4]
    calls = [[("sendrecv", 1 - rank // 3, 0, 8, 1 - rank // 3, 0, {"comm": 1})] for rank in range(6)]
    matched = simulated(calls, [{"kind": "strided", "stride": 3, "count": 2}])
    assert [matched[rank][0][0] for rank in range(6)] == [3, 4, 5, 0, 1, 2]


def test_a_probe_says_who_sent_and_the_answer_goes_there() -> None:
    """A server that answers whoever asks, in the order in which they ask."""
    calls: list[list[Call]] = [
        [("probe", ANY, ANY), ("recv", LAST, LAST), ("send", LAST, 9, 8)] * 3,
        [("compute", 9000 * NANOSECOND), ("send", 0, 4, 8), ("recv", 0, 9)],
        [("compute", 3000 * NANOSECOND), ("send", 0, 5, 100_000), ("recv", 0, 9)],
        [("compute", 6000 * NANOSECOND), ("send", 0, 6, 8), ("recv", 0, 9)],
    ]
    matched = simulated(calls)
    assert [matched[0][index] for index in (1, 4, 7)] == [(2, 5, 0), (3, 6, 0), (1, 4, 0)]
    assert [matched[rank][2] for rank in (2, 3, 1)] == [(0, 9, 0), (0, 9, 1), (0, 9, 2)]


def test_persistent_requests_run_again_and_again() -> None:
    """Made once, started three times; what is sent and received is counted on."""
    times = 3
    calls: list[list[Call]] = [
        [("send_init", 0, 1, 2, 8), ("recv_init", 1, NOBODY, 0)]
        + [("start", 0, 2), ("waitall", 0, 2)] * times,
        [("recv_init", 5, 0, ANY)] + [("start", 5, 1), ("wait", 5)] * times,
    ]
    program, _ = core_program(calls)
    job = finished(make_job(program, check=True))
    assert list(job.completions()["value"]) == [0, 1, 2]
    calls[0][1] = ("isend", 1, 1, 2, 8)
    program, _ = core_program(calls)
    with pytest.raises(RuntimeError, match="slot 1 holds no persistent request"):
        make_job(program).run()


@pytest.mark.parametrize("kind", ["waitany", "waitsome"])
def test_waiting_for_one_of_several(kind: str) -> None:
    """Three messages at different times: each wait ends with the next one."""
    calls: list[list[Call]] = [
        [("irecv", slot, slot + 1, 0) for slot in range(3)]
        + [(kind, 0, 3), ("send", 1, 1, 8), (kind, 0, 3), ("send", 2, 1, 8), (kind, 0, 3), (kind, 0, 3)],
        [("send", 0, 0, 8), ("recv", 0, 1)],
        [("compute", 5000 * NANOSECOND), ("send", 0, 0, 8), ("recv", 0, 1)],
        [("compute", 50_000 * NANOSECOND), ("send", 0, 0, 8)],
    ]
    program, _ = core_program(calls)
    end = finished(make_job(program)).ranks()["end"]
    assert end[1] < 5000 * NANOSECOND < end[2] < 50_000 * NANOSECOND < end[0]


def test_tests_look_and_go_on() -> None:
    """A test before the message leaves the request, one after it takes it, so that the slot is free again."""
    calls: list[list[Call]] = [
        [
            ("irecv", 0, 1, 0),
            ("test", 0),
            ("compute", 9000 * NANOSECOND),
            ("testall", 0, 1),
            ("irecv", 0, 1, 0),
            ("wait", 0),
            ("iprobe", ANY, ANY),
        ],
        [("compute", 2000 * NANOSECOND), ("send", 0, 0, 8), ("send", 0, 0, 8)],
    ]
    assert simulated(calls)[0] == {0: (1, 0, 0), 4: (1, 0, 1)}
    calls[0].pop(2)
    program, _ = core_program(calls)
    with pytest.raises(RuntimeError, match="slot 0 holds a request that nobody has waited for"):
        make_job(program).run()


def test_nobody_is_a_partner_that_never_keeps_one_waiting() -> None:
    calls: list[list[Call]] = [
        [
            ("send", NOBODY, 0, 10**6),
            ("recv", NOBODY, 0),
            ("sendrecv", NOBODY, 0, 8, NOBODY, 0),
            ("irecv", 0, NOBODY, 0),
            ("isend", 1, NOBODY, 0, 10**6),
            ("waitall", 0, 2),
        ]
    ]
    program, _ = core_program(calls)
    assert finished(make_job(program)).ranks()["end"][0] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("send", 7, 0, 8), "rank 0, operation 0 .send.: 7 is not a rank of communicator 0, which has 2"),
        (("send", 1, -5, 8), "-5 is not a tag"),
        (("send", 1, 0, -1), "a message cannot have -1 bytes"),
        (("send", ANY, 0, 8), "-2 is not a rank"),
        (("compute", -1), "a compute phase cannot last -1 fs"),
        (("broadcast", {"peer": 4, "bytes": 8}), "the root 4 is not a rank"),
    ],
)
def test_wrong_operands_are_named(call: Call, message: str) -> None:
    program, _ = core_program([[call], []])
    with pytest.raises(RuntimeError, match=message):
        make_job(program).run()
