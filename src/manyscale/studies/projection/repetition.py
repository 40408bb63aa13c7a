# SPDX-License-Identifier: Apache-2.0
"""Patterns that repeat: the shortest sequence that, again and again, makes a sequence of cluster numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST_PERIOD = 4096
_FEWEST_REPETITIONS = 2


@dataclass(frozen=True)
class Repetition:
    """A pattern and how well it explains a sequence: 1.0 is every element of it."""

    pattern: tuple[int, ...]
    explained: float


def find(labels: Sequence[int], *, at_least: float = 1.0) -> Repetition | None:
    """The shortest pattern that explains at least such a share of a sequence; None if nothing repeats.

    The pattern begins where the sequence does; its last repetition may be cut off. With `at_least` below 1, each
    entry of the pattern is what most repetitions have there.

    >>> find([0, 1, 2, 2, 2, 1, 0] * 50).pattern
    (0, 1, 2, 2, 2, 1, 0)
    >>> find([0, 1, 2, 3]) is None
    True
    """
    sequence = np.asarray(labels, np.int64)
    for period in range(1, min(sequence.size // _FEWEST_REPETITIONS, MOST_PERIOD) + 1):
        if at_least >= 1.0:
            if np.array_equal(sequence[period:], sequence[:-period]):
                return Repetition(tuple(int(label) for label in sequence[:period]), 1.0)
            continue
        pattern = _majority(sequence, period)
        explained = float(np.mean(np.resize(pattern, sequence.size) == sequence))
        if explained >= at_least:
            return Repetition(tuple(int(label) for label in pattern), explained)
    return None


def _majority(sequence: np.ndarray, period: int) -> np.ndarray:
    """For each position of a period, the label that is there most often; of equals the smallest."""
    kinds = int(sequence.max()) + 1
    counts = np.zeros((period, kinds), np.int64)
    np.add.at(counts, (np.arange(sequence.size) % period, sequence), 1)
    return np.asarray(np.argmax(counts, axis=1))
