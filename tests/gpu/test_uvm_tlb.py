# SPDX-License-Identifier: Apache-2.0
"""Translations of an SM: hits, misses and faults in closed form, merging, blocking, shootdowns, accounting."""

import numpy as np
import pytest
from managed_support import CHASE, HIT, KIB, LINK, PAGE, PAGE_TIME, PLAIN, TOUCH, WALK, counted, device

from manyscale import InputError, ManyscaleError

pytestmark = pytest.mark.core

CHAIN = 16  # loads of a chain, a multiple of the number of offsets
TIMED = CHAIN - 1  # of them: the clock does not wait for the last


def chain_cycles(offsets, *changes):
    """Cycles of a chain of loads that goes round these bytes of managed memory, all of it on the device."""
    on = device(*changes, isa="ptx")
    ring = on.managed((max(offsets) // 8 + 1,), np.uint64)
    values = np.zeros(ring.shape, np.uint64)
    for at, following in zip(offsets, [*offsets[1:], offsets[0]], strict=True):
        values[at // 8] = ring.address + following
    ring.set(values)
    ring.prefetch()
    out = on.zeros(2, np.uint64)
    on.load(CHASE.format(chain="ld.global.u64 %n,[%n];" * CHAIN))["chase"][1, 1](out, ring)
    assert counted(on, "faults") == 0
    return int(out.numpy()[0]), on


@pytest.mark.parametrize("latency", [0, 1, 7])
def test_a_hit_takes_the_latency_of_the_tlb_more(latency):
    """Loads that L1 and TLB hold: each HIT + latency cycles, exactly."""
    without, _ = chain_cycles([0], "gpu.sm.tlb.latency=0cycles")
    cycles, on = chain_cycles([0], f"gpu.sm.tlb.latency={latency}cycles")
    assert cycles - without == TIMED * latency
    assert without // TIMED == HIT
    assert counted(on, "tlb_misses") == 1
    assert counted(on, "tlb_hits") == 3 * CHAIN - 1


@pytest.mark.parametrize("walk", [0, WALK, WALK + 37])
@pytest.mark.parametrize("link", [LINK, 40])
def test_a_miss_takes_the_way_to_the_walker_and_back_and_the_walk(walk, link):
    """Two pages and a TLB of one entry: each load waits 2 x link + walk cycles more than one that hits, exactly."""
    hits, _ = chain_cycles([0, 8])
    changes = (f"gpu.uvm.walk_latency={walk}cycles", f"gpu.uvm.link_latency={link}ns")
    misses, on = chain_cycles([0, PAGE], "gpu.sm.tlb.entries=1", *changes)
    assert misses - hits == TIMED * (2 * link + walk)
    assert counted(on, "tlb_hits") == 0
    assert counted(on, "tlb_misses") == 3 * CHAIN


@pytest.mark.parametrize(("ways", "hit"), [(0, True), (1, False), (2, True)])
def test_a_tlb_of_few_ways_loses_pages_that_meet_in_a_set(ways, hit):
    """Four entries: pages 0 and 4 are of one set of a TLB with one way, and of one with two they both fit."""
    _, on = chain_cycles([0, 4 * PAGE], "gpu.sm.tlb.entries=4", f"gpu.sm.tlb.ways={ways}")
    assert counted(on, "tlb_misses") == (2 if hit else 3 * CHAIN)


def test_the_least_recently_used_page_leaves_the_tlb():
    """Three pages in turn through two entries: the one that is needed next has always just left."""
    chain = [0, PAGE, 2 * PAGE]
    _, on = chain_cycles(chain, "gpu.sm.tlb.entries=2")
    assert counted(on, "tlb_hits") == 0
    _, on = chain_cycles(chain, "gpu.sm.tlb.entries=3")
    assert counted(on, "tlb_misses") == 3


@pytest.mark.parametrize("fault_us", [20, 45])
def test_a_page_fault_takes_handling_transfer_and_translation(fault_us):
    """One load of a page on the host: handling + transfer + two ways to the walker and two walks, to 0.1 us."""

    def run(*changes):
        # Instructions take no time to come: the next ones would come while the page does. A load that meets a
        # refresh would take longer.
        at_once = [
            "gpu.sm.l0_miss_latency=0cycles",
            "gpu.sm.l1_miss_latency=0cycles",
            "gpu.memory.channel.trefi=0",
        ]
        on = device(*PLAIN, f"gpu.uvm.fault_latency={fault_us}us", *at_once, *changes)
        array, out = on.managed(PAGE, np.uint8), on.zeros(1, np.uint32)
        array.set(np.full(PAGE, 7))
        if not changes:
            array.prefetch()
        launch = on.load(TOUCH)["touch"][1, 1](array, out, 4)
        assert out.numpy()[0] == 0x07070707
        return launch.seconds, on

    warm, _ = run()
    cold, on = run("gpu.memory.capacity=1GiB")
    expected = fault_us * 1e-6 + PAGE_TIME + 1e-9 * (2 * LINK + WALK)
    assert cold - warm == pytest.approx(expected, abs=0.1e-6)
    assert counted(on, "faults") == counted(on, "faulted_translations") == 1


def test_faults_of_one_page_are_one_page_fault():
    """All warps of four SMs touch one page: the driver hears of it once, each SM asks once, one page moves."""
    on = device(*PLAIN)
    page, out = on.managed(PAGE, np.uint8), on.zeros(4 * 1024, np.uint32)
    page.set(np.zeros(PAGE))
    on.load(TOUCH)["touch"][4, 1024](page, out, 0)
    counts = on.uvm.statistics()
    assert counts["faults"] == counts["pages_faulted_in"] == 1
    assert counts["translations"] == counts["faulted_translations"] == 4
    assert counts["merged_faults"] == 3
    assert counts["tlb_misses"] == 4 * 32  # one line of each warp
    assert counts["bytes_to_device"] == PAGE


TWO_WARPS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry two(.param .u64 far, .param .u64 near, .param .u64 out)
{
 .reg .pred %p, %q; .reg .b32 %r<6>; .reg .b64 %d<6>, %t<3>;
 ld.param.u64 %d1,[far]; ld.param.u64 %d2,[near]; ld.param.u64 %d3,[out];
 mov.u32 %r1,%tid.x; setp.ge.u32 %p,%r1,32; @%p bra NEAR;
 ld.global.u32 %r2,[%d1]; st.global.u32 [%d3],%r2; ret;
NEAR:
 mov.u64 %t1,%clock64; mov.u32 %r3,0; mov.u32 %r5,0;
AGAIN:
 ld.volatile.global.u32 %r4,[%d2]; add.u32 %r5,%r5,%r4;
 add.u32 %r3,%r3,1; setp.lt.u32 %q,%r3,100; @%q bra AGAIN;
 mov.u64 %t2,%clock64; sub.u64 %t2,%t2,%t1; st.global.u64 [%d3+8],%t2; st.global.u32 [%d3+4],%r5;
 ret;
}
"""


@pytest.mark.parametrize("faults", ["replayable", "blocking"])
def test_while_a_page_comes_other_warps_go_on_or_wait(faults):
    """A warp that uses pages of the device, beside one whose page has to come: 20 us decide which it is."""
    on = device(*PLAIN, f"gpu.sm.tlb.faults={faults}")
    far, near, out = on.managed(1024, np.uint32), on.managed(1024, np.uint32), on.zeros(4, np.uint32)
    far.set(np.full(1024, 5))
    near.set(np.full(1024, 3))
    near.prefetch()
    launch = on.load(TWO_WARPS)["two"][1, 64](far, near, out)
    value, total, near_cycles, _ = out.numpy()
    assert (value, total) == (5, 300)
    if faults == "replayable":
        assert near_cycles < 10_000
    else:
        assert near_cycles > 20_000
    assert launch.seconds > 20e-6


@pytest.mark.parametrize("outstanding", [1, 5, 8, 32, 0])
def test_lines_beyond_the_outstanding_ones_fault_later(outstanding):
    """A warp that reads 32 pages: as many fault batches as it takes for so many at a time."""
    on = device(
        "gpu.uvm.prefetcher=none", f"gpu.sm.tlb.outstanding={outstanding}", "gpu.uvm.first_touch=false"
    )
    array, out = on.managed(32 * PAGE, np.uint8), on.zeros(32, np.uint32)
    array.set(np.full(32 * PAGE, 7))
    on.load(TOUCH)["touch"][1, 32](array, out, PAGE)
    assert counted(on, "fault_batches") == -(-32 // (outstanding or 32))
    assert counted(on, "pages_faulted_in") == 32
    assert counted(on, "tlb_misses") == 32
    assert (out.numpy() == 0x07070707).all()


@pytest.mark.parametrize("prefetched", [True, False])
def test_only_faults_are_page_fault_stalls(prefetched):
    """A warp reads 32 pages, four lines at a time: while they are on the device, it waits for page walks only."""
    on = device("gpu.sm.tlb.outstanding=4", "gpu.sm_count=1", "gpu.uvm.first_touch=false")
    array, out = on.managed(32 * PAGE, np.uint8), on.zeros(32, np.uint32)
    array.set(np.full(32 * PAGE, 7))
    if prefetched:
        array.prefetch()
    launch = on.load(TOUCH)["touch"][1, 32](array, out, PAGE)
    metrics = launch.profile.metrics
    assert metrics["stall_long_scoreboard" if prefetched else "stall_fault"].value > 50
    assert (metrics["stall_fault"].value == 0) == prefetched
    assert (launch.profile.limit.kind == "page faults") != prefetched


def test_known_pages_wait_behind_outstanding_lines():
    """A chain of loads in a page that is there, beside one lane that reads a page that has to come: with one line at a
    time the chain cannot go on before."""
    cycles = {}
    for outstanding in (0, 1):
        on = device(*PLAIN, f"gpu.sm.tlb.outstanding={outstanding}", "gpu.sm_count=1")
        away, here, out = on.managed(PAGE, np.uint8), on.managed(PAGE, np.uint64), on.zeros(2, np.uint64)
        here.set(np.full(PAGE, here.address, np.uint64))
        away.set(np.full(PAGE, 7))
        here.prefetch()
        chase = on.load(CHASE.format(chain="ld.global.u64 %n,[%n];" * CHAIN))["chase"]
        chase[1, 1](out, here)  # the TLB knows the page now
        first, second = on.stream(), on.stream()
        on.load(TOUCH)["touch"][1, 1, 0, first](away, on.zeros(1, np.uint32), 4)
        launch = chase[1, 1, 0, second](out, here)
        on.synchronize()
        cycles[outstanding] = launch.result.cycles
    assert cycles[0] < 10_000
    assert cycles[1] > 15_000  # most of the 21 us


@pytest.mark.parametrize(("mapping", "misses"), [("page", 32), ("chunk", 2)])
def test_a_translation_can_hold_for_64_kib(mapping, misses):
    """A warp after the other reads 32 pages that are there: a miss for each page, or for each 64 KiB."""
    on = device(f"gpu.uvm.mapping={mapping}", "gpu.sm_count=1")
    array, out = on.managed(32 * PAGE, np.uint8), on.zeros(32, np.uint32)
    array.set(np.full(32 * PAGE, 7))
    array.prefetch()
    touch = on.load(TOUCH)["touch"]
    for page in range(32):
        touch[1, 1](array.address + page * PAGE, out, PAGE)
    assert counted(on, "tlb_misses") == misses
    assert counted(on, "faults") == 0


def test_blocking_faults_come_one_after_the_other():
    """Sixteen warps of an SM with a page each: together they are one fault batch, blocked they are several."""
    groups = {}
    for faults in ("replayable", "blocking"):
        on = device(*PLAIN, f"gpu.sm.tlb.faults={faults}", "gpu.sm_count=1", "gpu.uvm.handling=measured")
        pages, out = on.managed((16, PAGE), np.uint8), on.zeros(16 * 32, np.uint32)
        pages.set(np.repeat(np.arange(16, dtype=np.uint8), PAGE).reshape(16, PAGE))
        on.load(TOUCH)["touch"][1, 512](pages, out, PAGE // 32)
        assert (out.numpy() // 0x01010101 == np.arange(16).repeat(32)).all()
        groups[faults] = counted(on, "fault_batches")
        assert counted(on, "faults") == 16
    assert groups["replayable"] < groups["blocking"]


@pytest.mark.parametrize("operation", ["put", "increase", "touch"])
def test_cycles_of_warps_that_wait_for_pages_are_counted_as_such(operation):
    """Loads, stores and atomic operations: nearly all cycles of a cold kernel wait for pages, none of a warm."""
    on = device(*PLAIN)
    pages = on.managed((8, PAGE), np.uint8)
    pages.set(np.zeros((8, PAGE)))
    module = on.load(TOUCH)
    arguments = {"put": (pages, 4, 9), "increase": (pages, 4), "touch": (pages, on.zeros(8192, np.uint32), 4)}
    for cold in (True, False):
        profile = module[operation][8, 1024](*arguments[operation]).profile
        cycles = profile.counts.sm["warp_cycles"]
        assert profile.stalls["cycles"].sum() == cycles
        assert profile.operations["cycles"].sum() == cycles - profile.counts.sm["stall_drain"]
        assert profile.operations["stall_fault"].sum() == profile.counts.sm["stall_fault"]
        if cold:
            assert profile["stall_fault"] > 80
            assert profile.limit.kind == "page faults"
            assert profile["faulted_translations"] > 0
        else:
            assert profile["stall_fault"] == profile["faulted_translations"] == 0
            assert profile["tlb_hit_rate"] > 50


def evicting(shootdown):
    """Sweeps over eight pages with room for a block of 2 MiB that another array needs as well, time and again."""
    on = device(
        *PLAIN, f"gpu.uvm.shootdown={shootdown}", "gpu.uvm.eviction=lru_page", "gpu.uvm.prefetcher=none"
    )
    small, large = on.managed((64, PAGE), np.uint8), on.managed((576, PAGE), np.uint8)
    on.uvm.capacity = 2 * 1024 * KIB
    out = on.zeros(576 * 32, np.uint32)
    module = on.load(TOUCH)
    small.set(np.ones(small.shape))
    large.set(np.ones(large.shape))
    cycles = 0
    for _ in range(2):
        cycles += module["touch"][16, 128](small, out, PAGE // 32).cycles
        cycles += module["touch"][144, 128](large, out, PAGE // 32).cycles
        cycles += module["touch"][16, 128](small, out, PAGE // 32).cycles
    assert (out.numpy()[:2048] == 0x01010101).all()
    return on.uvm.tlb_hit_rate, counted(on, "tlb_shootdowns"), cycles


def test_tlbs_forget_one_page_or_all_of_them():
    """Forgetting everything loses more translations; pages, and so time, are nearly the same."""
    (one_rate, one_entries, one_cycles), (all_rate, all_entries, all_cycles) = (
        evicting("page"),
        evicting("all"),
    )
    assert one_rate >= all_rate
    assert 0 < one_entries < all_entries
    assert all_cycles == pytest.approx(one_cycles, rel=0.1)


def test_wrong_descriptions_are_explained():
    with pytest.raises(ManyscaleError, match=r"'replayable' or 'blocking', not 'retry'"):
        device("gpu.sm.tlb.faults=retry")
    with pytest.raises(ManyscaleError, match=r"6 entries has no sets of 4"):
        device("gpu.sm.tlb.entries=6", "gpu.sm.tlb.ways=4").managed(1)
    with pytest.raises(InputError, match=r"gpu\.uvm\.page_size: pages of 65536 B are not simulated"):
        device("gpu.uvm.page_size=64KiB")
    with pytest.raises(InputError, match=r"'times_to_host' is a list of sizes and durations"):
        device("gpu.uvm.times_to_host=4KiB 2us")
