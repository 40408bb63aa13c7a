# SPDX-License-Identifier: Apache-2.0
"""Traffic generators: what the patterns touch, what prefetchers change, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hierarchies import (
    ATOMIC,
    LOAD,
    NANOSECOND,
    NONE,
    RECORD,
    STORE,
    accesses_of,
    coherent_cores,
    misses,
    numbers,
    one_core,
    run_trace,
    set_trace,
    trace_system,
    translated,
)

import manyscale as ms
from manyscale import _core

LINE, PAGE = 64, 4096
CYCLE = NANOSECOND // 2
L1_HIT = 4 * CYCLE


def touched(pattern: str, accesses: int, footprint: int, **core: Any) -> np.ndarray:
    """What a pattern does, one access at a time."""
    given = {"window": 1, "log": True, **core}
    log = accesses_of(one_core(pattern=pattern, accesses=accesses, footprint=f"{footprint}B", **given))
    assert len(log) == accesses
    return log


# Patterns.


@pytest.mark.parametrize(
    ("size", "footprint", "base"), [(8, 256, 0), (4, 100, 4096), (32, 96, 64), (1, 33, 0)]
)
def test_stream_touches_element_after_element_and_begins_again(size: int, footprint: int, base: int) -> None:
    """Address of access i = base + (i mod floor(footprint / size)) x size."""
    log = touched("stream", 150, footprint, size=f"{size}B", base=f"{base}B")
    assert log["address"].tolist() == [base + i % (footprint // size) * size for i in range(150)]
    assert set(log["kind"]) == {LOAD}


@pytest.mark.parametrize("elements", [4, 24, 100])
def test_triad_reads_two_arrays_and_writes_the_third(elements: int) -> None:
    """For each i: load of b[i] and c[i], store to a[i]; a, b, c are a third of the footprint each, in this order."""
    log = touched("triad", 210, 8 * elements)
    each = elements // 3
    expected = [
        (8 * (array * each + i % each), STORE if array == 0 else LOAD)
        for i in range(70)
        for array in (1, 2, 0)
    ]
    assert list(zip(log["address"].tolist(), log["kind"].tolist(), strict=True)) == expected


@pytest.mark.parametrize(("stride", "footprint"), [(64, 1024), (256, 4096), (24, 1000), (4096, 2048)])
def test_stride_goes_in_steps_and_stays_within_the_footprint(stride: int, footprint: int) -> None:
    """Address of access i = (i x stride) mod footprint, down to a whole element of 8 B."""
    log = touched("stride", 200, footprint, stride=f"{stride}B")
    assert log["address"].tolist() == [i * stride % footprint // 8 * 8 for i in range(200)]


def test_random_touches_every_element_as_often_as_chance_says() -> None:
    """Chi-square of 6400 accesses to 64 elements: 63 degrees of freedom, within 4 sigma (sqrt(2 x 63))."""
    log = touched("random", 6400, 64 * 8, base="4KiB")
    counts = np.bincount((log["address"].astype(np.int64) - 4096) // 8, minlength=64)
    assert len(counts) == 64
    assert not (log["address"] % 8).any()
    deviation = (((counts - 100) ** 2 / 100).sum() - 63) / (2 * 63) ** 0.5
    assert abs(deviation) < 4, f"{deviation:+.1f} sigma"


@pytest.mark.parametrize("pattern", ["stream", "stride", "random"])
def test_the_share_of_stores_is_the_one_asked_for(pattern: str) -> None:
    """Stores among n accesses with share p: n p within 4 sigma, sqrt(n p (1 - p)); all or none for 1 and 0."""
    for share in (0.0, 0.3, 1.0):
        stores = (touched(pattern, 4000, 4096, writes=share)["kind"] == STORE).sum()
        allowed = 4 * (4000 * share * (1 - share)) ** 0.5
        assert abs(stores - 4000 * share) <= allowed, f"{stores} stores, {stores - 4000 * share:+}"


def test_the_share_of_atomic_operations_is_the_one_asked_for() -> None:
    """As stores, in the same draw."""
    kinds = touched("random", 4000, 4096, writes=0.2, atomics=0.5)["kind"]
    for kind, share in ((LOAD, 0.3), (STORE, 0.2), (ATOMIC, 0.5)):
        deviation = ((kinds == kind).sum() - 4000 * share) / (4000 * share * (1 - share)) ** 0.5
        assert abs(deviation) < 4, f"kind {kind}: {deviation:+.1f} sigma"


@pytest.mark.parametrize("lines", [1, 2, 3, 16, 100, 257])
def test_chase_visits_every_line_once_in_each_period(lines: int) -> None:
    """Each run of `lines` accesses is a permutation of the lines, and every run the same one."""
    log = touched("chase", 3 * lines, lines * LINE, base="1MiB")
    numbers_ = (log["address"].astype(np.int64) - (1 << 20)).reshape(3, lines)
    assert not (numbers_ % LINE).any()
    assert (numbers_ == numbers_[0]).all()
    assert sorted(numbers_[0] // LINE) == list(range(lines))


def test_chase_waits_for_its_data_whatever_the_window() -> None:
    """The time of n accesses is the sum of their latencies, with a window of 1 and of 64."""
    for window in (1, 64):
        result = one_core(pattern="chase", accesses=500, footprint="64KiB", window=window).run()
        core = numbers(result, "core")
        assert core["finished"] == core["latency.mean"] * 500


def test_gups_reads_an_element_and_writes_it_back() -> None:
    """Pairs of a load and a store to one random element."""
    log = touched("gups", 2000, 8 * 50)
    pairs = log["address"].reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).all()
    assert (log["kind"].reshape(-1, 2) == [LOAD, STORE]).all()
    assert set(pairs[:, 0].tolist()) == {8 * element for element in range(50)}


def test_a_trace_is_followed_to_the_letter() -> None:
    """Addresses and kinds of the records, in their order; `accesses` and `footprint` do not matter."""
    rng = np.random.default_rng(8)
    where, kinds = rng.integers(0, 1 << 20, 300) * 8, rng.integers(0, 3, 300)
    log = accesses_of(trace_system(where, kinds, log=True, accesses=7, footprint="32B"))
    assert log["address"].tolist() == where.tolist()
    assert log["kind"].tolist() == kinds.tolist()


def test_an_empty_trace_and_no_accesses_end_at_once() -> None:
    assert run_trace([]).now == 0
    assert one_core(accesses=0).run().now == 0


@pytest.mark.parametrize("interval", [1, 3, 10])
def test_accesses_are_issued_an_interval_apart(interval: int) -> None:
    """n hits take (n - 1) x interval + latency once the line is there; 100 cycles' work of the first is not counted."""
    finished = [
        numbers(one_core(pattern="stream", footprint="64B", accesses=n, interval=interval).run(), "core")[
            "finished"
        ]
        for n in (1000, 2000)
    ]
    assert finished[1] - finished[0] == 1000 * interval * CYCLE


def test_every_access_completes_and_moves_its_bytes() -> None:
    """Completed = issued = accesses; bytes = accesses x size; as many latencies; the series adds up."""
    result = one_core(pattern="random", accesses=3000, size="16B").run()
    core = numbers(result, "core")
    assert core["issued"] == core["completed"] == core["latency.count"] == 3000
    assert core["bytes"] == 16 * 3000
    rows = zip(result.columns["component"], result.columns["statistic"], result.columns["value"], strict=True)
    assert sum(value for owner, name, value in rows if (owner, name) == ("core", "completions")) == 3000


@pytest.mark.parametrize(
    "footprint",
    [
        "64B",
        "16KiB",
        "1MiB",
    ],
)
def test_the_run_ends_with_the_last_data(footprint: str) -> None:
    """The simulated time is that of the last access's data, whoever serves it."""
    for pattern in ("stream", "chase"):
        result = one_core(pattern=pattern, accesses=1000, footprint=footprint).run()
        finished = numbers(result, "core")["finished"]
        assert result.now == finished, (
            f"{pattern}: the run ends {result.now - finished:+} fs from the last data"
        )


# Prefetchers.

SMALL: dict[str, Any] = {"l1": {"size": "4KiB", "ways": 4}, "l2": {"size": "32KiB", "ways": 8}}
PREFETCHERS = ["next_line", "stride", "stream"]


def prefetched(kind: str, **core: Any) -> dict[str, int | float]:
    """A core with a prefetcher, one access at a time."""
    given = {**SMALL, "window": 1, "accesses": 4000, "footprint": "4MiB", **core}
    return numbers(one_core(prefetcher={"kind": kind}, **given).run(), "core")


@pytest.mark.parametrize("kind", PREFETCHERS)
def test_prefetchers_cut_the_misses_of_a_stream(kind: str) -> None:
    """Without: a miss for each line. With: most lines are there or on their way, and the run is shorter."""
    stream = {"pattern": "stream", "accesses": 8192}
    without, with_ = prefetched("none", **stream), prefetched(kind, **stream)
    assert misses(without, "l2.") == 8192 * 8 / LINE
    assert misses(with_, "l2.") < 0.6 * misses(without, "l2.")
    assert with_["finished"] < 0.7 * without["finished"]


@pytest.mark.parametrize("kind", PREFETCHERS)
def test_prefetchers_keep_ahead_of_a_slow_stream(kind: str) -> None:
    """A line each 160 ns, which memory brings in 61: a page of 64 lines costs a few misses to begin with (no prefetch
    leaves its page), then every line is there before it is asked for."""
    core = prefetched(kind, pattern="stream", accesses=8192, interval=40)
    pages = 8192 * 8 / PAGE
    assert misses(core, "l2.") <= 4 * pages, f"{misses(core, 'l2.')} misses on {pages:.0f} pages"
    assert core["prefetcher.useful"] > 10 * core["prefetcher.late"]


@pytest.mark.parametrize("kind", PREFETCHERS)
def test_prefetchers_keep_up_with_a_fast_stream(kind: str) -> None:
    """A line each 16 ns: lines are late at first, but an access that waits for one asks for the next ones too."""
    core = prefetched(kind, pattern="stream", accesses=8192)
    pages = 8192 * 8 / PAGE
    assert misses(core, "l2.") <= 4 * pages, f"{misses(core, 'l2.')} misses on {pages:.0f} pages"


@pytest.mark.parametrize("kind", PREFETCHERS)
def test_no_access_is_faster_than_a_hit(kind: str) -> None:
    """Nor is one that waits for a line that is being prefetched: no latency is below tag + data, 4 cycles."""
    core = prefetched(kind, pattern="stream", accesses=2000, interval=40)
    assert core["latency.min"] == L1_HIT, f"{core['latency.min']} fs"


def test_stores_written_through_that_are_confirmed_in_time_do_not_wait() -> None:
    """A store each 200 ns, confirmed after 8, and room for four: none has to wait."""
    l1 = {"size": "4KiB", "ways": 4, "write": "through", "outstanding_misses": 4}
    core = numbers(
        one_core(pattern="stream", accesses=500, interval=400, writes=1.0, l1=l1, l2=NONE).run(), "core"
    )
    assert core["stalled"] == 0, f"{core['stalled']} of 500 had to wait"


def test_a_stride_prefetcher_raises_the_hit_rate_of_strides_and_others_do_not() -> None:
    """256 B apart: the lines in between are of no use."""
    stride = {"pattern": "stride", "stride": "256B"}
    without = prefetched("none", **stride)
    with_ = prefetched("stride", **stride)
    assert misses(without, "l2.") == 4000
    assert misses(with_, "l2.") < 0.6 * 4000
    assert with_["finished"] < 0.6 * without["finished"]
    wrong = prefetched("next_line", **stride)
    assert misses(wrong, "l2.") == 4000
    assert wrong["prefetcher.useful"] + wrong["prefetcher.late"] == 0


@pytest.mark.parametrize("kind", ["stride", "stream"])
def test_no_prefetcher_guesses_a_chase(kind: str) -> None:
    """Nothing to learn: same misses, same time."""
    without, with_ = prefetched("none", pattern="chase"), prefetched(kind, pattern="chase")
    assert misses(with_, "l2.") == misses(without, "l2.") == 4000
    assert with_["finished"] == without["finished"]


def test_the_next_line_is_of_no_use_to_a_chase() -> None:
    """It is fetched without use: 1% of the misses at most are saved, by chance."""
    core = prefetched("next_line", pattern="chase")
    assert misses(core, "l2.") > 0.99 * 4000
    used = core["prefetcher.useful"] + core["prefetcher.late"]
    assert used < 0.01 * (used + core["prefetcher.useless"])


@pytest.mark.parametrize("pattern", ["stream", "stride", "random", "triad", "gups"])
@pytest.mark.parametrize("kind", PREFETCHERS)
def test_the_fate_of_prefetched_lines_adds_up(kind: str, pattern: str) -> None:
    """useful + late + useless <= issued - redundant; those of a stream are asked for, whatever their fate elsewhere."""
    core = prefetched(kind, pattern=pattern, window=8)
    used = core["prefetcher.useful"] + core["prefetcher.late"]
    fetched = core["prefetcher.issued"] - core["prefetcher.redundant"]
    assert used + core["prefetcher.useless"] <= fetched
    if pattern == "stream":
        assert used > 0
        assert core["prefetcher.useless"] == 0


def test_without_a_prefetcher_nothing_is_prefetched() -> None:
    core = prefetched("none", pattern="stream")
    assert all(
        core[f"prefetcher.{name}"] == 0 for name in ("issued", "redundant", "useful", "late", "useless")
    )


def test_lines_prefetched_into_l2_are_not_data_of_l1() -> None:
    """L1 gets the lines that it missed and no others: its bytes in = 64 B x misses, however many L2 fetches."""
    core = prefetched("next_line", pattern="stride", stride="256B")
    assert core["l2.bytes_in"] > 2 * LINE * 4000
    expected = LINE * misses(core, "l1.")
    assert core["l1.bytes_in"] == expected, f"{core['l1.bytes_in']} B, {core['l1.bytes_in'] - expected:+}"


# Threads.


def several_cores(pattern: str) -> ms.System:
    """Four cores with all there is, one shared cache, one channel."""
    system = ms.System("several cores", seed=5)
    shared = system.add("memory.cache", "shared", cache={"line": "64B", "size": "16KiB", "ways": 4})
    channel = system.add("memory.dram", "channel", backend="simple")
    for i in range(4):
        core = system.add(
            "memory.generator",
            f"core[{i}]",
            pattern=pattern,
            accesses=1500,
            footprint="64KiB",
            base=f"{64 * i}KiB",
            writes=0.3,
            l1={"size": "1KiB", "ways": 2, "replacement": "random"},
            l2={"size": "4KiB", "ways": 4},
            prefetcher={"kind": "stream"},
            **translated(),
        )
        system.connect(core.memory, shared.requesters, "1ns")
    system.connect(shared.memory, channel.requests, "5ns")
    return system


@pytest.mark.parallel
@pytest.mark.parametrize("pattern", ["stream", "triad", "random", "chase", "gups"])
def test_statistics_are_the_same_on_one_and_two_threads(pattern: str) -> None:
    results = [several_cores(pattern).run(threads=threads) for threads in (1, 2)]
    assert [result.threads for result in results] == [1, 2]
    assert results[0].columns == results[1].columns
    assert results[0].now == results[1].now


def test_the_seed_decides_what_random_patterns_touch() -> None:
    """Equal seeds, equal statistics; another seed, other addresses."""
    logs = []
    for seed in (3, 3, 4):
        system, cores = coherent_cores(cores=1, accesses=200, seed=seed)
        system.run()
        logs.append(np.frombuffer(_core.take_log(cores[0].native), RECORD)["address"].tolist())
    assert logs[0] == logs[1] != logs[2]


# What is refused.


@pytest.mark.parametrize(
    ("core", "message"),
    [
        (
            {"pattern": "strem"},
            "no pattern 'strem'; known: stream, triad, stride, random, chase, gups, trace",
        ),
        ({"l1": {"size": "1000B"}}, r"1000B is no multiple of line x ways \(64B x 8 = 512B\)"),
        ({"l1": {"size": "1KiB", "line": "32B", "ways": 3}}, r"line x ways \(32B x 3 = 96B\)"),
        ({"l2": {"size": "1000B"}}, r"1000B is no multiple of line x ways"),
        ({"l1": {"size": "0B"}}, "holds at least one line"),
        ({"l1": {"size": "3KiB", "line": "48B"}}, "48.*power of two|power of two.*48"),
        ({"l1": {"size": "32KiB", "line": "512B"}}, "from 32B to 256B"),
        (
            {"l1": {"size": "3KiB", "ways": 3, "replacement": "tree-plru"}},
            "tree-plru needs a power of two, not 3",
        ),
        ({"l1": {"write": "through"}}, "a write-through cache is the only private level"),
        ({"l1": {"write": "through"}, "l2": NONE, "coherent": True}, "coherent caches are write-back"),
        ({"l1": {"write": "around"}}, "expected 'back' or 'through', not 'around'"),
        (
            {"l1": {"replacement": "fifo"}},
            "no replacement policy 'fifo'; there are lru, random, srrip, tree-plru",
        ),
        ({"l1": {"line": "128B"}}, "all levels need the same line size"),
        ({"footprint": "16B", "size": "32B"}, "footprint: 16B is out of range"),
        ({"footprint": "32B", "size": "33B"}, "size: 33B is out of range"),
        ({"pattern": "triad", "footprint": "40B", "size": "16B"}, "three arrays of at least one element"),
        ({"pattern": "chase", "footprint": "32B"}, "at least one"),
        ({"prefetcher": {"kind": "markov"}}, "no prefetcher 'markov'"),
        ({"home_hash": "md5"}, "no slice hash 'md5'"),
        ({"shared": {"size": "1000B"}}, r"1000B is no multiple of line x ways \(64B x 16 = 1024B\)"),
        ({"shared": {"replacement": "fifo"}}, "no replacement policy 'fifo'"),
        ({"window": 0}, "window: 0 is out of range"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_the_run(core: dict[str, Any], message: str) -> None:
    with pytest.raises(ms.InputError, match=message):
        one_core(**core)


def test_a_line_that_is_no_power_of_two_is_the_caches_fault() -> None:
    """The message speaks of the cache's line, whatever else looks at the size of a line."""
    with pytest.raises(ms.InputError, match=r"^line: 48B is no power of two from 32B to 256B"):
        one_core(l1={"size": "3KiB", "line": "48B"}, l2=NONE)


def test_an_address_without_a_page_is_an_error_of_the_simulation() -> None:
    """Without `demand` nothing is mapped: the run stops and says which address that was."""
    system = one_core(**translated(page_table={"demand": False}))
    with pytest.raises(ms.ManyscaleError, match="0x0 is not mapped"):
        system.run()


def test_a_request_of_a_coherent_core_is_refused_by_a_cache_without_coherence() -> None:
    system = one_core(coherent=True, accesses=1)
    with pytest.raises(ms.ManyscaleError, match="no coherence"):
        system.run()


def test_traces_are_only_for_generators() -> None:
    system = one_core()
    with pytest.raises((TypeError, ms.ManyscaleError, ValueError)):
        set_trace(system.components["channel"], [0])
