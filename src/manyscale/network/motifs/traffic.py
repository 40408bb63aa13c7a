# SPDX-License-Identifier: Apache-2.0
"""Simple traffic: ping-pong, incast, random destinations."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from manyscale.errors import InputError
from manyscale.network.motifs.motif import Motif, Varying
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bytes, Count, Time, parameter


class PingPong(Motif):
    """Pairs of ranks send a message to and fro."""

    bytes: Bytes = parameter("8B", doc="bytes of a message", minimum="0B")
    iterations: Count = parameter(100, doc="how often the message goes to and fro", minimum=1)
    pairs: Literal["ends", "halves", "neighbours"] = parameter(
        "ends",
        doc="who: only the first rank and the last; each rank and the one half of all away; 0-1, 2-3, …",
    )

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x (one message each way) for each pair."""
        if size < 2:
            raise InputError("ping-pong needs at least 2 ranks")
        half = size // 2
        peer = {
            "ends": np.where(rank == 0, size - 1, np.where(rank == size - 1, 0, mpi.NOBODY)),
            "halves": np.where(rank < half, rank + half, np.where(rank < 2 * half, rank - half, mpi.NOBODY)),
            "neighbours": np.where((rank ^ 1) < size, rank ^ 1, mpi.NOBODY),
        }[self.pairs]
        leads = rank < peer
        with mpi.loop(self.iterations):
            with mpi.where(leads):
                mpi.send(peer, self.bytes)
                mpi.recv(peer, self.bytes, tag=0)
            with mpi.where(~leads):
                mpi.recv(peer, self.bytes, tag=0)
                mpi.send(peer, self.bytes)


class Incast(Motif):
    """All other ranks send to one at the same time."""

    bytes: Bytes = parameter("1MiB", doc="bytes that each rank sends", minimum="0B")
    iterations: Count = parameter(1, doc="messages of each rank", minimum=1)
    target: Count = parameter(0, doc="the rank that receives", minimum=0)
    senders: Count = parameter(0, doc="how many ranks send, the first ones; 0: all others", minimum=0)

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x senders messages to the target."""
        if self.target >= size:
            raise InputError(f"incast: the target is rank {self.target}, but there are {size} ranks")
        others = np.flatnonzero(rank != self.target)
        chosen = others[: self.senders] if self.senders else others
        sends = np.isin(rank, chosen)
        with mpi.where(rank == self.target), mpi.loop(self.iterations * len(chosen)):
            mpi.recv(mpi.ANY, self.bytes)
        with mpi.where(sends), mpi.loop(self.iterations):
            mpi.send(self.target, self.bytes)


class RandomTraffic(Varying):
    """Each rank sends to random others and receives from anyone."""

    bytes: Bytes = parameter("4KiB", doc="bytes of a message", minimum="0B")
    messages: Count = parameter(16, doc="messages that each rank sends", minimum=1, maximum=4096)
    traffic: Literal["uniform", "permutation"] = parameter(
        "uniform", doc="uniform: any other rank; permutation: in each round each rank also receives one"
    )
    compute: Time = parameter("0fs", doc="compute before each message", minimum="0fs")
    pattern_seed: Count = parameter(1, doc="seed of the destinations", minimum=0)

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """messages from each rank; each rank receives as many as were sent to it."""
        if size < 2:
            raise InputError("random traffic needs at least 2 ranks")
        random = np.random.default_rng(self.pattern_seed)
        arriving = np.zeros(size, np.int64)
        rounds = []
        for _ in range(self.messages):
            if self.traffic == "uniform":
                destination = (rank + random.integers(1, size, size)) % size
            else:
                order = random.permutation(size)
                destination = np.empty(size, np.int64)
                destination[order] = np.roll(order, 1)  # one cycle, so nobody sends to itself
            arriving += np.bincount(destination, minlength=size)
            rounds.append(destination)
        requests = []
        for destination in rounds:
            mpi.compute(self.lasting(self.compute))
            requests.append(mpi.isend(destination, self.bytes))
        with mpi.loop(arriving):
            mpi.recv(mpi.ANY, self.bytes)
        mpi.waitall(requests)
