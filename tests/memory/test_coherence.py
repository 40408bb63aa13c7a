# SPDX-License-Identifier: Apache-2.0
"""Coherence under random traffic, checked by value from outside.

Every access is logged with the moment it took effect. A line is written by one core at a time and every cached copy is
gone before that, so in the order of those moments each read returns what the last write left: single writer, last
write wins. The checker is numpy and independent of the protocol.
"""

from __future__ import annotations

import numpy as np
import pytest
from hierarchies import coherent_cores

import manyscale as ms
from manyscale import _core
from manyscale.system.component import NativeComponent

RECORD = np.dtype([("time", "<i8"), ("address", "<u8"), ("value", "<u8"), ("kind", "<u8")])
LOAD, STORE, ATOMIC = 0, 1, 2


def take_logs(cores: list[NativeComponent]) -> tuple[np.ndarray, np.ndarray]:
    """All accesses since the last call and the core of each, ordered by line and moment."""
    logs = [np.frombuffer(_core.take_log(core.native), RECORD) for core in cores]
    accesses = np.concatenate(logs)
    core = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    number = np.concatenate([np.arange(len(log)) for log in logs])
    order = np.lexsort((number, core, accesses["time"], accesses["address"] // 64))
    return accesses[order], core[order]


def wrong_reads(accesses: np.ndarray, before: dict[int, int]) -> int:
    """How many reads and atomic operations did not see the last write; `before` has and gets each line's value."""
    line = accesses["address"] // 64
    reads = accesses["kind"] != STORE
    writes = accesses["kind"] != LOAD
    # A store leaves its value; an addition of one leaves what it read plus one.
    left = np.where(accesses["kind"] == ATOMIC, accesses["value"] + 1, accesses["value"])
    index = np.arange(len(accesses))
    first = np.searchsorted(line, line)  # of the same line
    last_write = np.maximum.accumulate(np.where(writes, index, -1))
    previous = np.concatenate([[-1], last_write[:-1]])
    known = previous >= first
    start = np.array([before.get(int(number), 0) for number in line[~known]], dtype=np.uint64)
    expected = np.where(known, left[previous], 0).astype(np.uint64)
    expected[~known] = start
    wrong = int(np.sum(reads & (accesses["value"] != expected)))
    for number in np.unique(line):
        of_line = np.flatnonzero((line == number) & writes)
        if len(of_line):
            before[int(number)] = int(left[of_line[-1]])
    return wrong


VARIANTS = {
    "inclusive": {},
    "not inclusive": {"inclusive": False},
    "two private levels": {"l2": "1KiB"},
    "delays": {"jitter": "30ns"},
    "delays that reorder": {"jitter": "30ns", "reorder": True},
    "all at once": {"jitter": "50ns", "reorder": True, "inclusive": False, "l2": "1KiB", "homes": 3},
    "prefetching": {"prefetcher": {"kind": "next_line"}, "lines": 64},
    "one line": {"lines": 1},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_read_sees_the_last_write(variant: str) -> None:
    system, cores = coherent_cores(**VARIANTS[variant])
    system.run(threads=2)
    accesses, _ = take_logs(cores)
    assert len(accesses) == 8 * 2000
    assert wrong_reads(accesses, {}) == 0


@pytest.mark.parametrize("inclusive", [True, False])
def test_a_directory_knows_128_cores_apart(inclusive: bool) -> None:
    """Many cores share few lines, so that requesters beyond the first 64 own, share and lose them."""
    system, cores = coherent_cores(cores=128, accesses=100, lines=16, inclusive=inclusive)
    system.run(threads=2)
    accesses, core = take_logs(cores)
    assert len(accesses) == 128 * 100
    assert len(np.unique(core[accesses["kind"] == STORE])) == 128
    assert wrong_reads(accesses, {}) == 0


def test_the_checker_finds_a_single_wrong_value() -> None:
    system, cores = coherent_cores()
    system.run()
    accesses, _ = take_logs(cores)
    spoilt = accesses.copy()
    spoilt["value"][np.flatnonzero(spoilt["kind"] == LOAD)[777]] += 1
    assert wrong_reads(spoilt, {}) == 1


def test_caches_without_coherence_are_found_out() -> None:
    """The same traffic through write-back caches that do not ask a home: reads go wrong, and the checker says so."""
    system = ms.System("incoherent", seed=3)
    cores = [
        system.add(
            "memory.generator",
            f"core[{i}]",
            pattern="random",
            accesses=2000,
            footprint="1536B",
            window=4,
            writes=0.3,
            log=True,
            l1={"size": "512B", "ways": 2},
        )
        for i in range(4)
    ]
    shared = system.add(
        "memory.cache", "shared", keep_values=True, cache={"size": "8KiB", "line": "64B", "ways": 4}
    )
    channel = system.add("memory.dram", "channel", backend="simple", keep_values=True)
    for core in cores:
        system.connect(core.memory, shared.requesters, "1ns")
    system.connect(shared.memory, channel.requests, "5ns")
    system.run()
    accesses, _ = take_logs(cores)
    assert wrong_reads(accesses, {}) > 100


@pytest.mark.long
def test_ten_million_accesses_with_delays_and_no_deadlock() -> None:
    """8 cores, small caches, messages delayed and reordered at random; checked in slices of simulated time."""
    accesses = 10_000_000
    caches = {"size": "2KiB", "ways": 4, "outstanding_misses": 4}
    system, cores = coherent_cores(
        accesses=accesses // 8, jitter="10ns", reorder=True, lines=40, writes=0.1, l1=caches
    )
    before: dict[int, int] = {}
    seen = wrong = limit = 0
    outcome = "limit"
    while outcome == "limit":
        limit += 5
        outcome = system.run(until=f"{limit}ms").outcome
        slice_, _ = take_logs(cores)
        seen += len(slice_)
        wrong += wrong_reads(slice_, before)
    assert outcome == "finished"
    assert (seen, wrong) == (accesses, 0)


@pytest.mark.parallel
@pytest.mark.parametrize("variant", ["delays that reorder", "all at once"])
def test_the_same_statistics_on_any_number_of_threads(variant: str) -> None:
    tables = []
    for threads in (1, 2, 4):
        system, _ = coherent_cores(accesses=1000, **VARIANTS[variant])
        result = system.run(threads=threads)
        assert result.threads == threads
        tables.append(result.columns)
    assert tables[0] == tables[1] == tables[2]


def test_atomic_additions_are_never_lost() -> None:
    """Eight cores add one to each of a few lines: the lines' values add up to the number of additions."""
    system, cores = coherent_cores(
        accesses=3000, writes=0.0, atomics=1.0, lines=5, jitter="20ns", reorder=True
    )
    system.run(threads=2)
    accesses, _ = take_logs(cores)
    line = accesses["address"] // 64
    total = sum(int(accesses["value"][line == number].max()) + 1 for number in np.unique(line))
    assert total == 8 * 3000


def test_an_upgrade_needs_no_data_and_costs_less() -> None:
    """One core reads a line that another shares, then writes it: permission comes without data."""
    system, _ = coherent_cores(cores=2, accesses=400, lines=2, writes=0.5, atomics=0.0)
    result = system.run()
    assert sum(result.value(f"home[{i}]", "upgrades") for i in range(2)) > 0


def test_inclusive_homes_take_lines_back_and_others_do_not() -> None:
    recalls = {}
    for inclusive in (True, False):
        system, _ = coherent_cores(inclusive=inclusive)
        result = system.run()
        recalls[inclusive] = sum(result.value(f"home[{i}]", "recalls") for i in range(2))
    assert recalls[True] > 0
    assert recalls[False] == 0


def test_false_sharing_shows_as_coherence_misses() -> None:
    """Two cores write the same line over and over; alone, one core misses once."""
    system, _ = coherent_cores(cores=2, accesses=500, lines=1, writes=1.0, atomics=0.0, window=1)
    shared = system.run()
    alone_system, _ = coherent_cores(cores=1, accesses=500, lines=1, writes=1.0, atomics=0.0, window=1)
    alone = alone_system.run()
    assert shared.value("core[0]", "l1.misses_coherence") > 20
    assert alone.value("core[0]", "l1.misses_coherence") == 0
    assert alone.value("core[0]", "l1.misses_cold") == 1


def test_more_requesters_than_the_directory_has_room_for_are_refused() -> None:
    system, _ = coherent_cores(cores=257, accesses=1)
    with pytest.raises(ms.ManyscaleError, match="at most 256 requesters"):
        system.run()


def test_a_home_answers_in_the_sum_of_its_parts() -> None:
    """L1's tags, the link, the home's tags and data, the link: 1 + 4 + 8 + 22 + 4 cycles of 500 ps is 19.5 ns.

    From memory: the home's data time is replaced by two links of 5 ns and the 40 ns and 2.5 ns (64 B at 25.6 GB/s)
    of the channel.
    """
    for lines, expected in ((4096, 19_500_000), (1_000_000, 61_000_000)):
        system = ms.System("one coherent core")
        core = system.add(
            "memory.generator",
            "core",
            pattern="chase",
            accesses=2 * 4096,
            footprint=f"{64 * lines}B",
            window=1,
            clock="2GHz",
            coherent=True,
            l1={"size": "4KiB", "ways": 1, "tag_latency": 1, "data_latency": 3},
        )
        home = system.add("memory.home", "home", clock="2GHz")
        channel = system.add("memory.dram", "channel", backend="simple", latency="40ns", bandwidth="25.6GB/s")
        system.connect(core.memory, home.requesters, "2ns")
        system.connect(home.memory, channel.requests, "5ns")
        result = system.run()
        least = result.value("core", "latency.min")
        most = result.value("core", "latency.max")
        assert (least if lines == 4096 else most) == expected, (least, most)


def test_a_write_through_cache_sees_others_writes_only_after_it_dropped_its_lines() -> None:
    """A GPU's L1: one core writes, another reads the same line; the reader keeps its old copy until it invalidates."""
    seen = {}
    for invalidate_every in (0, 50):
        system = ms.System("two SMs")
        writer, reader = (
            system.add(
                "memory.generator",
                name,
                pattern="stream",
                accesses=400,
                footprint="32B",
                size="32B",
                interval=20,
                writes=1.0 if name == "writer" else 0.0,
                log=True,
                invalidate_every=invalidate_every,
                l1={"size": "16KiB", "line": "128B", "ways": 4, "sectored": True, "write": "through"},
            )
            for name in ("writer", "reader")
        )
        shared = system.add("memory.cache", "shared", keep_values=True)
        channel = system.add("memory.dram", "channel", backend="simple", keep_values=True)
        system.connect(writer.memory, shared.requesters, "1ns")
        system.connect(reader.memory, shared.requesters, "1ns")
        system.connect(shared.memory, channel.requests, "5ns")
        system.run()
        log = np.frombuffer(_core.take_log(reader.native), RECORD)
        seen[invalidate_every] = len(np.unique(log["value"]))
    assert seen[0] == 1
    assert seen[50] == 8  # a new value after each of the seven times
