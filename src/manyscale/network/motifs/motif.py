# SPDX-License-Identifier: Apache-2.0
"""What built-in skeletons have in common: parameters with units, and one function for all ranks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyscale.network.durations import Distribution
from manyscale.network.grid import Grid
from manyscale.network.recorder import Mpi
from manyscale.network.shared import Request
from manyscale.spec import Ratio, Spec, parameter


class Motif(Spec):
    """A built-in skeleton. Its parameters are those of a Spec; `emit` records what the ranks do."""

    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """Records the calls of all ranks; `rank` is the array of all of them."""
        raise NotImplementedError


class Varying(Motif):
    """A skeleton whose compute phases vary."""

    variation: Ratio = parameter(
        0.0, doc="standard deviation of compute times, as a share of them", minimum=0.0, maximum=1.0
    )

    def lasting(self, time: int) -> int | Distribution:
        """A compute phase of so many femtoseconds, normally distributed if there is a variation."""
        return Distribution.normal(time, self.variation) if self.variation and time else time


def allreduce(mpi: Mpi, amount: int, algorithm: str) -> None:
    """An allreduce; "binary" is a reduction and a broadcast on a binary tree whose root is rank 0."""
    if algorithm == "binary":
        mpi.reduce(amount, algorithm="binary")
        mpi.bcast(amount, algorithm="binary")
    else:
        mpi.allreduce(amount, algorithm=algorithm)


def neighbours(mpi: Mpi, grid: Grid, rank: Any, offsets: Sequence[Sequence[int]]) -> list[Any]:
    """The peers at some offsets; nobody where that is the rank itself, on a periodic axis of one."""
    peers = [grid.neighbour(rank, offset) for offset in offsets]
    return [np.where(peer == rank, mpi.NOBODY, peer) for peer in peers]


def exchange(mpi: Mpi, peers: Sequence[Any], amounts: Sequence[Any], blocking: bool = True) -> None:
    """Each rank swaps messages with its peers, which are in pairs of opposite directions: 2 n with 2 n + 1.

    Receives are posted first; the sends block or are waited for with the receives.
    """
    requests: list[Request] = [
        mpi.irecv(peer, amount, tag=place)
        for place, (peer, amount) in enumerate(zip(peers, amounts, strict=True))
    ]
    for place, (peer, amount) in enumerate(zip(peers, amounts, strict=True)):
        tag = place ^ 1  # what goes up arrives from below
        if blocking:
            mpi.send(peer, amount, tag=tag)
        else:
            requests.append(mpi.isend(peer, amount, tag=tag))
    mpi.waitall(requests)
