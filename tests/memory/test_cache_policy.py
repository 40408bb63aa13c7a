# SPDX-License-Identifier: Apache-2.0
"""What a cache keeps, fetches and writes back, against small reference models without timing.

The reference takes one access after the other, so the core's window is one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hierarchies import (
    NONE,
    misses,
    numbers,
    run_trace,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_cache import LINE, POLICIES, ReferenceCache, compare, folded, l1_of, random_lines

SHAPES = {
    "direct mapped": (16, 1),
    "two ways": (32, 2),
    "eight ways": (64, 8),
    "fully associative": (32, 32),
    "one line": (1, 1),
    "3 sets": (12, 4),
    "5 sets, direct mapped": (5, 1),
    "12 sets": (96, 8),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_hits_and_evictions_are_those_of_the_reference(shape: str, policy: str) -> None:
    """Hits, misses by cause, evictions and write-backs of 2000 loads and stores, exactly."""
    lines, ways = SHAPES[shape]
    where = random_lines(2000, lines, seed=lines)
    kinds = np.random.default_rng(1).integers(0, 10, len(where)) < 3
    result = run_trace(where * LINE, kinds, l1=l1_of(lines, ways, replacement=policy), l2=NONE)
    reference = ReferenceCache(lines, ways, policy)
    for number, write in zip(where.tolist(), kinds.tolist(), strict=True):
        reference.access(number, write)
    core = numbers(result, "core")
    compare(core, reference, "l1.")
    assert core["l1.bytes_in"] == LINE * misses(core, "l1.")
    assert core["l1.bytes_out"] == LINE * core["l1.writebacks"]
    assert core["l1.reads"] + core["l1.writes"] == len(where)
    assert core["l1.writes"] == kinds.sum()


@settings(max_examples=40)
@given(
    shape=st.sampled_from([(4, 4), (8, 2), (6, 2), (16, 4)]),
    policy=st.sampled_from(list(POLICIES)),
    accesses=st.lists(st.tuples(st.integers(0, 24), st.booleans()), min_size=1, max_size=200),
)
def test_hits_and_evictions_are_those_of_the_reference_on_any_trace(
    shape: tuple[int, int], policy: str, accesses: list[tuple[int, bool]]
) -> None:
    """As above, on what hypothesis finds."""
    where = np.array([number for number, _ in accesses])
    l1 = l1_of(*shape, replacement=policy)
    result = run_trace(where * LINE, [int(write) for _, write in accesses], l1=l1, l2=NONE)
    reference = ReferenceCache(*shape, policy)
    for number, write in accesses:
        reference.access(number, write)
    compare(numbers(result, "core"), reference, "l1.")


@pytest.mark.parametrize("lines", [16, 64, 96])
def test_a_hashed_index_is_the_xor_of_three_groups_of_bits(lines: int) -> None:
    """Set = (n ^ n >> b ^ n >> 2 b) mod sets, with b bits to the index."""
    where = random_lines(2000, lines, seed=5)
    result = run_trace(where * LINE, l1=l1_of(lines, 2, hash_index=True), l2=NONE)
    reference = ReferenceCache(lines, 2, index=folded(lines // 2))
    for number in where.tolist():
        reference.access(number)
    compare(numbers(result, "core"), reference, "l1.")


def test_a_hashed_index_keeps_strides_apart_that_meet_in_one_set_without() -> None:
    """64 lines at a stride of 64 lines, four times, in 64 sets of one way: none of the later ones hits, or all do."""
    where = np.tile(np.arange(64) * 64, 4) * LINE
    for hashed, expected in ((False, 0), (True, 3 * 64)):
        core = numbers(run_trace(where, l1=l1_of(64, 1, hash_index=hashed), l2=NONE), "core")
        assert core["l1.hits"] == expected
        assert core["l1.misses_conflict"] == 3 * 64 - expected


@pytest.mark.parametrize("ways", [2, 4, 8, 64])
def test_random_replacement_hits_as_often_as_chance_says(ways: int) -> None:
    """ways + 1 lines in turn: (ways - 1) / (ways + 1) of them hit.

    A miss drives out one of the `ways` others, which comes 1 to `ways` accesses later, each as likely: a miss every
    (ways + 1) / 2 accesses on average, with a variance of (ways^2 - 1) / 12. LRU would miss all. The first `ways`
    accesses, which find the cache empty, miss anyway.
    """
    accesses = 20_000
    where = np.arange(accesses) % (ways + 1) * LINE
    core = numbers(run_trace(where, l1=l1_of(ways, ways, replacement="random"), l2=NONE), "core")
    mean, variance = (ways + 1) / 2, (ways**2 - 1) / 12
    expected = ways + (accesses - ways) / mean
    deviation = (misses(core, "l1.") - expected) / (accesses * variance / mean**3) ** 0.5
    assert abs(deviation) < 4, f"{misses(core, 'l1.')} misses, {deviation:+.1f} sigma from {expected:.0f}"
    lru = numbers(run_trace(where, l1=l1_of(ways, ways), l2=NONE), "core")
    assert lru["l1.hits"] == 0


def test_random_replacement_takes_every_way_alike() -> None:
    """600 sets of 4 ways are filled and get one more line each, then the lines of one way are asked for again.

    Those that miss were replaced: a quarter of the sets for each way, within 4 sigma, and over the ways all of them.
    """
    sets, ways = 600, 4
    lines = np.arange(sets * (ways + 1))
    l1 = l1_of(sets * ways, ways, replacement="random")
    gone = []
    for way in range(ways):
        again = lines[way * sets : (way + 1) * sets]
        core = numbers(run_trace(np.concatenate([lines, again]) * LINE, l1=l1, l2=NONE), "core")
        gone.append(misses(core, "l1.") - len(lines))
    allowed = 4 * (sets / ways * (1 - 1 / ways)) ** 0.5
    assert sum(gone) == sets
    assert all(abs(count - sets / ways) < allowed for count in gone), f"by way {gone}, not {sets / ways} each"


def test_the_causes_of_misses_add_up_and_say_what_they_mean() -> None:
    """17 lines in turn in a fully associative cache of 16 are capacity; 2 lines that meet in a set are conflict."""
    turns = np.tile(np.arange(17), 5) * LINE
    core = numbers(run_trace(turns, l1=l1_of(16, 16), l2=NONE), "core")
    assert (core["l1.misses_cold"], core["l1.misses_capacity"], core["l1.misses_conflict"]) == (17, 68, 0)
    conflicting = np.tile([0, 16], 5) * LINE
    core = numbers(run_trace(conflicting, l1=l1_of(16, 1), l2=NONE), "core")
    assert (core["l1.misses_cold"], core["l1.misses_capacity"], core["l1.misses_conflict"]) == (2, 0, 8)
    core = numbers(run_trace(conflicting, l1=l1_of(16, 1, classify_misses=False), l2=NONE), "core")
    assert (core["l1.misses_cold"], core["l1.misses_capacity"], core["l1.misses_conflict"]) == (10, 0, 0)


@pytest.mark.parametrize(
    "policy",
    [
        "lru",
        "tree-plru",
        "srrip",
    ],
)
def test_the_shared_cache_keeps_what_the_reference_keeps(policy: str) -> None:
    """An L1 of one line passes all on, and writes a dirty line back a cycle after the next miss.

    Neighbours are in different sets of the 16: the write would not replace the line that is on its way there.
    """
    chosen: list[int] = []
    for number in random_lines(2000, 64, seed=9).tolist():
        if not chosen or number % 16 != chosen[-1] % 16:
            chosen.append(number)
    where = np.array(chosen)
    kinds = np.random.default_rng(2).integers(0, 10, len(where)) < 3
    shared = {"size": f"{64 * LINE}B", "ways": 4, "replacement": policy}
    result = run_trace(where * LINE, kinds, l1=l1_of(1, 1), l2=NONE, shared=shared)
    reference = ReferenceCache(64, 4, policy)
    before: int | None = None
    for number, write in zip(where.tolist(), kinds.tolist(), strict=True):
        reference.access(number)
        if before is not None:
            reference.access(before, write=True)
        before = number if write else None
    got = numbers(result, "shared")
    compare(got, reference)
    channel = numbers(result, "channel")
    assert channel["writes"] == reference.counts["writebacks"]
    assert channel["read_bytes"] == got["bytes_in"]
    assert channel["write_bytes"] == got["bytes_out"]


@pytest.mark.parametrize("slices", [1, 4, 6])
def test_the_sets_of_a_slice_are_chosen_by_what_the_slices_leave_of_the_line_number(slices: int) -> None:
    """Every `slices`-th line, 64 in all and twice, into 64 lines of 4 ways: the index is line number / slices."""
    where = np.tile(np.arange(64) * slices, 2) * LINE
    shared = {"size": f"{64 * LINE}B", "ways": 4}
    apart = numbers(
        run_trace(where, l1=l1_of(1, 1), l2=NONE, shared=shared, slices={"slices": slices}), "shared"
    )
    assert apart["hits"] == 64
    together = numbers(run_trace(where, l1=l1_of(1, 1), l2=NONE, shared=shared), "shared")
    reference = ReferenceCache(64, 4)
    for address in where.tolist():
        reference.access(address // LINE)
    compare(together, reference)


# Sectors.
