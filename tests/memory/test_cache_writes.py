# SPDX-License-Identifier: Apache-2.0
"""What a cache writes back and through, sector by sector, and which accesses share an outstanding line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hierarchies import (
    ATOMIC,
    LOAD,
    NONE,
    STORE,
    misses,
    numbers,
    one_core,
    run_trace,
    set_trace,
    trace_system,
)
from reference_cache import LINE, ReferenceCache, compare, l1_of, random_lines

import manyscale as ms
from manyscale import _core


@pytest.mark.parametrize("line", [64, 128, 256])
def test_a_sectored_cache_fetches_only_the_sectors_asked_for(line: int) -> None:
    """Data in = 32 B x sectors asked for the first time, at L1, at the shared cache and at memory."""
    rng = np.random.default_rng(3)
    where = rng.integers(0, 32 * line // 8, 500) * 8
    sectors = len(np.unique(where // 32))
    l1 = {"size": f"{64 * line}B", "line": f"{line}B", "ways": 4, "sectored": True}
    result = run_trace(where, l1=l1, l2=NONE, shared={"line": f"{line}B", "sectored": True})
    core, shared = numbers(result, "core"), numbers(result, "shared")
    assert core["l1.hits"] == len(where) - sectors
    assert core["l1.bytes_in"] == shared["bytes_in"] == 32 * sectors
    assert numbers(result, "channel")["read_bytes"] == 32 * sectors
    whole = run_trace(
        where, l1={**l1, "sectored": False}, l2=NONE, shared={"line": f"{line}B", "sectored": True}
    )
    assert numbers(whole, "core")["l1.bytes_in"] == 32 * line


@pytest.mark.parametrize("granularity", [32, 64, 128])
def test_a_miss_fetches_the_aligned_sectors_beside_it(granularity: int) -> None:
    """One sector of each of 16 lines, then the one beside it: the second is there where 64 B come at a time."""
    where = np.concatenate([np.arange(16) * 128 + 32, np.arange(16) * 128])
    l1 = {"size": "8KiB", "line": "128B", "ways": 4, "sectored": True}
    shared = {"line": "128B", "sectored": True}
    slices = {"fetch_granularity": f"{granularity}B"}
    system = trace_system(where, l1=l1, l2=NONE, shared=shared, slices=slices)
    result = system.run()
    assert numbers(result, "channel")["read_bytes"] == 16 * max(64, granularity)
    assert numbers(result, "shared")["hits"] == (0 if granularity == 32 else 16)
    assert numbers(result, "core")["l1.bytes_in"] == 32 * 32


def test_a_shared_cache_without_sectors_fetches_whole_lines_for_a_core_with_them() -> None:
    """One sector of each of 16 lines of 128 B: 32 B each to the core, 128 B each from memory."""
    where = np.arange(16) * 128
    l1 = {"size": "8KiB", "line": "128B", "ways": 4, "sectored": True}
    result = run_trace(where, l1=l1, l2=NONE, shared={"line": "128B", "sectored": False})
    assert numbers(result, "core")["l1.bytes_in"] == 16 * 32
    assert numbers(result, "shared")["bytes_in"] == 16 * 128


def test_a_store_to_a_second_sector_of_a_dirty_line_is_written_back_too() -> None:
    """Store to sector 0, load of sector 1, store to sector 1; when the line leaves, both sectors (64 B) go down."""
    l1 = {"size": "64B", "ways": 1, "sectored": True}
    result = run_trace(
        [0, 32, 32, LINE], [STORE, LOAD, STORE, LOAD], l1=l1, l2=NONE, shared={"sectored": True}
    )
    core = numbers(result, "core")
    assert core["l1.writebacks"] == 1
    shared = shared_write_sectors([0, 32, 32, LINE], [STORE, LOAD, STORE, LOAD], l1)
    assert shared == 2, f"{shared} sectors arrived below, not 2"


def test_a_write_back_of_one_sector_counts_one_sector() -> None:
    """A store to one sector of a line of 64 B; when the line leaves, 32 B go down, and the statistics say so."""
    l1 = {"size": "64B", "ways": 1, "sectored": True}
    result = run_trace([0, LINE], [STORE, LOAD], l1=l1, l2=NONE, shared={"sectored": True})
    assert shared_write_sectors([0, LINE], [STORE, LOAD], l1) == 1
    assert numbers(result, "core")["l1.bytes_out"] == 32


def shared_write_sectors(where: Sequence[int], kinds: Sequence[int], l1: dict[str, Any]) -> int:
    """Sectors that L1 writes down, as memory sees them through a shared cache that keeps no writes."""
    shared = {"sectored": True, "write": "through"}
    result = run_trace(where, kinds, l1=l1, l2=NONE, shared=shared)
    return int(numbers(result, "channel")["write_bytes"]) // 32


# Writes.


@pytest.mark.parametrize("sectored", [False, True])
def test_a_write_through_cache_sends_every_write_and_takes_no_line_for_it(sectored: bool) -> None:
    """Writes below = stores, hit or miss; a store hits where a load brought the line, and brings none itself."""
    where = random_lines(2000, 64, seed=4)
    kinds = np.random.default_rng(5).integers(0, 10, len(where)) < 4
    l1 = l1_of(64, 4, write="through", sectored=sectored)
    result = run_trace(where * LINE, kinds, l1=l1, l2=NONE, shared={"sectored": True})
    reference = ReferenceCache(64, 4)
    for number, write in zip(where.tolist(), kinds.tolist(), strict=True):
        reference.access(number, allocate=not write)
    core, shared = numbers(result, "core"), numbers(result, "shared")
    assert core["l1.hits"] == reference.counts["hits"]
    assert core["l1.evictions"] == reference.counts["evictions"]
    assert core["l1.writebacks"] == 0
    assert core["l1.writes"] == shared["writes"] == kinds.sum()
    assert core["l1.bytes_out"] == kinds.sum() * (32 if sectored else LINE)
    assert shared["reads"] == len(where) - kinds.sum() - load_hits(where, kinds)


def load_hits(where: np.ndarray, kinds: np.ndarray) -> int:
    """Loads that hit an L1 of 64 lines, 4 ways, that takes lines for loads only."""
    reference = ReferenceCache(64, 4)
    hits = 0
    for number, write in zip(where.tolist(), kinds.tolist(), strict=True):
        hits += not write and reference.holds(number)
        reference.access(number, allocate=not write)
    return hits


def test_the_misses_of_a_write_through_cache_are_those_of_the_reference() -> None:
    """Stores that miss are misses too: reads + writes = hits + misses by cause."""
    where = random_lines(1000, 64, seed=4)
    kinds = np.random.default_rng(5).integers(0, 10, len(where)) < 4
    core = numbers(run_trace(where * LINE, kinds, l1=l1_of(64, 4, write="through"), l2=NONE), "core")
    reference = ReferenceCache(64, 4)
    for number, write in zip(where.tolist(), kinds.tolist(), strict=True):
        reference.access(number, allocate=not write)
    compare(core, reference, "l1.")


def test_an_atomic_operation_happens_below_a_write_through_cache() -> None:
    """Load, atomic addition, load of one line: the second load misses, since the copy was old."""
    l1 = l1_of(64, 4, write="through")
    result = run_trace([0, 0, 0, 0], [LOAD, ATOMIC, LOAD, LOAD], l1=l1, l2=NONE)
    core, shared = numbers(result, "core"), numbers(result, "shared")
    assert core["l1.hits"] == 1
    assert (shared["reads"], shared["writes"], shared["hits"]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("write", "allocate", "expected"),
    [
        # hits of the loads, writes at memory, reads at memory
        ("back", True, (32, 0, 0)),
        ("back", False, (0, 32, 32)),
        ("through", True, (0, 32, 32)),
        ("through", False, (0, 32, 32)),
    ],
)
def test_the_shared_cache_takes_lines_for_writes_as_it_is_told(
    write: str, allocate: bool, expected: tuple[int, int, int]
) -> None:
    """32 stores of whole lines, then 32 loads of them, from a core that keeps none of it.

    Where the stores took lines, the loads hit and memory sees nothing; else memory sees each of them.
    """
    where = np.tile(np.arange(32), 2) * LINE
    kinds = [STORE] * 32 + [LOAD] * 32
    result = run_trace(
        where,
        kinds,
        l1=l1_of(64, 4, write="through"),
        l2=NONE,
        shared={"write": write, "allocate_on_write": allocate},
    )
    shared, channel = numbers(result, "shared"), numbers(result, "channel")
    assert (shared["hits"], channel["writes"], channel["reads"]) == expected
    assert shared["bytes_out"] == channel["write_bytes"] == expected[1] * LINE


@pytest.mark.parametrize(("write", "expected"), [("back", 0), ("through", 32)])
def test_writes_that_hit_the_shared_cache_go_down_only_if_it_writes_through(
    write: str, expected: int
) -> None:
    """32 loads, then 32 stores of the same lines: all of the stores hit."""
    where = np.tile(np.arange(32), 2) * LINE
    kinds = [LOAD] * 32 + [STORE] * 32
    shared = {"write": write, "allocate_on_write": False}
    result = run_trace(where, kinds, l1=l1_of(64, 4, write="through"), l2=NONE, shared=shared)
    assert numbers(result, "shared")["hits"] == 32
    assert numbers(result, "channel")["writes"] == expected


def test_a_store_written_through_while_its_line_is_on_the_way_is_seen_by_the_next_load() -> None:
    """A line that L1 lost and the shared cache has: load, store, and later a load, which returns what was stored."""
    system = trace_system(
        np.array([0, 4, 0, 0, 1, 2, 3, 0]) * LINE,
        [LOAD, LOAD, LOAD, STORE, LOAD, LOAD, LOAD, LOAD],
        l1=l1_of(4, 1, write="through"),
        l2=NONE,
        window=2,
        log=True,
        slices={"keep_values": True},
        dram={"keep_values": True},
    )
    system.run()
    log = np.frombuffer(_core.take_log(system.components["core"].native), "<u8").reshape(-1, 4)
    stored = log[log[:, 3] == STORE][0, 2]
    last = log[log[:, 1] == 0][-1]
    assert last[3] == LOAD
    assert last[2] == stored, f"the load returned {last[2]}, not {stored}"


def test_an_atomic_operation_on_a_line_with_a_sector_under_way_does_no_harm() -> None:
    """Sector 0 is there, sector 1 on its way; an atomic operation drops the line, and others want its way."""
    system = trace_system(
        [0, LINE, 2 * LINE, 3 * LINE, 32, 0, 4 * LINE, 8 * LINE, 32, 0],
        [LOAD, LOAD, LOAD, LOAD, LOAD, ATOMIC, LOAD, LOAD, LOAD, LOAD],
        l1=l1_of(4, 1, write="through", sectored=True),
        l2=NONE,
        window=4,
        shared={"sectored": True},
    )
    result = system.run()
    assert numbers(result, "core")["completed"] == 10


# Two private levels.


def two_levels(
    where: Sequence[int], kinds: Sequence[bool], inclusive: bool = True
) -> tuple[ReferenceCache, ReferenceCache]:
    """L1 of 16 lines, 2 ways, and L2 of 32 lines, 4 ways, that L1's lines are among."""
    l1, l2 = ReferenceCache(16, 2), ReferenceCache(32, 4)
    dirty: set[int] = set()
    for number, write in zip(where, kinds, strict=True):
        if not l1.holds(number):
            left = l2.access(number, write or number in dirty)
            if left is not None:
                dirty.discard(left)
                if inclusive:
                    l1.forget(left)
        if write:
            dirty.add(number)
            l2.dirty.add(number)
        l1.access(number)
    return l1, l2


def test_what_leaves_the_second_level_leaves_the_first() -> None:
    """Hits of both levels are those of a reference in which L1 is part of L2, and not those of one where it is not."""
    where = random_lines(3000, 24, seed=11)
    where[::2] = np.arange(0, len(where), 2) % 12  # lines that stay in L1, which L2 does not see
    where = where.tolist()
    kinds = (np.random.default_rng(6).integers(0, 10, len(where)) < 3).tolist()
    result = run_trace(np.array(where) * LINE, kinds, l1=l1_of(16, 2), l2=l1_of(32, 4))
    core = numbers(result, "core")
    l1, l2 = two_levels(where, kinds)
    del l1.counts["writebacks"]  # within the core
    del l1.counts["evictions"]  # not those that L2 made
    compare(core, l1, "l1.")
    compare(core, l2, "l2.")
    alone, _ = two_levels(where, kinds, inclusive=False)
    assert alone.counts["hits"] > core["l1.hits"]


def test_a_line_that_l1_always_hits_is_lost_when_l2_replaces_it() -> None:
    """A hot line between new ones, L2 of 4 lines: L2 sees the hot line only when it fetches it, so it is the oldest
    there after 4 new ones: every fifth line that L2 fetches is the hot one again."""
    new = 200
    where = [line for number in range(1, new + 1) for line in (0, number)]
    core = numbers(run_trace(np.array(where) * LINE, l1=l1_of(2, 2), l2=l1_of(4, 4)), "core")
    assert core["l1.hits"] == new - new // 4
    assert core["l2.reads"] == new + new // 4
    assert core["l2.hits"] == 0


# Misses that join others.


def same_line(accesses: int, **core: Any) -> dict[str, int | float]:
    return numbers(run_trace([0] * accesses, l2=NONE, window=accesses, **core), "core")


def test_accesses_to_a_line_under_way_are_merged() -> None:
    """8 loads of one line at once: one miss, 7 merged, one request below."""
    core = same_line(8, l1=l1_of(64, 4))
    assert (core["l1.misses_cold"], core["l1.merged"], core["l1.hits"]) == (1, 7, 0)
    assert core["l1.bytes_in"] == LINE


def test_as_many_accesses_are_merged_as_a_line_under_way_takes() -> None:
    """With room for 4, the other 4 wait until the line is there, and hit."""
    core = same_line(8, l1=l1_of(64, 4, merged_misses=4))
    assert (core["l1.misses_cold"], core["l1.merged"], core["l1.hits"]) == (1, 3, 4)
    assert core["stalled"] == 1


def test_requests_of_several_cores_for_one_line_are_merged_in_the_shared_cache() -> None:
    """Four cores, one line: one miss, three merged, one read of memory."""
    system = ms.System("four cores")
    cores = [system.add("memory.generator", f"core[{i}]", pattern="trace", l1=l1_of(64, 4)) for i in range(4)]
    shared = system.add("memory.cache", "shared", cache={"line": "64B", "size": "64KiB"})
    channel = system.add("memory.dram", "channel", backend="simple")
    for core in cores:
        set_trace(core, [0])
        system.connect(core.memory, shared.requesters, "1ns")
    system.connect(shared.memory, channel.requests, "5ns")
    result = system.run()
    got = numbers(result, "shared")
    assert (got["misses_cold"], got["merged"], got["hits"]) == (1, 3, 0)
    assert numbers(result, "channel")["reads"] == 1


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"l2": NONE},
        {"l2": NONE, "l1": l1_of(16, 2, outstanding_misses=3, merged_misses=2)},
        {"l2": l1_of(64, 4, outstanding_misses=2)},
        {"prefetcher": {"kind": "next_line"}},
        {"pattern": "gups"},
        {"pattern": "triad"},
        {"shared": {"size": "4KiB", "ways": 4, "outstanding_misses": 2, "merged_misses": 2}},
    ],
)
def test_every_access_is_a_hit_a_miss_or_merged(given: dict[str, Any]) -> None:
    """reads + writes = hits + misses + merged at each level, and what one level misses the next one sees."""
    core_given = {
        "pattern": "random",
        "accesses": 3000,
        "footprint": "32KiB",
        "writes": 0.3,
        "window": 16,
        "l1": l1_of(16, 2),
        "l2": l1_of(64, 4),
        **given,
    }
    result = one_core(**core_given).run()
    core = numbers(result, "core")
    levels = [(core, "l1."), (numbers(result, "shared"), "")]
    if "l2.reads" in core:
        levels.insert(1, (core, "l2."))
        assert core["l2.reads"] + core["l2.writes"] == misses(core, "l1.")
    for values, prefix in levels:
        arrived = values[prefix + "reads"] + values[prefix + "writes"]
        known = values[prefix + "hits"] + misses(values, prefix) + values[prefix + "merged"]
        assert arrived == known, f"{prefix or 'shared'}: {known - arrived:+} of {arrived}"
    assert core["l1.reads"] + core["l1.writes"] == core["completed"] == 3000
    assert core["issued"] == 3000


def test_lines_under_way_are_none_at_the_end() -> None:
    """The gauge of outstanding lines ends at zero at every level."""
    result = one_core(pattern="random", accesses=500, l1=l1_of(16, 2), l2=l1_of(64, 4)).run()
    core = numbers(result, "core")
    assert numbers(result, "shared")["outstanding"] == 0
    assert core["l2.outstanding"] == 0
    assert core["l1.outstanding"] == 0, f"L1 still has {core['l1.outstanding']} outstanding lines"


@pytest.mark.parametrize("allocate", [True, False])
def test_a_private_cache_takes_a_line_for_a_store_only_if_it_is_told_to(allocate: bool) -> None:
    """One store to each of 8 lines, then one load of each: with lines taken the loads hit, without they miss."""
    where = [*range(8), *range(8)]
    kinds = [STORE] * 8 + [LOAD] * 8
    l1 = l1_of(16, 2, allocate_on_write=allocate)
    result = run_trace(np.array(where) * LINE, kinds, l1=l1, l2=NONE, window=1)
    core = numbers(result, "core")
    assert core["l1.hits"] == (8 if allocate else 0)
    assert numbers(result, "shared")["writes"] == (0 if allocate else 8)
    assert core["l1.bytes_out"] == (0 if allocate else 8 * LINE)


def test_a_coherent_cache_takes_a_line_for_every_write() -> None:
    with pytest.raises(
        ms.GraphError, match="allocate_on_write: a coherent cache takes a line for every write"
    ):
        ms.System().add("memory.generator", "core", coherent=True, l1={"allocate_on_write": False})
