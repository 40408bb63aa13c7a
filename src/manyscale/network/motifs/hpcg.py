# SPDX-License-Identifier: Apache-2.0
"""HPCG: conjugate gradients with a multigrid preconditioner on a 27-point stencil."""

from __future__ import annotations

from typing import Any

from manyscale.errors import InputError
from manyscale.network.durations import Distribution
from manyscale.network.grid import Grid, balanced
from manyscale.network.motifs.halo import directions
from manyscale.network.motifs.motif import Varying, exchange
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bandwidth, Bytes, Count, parameter

STENCIL = 27  # nonzeros in a row of the matrix
NONZERO = 12  # bytes: a number and its column


class Hpcg(Varying):
    """HPCG on 64 x 64 x 64 points for each rank, as in Table 1 of the many-node study.

    Each step takes as long as its data take from memory at the rank's share of the bandwidth. One smoother runs
    at the levels 0 1 2 3 2 1 0 in each iteration, the pattern that the study finds in its timings.

    Measured compute phases are those of examples/projection/programs/hpcg.c: halo, dot.
    """

    nx: Count = parameter(64, doc="points of a rank along x", minimum=2)
    ny: Count = parameter(64, doc="points of a rank along y", minimum=2)
    nz: Count = parameter(64, doc="points of a rank along z", minimum=2)
    levels: Count = parameter(4, doc="levels of the multigrid", minimum=1, maximum=16)
    iterations: Count = parameter(50, doc="iterations of the solver", minimum=1)
    memory_bandwidth: Bandwidth = parameter(
        "8GB/s", doc="a rank's share of the memory bandwidth", minimum="1B/s"
    )
    number: Bytes = parameter("8B", doc="bytes of a number", minimum="1B")

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """Each iteration: 2 smoothings and a product at each level but the last, one smoothing there, a product,
        3 dot products; each smoothing and product exchanges with up to 26 neighbours."""
        if min(self.nx, self.ny, self.nz) % 2 ** (self.levels - 1):
            raise InputError(
                f"hpcg: {self.nx} x {self.ny} x {self.nz} points cannot be halved {self.levels - 1} times"
            )
        grid = Grid.of(balanced(size, 3))
        offsets = directions(3, 3)
        peers = [grid.neighbour(rank, offset) for offset in offsets]
        amounts = [self._halos(offset) for offset in offsets]

        def halo(level: int, site: str = "halo") -> None:
            self.compute_before(mpi, site)
            self.call_nobody(mpi, peers)
            # The program posts its sends, too; the study's skeleton waits for each.
            exchange(mpi, peers, [amount[level] for amount in amounts], blocking=not self.timed)

        def product(level: int) -> None:
            halo(level)
            self.work(mpi, lambda: self._matrix_time(level, 1))

        def smooth(level: int) -> None:
            halo(level)
            self.work(mpi, lambda: self._matrix_time(level, 2))

        def multigrid(level: int) -> None:
            smooth(level)
            if level + 1 < self.levels:
                product(level)
                multigrid(level + 1)
                smooth(level)

        self.begin(mpi)
        with mpi.loop(self.iterations):
            multigrid(0)
            self._dot(mpi)
            self.work(mpi, lambda: self._vector_time(3))
            product(0)
            self._dot(mpi)
            self.work(mpi, lambda: self._vector_time(6))
            self._dot(mpi)
        if self.measured("check halo"):
            for _ in range(2):  # the residual of the solution, and a product that is known
                halo(0, "check halo")
        self.end(mpi, 3 * self.number)

    def _halos(self, offset: tuple[int, ...]) -> list[int]:
        """Bytes that go to one neighbour, by level."""
        extents = (self.nz, self.ny, self.nx)
        amounts = []
        for level in range(self.levels):
            points = 1
            for step, extent in zip(offset, extents, strict=True):
                points *= 1 if step else extent >> level
            amounts.append(points * self.number)
        return amounts

    def _points(self, level: int) -> int:
        return (self.nx >> level) * (self.ny >> level) * (self.nz >> level)

    def _matrix_time(self, level: int, passes: int) -> int | Distribution:
        """Of so many passes over the matrix."""
        return self._time(self._points(level) * STENCIL * NONZERO * passes)

    def _vector_time(self, vectors: int) -> int | Distribution:
        return self._time(self._points(0) * self.number * vectors)

    def _time(self, moved: int) -> int | Distribution:
        return self.lasting(moved * 10**15 // self.memory_bandwidth)

    def _dot(self, mpi: Mpi) -> None:
        self.work(mpi, lambda: self._vector_time(2))
        self.compute_before(mpi, "dot")
        mpi.allreduce(self.number)
