# SPDX-License-Identifier: Apache-2.0
"""Page tables and walks against a page table of dictionaries."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyscale import _core

pytestmark = pytest.mark.core

MIB, GIB = 1 << 20, 1 << 30


class ReferenceTable:
    """Nested dictionaries; tables are numbered in the order in which mapping creates them."""

    def __init__(self, levels: int, bits: int, shift: int, table_begin: int) -> None:
        self.levels, self.bits, self.shift, self.begin = levels, bits, shift, table_begin
        self.tables: list[dict[int, tuple[str, int]]] = [{}]

    def index(self, address: int, level: int) -> int:
        return (address >> (self.shift + self.bits * (self.levels - 1 - level))) % (1 << self.bits)

    def page_size(self, level: int) -> int:
        return 1 << (self.shift + self.bits * (self.levels - 1 - level))

    def map(self, address: int, physical: int, last: int) -> bool:
        table = 0
        for level in range(last):
            entry = self.tables[table].get(self.index(address, level))
            if entry is None:
                self.tables.append({})
                entry = ("table", len(self.tables) - 1)
                self.tables[table][self.index(address, level)] = entry
            if entry[0] == "page":
                return False
            table = entry[1]
        return self.tables[table].setdefault(self.index(address, last), ("page", physical)) == (
            "page",
            physical,
        )

    def walk(self, address: int) -> tuple[list[int], tuple[int, int] | None]:
        reads, table = [], 0
        for level in range(self.levels):
            index = self.index(address, level)
            reads.append(self.begin + table * (8 << self.bits) + index * 8)
            entry = self.tables[table].get(index)
            if entry is None:
                return reads, None
            if entry[0] == "page":
                return reads, (entry[1], self.page_size(level))
            table = entry[1]
        raise AssertionError("a table below the last level")


def make_table(**parameters: object) -> tuple[_core.PageTable, _core.FrameAllocator]:
    frames = _core.FrameAllocator(memory_size=16 * GIB, table_size=256 * MIB)
    return _core.PageTable(frames, **parameters), frames


TABLE_BEGIN = 16 * GIB - 256 * MIB


@pytest.mark.parametrize(
    ("levels", "bits", "shift"), [(4, 9, 12), (5, 9, 12), (2, 10, 16), (3, 4, 12), (1, 6, 21)]
)
@settings(max_examples=40)
@given(data=st.data())
def test_walks_read_what_an_independent_table_reads(
    levels: int, bits: int, shift: int, data: st.DataObject
) -> None:
    """Pages of every size the table has; also addresses that are not mapped, where a walk ends early."""
    table, _ = make_table(levels=levels, bits_per_level=bits, page_size=1 << shift)
    reference = ReferenceTable(levels, bits, shift, TABLE_BEGIN)
    address_bits = shift + levels * bits
    addresses = st.one_of(
        st.integers(0, 2**address_bits - 1),
        st.integers(0, 40).map(lambda n: n << shift),
        st.integers(0, 5).map(lambda n: (n << (shift + bits)) % 2**address_bits),
    )
    mapped = []
    for number in range(data.draw(st.integers(0, 12))):
        address = data.draw(addresses)
        level = data.draw(st.sampled_from([levels - 1, levels - 1, max(levels - 2, 0)]))
        size = reference.page_size(level)
        if reference.walk(address)[1] is not None:
            with pytest.raises(ValueError, match="is mapped already"):
                table.map(address, 0, size)
            continue
        physical = (number + 1) * size
        if reference.map(address, physical, level):
            table.map(address, physical + address % size, size)
            mapped.append(address)
        else:  # tables of smaller pages are in the way
            with pytest.raises(ValueError, match="is mapped already"):
                table.map(address, physical, size)
    for address in [*mapped, *data.draw(st.lists(addresses, max_size=20))]:
        reads, page = reference.walk(address)
        assert table.walk(address) == reads
        assert table.find(address) == page
    assert [table.table_address(n) for n in range(table.tables)] == [
        TABLE_BEGIN + n * (8 << bits) for n in range(len(reference.tables))
    ]


def walk_all(walker: _core.PageWalker, table: _core.PageTable, pages: range) -> list[int]:
    """Walks to each page in turn; returns how many reads each took."""
    counts = []
    for page in pages:
        outcome, walk = walker.begin(table, page * 4096)
        assert outcome == "started"
        counts.append(len(walker.reads(walk)))
        assert walker.finish(walk) == (table.find(page * 4096), 0)
    return counts


@pytest.mark.parametrize("pages", [1, 511, 512, 513, 2000])
def test_reads_of_sequential_pages_follow_the_closed_form(pages: int) -> None:
    """With one cached entry per level, n pages from 0 read each entry on the way once:

    n + ceil(n / 512) + ceil(n / 512^2) + ceil(n / 512^3) reads; without a walk cache 4 n.
    """
    table, _ = make_table()
    for page in range(pages):
        table.touch(page * 4096)
    expected = sum(-(-pages // 512**level) for level in range(4))
    walker = _core.PageWalker(table, {"entries": 1})
    assert sum(walk_all(walker, table, range(pages))) == expected == walker.statistics["reads"]
    assert walker.statistics["walks"] == pages
    assert walker.cache_hits(2) == pages - -(-pages // 512)
    assert walker.cache_hits(1) == -(-pages // 512) - 1
    assert walker.statistics["reads_per_walk"] == Counter(
        [4] + [2 if page % 512 == 0 else 1 for page in range(1, pages)]
    )

    bare = _core.PageWalker(table, {"entries": 0})
    assert walk_all(bare, table, range(pages)) == [4] * pages
    assert bare.statistics["start_level"] == {0: pages}


def test_a_walk_reads_only_below_the_deepest_cached_entry() -> None:
    table, _ = make_table()
    near, far, farther = 0x1000, 0x1000 + 2 * MIB, 0x1000 + GIB
    for address in (near, near + 4096, far, farther):
        table.touch(address)
    walker = _core.PageWalker(table, {"entries": 4})
    for address, reads in [(near, 4), (near + 4096, 1), (far, 2), (farther, 3), (near, 1)]:
        _, walk = walker.begin(table, address)
        assert walker.reads(walk) == table.walk(address)[-reads:]
        walker.finish(walk)
    assert [walker.cache_hits(level) for level in range(3)] == [1, 1, 2]
    _, other_space = walker.begin(table, near, 1)
    assert len(walker.reads(other_space)) == 4
    walker.finish(other_space)
    assert walker.invalidate(near) == 3
    _, walk = walker.begin(table, near)
    assert len(walker.reads(walk)) == 4
    walker.finish(walk)


def test_the_walk_cache_drops_the_least_recently_used() -> None:
    table, _ = make_table()
    for region in range(3):
        table.touch(region * 2 * MIB)
    walker = _core.PageWalker(table, {"entries": 2})
    lengths = []
    for region in (0, 1, 0, 2, 0, 1):
        _, walk = walker.begin(table, region * 2 * MIB)
        lengths.append(len(walker.reads(walk)))
        walker.finish(walk)
    assert lengths == [4, 2, 1, 2, 1, 2]


def test_the_cache_learns_when_a_walk_finishes_not_before() -> None:
    table, _ = make_table()
    table.touch(0)
    table.touch(4096)
    walker = _core.PageWalker(table, {})
    _, first = walker.begin(table, 0)
    _, second = walker.begin(table, 4096)
    assert [len(walker.reads(walk)) for walk in (first, second)] == [4, 4]
    walker.finish(first)
    _, third = walker.begin(table, 0)
    assert len(walker.reads(third)) == 1


def test_walks_to_one_page_are_merged_and_the_number_is_bounded() -> None:
    table, _ = make_table()
    for page in range(4):
        table.touch(page * 4096)
    walker = _core.PageWalker(table, {}, concurrent_walks=2)
    outcome, first = walker.begin(table, 0x10)
    assert outcome == "started"
    assert walker.begin(table, 0xFF0) == ("merged", first)
    assert walker.begin(table, 0x1000)[0] == "started"
    assert walker.begin(table, 0x2000)[0] == "full"
    assert walker.begin(table, 0x20) == ("merged", first)  # merging needs no walker
    assert walker.begin(table, 0x20, 1)[0] == "full"  # another address space is another page
    assert walker.active == 2
    assert walker.finish(first) == (table.find(0), 2)
    assert walker.begin(table, 0x2000)[0] == "started"
    with pytest.raises(ValueError, match="there is no outstanding walk 7"):
        walker.finish(7)
    counts = walker.statistics
    assert (counts["walks"], counts["merged"], counts["refused"]) == (3, 2, 2)


def test_a_walk_to_an_unmapped_address_ends_in_a_fault() -> None:
    table, _ = make_table(demand=False)
    table.map_new(0, 4096)
    walker = _core.PageWalker(table, {"entries": 0})
    _, walk = walker.begin(table, 2 * MIB)
    assert walker.reads(walk) == table.walk(2 * MIB)
    assert len(walker.reads(walk)) == 3  # the third entry is empty
    assert walker.finish(walk) == (None, 0)
    assert walker.statistics["faults"] == 1
    with pytest.raises(RuntimeError, match="0x200000 is not mapped"):
        table.touch(2 * MIB)
    with pytest.raises(ValueError, match="more than the 48 bits"):
        table.map_new(1 << 48, 4096)
    assert table.find(1 << 48) is None


def test_larger_pages_end_higher() -> None:
    table, _ = make_table()
    assert table.map_new(GIB + 5, GIB) == (0, GIB)
    assert table.map_new(4 * MIB, 2 * MIB) == (GIB, 2 * MIB)
    assert table.touch(6 * MIB) == (GIB + 2 * MIB, 4096)
    assert [len(table.walk(address)) for address in (GIB, 4 * MIB, 6 * MIB)] == [2, 3, 4]
    assert table.unmap(4 * MIB + 12345) == (GIB, 2 * MIB)
    assert table.unmap(4 * MIB) is None
    with pytest.raises(ValueError, match="no level of the page table has pages of 65536 bytes"):
        table.map_new(0, 65536)


def test_frames_come_in_order_as_they_are_or_at_random() -> None:
    size = 4 * MIB
    parameters = {"memory_base": GIB, "memory_size": size + 64 * 4096, "table_size": 64 * 4096}
    pages = [page * 4096 for page in range(1000, 1000 + size // 4096)]
    placed = {}
    for placement, seed in [("sequential", 0), ("random", 1), ("random", 2), ("random", 1)]:
        frames = _core.FrameAllocator(placement=placement, seed=seed, **parameters)
        table = _core.PageTable(frames)
        order = [table.touch(page)[0] for page in pages]
        assert [table.touch(page)[0] for page in pages] == order
        assert sorted(order) == list(range(GIB, GIB + size, 4096)), "each frame once"
        with pytest.raises(RuntimeError, match="no frame of 4096 bytes is left"):
            table.touch(0)
        assert placed.setdefault((placement, seed), order) == order
    assert placed["sequential", 0] == sorted(placed["sequential", 0])
    assert len({tuple(order) for order in placed.values()}) == 3
    neighbours = sum(
        b - a == 4096 for a, b in zip(placed["random", 1], placed["random", 1][1:], strict=False)
    )
    assert neighbours < 20

    identity = _core.PageTable(_core.FrameAllocator(placement="identity", **parameters))
    assert identity.touch(0x7F1234567) == (0x7F1234000, 4096)
    with pytest.raises(RuntimeError, match="would lie on the page tables"):
        identity.touch(GIB + size)


def test_tables_of_two_address_spaces_share_the_memory() -> None:
    frames = _core.FrameAllocator()
    one, two = _core.PageTable(frames), _core.PageTable(frames)
    assert one.touch(0) == (0, 4096)
    assert two.touch(0) == (4096, 4096)
    assert not set(one.walk(0)) & set(two.walk(0))
