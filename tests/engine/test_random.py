# SPDX-License-Identifier: Apache-2.0
"""Random numbers depend on seed, stream and count alone, and have the right moments."""

from __future__ import annotations

import math
import statistics

from manyscale import _core


def test_the_same_seed_and_stream_draw_the_same() -> None:
    a, b = _core.Random(3, 7), _core.Random(3, 7)
    assert [a.next() for _ in range(100)] == [b.next() for _ in range(100)]


def test_streams_and_seeds_draw_differently() -> None:
    draws = {_core.Random(seed, stream).next() for seed in range(50) for stream in range(50)}
    assert len(draws) == 2500


def test_known_values_hold_on_every_host() -> None:
    """Fixed so that a change of the generator, which changes every result, is noticed."""
    random = _core.Random(1, 2)
    assert [random.next() for _ in range(2)] == KNOWN
    assert _core.Random(1, 2).exponential() == KNOWN_EXPONENTIAL


def test_exponential_has_mean_and_deviation_one() -> None:
    random = _core.Random(5, 5)
    draws = [random.exponential() for _ in range(100_000)]
    assert abs(statistics.fmean(draws) - 1) < 0.02
    assert abs(statistics.pstdev(draws) - 1) < 0.03
    assert min(draws) >= 0


def test_exponential_is_minus_the_logarithm_of_uniform() -> None:
    """Against the host's own logarithm."""
    uniform, exponential = _core.Random(9, 1), _core.Random(9, 1)
    for _ in range(10_000):
        expected = -math.log(uniform.uniform())
        assert math.isclose(exponential.exponential(), expected, rel_tol=1e-12, abs_tol=1e-14)


def test_below_is_uniform() -> None:
    random = _core.Random(1, 1)
    counts = [0] * 7
    for _ in range(70_000):
        counts[random.below(7)] += 1
    assert all(abs(count - 10_000) < 500 for count in counts), counts


KNOWN = [15201566595796281265, 16567122129728874927]
KNOWN_EXPONENTIAL = 0.1934893938894186
