# SPDX-License-Identifier: Apache-2.0
"""Ranks on a Cartesian grid, as MPI's Cartesian topologies: the last axis varies fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyscale.errors import InputError
from manyscale.network.program import NOBODY


@dataclass(frozen=True)
class Grid:
    """A grid of ranks; its methods take one rank or an array of them."""

    extents: tuple[int, ...]
    periodic: tuple[bool, ...]

    @classmethod
    def of(cls, extents: Sequence[int], periodic: bool | Sequence[bool] = False) -> Grid:
        """A grid with the given extents, periodic along all axes, none or some."""
        wraps = [periodic] * len(extents) if isinstance(periodic, bool) else list(periodic)
        if len(wraps) != len(extents) or min(extents, default=0) < 1:
            raise InputError(f"{list(extents)} is no grid: each extent must be at least 1")
        return cls(tuple(map(int, extents)), tuple(wraps))

    @property
    def size(self) -> int:
        """The number of ranks."""
        return math.prod(self.extents)

    def coordinates(self, rank: Any) -> list[Any]:
        """The coordinate of a rank along each axis."""
        coordinates = []
        for extent in reversed(self.extents):
            coordinates.append(rank % extent)
            rank = rank // extent
        return coordinates[::-1]

    def rank(self, coordinates: Sequence[Any]) -> Any:
        """The rank at given coordinates."""
        rank = 0
        for coordinate, extent in zip(coordinates, self.extents, strict=True):
            rank = rank * extent + coordinate
        return rank

    def neighbour(self, rank: Any, offset: Sequence[int]) -> Any:
        """The rank at an offset; nobody beyond an edge that is not periodic."""
        there: list[Any] = []
        inside: Any = True
        for coordinate, step, extent, wraps in zip(
            self.coordinates(rank), offset, self.extents, self.periodic, strict=True
        ):
            moved = coordinate + step
            if wraps:
                moved = moved % extent
            else:
                inside = inside & (moved >= 0) & (moved < extent)
            there.append(moved)
        found = np.where(inside, self.rank(there), NOBODY)
        return found if isinstance(rank, np.ndarray) else int(found)


def balanced(size: int, axes: int, given: Sequence[int] = ()) -> tuple[int, ...]:
    """Extents of a grid for `size` ranks, as equal as can be, largest first; those given (not 0) are kept."""
    extents = [*given, *([0] * (axes - len(given)))]
    left = size
    for extent in extents:
        if extent:
            if left % extent:
                raise InputError(f"{size} ranks do not fill a grid of {_shown(extents)}")
            left //= extent
    free = extents.count(0)
    if not free and left != 1:
        raise InputError(f"{size} ranks do not fill a grid of {_shown(extents)}, which has {size // left}")
    chosen = iter(_factors(left, free))
    return tuple(extent or next(chosen) for extent in extents)


def _factors(size: int, count: int) -> list[int]:
    """The factors of `size` whose largest is least, and so on, largest first."""
    if count <= 1:
        return [size] * count
    best: list[int] = []
    for factor in range(1, size + 1):
        if factor**count > size and best:
            break
        if size % factor == 0:
            rest = _factors(size // factor, count - 1)
            candidate = sorted([*rest, factor], reverse=True)
            if not best or candidate < best:
                best = candidate
    return best


def _shown(extents: Sequence[int]) -> str:
    return " x ".join(str(extent) if extent else "?" for extent in extents)
