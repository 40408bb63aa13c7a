# SPDX-License-Identifier: Apache-2.0
"""The timing profile of a program: how long each of its compute phases takes, as distributions and patterns.

A profile is small, whatever the length of the run it came from, and can be kept as JSON: clusters of at most 100 bins
each, and the order in which a rank meets them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from manyscale.documents import Document, Natural, read_document
from manyscale.errors import InputError, nearest
from manyscale.network.durations import MOST_BINS, Distribution, Pattern
from manyscale.results.files import document_kind, write_file
from manyscale.results.integrity import sealed
from manyscale.studies.projection import multimodal, repetition

SCHEMA = 2  # 1 had no checksum
KIND = "timing-profile"
_SECOND = 10**15
_LONGEST_CALL = 1000.0  # seconds
_NOISE = 0.98  # of a sequence, that a pattern has to explain

TIMING_PROFILE = document_kind(KIND)

Variant = Literal["variable", "constant"]

START, END = "start", "end"  # what stands for a call before the first and after the last


def phase_name(before: str, after: str, sites: tuple[int, int] | None = None) -> str:
    """The name of what a rank does between two calls, such as MPI_Waitall..MPI_Irecv.

    With the call sites of the two, a number distinguishes phases of one name.
    """
    if sites is None:
        return f"{before}..{after}"
    return f"{before}..{after} @{(sites[0] * 31 + sites[1]) & 0xFFFFFFFF:08x}"


class _Cluster(Document):
    low_fs: list[Natural]
    high_fs: list[Natural]
    weights: list[float]


class _Phase(Document):
    name: str
    samples: Natural
    explained: float
    order: list[Natural]
    clusters: list[_Cluster]


class _Timings(Document):
    facts: dict[str, Any] = {}
    call_costs: dict[str, Annotated[float, Field(ge=0, lt=_LONGEST_CALL)]] = {}
    phases: list[_Phase]


@dataclass(frozen=True, eq=False)
class PhaseTiming:
    """One compute phase: its clusters of times, longest first, and the pattern in which they come.

    Without a pattern (`order` has one element or the clusters come in no order that repeats) each occurrence draws
    from all samples together.
    """

    name: str
    samples: int
    pattern: Pattern
    explained: float  # share of the samples that come as the pattern says

    @classmethod
    def of(cls, name: str, by_rank: Sequence[Any], bins: int = MOST_BINS) -> PhaseTiming:
        """From the times in seconds that each rank measured, in the order in which it did."""
        ranks = [np.asarray(times, float).ravel() for times in by_rank]
        together = np.concatenate(ranks) if ranks else np.zeros(0)
        if not together.size:
            raise InputError(f"phase {name}: there are no times")
        labels = multimodal.split(together)
        found = _common_pattern(np.split(labels, np.cumsum([len(times) for times in ranks])[:-1]))
        if found is None:
            pattern = Pattern((0,), (Distribution.from_samples(together, bins),))
            return cls(name, together.size, pattern, float(labels.max() == 0))
        # At each position the pattern has what most repetitions have; samples elsewhere still count in a cluster.
        clusters = [
            Distribution.from_samples(together[labels == label], bins)
            for label in range(int(labels.max()) + 1)
        ]
        return cls(name, together.size, Pattern.of(found.pattern, clusters), found.explained)

    def duration(self, variant: Variant = "variable") -> Pattern:
        """What a skeleton's `mpi.compute` takes: drawn each time, or always the mean."""
        if variant == "variable":
            return self.pattern
        constant = [Distribution.of([round(cluster.mean)]) for cluster in self.pattern.clusters]
        return Pattern.of(self.pattern.order, constant)

    @property
    def mean(self) -> float:
        """Seconds."""
        return self.pattern.mean / _SECOND


class TimingProfile(Mapping[str, PhaseTiming]):
    """The compute phases of a program by name; what phase 2 hands to phase 3."""

    def __init__(
        self,
        phases: Sequence[PhaseTiming],
        facts: Mapping[str, Any] | None = None,
        call_costs: Mapping[str, float] | None = None,
    ) -> None:
        self._phases = {phase.name: phase for phase in phases}
        self.call_costs = dict(call_costs or {})  # by MPI call: median seconds within it
        self.facts = dict(facts or {})  # where it comes from: program, machine, ranks

    def __getitem__(self, name: str) -> PhaseTiming:
        try:
            return self._phases[name]
        except KeyError:
            raise InputError(f"there is no phase '{name}'; {nearest(name, list(self._phases))}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._phases

    def known(self, name: str) -> str | None:
        """The name under which there are times for a phase: its own, or that of its calls alone; None if neither is."""
        if name in self._phases:
            return name
        plain = name.partition(" @")[0]
        return plain if plain in self._phases else None

    def __iter__(self) -> Any:
        return iter(self._phases)

    def __len__(self) -> int:
        return len(self._phases)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes it as JSON; over another timing profile only with `force`."""
        content = self.to_json()
        write_file(path, lambda file: file.write(content), TIMING_PROFILE, force=force)

    def to_json(self) -> bytes:
        """What `save` writes."""
        document = {
            "schema": SCHEMA,
            "kind": KIND,
            "facts": self.facts,
            "call_costs": self.call_costs,
            "phases": [_to_json(phase) for phase in self._phases.values()],
        }
        return sealed(document, indent=1)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TimingProfile:
        """Reads what `save` wrote."""
        read = read_document(path, _Timings, "timing profile", kind=KIND, schema=SCHEMA)
        try:
            return cls([_from_json(phase) for phase in read.phases], read.facts, read.call_costs)
        except InputError as error:
            raise InputError(f"{path} is no timing profile: {error}") from None


def _common_pattern(by_rank: Sequence[npt.NDArray[np.int64]]) -> repetition.Repetition | None:
    """The pattern that all ranks follow; None if there is none, or only one cluster."""
    if max(int(labels.max(initial=0)) for labels in by_rank) == 0:
        return None
    longest = max(by_rank, key=len)
    found = repetition.find(longest.tolist()) or repetition.find(longest.tolist(), at_least=_NOISE)
    if found is None:
        return None
    hits = sum(int(np.sum(np.resize(found.pattern, labels.size) == labels)) for labels in by_rank)
    explained = hits / sum(labels.size for labels in by_rank)
    return repetition.Repetition(found.pattern, explained) if explained >= _NOISE else None


def _to_json(phase: PhaseTiming) -> dict[str, Any]:
    return {
        "name": phase.name,
        "samples": phase.samples,
        "explained": phase.explained,
        "order": list(phase.pattern.order),
        "clusters": [
            {
                "low_fs": cluster.low.tolist(),
                "high_fs": cluster.high.tolist(),
                "weights": cluster.weights.tolist(),
            }
            for cluster in phase.pattern.clusters
        ],
    }


def _from_json(phase: _Phase) -> PhaseTiming:
    clusters = [Distribution.of_bins(one.low_fs, one.high_fs, one.weights) for one in phase.clusters]
    return PhaseTiming(phase.name, phase.samples, Pattern.of(phase.order, clusters), phase.explained)
