# SPDX-License-Identifier: Apache-2.0
"""What built-in skeletons have in common: parameters with units, and one function for all ranks at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import PrivateAttr

from manyscale.errors import InputError, nearest
from manyscale.network.durations import Distribution, Pattern
from manyscale.network.grid import Grid
from manyscale.network.program import Program
from manyscale.network.recorder import Mpi
from manyscale.network.shared import Request
from manyscale.network.skeleton import compile
from manyscale.reads import unread, watch
from manyscale.spec import Ratio, Spec, parameter

AnyMotif = TypeVar("AnyMotif", bound="Motif")

Timings = Mapping[str, Distribution | Pattern]
"""How long a rank computes before each call site at which a program communicates, by the name of the call site."""


class Motif(Spec):
    """A built-in skeleton. Its parameters are those of a Spec; `emit` records what the ranks do.

    Compute phases are of one of two kinds. Without measurements, a skeleton knows how long its parts take (`work`).
    With timings measured on a program that communicates at the same call sites, it computes before each of these for as
    long as that program did (`compute_before`).
    """

    _timings: tuple[tuple[tuple[int, ...], Timings], ...] = PrivateAttr(())
    _nobody: tuple[int, int] = PrivateAttr((0, 0))

    def recorded(self, ranks: int, name: str) -> Program:
        """The program of so many ranks. A parameter that was stated and that nothing reads is refused."""
        watch(self)
        program = compile(self.emit, ranks, name=name)
        stated = [parameter for parameter in type(self).model_fields if parameter in self.model_fields_set]
        if ignored := unread(self, stated):
            measured = (
                "compute phases were measured" if self.timed else "compute phases are not measured ones"
            )
            raise InputError(
                f"{name}: the parameter '{ignored[0]}' has no effect: nothing reads it while the other parameters are "
                f"as they are and {measured}"
            )
        return program

    def with_timings(
        self: AnyMotif,
        timings: Timings,
        special: Mapping[Sequence[int], Timings] | None = None,
        nobody: tuple[int, int] = (0, 0),
    ) -> AnyMotif:
        """The skeleton with measured compute phases; `special` are those of ranks that behave otherwise.

        A negative number in `special` counts ranks from the last one. `nobody` are the femtoseconds of a send to
        MPI_PROC_NULL and of a receive from it, which programs call for where a grid ends.
        """
        copy = self.model_copy()
        given = [(tuple(ranks), own) for ranks, own in (special or {}).items()]
        copy._timings = (*given, ((), timings))
        copy._nobody = nobody
        return copy

    @property
    def timed(self) -> bool:
        """Whether it has measured compute phases."""
        return bool(self._timings)

    def work(self, mpi: Mpi, duration: Any) -> None:
        """A part whose duration the skeleton knows; nothing where compute phases were measured.

        A duration that is computed of parameters is a function, so that they are read only where they matter.
        """
        if not self._timings:
            mpi.compute(duration() if callable(duration) else duration)

    def measured(self, site: str) -> bool:
        """Whether there are measured times of a call site."""
        return self.timed and site in self._timings[-1][1]

    def compute_before(self, mpi: Mpi, name: str, scale: Any = None) -> None:
        """What was measured before a call site at which the program communicates; nothing without measurements.

        It can be scaled, where the program does more or less than the one that was measured.
        """
        if not self._timings:
            return
        if len(self._timings) == 1:
            mpi.compute(_timing(self._timings[0][1], name), scale, phase=name)
            return
        everyone = np.arange(mpi.size)
        left = np.ones(mpi.size, bool)
        for ranks, own in self._timings:
            mine = left & np.isin(everyone, np.asarray(ranks) % mpi.size) if ranks else left
            left = left & ~mine
            with mpi.where(mine):
                mpi.compute(_timing(own, name), scale, phase=name)

    def call_nobody(self, mpi: Mpi, peers: Sequence[Any], sends: bool = True, receives: bool = True) -> None:
        """The calls for peers that a rank does not have, which the program makes all the same."""
        cost = sends * self._nobody[0] + receives * self._nobody[1]
        if self.timed and cost:
            mpi.compute(cost * sum(np.asarray(peer == mpi.NOBODY, np.int64) for peer in peers))

    def begin(self, mpi: Mpi) -> None:
        """The program's preparations up to the sum of one number in which all ranks meet, if they were measured."""
        if self.measured("MPI_Init"):
            self.compute_before(mpi, "MPI_Init")
        if self.measured("setup"):
            self.compute_before(mpi, "setup")
            mpi.allreduce(8)

    def end(self, mpi: Mpi, amount: int) -> None:
        """The check of what the program found and the sum that ends it, if they were measured."""
        if self.measured("check"):
            self.compute_before(mpi, "check")
            mpi.allreduce(amount)
        if self.measured("end"):
            self.compute_before(mpi, "end")

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
        return Distribution.normal(time, self.variation) if time and self.variation else time


def _timing(timings: Timings, name: str) -> Distribution | Pattern:
    if name not in timings:
        raise InputError(f"the timings have no site '{name}' of the skeleton; {nearest(name, list(timings))}")
    return timings[name]


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
        mpi.irecv(peer, amount, tag=index)
        for index, (peer, amount) in enumerate(zip(peers, amounts, strict=True))
    ]
    for index, (peer, amount) in enumerate(zip(peers, amounts, strict=True)):
        tag = index ^ 1  # what goes up arrives from below
        if blocking:
            mpi.send(peer, amount, tag=tag)
        else:
            requests.append(mpi.isend(peer, amount, tag=tag))
    mpi.waitall(requests)
