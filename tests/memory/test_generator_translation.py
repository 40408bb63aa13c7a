# SPDX-License-Identifier: Apache-2.0
"""Traffic generators with virtual addresses: TLB hits, page walks, their latencies, and the frames of pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hierarchies import NANOSECOND, NONE, accesses_of, numbers, one_core, run_trace, translated

LINE, PAGE = 64, 4096
CYCLE = NANOSECOND // 2
L1_HIT = 4 * CYCLE


def test_pages_within_the_l1_tlb_need_no_walks_after_the_first_touch() -> None:
    """16 pages, 10 times: 16 walks, and every other access hits the L1 TLB."""
    core = numbers(
        one_core(
            pattern="stride", stride="4KiB", footprint="64KiB", accesses=160, window=1, **translated()
        ).run(),
        "core",
    )
    assert core["walker.walks"] == core["tlb.l1.misses"] == core["tlb.l2.misses"] == 16
    assert core["tlb.l2.hits"] == 0


def test_pages_within_the_l2_tlb_need_no_walks_after_the_first_touch() -> None:
    """64 pages in turn go round an L1 TLB of 16 entries, which misses all the time, and stay in the L2 TLB."""
    core = numbers(
        one_core(
            pattern="stride", stride="4KiB", footprint="256KiB", accesses=640, window=1, **translated()
        ).run(),
        "core",
    )
    assert core["walker.walks"] == core["tlb.l2.misses"] == 64
    assert core["tlb.l1.misses"] == 640
    assert core["tlb.l2.hits"] == 640 - 64


@pytest.mark.parametrize("pages", [1, 10, 65, 200])
def test_going_through_memory_walks_once_for_each_page(pages: int) -> None:
    """Elements of 8 B one after the other: a walk at each page's first."""
    core = numbers(
        one_core(pattern="stream", footprint="1MiB", accesses=pages * 512, **translated()).run(), "core"
    )
    assert core["walker.walks"] == pages
    assert core["walker.faults"] == 0


def test_pages_beyond_both_levels_walk_at_every_touch() -> None:
    """65 pages in turn, 64 entries: LRU has always just lost the next one."""
    core = numbers(
        one_core(
            pattern="stride", stride="4KiB", footprint="260KiB", accesses=650, window=1, **translated()
        ).run(),
        "core",
    )
    assert core["walker.walks"] == 650


@pytest.mark.parametrize("page", [4, 16, 64, 1024])
def test_larger_pages_need_fewer_walks(page: int) -> None:
    """1 MiB once through: 1 MiB / page walks."""
    size = {"page_size": f"{page}KiB"}
    changes = translated(
        l1={"entries": 16, "ways": 0, **size}, l2={"entries": 64, "ways": 0, **size}, page_table=size
    )
    core = numbers(
        one_core(pattern="stride", stride="64B", footprint="1MiB", accesses=16384, **changes).run(), "core"
    )
    assert core["walker.walks"] == 1024 // page


def finished(where: list[int], **core: Any) -> int | float:
    return numbers(run_trace(where, l2=NONE, **core), "core")["finished"]


# Unloaded latency of memory behind one private level.
MEMORY = (1 + 10) * CYCLE + 2 * (1 + 5) * NANOSECOND + 40 * NANOSECOND + 2_500_000


@pytest.mark.parametrize("latency", [0, 1, 5])
def test_a_hit_of_the_l1_tlb_costs_its_latency(latency: int) -> None:
    """The second access to a page takes the TLB's latency more than without translation."""
    changes = translated(l1={"entries": 16, "ways": 0, "latency": latency})
    took = finished([0, LINE], **changes) - finished([0], **changes)
    assert took == latency * CYCLE + MEMORY, f"{took - MEMORY:+} fs, not {latency * CYCLE:+}"


@pytest.mark.parametrize(("first", "second"), [(0, 7), (2, 5)])
def test_a_hit_of_the_l2_tlb_costs_the_latency_of_both(first: int, second: int) -> None:
    """A page that left the L1 TLB, which has one entry."""
    changes = translated(
        l1={"entries": 1, "ways": 0, "latency": first}, l2={"entries": 64, "ways": 0, "latency": second}
    )
    took = finished([0, PAGE, LINE], **changes) - finished([0, PAGE], **changes)
    assert took == (first + second) * CYCLE + MEMORY, f"{took - MEMORY:+} fs"


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize(("first", "second"), [(0, 7), (2, 5)])
def test_a_walk_with_its_entries_in_l1_costs_a_hit_for_each_level(
    first: int, second: int, levels: int
) -> None:
    """Two pages next to each other have their entries in the same lines. The second one's first access takes

    first TLB + second TLB + levels x L1 hit, + first TLB again, which now has it, + the access itself.
    """
    changes = translated(
        l1={"entries": 16, "ways": 0, "latency": first},
        l2={"entries": 64, "ways": 0, "latency": second},
        walk_cache={"entries": 0},
        page_table={"levels": levels},
    )
    took = finished([0, PAGE], **changes) - finished([0], **changes)
    expected = (2 * first + second) * CYCLE + levels * L1_HIT + MEMORY
    assert took == expected, f"{took} fs, {took - expected:+} from {expected}"


@pytest.mark.parametrize("latency", [0, 3])
def test_a_walk_cache_leaves_one_entry_to_read_and_costs_its_own_latency(latency: int) -> None:
    """Both TLBs (0 and 7 cycles) + walk cache + one L1 hit instead of four + the access."""
    changes = translated(
        l1={"entries": 16, "ways": 0, "latency": 0},
        l2={"entries": 64, "ways": 0, "latency": 7},
        walk_cache={"entries": 16, "latency": latency},
    )
    took = finished([0, PAGE], **changes) - finished([0], **changes)
    expected = (7 + latency) * CYCLE + L1_HIT + MEMORY
    assert took == expected, f"{took} fs, {took - expected:+} from {expected}"


@pytest.mark.parametrize("placement", ["identity", "sequential", "random"])
def test_every_virtual_page_keeps_its_frame(placement: str) -> None:
    """Two rounds through 8 pages: the same physical addresses, whole pages, one frame each."""
    log = accesses_of(
        one_core(
            pattern="stream",
            footprint="32KiB",
            accesses=2 * 4096,
            log=True,
            window=1,
            base="1GiB",
            **translated(placement=placement),
        )
    )
    rounds = log["address"].reshape(2, 8, 512)
    assert (rounds[0] == rounds[1]).all()
    frames = rounds[0, :, 0] // PAGE
    assert len(set(frames.tolist())) == 8
    assert (rounds[0] == (frames[:, None] * PAGE + 8 * np.arange(512))).all()
    if placement == "identity":
        assert frames[0] == (1 << 30) // PAGE
