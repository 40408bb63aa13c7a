# SPDX-License-Identifier: Apache-2.0
"""The kinds of statistics, against plain Python."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale import _core


def test_a_counter_adds_up() -> None:
    counter = _core.Counter()
    counter.add()
    counter.add(41)
    assert counter.value == 42


@given(st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_a_gauge_keeps_last_lowest_and_highest(values: list[float]) -> None:
    gauge = _core.Gauge()
    for value in values:
        gauge.set(value)
    assert (gauge.value, gauge.min, gauge.max) == (values[-1], min(values), max(values))


@given(st.lists(st.integers(0, 2**62), min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_histogram_s_quantile_is_at_most_a_quarter_above(values: list[int], fraction: float) -> None:
    """The exact quantile v is at most the one reported, which is below v x 5/4 (four buckets an octave)."""
    histogram = _core.Histogram()
    for value in values:
        histogram.record(value)
    exact = sorted(values)[max(1, math.ceil(fraction * len(values))) - 1]
    reported = histogram.quantile(fraction)
    assert exact <= reported <= max(exact * 5 / 4, exact + 1)
    assert (histogram.count, histogram.min, histogram.max) == (len(values), min(values), max(values))
    assert histogram.mean == pytest.approx(sum(values) / len(values), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 100)), min_size=1))
def test_a_series_loses_nothing_when_its_interval_doubles(samples: list[tuple[int, int]]) -> None:
    series = _core.Series(1000)
    for time, amount in samples:
        series.add(time, amount)
    sums = series.sums
    assert len(sums) <= 1024
    assert sum(sums) == sum(amount for _, amount in samples)
    for index, total in enumerate(sums):
        within = (amount for time, amount in samples if time // series.interval == index)
        assert total == sum(within)


def test_a_series_starts_with_the_interval_it_was_given() -> None:
    series = _core.Series(10)
    series.add(10_239, 1.0)
    assert (series.interval, len(series.sums)) == (10, 1024)
    series.add(10_240, 1.0)
    assert series.interval == 20
