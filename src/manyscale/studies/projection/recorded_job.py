# SPDX-License-Identifier: Apache-2.0
"""A job as its ranks recorded it natively: which calls each makes, and which messages cross.

The MPI library of this package writes the notes (runtime/mpi/recording.h) where MANYSCALE_MPI_RECORD names a folder.
Collectives are the messages that the library makes of them. A recorded job has as many ranks as were recorded; for
other numbers, write a skeleton.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.cpu.mpi_host import run_on_host
from manyscale.errors import InputError
from manyscale.network.program import Program
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import compile
from manyscale.studies.projection.timings import TimingProfile, Variant

_NOTE = np.dtype(
    [("kind", "u4"), ("peer", "i4"), ("tag", "i4"), ("context", "u4"), ("subject", "u8"), ("bytes", "u8")]
)
_CALL, _RETURN, _SEND, _RECEIVE, _COMPLETE = range(5)
_NOBODY = 2**64 - 1  # bytes of a message to or from MPI_PROC_NULL

Notes = npt.NDArray[np.void]


@dataclass(frozen=True, eq=False)
class RecordedJob:
    """What each rank of a job did."""

    name: str
    ranks: list[Notes]

    def program(self, timings: TimingProfile, variant: Variant = "variable") -> Program:
        """The job for a simulated network, with the times of its compute phases.

        A phase is what comes before a call; its name is that of the call.
        """
        tags, calls = _Tags(), _core.mpi_call_names()
        plans = [_plan(notes, tags, calls) for notes in self.ranks]
        durations = {name: timings[name].duration(variant) for name in timings}

        def play(mpi: Mpi, rank: int, size: int) -> None:
            requests: dict[int, Any] = {}
            met: dict[str, int] = dict.fromkeys(durations, 0)
            for step in plans[rank]:
                if step[0] == "compute":
                    if step[1] in durations:
                        # Each occurrence is an operation of its own here, so its place in the pattern is known.
                        mpi.compute(durations[step[1]].at(met[step[1]]))
                        met[step[1]] += 1
                elif step[0] == "send":
                    requests[step[1]] = mpi.isend(step[2], step[3], tag=step[4])
                elif step[0] == "receive":
                    requests[step[1]] = mpi.irecv(step[2], step[3], tag=step[4])
                else:
                    mpi.wait(requests.pop(step[1]))

        return compile(play, len(self.ranks), name=self.name)

    @property
    def messages(self) -> int:
        """That all ranks send."""
        return sum(
            int(np.sum((notes["kind"] == _SEND) & (notes["bytes"] != _NOBODY))) for notes in self.ranks
        )


def record(
    native_program: str | os.PathLike[str],
    ranks: int,
    args: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> RecordedJob:
    """Runs a program natively (made by `manyscale cpu cc --mpi --host`) and keeps what its ranks do."""
    with tempfile.TemporaryDirectory(prefix="manyscale-record-") as folder:
        variables = {**(environment or {}), "MANYSCALE_MPI_RECORD": folder}
        results = run_on_host(native_program, ranks, args, environment=variables, timeout=timeout)
        for rank, result in enumerate(results):
            if result.exit_code:
                raise InputError(
                    f"{native_program}: rank {rank} ended with code {result.exit_code}: "
                    f"{result.stderr.decode(errors='replace').strip()[-400:]}"
                )
        return RecordedJob(
            Path(native_program).name, [_read(Path(folder) / str(rank)) for rank in range(ranks)]
        )


def _read(path: Path) -> Notes:
    try:
        data = path.read_bytes()
    except OSError:
        raise InputError(
            f"rank {path.name} recorded nothing: was the program built with this package's MPI library?"
        ) from None
    return np.frombuffer(data[: len(data) // _NOTE.itemsize * _NOTE.itemsize], _NOTE)


class _Tags:
    """Small numbers for pairs of a communicator's context and a tag, the same on all ranks."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}

    def number(self, context: int, tag: int) -> int:
        return self._numbers.setdefault((context, tag), len(self._numbers))


def _plan(notes: Notes, tags: _Tags, calls: Sequence[str]) -> list[tuple[Any, ...]]:
    """What a rank does, step by step; receives from anybody name who sent in the end."""
    answers = _answers(notes)
    steps: list[tuple[Any, ...]] = []
    open_requests: dict[int, int] = {}  # by the address of a request: the number of its step
    for place, note in enumerate(notes):
        kind, subject = int(note["kind"]), int(note["subject"])
        if kind == _CALL:
            steps.append(("compute", calls[subject] if subject < len(calls) else ""))
        elif kind in (_SEND, _RECEIVE):
            if int(note["bytes"]) == _NOBODY:
                continue
            peer, tag, size = int(note["peer"]), int(note["tag"]), int(note["bytes"])
            if kind == _RECEIVE:
                found = answers.get(place)
                if found is None:
                    continue  # never completed: cancelled, or thrown away
                peer, tag, size = found
            word = "send" if kind == _SEND else "receive"
            open_requests[subject] = place
            steps.append((word, place, peer, size, tags.number(int(note["context"]), tag)))
        elif kind == _COMPLETE and subject in open_requests:
            steps.append(("wait", open_requests.pop(subject)))
    return steps


def _answers(notes: Notes) -> dict[int, tuple[int, int, int]]:
    """By the place of a receive: who sent, with which tag, and how many bytes."""
    found: dict[int, tuple[int, int, int]] = {}
    started: dict[int, int] = {}
    for place, note in enumerate(notes):
        kind, subject = int(note["kind"]), int(note["subject"])
        if kind == _RECEIVE:
            started[subject] = place
        elif kind == _SEND:
            started.pop(subject, None)
        elif kind == _COMPLETE and subject in started and int(note["peer"]) >= 0:
            found[started.pop(subject)] = (int(note["peer"]), int(note["tag"]), int(note["bytes"]))
    return found
