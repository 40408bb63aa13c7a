# SPDX-License-Identifier: Apache-2.0
"""Times of one compute phase that fall into several groups: which group each belongs to.

A phase that is met with data of different sizes takes a few clearly different times. They are told apart by the
valleys of their density: neighbours in sorted order that are much further apart than times of a group are among
themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MOST_CLUSTERS = 16
_FEWEST = 3  # samples that make a group of their own; of many, a hundredth
_APART = 0.05  # groups lie further apart than this share of the shorter time
_MATTERS = 0.01  # and than this share of the longest of all: what is shorter does not show in the sum
_VALLEY = 6.0  # a gap is a valley if it is so many times the spread of the narrower of its two sides

Labels = npt.NDArray[np.int64]


def split(samples: Any) -> Labels:
    """The number of each sample's group; group 0 takes longest, as patterns are usually told.

    >>> split([9.0, 1.0, 1.01, 9.1, 9.05, 1.02]).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    times = np.asarray(samples, float).ravel()
    order = np.argsort(times, kind="stable")
    boundaries = _boundaries(times[order], _MATTERS * float(times.max(initial=0.0)))
    sorted_labels = np.searchsorted(boundaries, np.arange(times.size), side="right")
    labels = np.empty(times.size, np.int64)
    labels[order] = len(boundaries) - sorted_labels
    return labels


def _boundaries(times: npt.NDArray[np.float64], matters: float) -> list[int]:
    """Where in sorted times a new group begins: the widest valleys first, each between groups that are large enough."""
    found: list[int] = []
    ranges = [(0, times.size)]
    while ranges and len(found) < MOST_CLUSTERS - 1:
        first, last = ranges.pop(0)
        cut = _widest_valley(times[first:last], matters)
        if cut is None:
            continue
        found.append(first + cut)
        ranges += [(first, first + cut), (first + cut, last)]
    return sorted(found)


def _widest_valley(times: npt.NDArray[np.float64], matters: float) -> int | None:
    """The index at which sorted times fall apart into two groups; None if they are one."""
    fewest = max(_FEWEST, times.size // 100)
    if times.size < 2 * fewest:
        return None
    gaps = np.diff(times)
    candidates = np.argsort(gaps, kind="stable")[::-1]
    for gap in candidates[:MOST_CLUSTERS]:
        at = int(gap) + 1
        if min(at, times.size - at) < fewest:
            continue
        if gaps[gap] <= max(_APART * times[at - 1], matters):
            continue
        # Half of each side's samples lie this close together.
        spread = min(_middle_spread(times[:at]), _middle_spread(times[at:]))
        if gaps[gap] > _VALLEY * spread:
            return at
    return None


def _middle_spread(times: npt.NDArray[np.float64]) -> float:
    """The width of the middle half of the samples around a typical one: the mean gap between neighbours there."""
    low, high = np.quantile(times, [0.25, 0.75])
    return float(high - low) / float(np.sqrt(max(1.0, times.size / 2)))
