# SPDX-License-Identifier: Apache-2.0
"""MPI programs for tests: a list of calls per rank, run by the core on a small machine.

A call is a tuple of its name and arguments. Blocking: ("send" | "ssend", to, tag, bytes), ("recv", from, tag),
("sendrecv", to, tag, bytes, from, tag), ("probe", from, tag), ("compute", femtoseconds). With a request slot:
("isend" | "issend", slot, to, tag, bytes), ("irecv", slot, from, tag), ("send_init", slot, to, tag, bytes),
("recv_init", slot, from, tag), ("start", first, count), ("wait", slot), ("waitall" | "waitany" | "waitsome", first,
count). Collectives have only a name. A call may end with more operands by name: {"comm": 1} or {"bytes": 8}.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyscale import _core

ANY, NOBODY, LAST = -2, -1, -3
NANOSECOND = 10**6
Call = tuple[Any, ...]

_FIELDS = list(_core.mpi_operation_fields())
_KINDS = _core.mpi_operations()
ALGORITHMS: dict[str, dict[str, int]] = _core.mpi_algorithms()

_ARGUMENTS = {
    "send": ("send", ("peer", "tag", "bytes")),
    "ssend": ("synchronous_send", ("peer", "tag", "bytes")),
    "recv": ("receive", ("peer", "tag")),
    "sendrecv": ("send_receive", ("peer", "tag", "bytes", "from", "receive_tag")),
    "probe": ("probe", ("peer", "tag")),
    "iprobe": ("iprobe", ("peer", "tag")),
    "compute": ("compute", ("bytes",)),
    "isend": ("isend", ("slot", "peer", "tag", "bytes")),
    "issend": ("issend", ("slot", "peer", "tag", "bytes")),
    "irecv": ("ireceive", ("slot", "peer", "tag")),
    "send_init": ("send_init", ("slot", "peer", "tag", "bytes")),
    "recv_init": ("receive_init", ("slot", "peer", "tag")),
    "start": ("start", ("slot", "count")),
    "wait": ("wait", ("slot",)),
    "waitall": ("waitall", ("slot", "count")),
    "waitany": ("waitany", ("slot", "count")),
    "waitsome": ("waitsome", ("slot", "count")),
    "test": ("test", ("slot",)),
    "testall": ("testall", ("slot", "count")),
    "free": ("request_free", ("slot",)),
}


class CoreProgram:
    """The arrays of a program, filled operation by operation."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.rows: list[list[int]] = []
        self.columns: list[tuple[int, ...]] = []
        self.arrays: list[Any] = []
        self.communicators: list[dict[str, Any]] = [{"kind": "world"}]
        self.patterns: list[dict[str, Any]] = []
        self.entry = -1

    def column(self, value: Any, *, loop: int = -1, step: int = 0, modulus: int = 0) -> int:
        """A constant, or one value per rank; with a loop, so much more in each iteration."""
        array = -1
        if np.ndim(value):
            self.arrays.append(np.ascontiguousarray(value, np.int64))
            array, value = len(self.arrays) - 1, 0
        self.columns.append((int(value), 0, step, modulus, 1, 0, 1, array, loop))
        return len(self.columns) - 1

    def add(self, kind: str, *, comm: int = 0, algorithm: int = 0, target: int = -1, **operands: Any) -> int:
        """Adds an operation; operands are values, per-rank values or columns made before (as ("column", number))."""
        row = dict.fromkeys(_FIELDS, -1)
        row |= {"kind": _KINDS[kind], "communicator": comm, "algorithm": algorithm, "target": target}
        for name, value in operands.items():
            made = isinstance(value, tuple)
            row[name.rstrip("_")] = value[1] if made else self.column(value)
        self.rows.append([row[field] for field in _FIELDS])
        return len(self.rows) - 1

    def loop(self, count: Any) -> None:
        """Opens a loop; close it with add("loop_end", target=0)."""
        self.add("loop_begin", count=count, target=0)

    def end_loop(self) -> None:
        """Closes the innermost open loop."""
        self.add("loop_end", target=0)

    def arguments(self) -> dict[str, Any]:
        """What the core takes."""
        return {
            "ranks": self.ranks,
            "operations": np.array(self.rows, np.int32).reshape(-1, len(_FIELDS)),
            "columns": np.array(self.columns, np.int64).reshape(-1, 9),
            "arrays": self.arrays,
            "communicators": self.communicators,
            "patterns": self.patterns,
            "entry": self.entry,
        }


def split(group: Any, key: Any) -> dict[str, Any]:
    """A communicator of groups given by number, in the order of keys."""
    return {
        "kind": "groups",
        "group": np.asarray(group, np.int32),
        "key": np.asarray(key, np.int32),
    }


def core_program(
    calls: list[list[Call]], communicators: list[dict[str, Any]] | None = None
) -> tuple[CoreProgram, list[tuple[int, int]]]:
    """The calls of all ranks as one program, and for each of its operations the rank and the call it came from."""
    program = CoreProgram(len(calls))
    program.communicators += communicators or []
    entries, origin = [], []
    for rank, own in enumerate(calls):
        entries.append(len(program.rows))
        for index, call in enumerate(own):
            origin.append((rank, index))
            named = call[-1] if isinstance(call[-1], dict) else {}
            kind, names = _ARGUMENTS.get(call[0], (call[0], ()))
            program.add(kind, **dict(zip(names, call[1 : 1 + len(names)], strict=True)), **named)
        program.add("end")
        origin.append((rank, len(own)))
    program.entry = program.column(entries)
    return program, origin


def make_job(
    program: CoreProgram,
    *,
    per_node: int = 1,
    network: dict[str, Any] | None = None,
    mpi: dict[str, Any] | None = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """The program on nodes at one switch."""
    nodes = -(-program.ranks // per_node)
    description = {
        "network": {
            "topology.kind": "switch",
            "topology.nodes": nodes,
            "fidelity": "packet",
            **(network or {}),
        },
        "mpi": mpi or {},
        "node_of_rank": (np.arange(program.ranks) // per_node).astype(np.int32),
    }
    return _core.NetworkJob(description, program.arguments(), seed, **options)


def finished(job: Any, **options: Any) -> Any:
    """Runs the job and returns it; it must come to its end."""
    outcome = job.run(**options)["outcome"]
    assert outcome == "finished", job.explain_deadlock()
    return job
