# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a job have in common while they are recorded: communicators, and patterns of durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyscale.network.columns import as_array, as_column
from manyscale.network.durations import Distribution, Pattern, as_pattern
from manyscale.network.program import Group


@dataclass(frozen=True, eq=False)
class Communicator:
    """A communicator as a skeleton sees it: the caller's rank in it, and its size."""

    number: int
    rank: Any
    size: Any


@dataclass(frozen=True, eq=False)
class Request:
    """An outstanding communication, to be waited for."""

    slot: int


class Shared:
    """What all ranks that are recorded have in common: communicators, and patterns of durations."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.groups = [Group(0, np.arange(ranks), ranks)]
        self.patterns: list[Pattern] = []
        self._phases: dict[str, int] = {}
        self._numbers: dict[Any, int] = {}

    def pattern(self, duration: Distribution | Pattern) -> int:
        """The number of a pattern; equal ones have the same."""
        pattern = as_pattern(duration)
        number = self._numbers.setdefault(pattern.key, len(self.patterns))
        if number == len(self.patterns):
            self.patterns.append(pattern)
        return number

    def phase(self, name: str) -> int:
        """The number of a compute phase that several operations share."""
        return self._phases.setdefault(name, len(self._phases))

    def split(self, parent: int, color: Any, key: Any) -> int:
        """The number of a new group: as MPI_Comm_split, ordered by key and then by rank in the parent."""
        above = self.groups[parent]
        outer = as_array(above.color, self.ranks)
        colors = np.asarray(as_array(as_column(color, self.ranks, "color"), self.ranks)).copy()
        colors[outer < 0] = -1
        keys = as_array(as_column(key, self.ranks, "key"), self.ranks)
        positions = as_array(above.position, self.ranks)
        # Ranks of different groups of the parent never meet, even with the same color.
        _, joint = np.unique(np.stack([outer, colors]), axis=1, return_inverse=True)
        joint = joint.reshape(-1)
        joint[colors < 0] = -1
        order = np.lexsort((positions, keys, joint))
        sorted_joint = joint[order]
        starts = np.searchsorted(sorted_joint, sorted_joint, side="left")
        position = np.empty(self.ranks, np.int64)
        position[order] = np.arange(self.ranks) - starts
        counts = np.bincount(joint[joint >= 0], minlength=1) if np.any(joint >= 0) else np.zeros(1, int)
        size = np.where(joint >= 0, counts[np.maximum(joint, 0)], 0)
        self.groups.append(Group(joint, position, size))
        return len(self.groups) - 1
