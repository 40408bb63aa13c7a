# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks that behave alike, and the nodes that stand for all groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manyscale.errors import InputError

MOST_CLUSTERS = 8
TOLERANCE = 0.05  # ranks of a group differ by no more than this share of the mean of all ranks


@dataclass(frozen=True)
class Attempt:
    """Ranks in so many groups: how far a rank is from its group at most, and how well groups are apart (-1 to 1)."""

    clusters: int
    spread: float
    silhouette: float | None


@dataclass(frozen=True)
class RankClusters:
    """The group of each rank, numbered in the order of their first ranks, and why there are so many."""

    labels: list[int]
    attempts: list[Attempt]
    why: str

    @property
    def count(self) -> int:
        """Of groups."""
        return max(self.labels) + 1

    def members(self, cluster: int) -> list[int]:
        """The ranks of a group."""
        return [rank for rank, label in enumerate(self.labels) if label == cluster]

    def nodes(self, ranks_per_node: int) -> list[int]:
        """As few nodes as cover all groups: always the one that adds most of them; of equals the first."""
        by_node: dict[int, set[int]] = {}
        for rank, label in enumerate(self.labels):
            by_node.setdefault(rank // ranks_per_node, set()).add(label)
        missing, chosen = set(range(self.count)), []
        while missing:
            best = max(by_node, key=lambda node: (len(by_node[node] & missing), -node))
            chosen.append(best)
            missing -= by_node[best]
        return sorted(chosen)


def cluster_ranks(counters: Mapping[str, Sequence[float]], tolerance: float = TOLERANCE) -> RankClusters:
    """Groups ranks by what was counted of each: as few groups as keep every rank near its own.

    Each counter is taken as a share of its mean over all ranks, so that none counts more because its numbers are
    larger.
    """
    table = _shares(counters)
    ranks = len(table)
    attempts: list[Attempt] = []
    grouped: list[list[int]] = []
    for count in range(1, min(MOST_CLUSTERS, ranks) + 1):
        labels = _groups(table, count)
        spread = max(
            float(np.abs(table[labels == label] - table[labels == label].mean(axis=0)).max())
            for label in range(count)
        )
        attempts.append(Attempt(count, spread, _silhouette(table, labels)))
        grouped.append(_numbered(labels))
        if spread <= tolerance:
            why = (
                f"{_groups_text(count)}: no rank differs from the mean of its group by more than {spread:.1%} in "
                f"any counter (at most {tolerance:.0%} are allowed)"
            )
            if count > 1:
                why += f"; with {_groups_text(count - 1)} it would be {attempts[-2].spread:.1%}"
            return RankClusters(grouped[-1], attempts, why)
    best = max(range(len(attempts)), key=lambda index: attempts[index].silhouette or -1.0)
    return RankClusters(
        grouped[best],
        attempts,
        f"{_groups_text(attempts[best].clusters)}: these are best apart from each other (silhouette "
        f"{attempts[best].silhouette or 0:.2f}); even {_groups_text(attempts[-1].clusters)} would leave ranks "
        f"{attempts[-1].spread:.1%} from the mean of theirs",
    )


def _shares(counters: Mapping[str, Sequence[float]]) -> np.ndarray:
    columns = [np.asarray(values, float) for values in counters.values()]
    if not columns or not columns[0].size:
        raise InputError("there is nothing that was counted of ranks, so they cannot be grouped")
    if len({column.size for column in columns}) > 1:
        raise InputError("a counter does not have a value for every rank")
    if not all(np.all(np.isfinite(column)) and column.min() >= 0 for column in columns):
        raise InputError("counters of ranks must be finite numbers that are not negative")
    return np.stack([column / (column.mean() or 1.0) for column in columns], axis=1)


def _groups(table: np.ndarray, count: int) -> np.ndarray:
    if count == 1:
        return np.zeros(len(table), np.int64)
    if count == len(table):
        return np.arange(len(table))
    try:
        from sklearn.cluster import AgglomerativeClustering  # type: ignore[import-untyped]
    except ImportError:
        raise InputError(
            "ranks are grouped by scikit-learn, which is not installed: pip install 'manyscale[projection]'"
        ) from None
    # Complete linkage keeps the largest difference within a group small, which is what is asked for.
    return np.asarray(AgglomerativeClustering(count, linkage="complete").fit_predict(table), np.int64)


def _silhouette(table: np.ndarray, labels: np.ndarray) -> float | None:
    count = int(labels.max()) + 1
    if not 1 < count < len(table):
        return None
    from sklearn.metrics import silhouette_score  # type: ignore[import-untyped]

    return float(silhouette_score(table, labels))


def _numbered(labels: np.ndarray) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(int(label), len(numbers)) for label in labels]


def _groups_text(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"
