# SPDX-License-Identifier: Apache-2.0
"""One collective again and again, with or without compute in between."""

from __future__ import annotations

from typing import Any, Literal

from manyscale.network.motifs.motif import Varying, allreduce
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bytes, Count, Time, parameter


class _Repeated(Varying):
    """What repeated collectives have in common."""

    iterations: Count = parameter(100, doc="how often", minimum=1)
    compute: Time = parameter("0fs", doc="compute before each", minimum="0fs")
    algorithm: str = parameter("", doc="algorithm, by name; empty: chosen by size and count")

    def call(self, mpi: Mpi) -> None:
        """The collective."""
        raise NotImplementedError

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x (compute, collective)."""
        with mpi.loop(self.iterations):
            if self.compute:
                mpi.compute(self.lasting(self.compute))
            self.call(mpi)


class Allreduce(_Repeated):
    """Allreduce again and again."""

    bytes: Bytes = parameter("8B", doc="bytes of the vector", minimum="0B")

    def call(self, mpi: Mpi) -> None:
        """One allreduce."""
        allreduce(mpi, self.bytes, self.algorithm)


class Alltoall(_Repeated):
    """All-to-all again and again."""

    iterations: Count = parameter(1, doc="how often", minimum=1)
    bytes: Bytes = parameter("4KiB", doc="bytes for each pair of ranks", minimum="0B")

    def call(self, mpi: Mpi) -> None:
        """One all-to-all."""
        mpi.alltoall(self.bytes, algorithm=self.algorithm)


class Collective(_Repeated):
    """Any other collective again and again."""

    collective: Literal[
        "barrier", "bcast", "reduce", "gather", "scatter", "allgather", "reduce_scatter", "scan", "exscan"
    ] = parameter("barrier", doc="which")
    bytes: Bytes = parameter("8B", doc="bytes that a rank gives or gets", minimum="0B")

    def call(self, mpi: Mpi) -> None:
        """One of it, from or to rank 0 where it has a root."""
        if self.collective == "barrier":
            mpi.barrier(algorithm=self.algorithm)
        else:
            getattr(mpi, self.collective)(self.bytes, algorithm=self.algorithm)
