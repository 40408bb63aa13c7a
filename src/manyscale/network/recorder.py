# SPDX-License-Identifier: Apache-2.0
"""Records what a skeleton does: the calls of one rank, or of all ranks at once.

A skeleton is a function `skeleton(mpi, rank, size)`. It calls methods of `mpi` named as in MPI; nothing is run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manyscale import units
from manyscale.errors import InputError, nearest
from manyscale.network.columns import Column, Formula, Table, as_array, as_column, extremes
from manyscale.network.durations import (
    Distribution,
    Pattern,
    femtosecond_array,
    femtoseconds,
)
from manyscale.network.program import ANY, COLLECTIVES, LAST, NOBODY, RECEIVES, Operation
from manyscale.network.shared import Communicator, Request, Shared

WORLD = 0
_ROOTED = ("bcast", "reduce", "gather", "scatter")
MOST_DRAWN = 2**27  # values of a compute function, all drawn before the run; and amounts of an alltoallv
_MILLION = 10**6


class Mpi:
    """Where a skeleton's calls go. `rank` is the rank that is recorded, or the array of all ranks."""

    ANY = ANY
    LAST = LAST
    NOBODY = NOBODY

    def __init__(self, rank: Any, shared: Shared) -> None:
        self.rank = rank
        self.size = shared.ranks
        self.operations: list[Operation] = []
        self.slots = 0
        self.world = Communicator(WORLD, rank, shared.ranks)
        self._shared = shared
        self._all = isinstance(rank, np.ndarray)
        self._free: list[int] = []
        self._repeats = 1  # of what is recorded now, by the loops around it
        self._depth = 0
        self._splits = 0
        self._seen: dict[
            int, tuple[Any, Column]
        ] = {}  # holds the arrays, so that their identity stays theirs
        self._persistent: set[int] = set()  # slots that stay taken after a wait

    # Compute and control

    def compute(self, duration: Any, scale: Any = None, phase: str = "") -> None:
        """The rank computes: text such as "5us", seconds as a float (or an array), a Distribution, a Pattern, or a
        function of rank and occurrence that gives seconds. What is drawn can be scaled, by rank if need be.

        Calls of one `phase` are occurrences of the same phase: a pattern goes on from one to the next."""
        if isinstance(duration, Distribution | Pattern):
            operands: dict[str, Column] = {"pattern": self._shared.pattern(duration)}
            if phase:
                operands["phase"] = self._shared.phase(phase)
            if scale is not None:
                millionths = np.rint(np.asarray(scale, float) * _MILLION)
                operands["scale"] = self._column(millionths, "the scale of a compute")
                self._check(operands["scale"], "the scale of a compute, in millionths,", 0)
            self.operations.append(Operation("draw", operands))
        elif scale is not None:
            raise InputError("only what is drawn can be scaled: a Distribution or a Pattern")
        else:
            self.operations.append(Operation("compute", {"time": self._time(duration)}))

    @contextlib.contextmanager
    def loop(self, count: Any) -> Iterator[Formula]:
        """What is within is done `count` times; what it gives is the iteration, for use in operands."""
        times = self._column(count, "the count of a loop")
        self._check(times, "the count of a loop", 0)
        before = self._repeats
        self._repeats *= extremes(times)[1]
        self._depth += 1
        self.operations.append(Operation("loop", {"count": times}))
        yield Formula(self._depth - 1)
        self.operations.append(Operation("end_loop"))
        self._depth -= 1
        self._repeats = before

    @contextlib.contextmanager
    def where(self, mask: Any) -> Iterator[None]:
        """What is within is done by the ranks for which `mask` is true."""
        self.operations.append(Operation("where", {"mask": self._column(mask, "a mask")}))
        yield
        self.operations.append(Operation("end_where"))

    # Point to point

    def send(self, to: Any, bytes: Any, tag: Any = 0, communicator: Communicator | None = None) -> None:
        """MPI_Send."""
        self._message("send", to, bytes, tag, communicator)

    def ssend(self, to: Any, bytes: Any, tag: Any = 0, communicator: Communicator | None = None) -> None:
        """MPI_Ssend: returns only when the receive has begun."""
        self._message("ssend", to, bytes, tag, communicator)

    def recv(
        self, source: Any = ANY, bytes: Any = 0, tag: Any = ANY, communicator: Communicator | None = None
    ) -> None:
        """MPI_Recv; `bytes` is the room for it, 0 for any amount."""
        self._message("recv", source, bytes, tag, communicator)

    def isend(
        self,
        to: Any,
        bytes: Any,
        tag: Any = 0,
        communicator: Communicator | None = None,
        request: Request | None = None,
    ) -> Request:
        """MPI_Isend; into a `request` made before, which must have been waited for."""
        return self._begin("isend", to, bytes, tag, communicator, request)

    def issend(self, to: Any, bytes: Any, tag: Any = 0, communicator: Communicator | None = None) -> Request:
        """MPI_Issend."""
        return self._begin("issend", to, bytes, tag, communicator)

    def irecv(
        self,
        source: Any = ANY,
        bytes: Any = 0,
        tag: Any = ANY,
        communicator: Communicator | None = None,
        request: Request | None = None,
    ) -> Request:
        """MPI_Irecv; into a `request` made before, which must have been waited for."""
        return self._begin("irecv", source, bytes, tag, communicator, request)

    def request(self) -> Request:
        """MPI_REQUEST_NULL: a variable for requests that outlive an iteration; to wait for it is to go on."""
        slot = self._slot()
        self._persistent.add(slot)
        return Request(slot)

    def sendrecv(
        self,
        to: Any,
        source: Any,
        bytes: Any,
        received: Any = None,
        tag: Any = 0,
        communicator: Communicator | None = None,
    ) -> None:
        """MPI_Sendrecv, with one tag for both ways; `received` is the room for what comes, if not `bytes`."""
        room = bytes if received is None else received
        operands = {
            **self._operands("sendrecv", to, bytes, tag, communicator),
            "source": self._peer(source, communicator, "source of a sendrecv"),
            "received": self._bytes(room, "sendrecv"),
        }
        self.operations.append(Operation("sendrecv", operands, _number(communicator)))

    def probe(self, source: Any = ANY, tag: Any = ANY, communicator: Communicator | None = None) -> None:
        """MPI_Probe."""
        self._message("probe", source, 0, tag, communicator)

    def iprobe(self, source: Any = ANY, tag: Any = ANY, communicator: Communicator | None = None) -> None:
        """MPI_Iprobe, whose answer a skeleton does not see: it costs its time."""
        self._message("iprobe", source, 0, tag, communicator)

    def send_init(
        self, to: Any, bytes: Any, tag: Any = 0, communicator: Communicator | None = None
    ) -> Request:
        """MPI_Send_init: a persistent send, to be started."""
        return self._begin("send_init", to, bytes, tag, communicator)

    def recv_init(
        self, source: Any = ANY, bytes: Any = 0, tag: Any = ANY, communicator: Communicator | None = None
    ) -> Request:
        """MPI_Recv_init: a persistent receive, to be started."""
        return self._begin("recv_init", source, bytes, tag, communicator)

    def start(self, *requests: Request | Sequence[Request]) -> None:
        """MPI_Start, MPI_Startall."""
        for request in _flat(requests):
            self.operations.append(Operation("start", {"request": request.slot, "count": 1}))

    # Completion

    def wait(self, request: Request) -> None:
        """MPI_Wait."""
        self._complete("wait", [request])

    def waitall(self, *requests: Request | Sequence[Request]) -> None:
        """MPI_Waitall."""
        self._complete("waitall", _flat(requests))

    def waitany(self, *requests: Request | Sequence[Request]) -> None:
        """MPI_Waitany; the others stay outstanding."""
        self._complete("waitany", _flat(requests), release=False)

    def waitsome(self, *requests: Request | Sequence[Request]) -> None:
        """MPI_Waitsome; the others stay outstanding."""
        self._complete("waitsome", _flat(requests), release=False)

    def test(self, request: Request) -> None:
        """MPI_Test, whose answer a skeleton does not see: it costs its time."""
        self._complete("test", [request], release=False)

    # Collectives

    def barrier(self, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Barrier."""
        self._collective("barrier", 0, None, communicator, algorithm)

    def bcast(
        self, bytes: Any, root: Any = 0, communicator: Communicator | None = None, algorithm: str = ""
    ) -> None:
        """MPI_Bcast."""
        self._collective("bcast", bytes, root, communicator, algorithm)

    def reduce(
        self, bytes: Any, root: Any = 0, communicator: Communicator | None = None, algorithm: str = ""
    ) -> None:
        """MPI_Reduce."""
        self._collective("reduce", bytes, root, communicator, algorithm)

    def allreduce(self, bytes: Any, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Allreduce of vectors of so many bytes."""
        self._collective("allreduce", bytes, None, communicator, algorithm)

    def gather(
        self, bytes: Any, root: Any = 0, communicator: Communicator | None = None, algorithm: str = ""
    ) -> None:
        """MPI_Gather, or MPI_Gatherv where the bytes that ranks give differ."""
        self._collective("gather", bytes, root, communicator, algorithm)

    def scatter(
        self, bytes: Any, root: Any = 0, communicator: Communicator | None = None, algorithm: str = ""
    ) -> None:
        """MPI_Scatter, or MPI_Scatterv where the bytes that ranks get differ."""
        self._collective("scatter", bytes, root, communicator, algorithm)

    def allgather(self, bytes: Any, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Allgather, or MPI_Allgatherv where the bytes that ranks give differ."""
        self._collective("allgather", bytes, None, communicator, algorithm)

    def alltoall(self, bytes: Any, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Alltoall of so many bytes for each pair, or MPI_Alltoallv where ranks differ in what they send."""
        self._collective("alltoall", bytes, None, communicator, algorithm)

    def alltoallv(self, amounts: Any, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Alltoallv: what each rank sends to each of the communicator, [rank][peer]; for one rank its own row."""
        table = np.atleast_2d(np.asarray(amounts))
        rows = self.size if self._all else 1
        peers = int(np.max(self.size if communicator is None else communicator.size))
        if table.shape != (rows, peers) or table.dtype.kind not in "iu" or table.min() < 0:
            raise InputError(
                f"the amounts of an alltoallv must be whole numbers of bytes for each pair, {rows} x {peers}, "
                f"not an array of {' x '.join(map(str, table.shape))}"
            )
        if self.size * peers > MOST_DRAWN:
            raise InputError(
                f"an alltoallv of {self.size:,} ranks has too many pairs; give alltoall one amount"
            )
        column = Table(np.ascontiguousarray(table, np.int64), by_peer=True)
        self.operations.append(Operation("alltoallv", {"bytes": column}, _number(communicator), algorithm))

    def reduce_scatter(
        self, bytes: Any, communicator: Communicator | None = None, algorithm: str = ""
    ) -> None:
        """MPI_Reduce_scatter_block; `bytes` is the part that each rank gets of the sum."""
        self._collective("reduce_scatter", bytes, None, communicator, algorithm)

    def scan(self, bytes: Any, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Scan."""
        self._collective("scan", bytes, None, communicator, algorithm)

    def exscan(self, bytes: Any, communicator: Communicator | None = None, algorithm: str = "") -> None:
        """MPI_Exscan."""
        self._collective("exscan", bytes, None, communicator, algorithm)

    def icollective(
        self,
        kind: str,
        bytes: Any = 0,
        root: Any = None,
        communicator: Communicator | None = None,
        algorithm: str = "",
    ) -> Request:
        """MPI_Ibarrier, MPI_Ibcast, MPI_Iallreduce and so on, by the name of the collective."""
        if kind not in COLLECTIVES or kind == "alltoallv":
            raise InputError(f"there is no collective '{kind[:60]}' to begin; {nearest(kind, COLLECTIVES)}")
        if kind in _ROOTED and root is None:
            root = 0
        self._collective(kind, bytes, root, communicator, algorithm)
        last = self.operations.pop()
        slot = self._slot()
        self.operations.append(replace(last, operands={**last.operands, "request": slot}))
        return Request(slot)

    # Communicators

    def split(self, color: Any, key: Any = 0, communicator: Communicator | None = None) -> Communicator:
        """MPI_Comm_split: `color` (negative: in no group) and `key` are arrays of all ranks, or functions of them.

        Where one rank is recorded at a time they must be functions, since the colors of all others are needed.
        """
        parent = WORLD if communicator is None else communicator.number
        everyone = np.arange(self.size)
        colors, keys = (part(everyone) if callable(part) else part for part in (color, key))
        if not self._all and not callable(color):
            raise InputError(
                "split needs the colors of all ranks: give a function, such as lambda rank: rank % 4"
            )
        self._splits += 1
        number = self._splits
        if number == len(self._shared.groups):
            self._shared.split(parent, colors, keys)
        group = self._shared.groups[number]
        own = [as_array(column, self.size) for column in (group.position, group.size)]
        if self._all:
            return Communicator(number, *own)
        return Communicator(number, int(own[0][self.rank]), int(own[1][self.rank]))

    # Within

    def _column(self, value: Any, what: str) -> Column:
        if isinstance(value, np.ndarray):  # one that is used again is one column
            if id(value) not in self._seen:
                self._seen[id(value)] = (value, as_column(value, self.size, what))
            column = self._seen[id(value)][1]
        else:
            column = as_column(value, self.size, what)
        if not self._all and isinstance(column, np.ndarray):
            raise InputError(f"{what} is an array, but the skeleton is recorded for one rank at a time")
        return column

    def _check(self, column: Column, what: str, least: int, most: int | None = None) -> None:
        low, high = extremes(column)
        if low < least or (most is not None and high > most):
            bad = low if low < least else high
            text = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InputError(f"{what} is {bad}; it must be {text}")

    def _time(self, duration: Any) -> Column:
        if isinstance(duration, str):
            return femtoseconds(duration)
        if callable(duration):
            return self._drawn(duration)
        array = np.asarray(duration)
        if array.ndim == 0:
            return femtoseconds(array.item())
        times = femtosecond_array(array) if array.dtype.kind == "f" else duration
        column = self._column(times, "the time of a compute")
        self._check(column, "the time of a compute", 0)
        return column

    def _drawn(self, function: Callable[[Any, int], Any]) -> Column:
        """The times that a function gives, asked now for all occurrences."""
        ranks = self.size if self._all else 1
        if self._repeats * self.size > MOST_DRAWN:
            raise InputError(
                f"a compute function would be asked for {self._repeats:,} occurrences of {self.size:,} ranks; "
                f"more than {MOST_DRAWN:,} times are a distribution's work"
            )
        values = np.empty((ranks, max(self._repeats, 1)), np.int64)
        for occurrence in range(self._repeats):
            values[:, occurrence] = femtosecond_array(function(self.rank, occurrence))
        return Table(values)

    def _bytes(self, value: Any, kind: str) -> Column:
        amount = _parsed_bytes(value) if isinstance(value, str) else value
        column = self._column(amount, f"the bytes of a {kind}")
        self._check(column, f"the bytes of a {kind}", 0)
        return column

    def _peer(self, value: Any, communicator: Communicator | None, what: str) -> Column:
        column = self._column(value, f"the {what}")
        self._check(column, f"the {what}", LAST)
        size = self.size if communicator is None else communicator.size
        largest: Any = column if isinstance(column, int | np.ndarray) else extremes(column)[1]
        beyond = largest >= (size if largest is column else np.max(size))
        if beyond is not False and np.any(beyond):
            raise InputError(
                f"the {what} is {extremes(column)[1]}, but the communicator has {int(np.max(size))} ranks"
            )
        return column

    def _operands(
        self, kind: str, peer: Any, bytes: Any, tag: Any, communicator: Communicator | None
    ) -> dict[str, Column]:
        receives = kind in RECEIVES
        label = self._column(tag, f"the tag of a {kind}")
        self._check(label, f"the tag of a {kind}", LAST if receives else 0, 2**31 - 1)
        whom = self._peer(peer, communicator, f"peer of a {kind}")
        if not receives and (whom == ANY if type(whom) is int else np.any(_plain(whom) == ANY)):
            raise InputError(f"the peer of a {kind} is any rank; only a receive or a probe may say that")
        return {"peer": whom, "bytes": self._bytes(bytes, kind), "tag": label}

    def _message(self, kind: str, peer: Any, bytes: Any, tag: Any, communicator: Communicator | None) -> None:
        operands = self._operands(kind, peer, bytes, tag, communicator)
        self.operations.append(Operation(kind, operands, _number(communicator)))

    def _slot(self) -> int:
        if self._free:
            return self._free.pop(0)
        self.slots += 1
        return self.slots - 1

    def _begin(
        self,
        kind: str,
        peer: Any,
        bytes: Any,
        tag: Any,
        communicator: Communicator | None,
        request: Request | None = None,
    ) -> Request:
        operands = self._operands(kind, peer, bytes, tag, communicator)
        slot = self._slot() if request is None else request.slot
        if kind.endswith("_init"):
            self._persistent.add(slot)
        self.operations.append(Operation(kind, {**operands, "request": slot}, _number(communicator)))
        return Request(slot)

    def _complete(self, kind: str, requests: Sequence[Request], release: bool = True) -> None:
        slots = sorted({request.slot for request in requests})
        runs = _runs(slots)
        if len(runs) > 1 and kind not in ("wait", "waitall"):
            raise InputError(
                f"{kind} needs requests that were made one after the other, with no wait in between"
            )
        for first, count in runs:
            self.operations.append(Operation(kind, {"request": first, "count": count}))
        if release:
            self._free = sorted({*self._free, *(slot for slot in slots if slot not in self._persistent)})

    def _collective(
        self, kind: str, bytes: Any, root: Any, communicator: Communicator | None, algorithm: str
    ) -> None:
        assert kind in COLLECTIVES
        operands = {"bytes": self._bytes(bytes, kind)}
        if root is not None:
            operands["peer"] = self._peer(root, communicator, f"root of a {kind}")
            self._check(operands["peer"], f"the root of a {kind}", 0)
        self.operations.append(Operation(kind, operands, _number(communicator), algorithm))


Skeleton = Callable[..., None]


def _number(communicator: Communicator | None) -> int:
    return WORLD if communicator is None else communicator.number


@functools.lru_cache(maxsize=1024)
def _parsed_bytes(text: str) -> int:
    return int(units.parse(text, units.BYTES))


def _plain(column: Column) -> Any:
    return (
        column.base if isinstance(column, Formula) else column.values if isinstance(column, Table) else column
    )


def _flat(requests: Sequence[Request | Sequence[Request]]) -> list[Request]:
    return [request for item in requests for request in ([item] if isinstance(item, Request) else item)]


def _runs(slots: Sequence[int]) -> list[tuple[int, int]]:
    """Slots as runs of neighbours: the first of each, and how many."""
    runs: list[tuple[int, int]] = []
    for slot in slots:
        if runs and runs[-1][0] + runs[-1][1] == slot:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((slot, 1))
    return runs
