# SPDX-License-Identifier: Apache-2.0
"""The file of phase 1: what was counted of ranks, and their groups."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from manyscale.errors import InputError
from manyscale.results.files import FileGroup, document_kind
from manyscale.results.integrity import sealed
from manyscale.studies.projection.measured_job import read_document
from manyscale.studies.projection.profiling import RankProfile
from manyscale.studies.projection.rank_clusters import Attempt, RankClusters

SCHEMA = 2  # 1 had no checksum
KIND = "projection-profile"
FILE = "profile.json"


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
    document = read_document(path, KIND, SCHEMA)
    try:
        labels = [int(label) for label in document["labels"]]
        nodes = [int(node) for node in document["nodes"]]
        per_node = int(document["ranks_per_node"])
        counters = {
            str(name): [float(value) for value in values] for name, values in document["counters"].items()
        }
        attempts = [
            Attempt(int(one["clusters"]), float(one["spread"]), one["silhouette"])
            for one in document["attempts"]
        ]
        source, why, facts = str(document["source"]), str(document["why"]), dict(document["facts"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is no profile of ranks: {type(error).__name__} {error}") from None
    used = sorted(set(labels))
    if not labels or used != list(range(len(used))) or per_node < 1:
        raise InputError(f"{path} is no profile of ranks: groups are numbered from 0, each with a rank")
    if any(not 0 <= node < -(-len(labels) // per_node) for node in nodes) or not nodes:
        raise InputError(f"{path} is no profile of ranks: it names a node that the job does not have")
    if any(len(values) != len(labels) for values in counters.values()):
        raise InputError(f"{path} is no profile of ranks: a counter does not have a value for every rank")
    return RankProfile(source, counters, RankClusters(labels, attempts, why), nodes, per_node, facts)
