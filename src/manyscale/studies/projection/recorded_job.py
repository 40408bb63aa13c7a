# SPDX-License-Identifier: Apache-2.0
"""A job as its ranks recorded it natively: which calls each makes, and which messages cross.

The MPI library of this package writes the notes (runtime/mpi/recording.h) where MANYSCALE_MPI_RECORD names a folder.
Collectives are the messages that the library makes of them. A recorded job has as many ranks as were recorded; for
other numbers, write a skeleton.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.cpu.mpi_host import run_on_host
from manyscale.errors import InputError
from manyscale.guard import temporary_folder
from manyscale.network.durations import Pattern
from manyscale.network.program import Program
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import compile
from manyscale.studies.projection.calibration import MpiCosts
from manyscale.studies.projection.timings import END, START, TimingProfile, Variant, phase_name

_NOTE = np.dtype(
    [("kind", "u4"), ("peer", "i4"), ("tag", "i4"), ("context", "u4"), ("subject", "u8"), ("bytes", "u8")]
)
_CALL, _RETURN, _SEND, _RECEIVE, _COMPLETE, _BLOCKS, _COMBINE = range(7)
MOST_NOTES = 4_000_000  # of a rank
_MOST_AHEAD = 256  # phases of a job that one of a node alone may stand for
_NOBODY = 2**64 - 1  # bytes of a message to or from MPI_PROC_NULL

Notes = npt.NDArray[np.void]


@dataclass(frozen=True)
class StandIn:
    """A compute phase that the simulated ranks never ran, and the one whose time it is given.

    `used` is None where there is none: the phase then takes no time.
    """

    phase: str
    used: str | None
    ranks: int
    occurrences: int  # of all ranks
    seconds: float  # that it is given, all occurrences together

    @property
    def words(self) -> str:
        """What is done about it."""
        return "takes no time" if self.used is None else f"takes the time of {self.used}"


@dataclass(frozen=True)
class StandIns:
    """The phases of a job that were not measured, the longest first, and the compute time of the whole job."""

    phases: list[StandIn]
    compute_seconds: float

    @property
    def share(self) -> float:
        """Of the compute time, what stand-ins give."""
        given = sum(phase.seconds for phase in self.phases)
        return given / self.compute_seconds if self.compute_seconds else 0.0

    @property
    def text(self) -> str:
        """In a sentence; empty if all was measured."""
        if not self.phases:
            return ""
        ranks = max(phase.ranks for phase in self.phases)
        lost = sum(phase.used is None for phase in self.phases)
        return (
            f"{len(self.phases)} phases of up to {ranks} ranks were never run by a rank that was simulated: "
            f"{len(self.phases) - lost} take the times of others, {self.share:.2%} of the compute time, and {lost} "
            "take none"
        )


@dataclass(frozen=True, eq=False)
class RecordedJob:
    """What each rank of a job did."""

    name: str
    ranks: list[Notes]

    def program(
        self,
        timings: TimingProfile | Sequence[TimingProfile],
        variant: Variant = "variable",
        costs: MpiCosts | None = None,
    ) -> Program:
        """The job for a simulated network, with the times of its compute phases.

        `timings` are those of all ranks, or of each rank. With `costs`, calls that exchange nothing take time, too;
        what messages cost is told to the network (`MpiCosts.changes`).
        """
        profiles = [timings] * len(self.ranks) if isinstance(timings, TimingProfile) else timings
        if len(profiles) != len(self.ranks):
            raise InputError(f"{len(self.ranks)} ranks need a timing profile each, not {len(profiles)}")
        silent = self._silent_calls()
        fixed: list[dict[str, float]] = [
            {name: cost for name, cost in profile.call_costs.items() if name in silent} if costs else {}
            for profile in profiles
        ]
        durations: dict[int, dict[str, Pattern]] = {
            key: {name: profile[name].duration(variant) for name in profile}
            for key, profile in {id(profile): profile for profile in profiles}.items()
        }
        plans = self._plans
        second = 10**15
        per = (
            {}
            if costs is None
            else {
                "nobody_send": costs.nobody_send,
                "nobody_receive": costs.nobody_receive,
                "combine": costs.reduction,
                "pack": costs.pack,
                "unpack": costs.unpack,
            }
        )

        def play(mpi: Mpi, rank: int, size: int) -> None:
            requests: dict[int, Any] = {}
            known = durations[id(profiles[rank])]
            met: dict[str, int] = dict.fromkeys(known, 0)
            phases = {index: used for index, _, used in _phases_known(plans[rank], profiles[rank])}
            for index, step in enumerate(plans[rank]):
                word, subject = step[0], step[1]
                if word == "compute":
                    name = phases.get(index)
                    if name is not None:
                        # Each occurrence is an operation of its own here, so its index in the pattern is known.
                        mpi.compute(known[name].at(met[name]))
                        met[name] += 1
                elif word == "send":
                    requests[subject] = mpi.isend(step[2], step[3], tag=step[4])
                elif word == "receive":
                    requests[subject] = mpi.irecv(step[2], step[3], tag=step[4])
                elif word == "wait":
                    mpi.wait(requests.pop(subject))
                elif word == "call":
                    if subject in fixed[rank]:
                        mpi.compute(fixed[rank][subject])
                elif costs is not None:
                    mpi.compute(per[word] * subject / second)

        return compile(play, len(self.ranks), name=self.name)

    def stand_ins(self, timings: Sequence[TimingProfile]) -> StandIns:
        """The phases for which the timing profiles of the ranks have no time of their own."""
        found: dict[tuple[str, str | None], list[float]] = {}  # ranks, occurrences, seconds
        total = 0.0
        for steps, profile in zip(self._plans, timings, strict=True):
            phases = _phases_known(steps, profile)
            total += sum(profile[used].mean for _, _, used in phases if used is not None)
            mine = Counter(
                (wanted, used) for _, wanted, used in phases if used is None or used != profile.known(wanted)
            )
            for (wanted, used), count in mine.items():
                row = found.setdefault((wanted, used), [0, 0, 0.0])
                row[0] += 1
                row[1] += count
                row[2] += 0.0 if used is None else count * profile[used].mean
        rows = [
            StandIn(wanted, used, int(ranks), int(count), seconds)
            for (wanted, used), (ranks, count, seconds) in found.items()
        ]
        return StandIns(sorted(rows, key=lambda one: (-one.seconds, one.phase)), total)

    def phase_names(self, ranks: Iterable[int]) -> list[list[str]]:
        """The names of the compute phases of some ranks, in their order."""
        return [
            [_phase(step[1], step[2]) for step in self._plans[rank] if step[0] == "compute"] for rank in ranks
        ]

    @cached_property
    def _plans(self) -> list[list[tuple[Any, ...]]]:
        """What each rank does, step by step."""
        tags = _Tags()
        return [_plan(notes, tags, self._names) for notes in self.ranks]

    @cached_property
    def _names(self) -> list[str]:
        return list(_core.mpi_call_names())

    def _silent_calls(self) -> set[str]:
        """Those that nowhere in the job send, receive or wait."""
        made, speaking = set(), set()
        for notes in self.ranks:
            current = -1
            for kind, subject in zip(notes["kind"].tolist(), notes["subject"].tolist(), strict=True):
                if kind == _CALL:
                    current = subject
                    made.add(subject)
                elif kind != _RETURN:
                    speaking.add(current)
        return {self._names[number] for number in made - speaking if number < len(self._names)}

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
    with temporary_folder("manyscale-record-") as folder:
        variables = {**(environment or {}), "MANYSCALE_MPI_RECORD": str(folder)}
        results = run_on_host(native_program, ranks, args, environment=variables, timeout=timeout)
        for rank, result in enumerate(results):
            if result.exit_code:
                raise InputError(
                    f"{native_program}: rank {rank} ended with code {result.exit_code}: "
                    f"{result.stderr.decode(errors='replace').strip()[-400:]}"
                )
        return RecordedJob(Path(native_program).name, [_read(folder / str(rank)) for rank in range(ranks)])


def _read(path: Path) -> Notes:
    try:
        if path.stat().st_size > MOST_NOTES * _NOTE.itemsize:
            raise InputError(
                f"rank {path.name} recorded more than {MOST_NOTES:,} calls and messages; record a shorter run"
            )
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
    blocks: dict[int, int] = {}  # the same: the pieces in memory of what is received
    before, site_before, depth, began = START, 0, 0, 0
    for index, (kind, peer, tag, context, subject, size) in enumerate(notes.tolist()):
        if kind == _CALL:
            if depth == 0:
                name = calls[subject] if subject < len(calls) else ""
                steps.append(("compute", (before, site_before), (name, size)))
                before, site_before, began = name, size, len(steps)
            depth += 1
        elif kind == _RETURN:
            depth -= 1
            if depth == 0 and len(steps) == began:
                steps.append(("call", before))
        elif kind in (_SEND, _RECEIVE):
            word = "send" if kind == _SEND else "receive"
            if size == _NOBODY:
                steps.append((f"nobody_{word}", 1))
                continue
            if kind == _RECEIVE:
                found = answers.get(index)
                if found is None:
                    continue  # never completed: cancelled, or thrown away
                peer, tag, size = found
            open_requests[subject] = index
            steps.append((word, index, peer, size, tags.number(context, tag)))
        elif kind == _BLOCKS and subject in open_requests:
            if steps[-1][0] == "send":
                steps.insert(-1, ("pack", size))
            else:
                blocks[subject] = size
        elif kind == _COMPLETE and subject in open_requests:
            steps.append(("wait", open_requests.pop(subject)))
            if subject in blocks:
                steps.append(("unpack", blocks.pop(subject)))
        elif kind == _COMBINE:
            steps.append(("combine", size))
    steps.append(("compute", (before, site_before), (END, 0)))
    return steps


def _phase(before: tuple[str, int], after: tuple[str, int]) -> str:
    return phase_name(before[0], after[0], (before[1], after[1]))


def _phases_known(
    steps: Sequence[tuple[Any, ...]], profile: TimingProfile
) -> list[tuple[int, str, str | None]]:
    """The compute steps: index, phase, and the phase of the profile that it is, None if there is none.

    A node alone may leave out calls that the job makes, and so have one phase where the job has several: its time is
    then put where the first of these is, and the others are left out.
    """
    computes = [(index, *step[1:]) for index, step in enumerate(steps) if step[0] == "compute"]
    names = _stand_ins([_phase(before, after) for _, before, after in computes], profile)
    found: list[tuple[int, str, str | None]] = []
    index = 0
    while index < len(computes):
        step_index, before, after = computes[index]
        wanted = _phase(before, after)
        used = names[wanted]
        index += 1
        if used is None:
            for ahead in range(index, min(index + _MOST_AHEAD, len(computes))):
                if names[_phase(*computes[ahead][1:])] is not None:
                    break
                whole = _phase(before, computes[ahead][2])
                if whole in profile:
                    used = whole
                    index = ahead + 1
                    break
        found.append((step_index, wanted, used))
    return found


def _stand_ins(wanted: Sequence[str], profile: TimingProfile) -> dict[str, str | None]:
    """For each phase of a rank the one of the profile that it is; None if there is none.

    A compiler may make two call sites of one, for ranks that go different ways. A phase that is unknown is then one
    between calls of the same names that the rank does not have itself, if there is one: that with the nearest number
    of occurrences.
    """
    counts = Counter(wanted)
    found = {name: profile.known(name) for name in counts}
    unused: dict[str, list[str]] = defaultdict(list)
    for name in profile:
        if name not in counts:
            unused[name.partition(" @")[0]].append(name)
    for name, count in counts.items():
        others = unused[name.partition(" @")[0]]
        if found[name] is None and others:
            found[name] = min(others, key=lambda other: (abs(profile[other].samples - count), other))
            others.remove(found[name] or "")
    return found


def _answers(notes: Notes) -> dict[int, tuple[int, int, int]]:
    """By the index of a receive: who sent, with which tag, and how many bytes."""
    found: dict[int, tuple[int, int, int]] = {}
    started: dict[int, int] = {}
    for index, (kind, peer, tag, _, subject, size) in enumerate(notes.tolist()):
        if kind == _RECEIVE:
            started[subject] = index
        elif kind == _SEND:
            started.pop(subject, None)
        elif kind == _COMPLETE and subject in started and peer >= 0:
            found[started.pop(subject)] = (peer, tag, size)
    return found
