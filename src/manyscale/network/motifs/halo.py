# SPDX-License-Identifier: Apache-2.0
"""Exchanges with neighbours on a grid of ranks."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from manyscale.network.grid import Grid, balanced
from manyscale.network.motifs.motif import Varying, allreduce, exchange, neighbours
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bytes, Count, Time, parameter


class _Halo(Varying):
    """What exchanges on grids have in common."""

    iterations: Count = parameter(10, doc="exchanges", minimum=1)
    compute: Time = parameter("100us", doc="compute before each exchange", minimum="0fs")
    periodic: bool = parameter(False, doc="whether the grid closes at its edges")
    order: Literal["together", "axes"] = parameter(
        "together",
        doc="together: all neighbours at once; axes: one axis after the other, with blocking sends",
    )
    allreduce: Bytes = parameter(
        "8B", doc="bytes of the allreduce after each exchange; 0B: none", minimum="0B"
    )
    algorithm: str = parameter(
        "",
        doc="algorithm of the allreduce, by name, or binary (trees up and down); empty: chosen by size and count",
    )

    def _run(
        self, mpi: Mpi, grid: Grid, rank: Any, offsets: list[tuple[int, ...]], amounts: list[int]
    ) -> None:
        peers = neighbours(mpi, grid, rank, offsets)
        with mpi.loop(self.iterations):
            if self.compute:
                mpi.compute(self.lasting(self.compute))
            if self.order == "axes":
                for first in range(0, len(peers), 2):
                    exchange(mpi, peers[first : first + 2], amounts[first : first + 2])
            else:
                exchange(mpi, peers, amounts, blocking=False)
            if self.allreduce:
                allreduce(mpi, self.allreduce, self.algorithm)


def directions(axes: int, most: int) -> list[tuple[int, ...]]:
    """Offsets to the neighbours that differ along at most `most` axes, opposite ones in pairs, nearest kinds first."""
    found = [offset for offset in itertools.product((-1, 0, 1), repeat=axes) if 0 < _distance(offset) <= most]
    halves = sorted((offset for offset in found if offset < (0,) * axes), key=lambda o: (_distance(o), o))
    return [offset for half in halves for offset in (half, tuple(-step for step in half))]


def _distance(offset: tuple[int, ...]) -> int:
    return sum(step != 0 for step in offset)


class Halo2d(_Halo):
    """Exchange of edges (5 points) or edges and corners (9 points) on a grid of ranks."""

    x: Count = parameter(0, doc="ranks along x; 0: chosen", minimum=0)
    y: Count = parameter(0, doc="ranks along y; 0: chosen", minimum=0)
    points: Literal["5", "9"] = parameter("5", doc="stencil: 5 points exchange edges, 9 points corners too")
    edge: Bytes = parameter("8KiB", doc="bytes of an edge", minimum="0B")
    corner: Bytes = parameter("8B", doc="bytes of a corner", minimum="0B")

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x (4 or 8 messages of an inner rank)."""
        grid = Grid.of(balanced(size, 2, [self.x, self.y]), self.periodic)
        offsets = directions(2, 1 if self.points == "5" else 2)
        amounts = [self.edge if _distance(offset) == 1 else self.corner for offset in offsets]
        self._run(mpi, grid, rank, offsets, amounts)


class Halo3d(_Halo):
    """Exchange of faces (7 points) or faces, edges and corners (27 points, 26 neighbours) on a grid of ranks."""

    x: Count = parameter(0, doc="ranks along x; 0: chosen", minimum=0)
    y: Count = parameter(0, doc="ranks along y; 0: chosen", minimum=0)
    z: Count = parameter(0, doc="ranks along z; 0: chosen", minimum=0)
    points: Literal["7", "26"] = parameter(
        "7", doc="7: with the 6 neighbours at faces; 26: with all 26 neighbours"
    )
    face: Bytes = parameter("32KiB", doc="bytes of a face", minimum="0B")
    edge: Bytes = parameter("512B", doc="bytes of an edge", minimum="0B")
    corner: Bytes = parameter("8B", doc="bytes of a corner", minimum="0B")

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x (6 or 26 messages of an inner rank)."""
        grid = Grid.of(balanced(size, 3, [self.z, self.y, self.x]), self.periodic)
        offsets = directions(3, 1 if self.points == "7" else 3)
        amounts = [getattr(self, ("face", "edge", "corner")[_distance(offset) - 1]) for offset in offsets]
        self._run(mpi, grid, rank, offsets, amounts)
