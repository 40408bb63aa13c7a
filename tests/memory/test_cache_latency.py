# SPDX-License-Identifier: Apache-2.0
"""Latency and bandwidth of every level against what its parameters say.

Latencies are exact, to the femtosecond. A bandwidth is that of the second half of a run (the time of 2 n accesses less
that of n), so that the first misses do not count, and within 3% of what widths, ports and clocks allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hierarchies import (
    NANOSECOND,
    NONE,
    misses,
    numbers,
    one_core,
    period,
    run_trace,
    set_trace,
    transfer,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import manyscale as ms

LINE = 64
GHZ = 10**9
TOLERANCE = 0.03


@dataclass(frozen=True)
class Hierarchy:
    """Latencies of the levels in cycles (tag, data), of links and memory in femtoseconds."""

    clock: int = 2 * GHZ
    l1: tuple[int, int] = (1, 3)
    l2: tuple[int, int] | None = (3, 8)
    shared_clock: int = 2 * GHZ
    shared: tuple[int, int] = (10, 20)
    links: tuple[int, int] = (1 * NANOSECOND, 5 * NANOSECOND)
    memory: int = 40 * NANOSECOND
    bandwidth: int = 25_600_000_000

    def expected(self) -> dict[str, int]:
        """The unloaded latency of each level."""
        cycle, shared_cycle = period(self.clock), period(self.shared_clock)
        tags = (self.l1[0] + (self.l2[0] if self.l2 else 0)) * cycle
        way = tags + 2 * self.links[0]
        shared_tag, shared_data = self.shared
        return {
            "l1": sum(self.l1) * cycle,
            "l2": (self.l1[0] + sum(self.l2)) * cycle if self.l2 else 0,
            "shared": way + (shared_tag + shared_data) * shared_cycle,
            "memory": way
            + shared_tag * shared_cycle
            + 2 * self.links[1]
            + self.memory
            + transfer(LINE, self.bandwidth),
        }

    def build(self, **core: Any) -> ms.System:
        """Caches of 16, 64 and 256 lines, four ways each."""
        private = {"line": "64B", "ways": 4}
        l1 = {"size": "1KiB", **private, "tag_latency": self.l1[0], "data_latency": self.l1[1]}
        l2: dict[str, Any] = NONE
        if self.l2:
            l2 = {"size": "4KiB", **private, "tag_latency": self.l2[0], "data_latency": self.l2[1]}
        return one_core(
            clock=f"{self.clock}Hz",
            l1=l1,
            l2=l2,
            shared={
                "size": "16KiB",
                "ways": 4,
                "tag_latency": self.shared[0],
                "data_latency": self.shared[1],
            },
            slices={"clock": f"{self.shared_clock}Hz"},
            dram={"latency": f"{self.memory}fs", "bandwidth": f"{self.bandwidth}B/s"},
            links=(f"{self.links[0]}fs", f"{self.links[1]}fs"),
            **core,
        )


# Lines that stay in the level and go round the smaller ones, so that these miss all the time.
LINES = {"l1": 16, "l2": 64, "shared": 256, "memory": 1024}
HIERARCHIES = {
    "usual": Hierarchy(),
    "one private level": Hierarchy(l2=None),
    "slow caches": Hierarchy(l1=(4, 7), l2=(11, 29), shared=(37, 53)),
    "clocks that divide nothing": Hierarchy(clock=3 * GHZ, shared_clock=1_700_000_000),
    "long ways": Hierarchy(links=(13 * NANOSECOND, 29 * NANOSECOND + 1)),
    "slow memory": Hierarchy(memory=333_333_333, bandwidth=1_234_567_890),
    "data at once": Hierarchy(l1=(1, 0), l2=(1, 0), shared=(1, 0)),
    "tags at once": Hierarchy(l1=(0, 1), l2=(0, 1), shared=(0, 1)),
    "one private level with tags at once": Hierarchy(l1=(0, 1), l2=None),
}


def check_chase(hierarchy: Hierarchy, level: str) -> None:
    """Goes twice through the lines: first all come from memory, then all from the level."""
    lines = LINES[level]
    system = hierarchy.build(pattern="chase", window=1, footprint=f"{lines * LINE}B", accesses=2 * lines)
    core = numbers(system.run(), "core")
    expected = hierarchy.expected()
    first, again = expected["memory"], expected[level]
    deviations = {
        "first latency": core["latency.max"] - max(first, again),
        "latency again": core["latency.min"] - min(first, again),
        "sum of latencies": core["latency.mean"] * 2 * lines - lines * (first + again),
        "time in all": core["finished"] - lines * (first + again),
    }
    wrong = {name: deviation for name, deviation in deviations.items() if deviation != 0}
    assert not wrong, f"{level} of {hierarchy}: off by {wrong} fs of {again} fs"


@pytest.mark.parametrize(
    ("name", "level"),
    [
        pytest.param(
            name,
            level,
        )
        for name, hierarchy in HIERARCHIES.items()
        for level in LINES
        if level != "l2" or hierarchy.l2 is not None
    ],
)
def test_the_unloaded_latency_of_every_level_is_the_sum_of_its_parts(name: str, level: str) -> None:
    """L1: tag + data. L2: L1 tag + L2 tag + data. Shared: tags above + link + tag + data + link.

    Memory: tags above + link + shared tag + link + latency + line / bandwidth + link + link.
    """
    check_chase(HIERARCHIES[name], level)


CYCLES = st.integers(0, 60)
LATENCIES = st.tuples(CYCLES, CYCLES)


@settings(max_examples=40)
@given(
    hierarchy=st.builds(
        Hierarchy,
        clock=st.integers(GHZ // 2, 5 * GHZ),
        l1=st.tuples(st.integers(1, 60), CYCLES),
        l2=st.one_of(st.none(), LATENCIES),
        shared_clock=st.integers(GHZ // 2, 5 * GHZ),
        shared=LATENCIES,
        # Ways so long that an access never meets the one before at a port or bank.
        links=st.tuples(st.integers(2 * NANOSECOND, 20 * NANOSECOND), st.integers(1, 20 * NANOSECOND)),
        memory=st.integers(5 * NANOSECOND, 200 * NANOSECOND),
        bandwidth=st.integers(10**9, 10**12),
    ),
    level=st.sampled_from(list(LINES)),
)
def test_the_unloaded_latency_is_the_sum_of_its_parts_whatever_they_are(
    hierarchy: Hierarchy, level: str
) -> None:
    """As above, over random latencies, clocks and bandwidths."""
    if level == "l2" and hierarchy.l2 is None:
        hierarchy = replace(hierarchy, l2=(3, 8))
    check_chase(hierarchy, level)


def test_a_miss_of_a_level_lasts_from_its_tags_to_the_data() -> None:
    """A miss served by memory, as each level sees it: latency less the tags of the levels before and its own.

    The shared cache counts from the arrival of the request to the arrival of the data.
    """
    hierarchy = Hierarchy()
    lines = LINES["memory"]
    result = hierarchy.build(pattern="chase", window=1, footprint=f"{lines * LINE}B", accesses=lines).run()
    core, shared = numbers(result, "core"), numbers(result, "shared")
    latency = hierarchy.expected()["memory"]
    tags = (1 + 3) * period(hierarchy.clock)
    assert core["l2.miss_latency.min"] == core["l2.miss_latency.max"] == latency - tags
    assert shared["miss_latency.min"] == shared["miss_latency.max"] == latency - tags - 2 * hierarchy.links[0]


@pytest.mark.parametrize("level", ["l2", "memory"])
def test_l1_counts_its_misses_from_its_own_tags(level: str) -> None:
    """Whoever serves it, a miss of L1 lasts as long as the access less L1's tags."""
    hierarchy = Hierarchy()
    lines = LINES[level]
    system = hierarchy.build(pattern="chase", window=1, footprint=f"{lines * LINE}B", accesses=2 * lines)
    core = numbers(system.run(), "core")
    tag = hierarchy.l1[0] * period(hierarchy.clock)
    expected = hierarchy.expected()[level] - tag
    got = core["l1.miss_latency.min"]
    assert got == expected, f"{got} fs, {got - expected:+} fs from {expected} fs"


# Bandwidth. One core is fast enough to keep anything below it busy: 16 GHz, 512 outstanding accesses.
FAST_L1 = {"size": "32KiB", "ways": 8, "tag_latency": 1, "data_latency": 1, "outstanding_misses": 256}
FAST_SHARED = {"size": "128KiB", "tag_latency": 1, "data_latency": 1, "outstanding_misses": 512}


def fast_core(
    *,
    shared: dict[str, Any] | None = None,
    dram: dict[str, Any] | None = None,
    l1: dict[str, Any] | None = None,
    **given: Any,
) -> ms.System:
    """A fast core that goes through 64 KiB, which L1 does not hold and the shared cache does."""
    core: dict[str, Any] = {
        "pattern": "stride",
        "stride": "64B",
        "clock": "16GHz",
        "window": 512,
        "footprint": "64KiB",
        "l2": NONE,
        "l1": {**FAST_L1, **(l1 or {})},
    }
    return one_core(
        shared={**FAST_SHARED, **(shared or {})},
        dram={"latency": "10ns", "bandwidth": "2TB/s", **(dram or {})},
        **{"slices": {"clock": "1GHz", "width": "64B"}, "links": ("1ns", "1ns"), **core, **given},
    )


def rate(accesses: int = 4096, build: Any = fast_core, **given: Any) -> float:
    """Accesses per second once the first `accesses` are over."""
    finished = [
        numbers(build(accesses=count, **given).run(), "core")["finished"]
        for count in (accesses, 2 * accesses)
    ]
    return accesses / (finished[1] - finished[0]) * 10**15


def check_rate(got: float, expected: float, what: str = "") -> None:
    deviation = got / expected - 1
    assert abs(deviation) <= TOLERANCE, f"{what} {got:.4g} per second, {deviation:+.1%} from {expected:.4g}"


@pytest.mark.parametrize("interval", [1, 2, 4])
@pytest.mark.parametrize("ports", [1, 2, 4])
def test_hits_of_l1_begin_as_often_as_ports_and_issue_let_them(ports: int, interval: int) -> None:
    """min(ports, 1 / interval) accesses in each cycle; a generator issues one in a cycle at most."""
    got = rate(
        build=one_core,
        pattern="stream",
        footprint="4KiB",
        interval=interval,
        l1={"size": "8KiB", "ways": 8, "ports": ports},
        l2=NONE,
    )
    check_rate(got, min(ports, 1 / interval) * 2 * GHZ)


@pytest.mark.parametrize("window", [1, 2, 3, 4, 8])
def test_hits_of_l1_are_limited_by_the_window(window: int) -> None:
    """min(window / (tag + data), 1) accesses in each cycle, with 1 + 4 cycles."""
    l1 = {"size": "8KiB", "ways": 8, "tag_latency": 1, "data_latency": 4}
    got = rate(build=one_core, pattern="stream", footprint="4KiB", window=window, l1=l1, l2=NONE)
    check_rate(got, min(window / 5, 1) * 2 * GHZ)


@pytest.mark.parametrize("ports", [1, 2, 4])
def test_hits_of_the_shared_cache_begin_as_often_as_its_ports_let_them(ports: int) -> None:
    """`ports` lines in each cycle of 1 GHz, with a bank for each of 64 lines in a row."""
    check_rate(rate(shared={"ports": ports, "banks": 64}), ports * GHZ)


@pytest.mark.parametrize("width", [8, 16, 32, 48, 64])
def test_a_bank_of_the_shared_cache_moves_its_width_each_cycle(width: int) -> None:
    """A line of 64 B takes ceil(64 / width) cycles of the one bank."""
    got = rate(slices={"clock": "1GHz", "width": f"{width}B"})
    check_rate(got, GHZ / -(-LINE // width))


@pytest.mark.parametrize("banks", [2, 4, 8])
def test_accesses_that_meet_in_one_bank_are_slower_by_the_number_of_banks(banks: int) -> None:
    """A line takes `banks` cycles of its bank, so that all banks together serve one line each cycle, and one
    bank alone, which a stride of `banks` lines meets, one in `banks` cycles."""
    given: dict[str, Any] = {
        "shared": {"banks": banks, "size": "1MiB"},
        "slices": {"clock": "1GHz", "width": f"{LINE // banks}B"},
    }
    spread = rate(**given)
    conflicting = rate(**given, stride=f"{LINE * banks}B", footprint=f"{64 * banks}KiB")
    check_rate(spread, GHZ, "all banks:")
    check_rate(conflicting, GHZ / banks, "one bank:")
    assert abs(spread / conflicting / banks - 1) <= TOLERANCE, (
        f"ratio {spread / conflicting:.3f}, not {banks}"
    )


@pytest.mark.parametrize("bandwidth", [5 * GHZ, 25_600_000_000, 100 * GHZ])
@pytest.mark.parametrize("writes", [0.0, 1.0])
def test_memory_moves_as_much_as_its_bus_lets_it(bandwidth: int, writes: float) -> None:
    """A line that is read takes 64 B / bandwidth; a line that is written is read before and written back after."""
    got = rate(
        dram={"bandwidth": f"{bandwidth}B/s"},
        shared={"size": "64KiB", "ports": 4, "banks": 64},
        footprint="4MiB",
        writes=writes,
    )
    check_rate(got * LINE * (1 + writes), bandwidth)


@pytest.mark.parametrize("outstanding", [1, 2, 4, 10, 16])
def test_lines_under_way_limit_bandwidth_as_little_says(outstanding: int) -> None:
    """Bandwidth = MSHRs x line / latency; an access that found none free looks at the tags again when one is.

    Mean occupancy = time that lines were outstanding / time of the run = bandwidth x their latency / line.
    """
    accesses = 4096
    hierarchy = Hierarchy(l2=None, bandwidth=2 * 10**12)
    given: dict[str, Any] = {
        "pattern": "stride",
        "stride": "64B",
        "window": 256,
        "footprint": "4MiB",
        "l1": {"size": "32KiB", "ways": 8, "outstanding_misses": outstanding},
        "l2": NONE,
        "dram": {"bandwidth": "2TB/s"},
        "shared": {"outstanding_misses": 256},
    }
    latency = hierarchy.expected()["memory"]
    check_rate(rate(accesses, one_core, **given) * LINE, outstanding * LINE / latency * 10**15, "B")
    result = one_core(accesses=accesses, **given).run()
    core = numbers(result, "core")
    occupancy = core["l1.line_time"] / result.now
    bandwidth = core["l1.bytes_in"] / result.now
    little = bandwidth * core["l1.miss_latency.mean"] / LINE
    assert core["l1.line_time"] == round(core["l1.miss_latency.mean"] * core["l1.miss_latency.count"])
    assert occupancy == pytest.approx(little, rel=1e-9), f"{occupancy} lines, by Little's law {little}"
    tag = period(hierarchy.clock)
    expected = outstanding * (latency - tag) / latency
    assert abs(occupancy / expected - 1) <= TOLERANCE, f"{occupancy:.3f} lines of {expected:.3f}"
    assert core["l1.outstanding.max"] == outstanding


@pytest.mark.parametrize("outstanding", [1, 2, 4, 16])
def test_lines_under_way_limit_the_bandwidth_of_the_shared_cache_too(outstanding: int) -> None:
    """Bandwidth = MSHRs x line / (tag + link + memory + transfer + link), and they are all in use."""
    given: dict[str, Any] = {
        "shared": {"outstanding_misses": outstanding, "size": "64KiB"},
        "dram": {"latency": "40ns", "bandwidth": "2TB/s"},
        "footprint": "4MiB",
    }
    latency = (1 + 1 + 40 + 1) * NANOSECOND + transfer(LINE, 2 * 10**12)
    check_rate(rate(**given) * LINE, outstanding * LINE / latency * 10**15, "B")
    result = fast_core(accesses=4096, **given).run()
    shared = numbers(result, "shared")
    occupancy = shared["line_time"] / result.now
    assert abs(occupancy / outstanding - 1) <= TOLERANCE, f"{occupancy:.3f} lines of {outstanding}"
    assert shared["line_time"] == round(shared["miss_latency.mean"] * misses(shared))


@pytest.mark.parametrize("window", [1, 2, 5, 16, 40])
def test_the_window_limits_bandwidth_as_little_says(window: int) -> None:
    """Bandwidth = window x line / latency where MSHRs are plenty."""
    hierarchy = Hierarchy(l2=None, bandwidth=2 * 10**12)
    got = rate(
        build=one_core,
        pattern="stride",
        stride="64B",
        window=window,
        footprint="4MiB",
        l1={"size": "32KiB", "ways": 8, "outstanding_misses": 64},
        l2=NONE,
        dram={"bandwidth": "2TB/s"},
        shared={"outstanding_misses": 256},
    )
    expected = window / hierarchy.expected()["memory"] * 10**15
    check_rate(got * LINE, expected * LINE, "B")


@pytest.mark.parametrize("tag", [1, 2, 4])
def test_misses_of_one_level_begin_once_in_a_cycle(tag: int) -> None:
    """An access takes a port for one cycle, hit or miss, however long the tags take."""
    got = rate(
        clock="1GHz",
        l1={"tag_latency": tag},
        slices={"clock": "4GHz", "width": "64B"},
        shared={"ports": 4, "banks": 64},
    )
    check_rate(got, GHZ)


@pytest.mark.parametrize("tag", [1, 2, 4])
def test_misses_and_hits_of_the_second_level_begin_once_in_a_cycle(tag: int) -> None:
    """Every second access hits L2, every other misses it: one access each cycle, as the ports of both let them."""

    def build(accesses: int) -> ms.System:
        system = fast_core(
            pattern="trace",
            clock="1GHz",
            l1={"size": "1KiB", "ways": 2},
            l2={**FAST_L1, "tag_latency": tag},
            slices={"clock": "4GHz", "width": "64B"},
            shared={"ports": 4, "banks": 64},
        )
        number = np.arange(accesses)
        kept, new = number // 2 % 64, 64 + number // 2
        set_trace(system.components["core"], LINE * np.where(number % 2 == 0, kept, new))
        return system

    check_rate(rate(build=build), GHZ)
    waited = numbers(build(4096).run(), "core")["l2.queueing.max"]
    assert waited == 0, f"an access waited {waited} fs for a port that takes one each cycle"


def test_an_access_to_a_line_on_its_way_from_the_second_level_waits_for_it() -> None:
    """L2 sends the line in 1 + 3 + 8 cycles; an access to it a cycle later has its data 11 cycles after its issue."""
    before = [0, *[LINE] * 40]
    sums = []
    for tail in ([0], [0, 0]):
        core = numbers(run_trace(before + tail, l1={"size": "64B", "ways": 1}, window=16), "core")
        sums.append(core["latency.mean"] * core["latency.count"])
    took = (sums[1] - sums[0]) / period(2 * GHZ)
    assert took == pytest.approx(11), f"{took} cycles, not 11"


@pytest.mark.parametrize("outstanding", [1, 4])
def test_lines_under_way_are_limited_in_the_first_of_two_levels_too(outstanding: int) -> None:
    """Bandwidth = MSHRs of L1 x line / latency, however many L2 has."""
    got = rate(
        build=one_core,
        pattern="stride",
        stride="64B",
        window=64,
        footprint="4MiB",
        l1={"size": "4KiB", "ways": 4, "outstanding_misses": outstanding},
        dram={"bandwidth": "2TB/s"},
    )
    expected = outstanding / replace(Hierarchy(), bandwidth=2 * 10**12).expected()["memory"] * 10**15
    check_rate(got * LINE, expected * LINE, "B")
