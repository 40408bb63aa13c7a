# SPDX-License-Identifier: Apache-2.0
"""Programs that convert, round and compare numbers, against exact fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from programs_support import Program, compare_rows, equal, program, signed

pytestmark = pytest.mark.core

MASK = 0xFFFFFFFF
WIDE_MASK = (1 << 64) - 1

INTEGER_ROUNDINGS: dict[str, Callable[[float], int]] = {
    "rn": round,
    "rz": math.trunc,
    "ru": math.ceil,
    "rd": math.floor,
}


def to_integer(value: float, mode: str, bits: int, is_signed: bool, from_double: bool) -> int:
    """What a conversion gives: the nearest number of the type, and for what is none a fixed one."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    if math.isnan(value):
        return 1 << (bits - 1) if from_double or bits == 64 else 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(INTEGER_ROUNDINGS[mode](value), low), high)


@np.errstate(over="ignore")
def to_float(value: Fraction, mode: str, dtype: type[np.floating]) -> np.floating:
    """The floating point number next to an exact one in a direction; ties go to the even one."""
    guess = dtype(float(value))
    infinity = dtype(np.inf)
    low = high = guess
    while not np.isfinite(low) or Fraction(float(low)) > value:
        low = np.nextafter(low, -infinity)
    while np.isfinite(high) and Fraction(float(high)) < value:
        high = np.nextafter(high, infinity)
    while (
        (above := np.nextafter(low, infinity)) <= high
        and np.isfinite(above)
        and Fraction(float(above)) <= value
    ):
        low = above
    while (below := np.nextafter(high, -infinity)) >= low and Fraction(float(below)) >= value:
        high = below
    if mode == "rz":
        mode = "rd" if value >= 0 else "ru"
    if mode == "rd" or low == high:
        return low
    if mode == "ru" or np.isinf(high):
        return high
    to_low, to_high = value - Fraction(float(low)), Fraction(float(high)) - value
    if to_low == to_high:
        fraction, _ = np.frexp(low)
        return low if fraction * 2.0 ** np.finfo(dtype).nmant * 2 % 2 == 0 else high
    return low if to_low < to_high else high


@program("conversions")
def test_floats_to_integers(run: Program) -> None:
    special = [
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        -0.0,
        3e9,
        -3e9,
        1e20,
        -1e20,
        np.inf,
        -np.inf,
        np.nan,
        2147483520,
    ]
    x = np.concatenate([np.array(special, np.float32), run.floats(-1e3, 1e3, 50), run.floats(-3e9, 3e9, 30)])
    count = x.size
    out = np.zeros((10, count), np.int32)
    run.launch("float_to_integer", 2, 64, x, out, count)
    rows = []
    for value in x.tolist():
        clipped = -100.0 if math.isnan(value) else min(max(value, -100.0), 100.0)
        rows.append(
            [
                *(to_integer(value, mode, 32, True, False) for mode in ("rn", "rz", "ru", "rd")),
                *(to_integer(value, mode, 32, False, False) for mode in ("rn", "rz")),
                signed(to_integer(value, "rn", 64, True, False), 64) >> 3,
                to_integer(value, "rz", 64, False, False) >> 32,
                math.trunc(clipped),
            ]
        )
    compare_rows(out[:9], rows)
    equal(out[9], x.view(np.int32))


@program("conversions")
def test_doubles_to_integers_and_floats(run: Program) -> None:
    special = [
        0.5,
        1.5,
        2.5,
        -0.5,
        -2.5,
        0,
        3e9,
        -3e9,
        1e19,
        -1e19,
        1e30,
        np.inf,
        -np.inf,
        np.nan,
        0.1,
        1e-300,
        1e39,
    ]
    x = np.concatenate(
        [special, run.floats(-1e3, 1e3, 40, np.float64), run.floats(-1e12, 1e12, 40, np.float64)]
    )
    count = x.size
    out = np.zeros((13, count), np.int64)
    run.launch("double_to_integer", 2, 64, x, out, count)
    rows = [
        [
            *(to_integer(value, mode, 64, True, True) for mode in ("rn", "rz", "ru", "rd")),
            signed(to_integer(value, "rn", 32, True, True)),
            to_integer(value, "rz", 32, False, True),
            to_integer(value, "ru", 64, False, True),
        ]
        for value in x.tolist()
    ]
    compare_rows(out[:7], rows, 64)
    equal(out[7], x.view(np.int64))
    equal(out[12], x.view(np.int32)[1::2] ^ x.view(np.int32)[::2])
    for row, mode in zip(out[8:12], ("rn", "rz", "ru", "rd"), strict=True):
        result = row.astype(np.int32).view(np.float32)
        for value, got in zip(x.tolist(), result, strict=True):
            if math.isfinite(value):
                assert got == to_float(Fraction(value), mode, np.float32), (value, mode)
            else:
                assert got == value or (math.isnan(value) and math.isnan(got))


@program("conversions")
def test_integers_to_floats(run: Program) -> None:
    x = run.words(80, np.int64)
    x[20:50] >>= 33
    out, wide = np.zeros((5, 80), np.float32), np.zeros((4, 80))
    run.launch("integer_to_float", 2, 64, x, out, wide, 80)
    for column, value in enumerate(x.tolist()):
        low, word, long = signed(value), value & MASK, value & WIDE_MASK
        floats = [(low, "rn"), (low, "rz"), (word, "ru"), (value, "rd"), (long, "rn")]
        doubles = [(value, "rn"), (value, "ru"), (long, "rz"), (word, "rn")]
        equal(out[:, column], [to_float(Fraction(number), mode, np.float32) for number, mode in floats])
        equal(wide[:, column], [to_float(Fraction(number), mode, np.float64) for number, mode in doubles])


def root(value: float) -> Fraction:
    """The square root to far more bits than any format has, and exact where it is rational."""
    exact = Fraction(abs(value))
    return Fraction(math.isqrt((exact.numerator << 400) // exact.denominator), 1 << 200)


@program("conversions")
def test_arithmetic_rounded_in_all_directions(run: Program) -> None:
    x, y = run.floats(-9, 9, 80), run.floats(0.1, 9, 80)
    y *= run.random.choice([1e-3, 1, -1, 1e5], 80).astype(np.float32)
    x[:4], y[:4] = (1, 4, 9, -1), (3, 2, -0.5, 1)
    out = np.zeros((11, 80), np.float32)
    run.launch("rounded_arithmetic", 2, 64, x, y, out, 80)
    for column in range(80):
        a, b = Fraction(float(x[column])), Fraction(float(y[column]))
        exact = [
            *((a + b, mode) for mode in ("rn", "rz", "ru", "rd")),
            (a * b, "rz"),
            (a * b, "ru"),
            (a / b, "rd"),
            (root(float(a)), "ru"),
            (1 / b, "rz"),
            (a / b, "rn"),
            (root(float(b)), "rn"),
        ]
        equal(out[:, column], [to_float(value, mode, np.float32) for value, mode in exact])


@program("comparisons")
def test_comparisons(run: Program) -> None:
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1.5, 1e-30, -2.5]
    x, y = (np.array(values) for values in zip(*itertools.product(special, special), strict=True))
    count = x.size
    out, values = np.zeros(count, np.int32), np.zeros((9, count))
    run.launch("comparisons", 2, 64, x, y, out, values, count)
    c, d = x.astype(np.float32), y.astype(np.float32)
    nan = np.isnan(x) | np.isnan(y)
    truths = [x < y, x <= y, x == y, x != y, ~(x >= y), ~(x > y), np.isnan(x), np.isinf(y)]
    truths += [np.isfinite(x) & np.isfinite(y), np.signbit(x), c < d, nan, (c == 0) | (d > c)]
    for bit, truth in enumerate(truths):
        known = ~np.isnan(x) if bit == 9 else np.ones(count, bool)  # the sign of a NaN is not fixed
        equal((out >> bit & 1)[known], truth[known].astype(np.int32))
    with np.errstate(invalid="ignore"):
        expected = [
            np.fmin(x, y),
            np.fmax(x, y),
            abs(x),
            -y,
            np.copysign(x, y),
            np.fmin(c, d),
            np.fmax(c, d),
            x + y,
        ]
        expected.append(np.where(nan, np.nan, np.where(x > y, x - y, 0)))
    for result, reference in zip(values, expected, strict=True):
        equal(result, reference)
