# SPDX-License-Identifier: Apache-2.0
"""TLBs against a plain list per set, kept from the least to the most recently used page."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale import _core

pytestmark = pytest.mark.core

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SHAPES = [(1, 0), (2, 1), (4, 2), (8, 0), (12, 4), (16, 4), (48, 0), (64, 4)]
SPACES = st.integers(0, 2)
# Few pages, so that they meet in sets, and some at the far end of the address range.
PAGES = st.one_of(st.integers(0, 20), st.integers(0, 150), st.integers(2**40, 2**40 + 5))
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("access"), PAGES, SPACES),
        st.tuples(st.just("access"), PAGES, SPACES),
        st.tuples(st.just("access"), PAGES, SPACES),
        st.tuples(st.just("invalidate"), PAGES, SPACES),
        st.tuples(st.just("range"), PAGES, SPACES),
        st.tuples(st.just("space"), st.just(0), SPACES),
        st.tuples(st.just("all"), st.just(0), st.just(0)),
    ),
    max_size=300,
)


class ReferenceTlb:
    """One OrderedDict for each set, the least recently used page first."""

    def __init__(self, entries: int, ways: int) -> None:
        self.ways = ways or entries
        self.sets: list[OrderedDict[tuple[int, int], int]] = [
            OrderedDict() for _ in range(entries // self.ways)
        ]
        self.counts = {"hits": 0, "misses": 0, "evictions": 0, "shootdowns": 0}

    def set_of(self, page: int) -> OrderedDict[tuple[int, int], int]:
        return self.sets[page % len(self.sets)]

    def lookup(self, page: int, space: int) -> int | None:
        entries = self.set_of(page)
        if (page, space) not in entries:
            self.counts["misses"] += 1
            return None
        self.counts["hits"] += 1
        entries.move_to_end((page, space))
        return entries[page, space]

    def fill(self, page: int, space: int, frame: int) -> bool:
        entries = self.set_of(page)
        evicts = (page, space) not in entries and len(entries) == self.ways
        if evicts:
            entries.popitem(last=False)
            self.counts["evictions"] += 1
        entries[page, space] = frame
        entries.move_to_end((page, space))
        return evicts

    def remove(self, doomed: set[tuple[int, int]]) -> int:
        removed = 0
        for entries in self.sets:
            for key in doomed & entries.keys():
                del entries[key]
                removed += 1
        self.counts["shootdowns"] += removed
        return removed

    def held(self) -> set[tuple[int, int]]:
        return {key for entries in self.sets for key in entries}


@pytest.mark.parametrize(("entries", "ways"), SHAPES)
@given(page_size=st.sampled_from([4 * KIB, 64 * KIB, 2 * MIB]), actions=ACTIONS)
def test_a_tlb_does_what_a_list_per_set_does(
    entries: int, ways: int, page_size: int, actions: list[tuple[str, int, int]]
) -> None:
    tlb = _core.Tlb(entries=entries, ways=ways, page_size=page_size)
    reference = ReferenceTlb(entries, ways)
    for number, (action, page, space) in enumerate(actions):
        address = page * page_size + number % page_size
        if action == "access":
            expected = reference.lookup(page, space)
            assert tlb.lookup(address, space) == expected
            if expected is None:
                assert tlb.fill(address, space, number) == reference.fill(page, space, number)
        elif action == "invalidate":
            assert tlb.invalidate(address, space) == reference.remove({(page, space)})
        elif action == "range":
            length = number % 40
            doomed = {(page + i, space) for i in range(length)}
            removed = tlb.invalidate_range(page * page_size, length * page_size, space)
            assert removed == reference.remove(doomed)
        elif action == "space":
            doomed = {key for key in reference.held() if key[1] == space}
            assert tlb.invalidate_address_space(space) == reference.remove(doomed)
        else:
            assert tlb.invalidate_all() == reference.remove(reference.held())
        assert len(tlb) == len(reference.held())
    assert all(tlb.holds(page * page_size, space) for page, space in reference.held())
    assert tlb.statistics == reference.counts


@pytest.mark.parametrize(("pages", "hits_per_page"), [(63, 9), (64, 9), (65, 0)])
def test_cycling_through_pages_hits_until_there_is_one_too_many(pages: int, hits_per_page: int) -> None:
    """With LRU, n pages in turn hit on all but the first of 10 rounds if n <= entries, and never if not."""
    tlb = _core.Tlb(entries=64, ways=0)
    for _ in range(10):
        for page in range(pages):
            if tlb.lookup(page * 4096) is None:
                tlb.fill(page * 4096, 0, page)
    assert tlb.statistics["hits"] == pages * hits_per_page


def test_fill_changes_a_translation_that_is_held() -> None:
    tlb = _core.Tlb(entries=2)
    tlb.fill(0x1000, 0, 7)
    assert not tlb.fill(0x1000, 0, 8)
    assert tlb.lookup(0x1FFF) == 8
    assert tlb.lookup(0x1FFF, 1) is None
    assert len(tlb) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"entries": 10, "ways": 4}, "10 entries has no sets of 4 ways"),
        ({"page_size": 5000}, "power of two, not 5000"),
        ({"entries": 0}, "'entries' is out of range"),
        ({"colour": 1}, "no field named 'colour'"),
    ],
)
def test_a_tlb_that_cannot_be_is_refused(parameters: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.Tlb(**parameters)


def two_levels() -> _core.TlbHierarchy:
    return _core.TlbHierarchy(
        [
            [
                {"entries": 4, "ways": 2, "latency": 1},
                {"entries": 2, "page_size": 2 * MIB, "latency": 2},
            ],
            [{"entries": 16, "ways": 4, "latency": 7}, {"entries": 4, "page_size": 2 * MIB, "latency": 5}],
        ]
    )


def test_latency_adds_up_over_the_levels_asked() -> None:
    """The buffers of a level are asked at once, so a level takes as long as its slowest: 2, then 2 + 7."""
    tlbs = two_levels()
    missed = tlbs.lookup(0x5123)
    assert (missed.hit, missed.level, missed.latency) == (False, -1, 9)
    tlbs.fill(0x5123, 0, 0xABC123, 4096)
    found = tlbs.lookup(0x5FFF)
    assert (found.hit, found.level, found.latency) == (True, 0, 2)
    assert (found.physical_address, found.page_size) == (0xABCFFF, 4096)
    for page in (7, 9):  # the other two pages of the set in the L1 TLB
        tlbs.fill(page * 4096, 0, page * 4096, 4096)
    found = tlbs.lookup(0x5000)
    assert (found.level, found.latency, found.physical_address) == (1, 9, 0xABC000)
    assert tlbs.lookup(0x5000).level == 0  # filled by the hit in the second
    assert tlbs.statistics(0) == {"hits": 2, "misses": 2, "evictions": 2, "shootdowns": 0}
    assert tlbs.statistics(1) == {"hits": 1, "misses": 1, "evictions": 0, "shootdowns": 0}


def test_page_sizes_live_side_by_side() -> None:
    tlbs = two_levels()
    tlbs.fill(5 * MIB, 0, 101 * MIB, 2 * MIB)
    tlbs.fill(3 * 4096, 0, 33 * 4096, 4096)
    large = tlbs.lookup(4 * MIB + 17)
    assert (large.physical_address, large.page_size) == (100 * MIB + 17, 2 * MIB)
    small = tlbs.lookup(3 * 4096 + 5)
    assert (small.physical_address, small.page_size) == (33 * 4096 + 5, 4096)
    assert tlbs.invalidate(5 * MIB, 0, 2 * MIB) == 2
    assert not tlbs.lookup(4 * MIB).hit
    assert tlbs.lookup(3 * 4096).level == 0
    assert tlbs.invalidate_all() == 2


def test_a_page_too_large_for_a_level_is_held_in_pieces_and_shot_down_with_them() -> None:
    tlbs = _core.TlbHierarchy([[{"entries": 8}], [{"entries": 8}, {"entries": 4, "page_size": 2 * MIB}]])
    tlbs.fill(2 * MIB + 0x3000, 0, 64 * MIB + 0x3000, 2 * MIB)
    assert (tlbs.lookup(2 * MIB + 0x3000).level, tlbs.lookup(2 * MIB + 0x3000).page_size) == (0, 4096)
    other = tlbs.lookup(2 * MIB + 0x9008)  # another piece: only the L2 TLB has it
    assert (other.level, other.page_size, other.physical_address) == (1, 2 * MIB, 64 * MIB + 0x9008)
    assert tlbs.lookup(2 * MIB + 0x9000).level == 0
    assert tlbs.invalidate(2 * MIB, 0, 2 * MIB) == 3
    assert not tlbs.lookup(2 * MIB + 0x9000).hit


@given(
    st.lists(
        st.tuples(st.sampled_from(["access", "shoot"]), st.integers(0, 1023), st.integers(0, 1)),
        max_size=200,
    )
)
def test_a_hierarchy_never_answers_wrongly(actions: list[tuple[str, int, int]]) -> None:
    """Half the 4 KiB pages of a range are pieces of 2 MiB pages; each answer is right or a miss."""
    tlbs, known = two_levels(), set()
    for action, page, space in actions:
        address = page * 4096 + 12
        size = 2 * MIB if page >= 512 else 4096
        number = address // size
        if action == "shoot":
            tlbs.invalidate(address, space, size)
            known.discard((number, size, space))
            assert not tlbs.lookup(address, space).hit
            continue
        found = tlbs.lookup(address, space)
        physical = address + (space + 1) * GIB
        if found.hit:
            assert (number, size, space) in known
            assert (found.physical_address, found.page_size) == (physical, size)
        else:
            tlbs.fill(address, space, physical, size)
            known.add((number, size, space))
        assert tlbs.lookup(address, space).level == 0


@pytest.mark.parametrize("part", sorted(_core.memory_part_fields()))
def test_every_parameter_of_a_part_is_described(part: str) -> None:
    for field in _core.memory_part_fields()[part]:
        assert field["doc"], field
        assert field["type"] != "int" or field["unit"] != "none" or field["name"] == "seed", field
        bounded = field["minimum"] is not None and field["maximum"] is not None
        assert bounded or field["type"] in ("str", "bool") or field["name"] == "seed", field
