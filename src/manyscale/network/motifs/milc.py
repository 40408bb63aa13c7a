# SPDX-License-Identifier: Apache-2.0
"""MILC: lattice quantum chromodynamics with staggered fermions, the solver's communication."""

from __future__ import annotations

import math
from typing import Any

from manyscale.network.durations import Distribution
from manyscale.network.grid import Grid, balanced
from manyscale.network.motifs.motif import Varying, neighbours
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bytes, Count, Time, parameter

_HOPS = (1, 3)  # the improved action reaches the nearest site and the third nearest


class Milc(Varying):
    """Conjugate gradients of the improved staggered action on 6 x 6 x 6 x 6 sites for each rank (Table 1 of the
    many-node study); the time of a site, which it does not print, is assumed.

    Measured compute phases are those of examples/projection/programs/milc.c: faces, sum. It does not compute while
    messages travel.
    """

    sites: Count = parameter(6, doc="sites of a rank along each of the four axes", minimum=3)
    vector: Bytes = parameter("48B", doc="bytes of a colour vector of one site", minimum="1B")
    site: Time = parameter(
        "500ns", doc="compute for one site in one application of the operator", minimum="0fs"
    )
    iterations: Count = parameter(100, doc="iterations of the solver", minimum=1)

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """Each iteration: 2 parities x (16 messages, compute), and 2 allreduces."""
        grid = Grid.of(balanced(size, 4), periodic=True)
        offsets = [[step * (axis == other) for other in range(4)] for axis in range(4) for step in (-1, 1)]
        peers = neighbours(mpi, grid, rank, offsets)
        face = self.sites**3 // 2 * self.vector  # of one parity

        def parity() -> int | Distribution:
            return self.lasting(math.ceil(self.sites**4 / 2) * self.site // 2)

        def faces(site: str) -> None:
            self.compute_before(mpi, site)
            self.call_nobody(mpi, peers * len(_HOPS))
            requests = []
            for receives in (True, False):
                for index, peer in enumerate(peers):
                    for hop in _HOPS:
                        if receives:
                            requests.append(mpi.irecv(peer, hop * face, tag=10 * index + hop))
                        else:
                            requests.append(mpi.isend(peer, hop * face, tag=10 * (index ^ 1) + hop))
            self.work(mpi, parity)
            mpi.waitall(requests)
            self.work(mpi, parity)

        self.begin(mpi)
        with mpi.loop(self.iterations):
            with mpi.loop(2):
                faces("faces")
            for _ in range(2):
                self.compute_before(mpi, "sum")
                mpi.allreduce(8)
        if self.measured("check faces"):
            with mpi.loop(3):  # the operator on the solution, and on a field that is known
                faces("check faces")
        self.end(mpi, 16)
