# SPDX-License-Identifier: Apache-2.0
"""What a launch waits for when it begins and when it ends: page walks, its constants, and stores that leave the SM."""

import numpy as np
import pytest

from manyscale import gpu, load_machine

pytestmark = pytest.mark.core

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
EMPTY = HEAD + "{ ret; }"
LOAD = HEAD + (
    "{ .reg .b64 %a; .reg .b32 %v<2>; ld.param.u64 %a,[p]; ld.global.u32 %v0,[%a];"
    " ld.global.u32 %v1,[%a+33554432]; add.u32 %v0,%v0,%v1; st.global.u32 [%a],%v0; ret; }"
)
ONE_LOAD = HEAD + (
    "{ .reg .b64 %a; .reg .b32 %v; ld.param.u64 %a,[p]; ld.global.u32 %v,[%a];"
    " add.u32 %v,%v,1; st.global.u32 [%a],%v; ret; }"
)
STORE = HEAD + "{ .reg .b64 %a; ld.param.u64 %a,[p]; st.global.u32 [%a],7; ret; }"
FIRST, WARM, COLD = range(3)  # launches


def cycles(text: str, *changes: str) -> list[int]:
    """Of a first launch, of a second, and of one after the TLBs were emptied; all of one warp."""
    one = ("gpu.sm_count=1", "gpu.l2_slices=4", "gpu.clock=1GHz", "gpu.crossbar.clock=1GHz")
    on = gpu.TimedDevice(load_machine("v100", [*one, *changes]).machine, isa="ptx", allow_newer=True)
    data = on.zeros(1 << 24, np.uint32)
    run = on.load(text)["k"]
    first, warm = (run[1, 32](data).cycles for _ in range(2))
    on.queue.launches.empty_tlbs()
    return [first, warm, run[1, 32](data).cycles]


@pytest.mark.parametrize(("text", "walks"), [(EMPTY, 1), (ONE_LOAD, 2)])
def test_a_cold_launch_waits_for_a_walk_for_its_constants_and_one_for_its_data(text, walks):
    """At 1 GHz a nanosecond is a cycle: walks of n ns that follow each other add n cycles each."""
    without = cycles(text, "gpu.sm.device_tlb.walk_latency=0s")
    for latency in (100, 999):
        taken = cycles(text, f"gpu.sm.device_tlb.walk_latency={latency}ns")
        assert taken[:COLD] == without[:COLD]
        assert taken[COLD] - without[COLD] == pytest.approx(walks * latency, abs=2 * walks)


def test_walks_of_two_regions_overlap_where_the_loads_do():
    """Two loads that do not wait for each other, of two regions of 32 MiB, wait for their walks at the same time."""
    on = "gpu.sm.device_tlb.walk_latency=900ns"
    together = cycles(LOAD, on)[COLD] - cycles(ONE_LOAD, on)[COLD]
    assert together < 450, "the walk of the second load began when that of the first had ended"


def test_each_launch_reads_its_constants_from_the_l2():
    """A launch begins with a constant: what the L2 takes for it, each launch takes."""
    fast, slow = (cycles(EMPTY, f"gpu.sm.l1_miss_latency={latency}") for latency in (200, 300))
    # The first launch fetches its instructions too, one miss after the other.
    assert slow[WARM] - fast[WARM] == 100
    assert slow[FIRST] - fast[FIRST] == 200, (slow, fast)


def test_a_warp_ends_when_its_last_store_has_drained():
    """n cycles more between the last store and the end of a warp let CTAs in turn take n more each."""
    one = ("gpu.sm_count=1", "gpu.l2_slices=4", "gpu.scheduler.limits.ctas=1")
    taken = []
    for latency in (0, 77):
        change = f"gpu.sm.l1.drain_latency={latency}"
        on = gpu.TimedDevice(load_machine("v100", [*one, change]).machine, isa="ptx", allow_newer=True)
        run, data = on.load(STORE)["k"], on.zeros(1, np.uint32)
        taken.append(run[11, 32](data).cycles - run[1, 32](data).cycles)
    assert taken[1] - taken[0] == pytest.approx(10 * 77, abs=20)
