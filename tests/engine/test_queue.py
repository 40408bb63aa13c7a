# SPDX-License-Identifier: Apache-2.0
"""Every queue gives events back in the order of (time, order), whatever is pushed between the pops."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale import _core

QUEUES = _core.queue_names()
TIMES = st.one_of(
    st.integers(0, 50),
    st.integers(0, 10**6),
    st.integers(0, _core.never - 1),
    st.sampled_from([0, 63, 64, 65, 4095, 4096, 2**62, _core.never - 1]),
)


@pytest.mark.parametrize("name", QUEUES)
@given(st.lists(st.tuples(TIMES, st.integers(0, 2**63 - 1)), unique=True, max_size=300))
def test_pops_come_sorted(name: str, events: list[tuple[int, int]]) -> None:
    queue = _core.EventQueue.make(name)
    for time, order in events:
        queue.push(time, order)
    popped = []
    while (event := queue.pop_before(_core.never)) is not None:
        popped.append(event)
    assert popped == sorted(events)
    assert len(queue) == 0
    assert queue.next_time() == _core.never


@pytest.mark.parametrize("name", QUEUES)
@given(
    st.lists(st.tuples(TIMES, st.integers(0, 3)), max_size=200),
    st.lists(st.one_of(st.none(), TIMES), max_size=300),
)
def test_pushes_between_pops_keep_the_order(
    name: str, first: list[tuple[int, int]], actions: list[int | None]
) -> None:
    """Against heapq, with pushes that may lie before what was popped last (another partition's, say)."""
    queue, reference = _core.EventQueue.make(name), []
    for number, (time, order) in enumerate(first):
        queue.push(time, order * 1000 + number)
        heapq.heappush(reference, (time, order * 1000 + number))
    for number, action in enumerate(actions):
        if action is None:
            expected = heapq.heappop(reference) if reference else None
            assert queue.pop_before(_core.never) == expected
        else:
            queue.push(action, 10**6 + number)
            heapq.heappush(reference, (action, 10**6 + number))
        assert len(queue) == len(reference)
        assert queue.next_time() == (reference[0][0] if reference else _core.never)


@pytest.mark.parametrize("name", QUEUES)
def test_an_event_at_the_end_is_not_before_it(name: str) -> None:
    queue = _core.EventQueue.make(name)
    queue.push(100, 0)
    assert queue.pop_before(100) is None
    assert queue.pop_before(101) == (100, 0)


@pytest.mark.parametrize("population", [1, 1000, 20_000])
def test_all_queues_run_the_hold_model_alike(population: int) -> None:
    checksums = {name: _core.run_hold(name, population, 20_000)["checksum"] for name in ["std", *QUEUES]}
    assert len(set(checksums.values())) == 1, checksums


def test_memory_per_event_stays_near_the_event_size() -> None:
    assert _core.run_hold("radix", 200_000, 400_000)["bytes_per_event"] < 64


def test_an_unknown_queue_is_named() -> None:
    with pytest.raises(ValueError, match="no event queue named 'fifo'; known: heap, radix"):
        _core.EventQueue.make("fifo")
