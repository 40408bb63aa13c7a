# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: one-dimensional ones in each rank, and all-to-all between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manyscale.network.durations import Distribution
from manyscale.network.grid import balanced
from manyscale.network.motifs.motif import Varying
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bytes, Count, Ratio, Time, parameter


class Fft2d(Varying):
    """A two-dimensional transform of a square matrix whose rows are spread over the ranks, with weak scaling.

    The default of 32K numbers for each rank is Table 1 of the many-node study. A transform of n numbers takes
    time in proportion to n log2 n, so it takes longer the more ranks there are; 5 ns for a number and level (5
    operations at 1 GFLOP/s) are assumed.

    Measured compute phases are those of examples/projection/programs/fft2d.c: transpose.
    """

    points: Count = parameter(32768, doc="numbers of a rank", minimum=1)
    number: Bytes = parameter("16B", doc="bytes of a number", minimum="1B")
    butterfly: Time = parameter("5ns", doc="compute for one number and level", minimum="0fs")
    iterations: Count = parameter(1, doc="transforms", minimum=1)
    algorithm: str = parameter("", doc="algorithm of the all-to-all; empty: chosen by size and count")
    measured_side: Count = parameter(
        0, doc="rows of the matrix on which compute phases were measured; 0: as many as there are", minimum=0
    )

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x 2 x (transforms of rows, an all-to-all that transposes)."""
        side = math.sqrt(self.points * size)
        levels = math.log2(max(side, 2))
        block = -(-self.points * self.number // size)
        scale = levels / math.log2(max(self.measured_side, 2)) if self.timed and self.measured_side else None

        def rows() -> int | Distribution:
            return self.lasting(round(self.points * levels * self.butterfly))

        self.begin(mpi)
        with mpi.loop(self.iterations), mpi.loop(2):
            self.work(mpi, rows)
            self.compute_before(mpi, "transpose", scale)
            mpi.alltoall(block, algorithm=self.algorithm)
        self.end(mpi, 8)


class Fft3d(Varying):
    """A three-dimensional transform of real numbers to complex ones and back, on pencils in a grid of ranks.

    Amounts and order follow the usual decomposition: transforms along x, all-to-all among the ranks of a row,
    along y, all-to-all among those of a column, along z, and the same backwards.
    """

    points: Count = parameter(256, doc="numbers along each of the three axes", minimum=2)
    rows: Count = parameter(0, doc="ranks that share a plane; 0: chosen", minimum=0)
    element: Time = parameter("1ns", doc="compute for one number in one direction", minimum="0fs")
    last: Ratio = parameter(2.0, doc="how much longer the last transform takes", minimum=0.0)
    number: Bytes = parameter("16B", doc="bytes of a complex number", minimum="1B")
    iterations: Count = parameter(1, doc="transforms there and back", minimum=1)
    algorithm: str = parameter("", doc="algorithm of the all-to-all; empty: chosen by size and count")

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x (6 transforms, 2 all-to-alls in a row and 2 in a column, 2 barriers)."""
        row_size, column_size = balanced(size, 2, [self.rows])
        row = mpi.split(rank // row_size)  # neighbours, which exchange along x
        column = mpi.split(rank % row_size)
        half = self.points // 2 + 1  # of the transform of real numbers
        x = _share(half, row_size, rank % row_size)
        y_rows = _share(self.points, row_size, rank % row_size)
        y_columns = -(-self.points // column_size)
        z = _share(self.points, column_size, rank // row_size)
        within_row = y_rows * z * -(-half // row_size) * self.number
        within_column = x * z * y_columns * self.number
        once = self.points * (self.points * self.points // size) * self.element
        forward = self.lasting(once)
        last = self.lasting(round(once * self.last))
        with mpi.loop(self.iterations):
            mpi.compute(forward)
            mpi.alltoall(within_row, communicator=row, algorithm=self.algorithm)
            mpi.compute(forward)
            mpi.alltoall(within_column, communicator=column, algorithm=self.algorithm)
            mpi.compute(forward)
            mpi.barrier()
            mpi.compute(forward)
            mpi.alltoall(within_column, communicator=column, algorithm=self.algorithm)
            mpi.compute(forward)
            mpi.alltoall(within_row, communicator=row, algorithm=self.algorithm)
            mpi.compute(last)
            mpi.barrier()


def _share(count: int, parts: int, index: Any) -> Any:
    """How many of `count` things the part of an index has when they are divided as equally as possible."""
    return count // parts + np.where(index < count % parts, 1, 0)
