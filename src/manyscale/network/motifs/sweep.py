# SPDX-License-Identifier: Apache-2.0
"""Wavefronts over a grid of ranks: Sweep3D, and SNAP of the many-node study."""

from __future__ import annotations

from typing import Any

from manyscale.network.durations import Distribution
from manyscale.network.grid import Grid, balanced
from manyscale.network.motifs.motif import Motif, Varying
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bytes, Count, Time, parameter

CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""Directions along the two axes of the grid in which a wavefront runs, one for each corner it begins at."""


def wavefronts(
    motif: Motif,
    mpi: Mpi,
    grid: Grid,
    rank: Any,
    blocks: int,
    amounts: tuple[int, int],
    block: Any,
    per_corner: int,
) -> None:
    """From each corner, `per_corner` times, `blocks` blocks: receive from two sides, compute, send to the others."""
    for down, right in CORNERS:
        before = [grid.neighbour(rank, offset) for offset in ((-down, 0), (0, -right))]
        behind = [grid.neighbour(rank, offset) for offset in ((down, 0), (0, right))]
        with mpi.loop(per_corner), mpi.loop(blocks):
            motif.compute_before(mpi, "receive")
            motif.call_nobody(mpi, before, sends=False)
            for tag, (peer, amount) in enumerate(zip(before, amounts, strict=True)):
                mpi.recv(peer, amount, tag=tag)
            motif.work(mpi, block)
            motif.compute_before(mpi, "send")
            motif.call_nobody(mpi, behind, receives=False)
            for tag, (peer, amount) in enumerate(zip(behind, amounts, strict=True)):
                mpi.send(peer, amount, tag=tag)


class Sweep3d(Varying):
    """Sweeps of a transport solver: wavefronts from the 8 corners of a box that is cut along two axes."""

    x: Count = parameter(0, doc="ranks along x; 0: chosen", minimum=0)
    y: Count = parameter(0, doc="ranks along y; 0: chosen", minimum=0)
    blocks: Count = parameter(
        10, doc="blocks along z, which is not cut: more of them fill the pipeline", minimum=1
    )
    face_x: Bytes = parameter("8KiB", doc="bytes of a block's face across x", minimum="0B")
    face_y: Bytes = parameter("8KiB", doc="bytes of a block's face across y", minimum="0B")
    compute: Time = parameter("20us", doc="compute for each block", minimum="0fs")
    iterations: Count = parameter(1, doc="sweeps over all 8 corners", minimum=1)
    allreduce: Bytes = parameter(
        "0B", doc="bytes of the allreduce after each iteration; 0B: none", minimum="0B"
    )

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x 8 corners x blocks x (2 messages of an inner rank)."""
        grid = Grid.of(balanced(size, 2, [self.y, self.x]))
        block = self.lasting(self.compute)
        with mpi.loop(self.iterations):
            wavefronts(self, mpi, grid, rank, self.blocks, (self.face_y, self.face_x), block, 2)
            if self.allreduce:
                mpi.allreduce(self.allreduce)


class Snap(Varying):
    """SNAP, a discrete-ordinates transport proxy: sweeps for each energy group over cells that are not cut along x.

    The default of 1000 x 4 x 4 cells for each rank is Table 1 of the many-node study; angles, groups, the
    chunk along x and the time of a cell, which it does not print, are assumed.

    Measured compute phases are those of examples/projection/programs/snap.c: receive, send, converged.
    """

    nx: Count = parameter(1000, doc="cells along x, which is not cut", minimum=1)
    ny: Count = parameter(4, doc="cells of a rank along y", minimum=1)
    nz: Count = parameter(4, doc="cells of a rank along z", minimum=1)
    angles: Count = parameter(10, doc="angles of an octant", minimum=1)
    groups: Count = parameter(8, doc="energy groups", minimum=1)
    chunk: Count = parameter(100, doc="cells along x between two messages", minimum=1)
    iterations: Count = parameter(4, doc="inner iterations, each with a convergence test", minimum=1)
    cell: Time = parameter("5ns", doc="compute for one cell, angle and group", minimum="0fs")
    number: Bytes = parameter("8B", doc="bytes of a number", minimum="1B")

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x 8 octants x groups x chunks x (2 messages of an inner rank), an allreduce after each."""
        grid = Grid.of(balanced(size, 2))
        chunks = -(-self.nx // self.chunk)
        cells = self.chunk * self.angles
        faces = (cells * self.nz * self.number, cells * self.ny * self.number)

        def block() -> int | Distribution:
            return self.lasting(cells * self.ny * self.nz * self.cell)

        self.begin(mpi)
        with mpi.loop(self.iterations):
            wavefronts(self, mpi, grid, rank, chunks, faces, block, 2 * self.groups)
            self.compute_before(mpi, "converged")
            mpi.allreduce(self.number if self.timed else self.groups * self.number)
        self.end(mpi, 3 * self.number)
