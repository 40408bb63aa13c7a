# SPDX-License-Identifier: Apache-2.0
"""Runs test programs on a real MPI (mpi4py), under mpiexec: `real_mpi.py PROGRAMS RESULTS`, both JSON.

PROGRAMS is a list of programs, each with calls by rank (mpi_programs.py). RESULTS has for each program and rank the
message that each receiving call got, as [call, source, tag, number at its source], and the results of collectives.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

ANY = -2
_REDUCTIONS = {"allreduce", "reduce", "scan", "exscan"}


class _Runner:
    def __init__(self, world: Any, groups: list[tuple[list[int], list[int]]]) -> None:
        self._rank = world.rank
        self._comms = [world] + [world.Split(group[world.rank], key[world.rank]) for group, key in groups]
        self._sent = 0
        self._requests: dict[int, tuple[Any, Any, int, Any]] = {}
        self.got: list[list[int]] = []
        self.results: list[list[int]] = []

    def call(self, index: int, call: list[Any]) -> None:
        named = call[-1] if isinstance(call[-1], dict) else {}
        name, *arguments = call[:-1] if named else call
        comm = self._comms[named.get("comm", 0)]
        if name in ("send", "ssend"):
            request, keep = self._begin_send("i" + name, comm, *arguments)
            request.Wait()
            del keep
        elif name == "recv":
            self._finish(*self._begin_receive(comm, index, *arguments))
        elif name == "sendrecv":
            receive = self._begin_receive(comm, index, *arguments[3:])
            request, keep = self._begin_send("isend", comm, *arguments[:3])
            self._finish(*receive)
            request.Wait()
            del keep
        elif name in ("isend", "issend"):
            request, keep = self._begin_send(name, comm, *arguments[1:])
            self._requests[arguments[0]] = (request, keep, -1, comm)
        elif name == "irecv":
            self._requests[arguments[0]] = self._begin_receive(comm, index, *arguments[1:])
        elif name in ("wait", "waitall"):
            first, count = arguments[0], arguments[1] if name == "waitall" else 1
            for slot in range(first, first + count):
                if slot in self._requests:
                    self._finish(*self._requests.pop(slot))
        elif name == "barrier":
            comm.Barrier()
        else:
            self._collective(index, name, comm, named.get("peer", 0))

    def _begin_send(self, how: str, comm: Any, to: int, tag: int, size: int) -> tuple[Any, Any]:
        data = np.full(1 + size // 8, self._sent, np.int64)
        self._sent += 1
        return {"isend": comm.Isend, "issend": comm.Issend}[how](data, to, tag), data

    def _begin_receive(self, comm: Any, index: int, source: int, tag: int) -> tuple[Any, Any, int, Any]:
        buffer = np.empty(20000, np.int64)
        request = comm.Irecv(
            buffer, MPI.ANY_SOURCE if source == ANY else source, MPI.ANY_TAG if tag == ANY else tag
        )
        return request, buffer, index, comm

    def _finish(self, request: Any, buffer: Any, index: int, comm: Any) -> None:
        status = MPI.Status()
        request.Wait(status)
        if index >= 0:
            world = comm.group.Translate_ranks([status.source], MPI.COMM_WORLD.group)[0]
            self.got.append([index, int(world), status.tag, int(buffer[0])])

    def _collective(self, index: int, name: str, comm: Any, root: int) -> None:
        own, value = np.array([self._rank + 1]), np.zeros(1, np.int64)
        if name == "broadcast":
            value[:] = own
            comm.Bcast(value, root)
        elif name == "reduce":
            comm.Reduce(own, value, MPI.SUM, root)
        else:
            getattr(comm, name.capitalize())(own, value, MPI.SUM)
        self.results.append([index, int(value[0])])


def main() -> None:
    """Runs all programs and writes what came out."""
    world = MPI.COMM_WORLD
    all_results = []
    for program in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        runner = _Runner(world, program["groups"])
        for index, call in enumerate(program["calls"][world.rank]):
            runner.call(index, call)
        all_results.append(world.gather((sorted(runner.got), runner.results)))
    if world.rank == 0:
        Path(sys.argv[2]).write_text(json.dumps(all_results), encoding="utf-8")


main()
