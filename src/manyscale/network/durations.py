# SPDX-License-Identifier: Apache-2.0
"""How long a compute phase takes, where it is not a constant: distributions and patterns of them.

Times are whole femtoseconds. They are drawn by the core, from the seed, the rank and how often it has met the
phase, so they depend on neither threads nor order.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import units
from manyscale.errors import InputError

MOST_BINS = 100
_SECOND = 10**15
_LONGEST = 2**62  # femtoseconds

FloatArray = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distribution:
    """At most 100 bins with weights: each occurrence chooses a bin and a time between its `low` and its `high`."""

    low: Times
    high: Times
    weights: FloatArray

    @classmethod
    def of(cls, times: Sequence[str | int | float], weights: Sequence[float] | None = None) -> Distribution:
        """The given times, equally likely or by weights."""
        values = np.array([femtoseconds(time) for time in times], np.int64)
        shares = np.ones(len(values)) if weights is None else np.asarray(weights, float)
        return cls._checked(values, values, shares)

    @classmethod
    def of_bins(cls, low: Sequence[int], high: Sequence[int], weights: Sequence[float]) -> Distribution:
        """The given bins, in femtoseconds."""
        bounds = [np.array([femtoseconds(int(time)) for time in side], np.int64) for side in (low, high)]
        if len(bounds[0]) != len(bounds[1]) or np.any(bounds[0] > bounds[1]):
            raise InputError("each bin of a distribution has a low and a high end, in this order")
        return cls._checked(bounds[0], bounds[1], np.asarray(weights, float))

    @classmethod
    def from_samples(cls, seconds: Any, bins: int = MOST_BINS) -> Distribution:
        """The distribution of measured times in seconds: bins of equal shares, finer where the longest times are.

        Each bin keeps the mean of its samples exactly, and the longest tenth has half of the bins: what a job waits
        for is its slowest rank.
        """
        _check_bins(bins)
        times = np.sort(femtosecond_array(np.asarray(seconds, float).ravel()))
        if not times.size:
            raise InputError("a distribution needs samples")
        # The shortest time has a bin of its own, where there are several.
        shares = _shares(bins - 1) if bins > 1 else np.ones(1)
        ends = np.unique(np.ceil(shares * times.size).astype(np.int64).clip(min=1))
        if len(ends) < bins:
            ends = np.union1d([1], ends)
        begins = np.concatenate([[0], ends[:-1]])
        counts = ends - begins
        means = np.add.reduceat(times.astype(float), begins) / counts
        half_width = np.minimum(means - times[begins], times[ends - 1] - means)
        low, high = (np.rint(means + side * half_width).astype(np.int64) for side in (-1, 1))
        return cls._checked(low, high, counts.astype(float))

    @classmethod
    def normal(cls, mean: str | int | float, variation: float, bins: int = MOST_BINS) -> Distribution:
        """A normal distribution by its mean and its standard deviation as a share of the mean, in equal parts.

        Each part is at its median and none is below zero; the parts are scaled so that the mean is exact.
        """
        centre = femtoseconds(mean)
        if not 0 <= variation <= 1:
            raise InputError(f"the variation is {variation}; it is a share of the mean, from 0 to 1")
        _check_bins(bins)
        unit = statistics.NormalDist()
        shape = np.array([unit.inv_cdf((part + 0.5) / bins) for part in range(bins)])
        factors = np.maximum(1 + variation * shape, 0.0)
        factors *= bins / factors.sum()
        times = np.rint(centre * factors).astype(np.int64)
        return cls._checked(times, times, np.ones(bins))

    @classmethod
    def _checked(cls, low: Times, high: Times, weights: FloatArray) -> Distribution:
        if not 1 <= len(low) <= MOST_BINS or len(low) != len(weights):
            raise InputError(
                f"a distribution has from 1 to {MOST_BINS} times and a weight for each, "
                f"not {len(low)} and {len(weights)}"
            )
        if not np.all(np.isfinite(weights)) or weights.min() < 0 or weights.sum() <= 0:
            raise InputError("the weights of a distribution must not be negative, nor all be zero")
        return cls(low, high, weights / weights.sum())

    @property
    def mean(self) -> float:
        """The mean in femtoseconds."""
        return float(((self.low + self.high) / 2) @ self.weights)

    @property
    def key(self) -> bytes:
        """Equal for distributions that are equal."""
        return self.low.tobytes() + self.high.tobytes() + self.weights.tobytes()


@dataclass(frozen=True, eq=False)
class Pattern:
    """Clusters in turn, again and again: occurrence n draws from the n-th of `order`, an index into `clusters`."""

    order: tuple[int, ...]
    clusters: tuple[Distribution, ...]

    @classmethod
    def of(cls, order: Sequence[int], clusters: Sequence[Any]) -> Pattern:
        """The pattern such as [0, 1, 2, 2, 2, 1, 0] of times or distributions."""
        made = tuple(
            cluster if isinstance(cluster, Distribution) else Distribution.of([cluster])
            for cluster in clusters
        )
        for index in order:
            if not 0 <= index < len(made):
                raise InputError(f"the pattern names cluster {index}, but there are {len(made)}")
        if not order:
            raise InputError("a pattern needs at least one cluster")
        return cls(tuple(order), made)

    def at(self, occurrence: int) -> Distribution:
        """What an occurrence draws from; they count from 0."""
        return self.clusters[self.order[occurrence % len(self.order)]]

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for patterns that are equal."""
        return (self.order, *(cluster.key for cluster in self.clusters))

    @property
    def mean(self) -> float:
        """The mean in femtoseconds."""
        return sum(self.clusters[index].mean for index in self.order) / len(self.order)


def as_pattern(duration: Distribution | Pattern) -> Pattern:
    """A distribution is a pattern of one."""
    return duration if isinstance(duration, Pattern) else Pattern((0,), (duration,))


@functools.lru_cache(maxsize=1024)
def femtoseconds(time: str | int | float) -> int:
    """A time that is text with a unit, whole femtoseconds, or seconds as a float."""
    if isinstance(time, str):
        value = int(units.parse(time, units.TIME))
    elif isinstance(time, float):
        return int(femtosecond_array(time))
    else:
        value = int(time)
    if not 0 <= value <= _LONGEST:
        raise InputError(f"{units.shown(time)} is no duration: it is negative or beyond the range")
    return value


def femtosecond_array(seconds: Any) -> Times:
    """Seconds as whole femtoseconds."""
    times = np.asarray(seconds, float) * _SECOND
    if not np.all(np.isfinite(times)) or np.any(times < 0) or np.any(times > _LONGEST):
        raise InputError("a duration must be a finite number of seconds that is not negative")
    return np.asarray(np.rint(times), np.int64)


def _shares(bins: int) -> FloatArray:
    """The shares of all samples at which bins end: half of them, rounded up, in the last tenth, ever finer."""
    body = bins // 2
    tail = bins - body
    main = np.linspace(0, 0.9, body + 1)[1:]
    return np.concatenate([main, 1 - 0.1 * np.linspace(1, 0, tail + 1)[1:] ** 3])


def _check_bins(bins: int) -> None:
    if not 1 <= bins <= MOST_BINS:
        raise InputError(f"a distribution has from 1 to {MOST_BINS} bins, not {bins}")
