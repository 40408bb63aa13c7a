# SPDX-License-Identifier: Apache-2.0
"""Reference models of caches for tests: one access after the other, nothing of time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

LINE = 64


class ReferenceSet:
    """The lines of a set by their way, and who leaves next."""

    def __init__(self, ways: int) -> None:
        self.lines: list[int | None] = [None] * ways

    def use(self, way: int) -> None:
        """A hit."""

    def enter(self, way: int) -> None:
        """A new line."""

    def oldest(self) -> int:
        """The way to replace where all are taken."""
        raise AssertionError(type(self).__name__)

    def way_for_new(self) -> int:
        return self.lines.index(None) if None in self.lines else self.oldest()


class LruSet(ReferenceSet):
    """Ways from the least to the most recently used."""

    def __init__(self, ways: int) -> None:
        super().__init__(ways)
        self.order = list(range(ways))

    def use(self, way: int) -> None:
        self.order.remove(way)
        self.order.append(way)

    enter = use

    def oldest(self) -> int:
        return self.order[0]


class TreeSet(ReferenceSet):
    """A binary tree of arrows that point to the half used less recently; at first all to the left."""

    def __init__(self, ways: int) -> None:
        super().__init__(ways)
        self.points_right: dict[tuple[int, int], bool] = {}  # of the ways from first to beyond last

    def use(self, way: int) -> None:
        first, beyond = 0, len(self.lines)
        while beyond - first > 1:
            middle = (first + beyond) // 2
            self.points_right[first, beyond] = way < middle
            first, beyond = (first, middle) if way < middle else (middle, beyond)

    enter = use

    def oldest(self) -> int:
        first, beyond = 0, len(self.lines)
        while beyond - first > 1:
            middle = (first + beyond) // 2
            right = self.points_right.get((first, beyond), False)
            first, beyond = (middle, beyond) if right else (first, middle)
        return first


class SrripSet(ReferenceSet):
    """Two bits for each line (Jaleel et al., ISCA 2010): 0 after a hit, 2 when new; one at 3 leaves."""

    def __init__(self, ways: int) -> None:
        super().__init__(ways)
        self.distance = [3] * ways

    def use(self, way: int) -> None:
        self.distance[way] = 0

    def enter(self, way: int) -> None:
        self.distance[way] = 2

    def oldest(self) -> int:
        while 3 not in self.distance:
            self.distance = [distance + 1 for distance in self.distance]
        return self.distance.index(3)


POLICIES: dict[str, type[ReferenceSet]] = {"lru": LruSet, "tree-plru": TreeSet, "srrip": SrripSet}


def remainder(sets: int) -> Callable[[int], int]:
    return lambda number: number % sets


def folded(sets: int) -> Callable[[int], int]:
    """The index bits, and the two groups of as many bits above them, XORed."""
    bits = max(1, sets.bit_length() - 1)
    return lambda number: (number ^ (number >> bits) ^ (number >> (2 * bits))) % sets


class ReferenceCache:
    """Line numbers in, hits and evictions out; and a fully associative LRU cache beside it for the causes of misses."""

    def __init__(
        self, lines: int, ways: int, policy: str = "lru", index: Callable[[int], int] | None = None
    ) -> None:
        self.index = index or remainder(lines // ways)
        self.sets = [POLICIES[policy](ways) for _ in range(lines // ways)]
        self.dirty: set[int] = set()
        self.counts = dict.fromkeys(
            ["hits", "misses_cold", "misses_capacity", "misses_conflict", "evictions", "writebacks"], 0
        )
        self.capacity = lines
        self.recent: OrderedDict[int, None] = OrderedDict()
        self.seen: set[int] = set()

    def holds(self, number: int) -> bool:
        return number in self.sets[self.index(number)].lines

    def cause(self, number: int) -> str:
        """What a miss would be called; notes the access."""
        cause = "conflict" if number in self.recent else "capacity" if number in self.seen else "cold"
        self.seen.add(number)
        self.recent[number] = None
        self.recent.move_to_end(number)
        if len(self.recent) > self.capacity:
            self.recent.popitem(last=False)
        return f"misses_{cause}"

    def access(self, number: int, write: bool = False, allocate: bool = True) -> int | None:
        """Returns the line that had to leave, if one did."""
        group = self.sets[self.index(number)]
        cause = self.cause(number)
        if number in group.lines:
            self.counts["hits"] += 1
            group.use(group.lines.index(number))
            self.dirty |= {number} if write else set()
            return None
        self.counts[cause] += 1
        if not allocate:
            return None
        way = group.way_for_new()
        left = group.lines[way]
        if left is not None:
            self.counts["evictions"] += 1
            self.counts["writebacks"] += left in self.dirty
            self.dirty.discard(left)
        group.lines[way] = number
        group.enter(way)
        self.dirty |= {number} if write else set()
        return left

    def forget(self, number: int) -> None:
        lines = self.sets[self.index(number)].lines
        if number in lines:
            lines[lines.index(number)] = None


def random_lines(count: int, lines: int, seed: int) -> np.ndarray:
    """Line numbers: some often, some in runs, some in strides of a power of two, some anywhere."""
    rng = np.random.default_rng(seed)
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < count:
        length = int(rng.integers(5, 60))
        start = int(rng.integers(0, 4 * lines))
        kind = rng.integers(4)
        if kind == 0:
            parts.append(rng.integers(0, max(2, lines // 2), length))
        elif kind == 1:
            parts.append(start + np.arange(length))
        elif kind == 2:
            parts.append(start + (1 << int(rng.integers(1, 8))) * np.arange(length))
        else:
            parts.append(rng.integers(0, 3 * lines, length))
    return np.concatenate(parts)[:count]


def l1_of(lines: int, ways: int, **more: Any) -> dict[str, Any]:
    return {"size": f"{lines * LINE}B", "ways": ways, **more}


def compare(got: dict[str, int | float], reference: ReferenceCache, prefix: str = "") -> None:
    """Every count of the reference, with the difference where there is one."""
    wrong = {
        name: f"{got[prefix + name]} ({got[prefix + name] - count:+})"
        for name, count in reference.counts.items()
        if got[prefix + name] != count
    }
    assert not wrong, f"got {wrong}, the reference has {reference.counts}"
