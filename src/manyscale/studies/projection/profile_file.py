# SPDX-License-Identifier: Apache-2.0
"""The file of phase 1: what was counted of ranks, and their groups."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from manyscale.documents import Document, Natural, Positive, read_document
from manyscale.errors import InputError
from manyscale.results.files import FileGroup, document_kind
from manyscale.results.integrity import sealed
from manyscale.studies.projection.profiling import RankProfile
from manyscale.studies.projection.rank_clusters import Attempt, RankClusters

SCHEMA = 2  # 1 had no checksum
KIND = "projection-profile"
FILE = "profile.json"


class _Attempt(Document):
    clusters: Natural
    spread: float
    silhouette: float | None


class _Profile(Document):
    source: str
    ranks_per_node: Positive
    nodes: list[Natural]
    labels: list[Natural]
    why: str
    attempts: list[_Attempt]
    counters: dict[str, list[float]]
    facts: dict[str, Any]


def save_profile(profile: RankProfile, folder: Path, *, force: bool = False) -> None:
    """Writes profile.json into a folder; over another profile only with `force`."""
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "source": profile.source,
        "ranks_per_node": profile.ranks_per_node,
        "nodes": profile.nodes,
        "labels": profile.clusters.labels,
        "why": profile.clusters.why,
        "attempts": [asdict(attempt) for attempt in profile.clusters.attempts],
        "counters": profile.counters,
        "facts": profile.facts,
    }
    with FileGroup(folder, document_kind(KIND), force=force) as group:
        group.add(FILE, lambda file: file.write(sealed(document, indent=1)))


def load_profile(folder: Path) -> RankProfile:
    """Reads what `save_profile` wrote."""
    path = folder / FILE
    read = read_document(path, _Profile, "profile of ranks", kind=KIND, schema=SCHEMA)
    labels, nodes, per_node, counters = read.labels, read.nodes, read.ranks_per_node, read.counters
    attempts = [Attempt(one.clusters, one.spread, one.silhouette) for one in read.attempts]
    used = sorted(set(labels))
    if not labels or used != list(range(len(used))):
        raise InputError(f"{path} is no profile of ranks: groups are numbered from 0, each with a rank")
    if any(not 0 <= node < -(-len(labels) // per_node) for node in nodes) or not nodes:
        raise InputError(f"{path} is no profile of ranks: it names a node that the job does not have")
    if any(len(values) != len(labels) for values in counters.values()):
        raise InputError(f"{path} is no profile of ranks: a counter does not have a value for every rank")
    clusters = RankClusters(labels, attempts, read.why)
    return RankProfile(read.source, counters, clusters, nodes, per_node, read.facts)
