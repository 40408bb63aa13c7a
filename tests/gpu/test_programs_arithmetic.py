# SPDX-License-Identifier: Apache-2.0
"""Programs of arithmetic: mathematical functions, integers, bits and small formats, against exact references."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from programs_support import Program, close, compare_rows, equal, program, quotient, signed, within_ulps

pytestmark = pytest.mark.core

MASK = 0xFFFFFFFF
WIDE_MASK = (1 << 64) - 1


def each(function: Callable[..., float], *arrays: np.ndarray) -> np.ndarray:
    """A function of Python's on each element; what it refuses is not a number, or too large for one."""

    def guarded(*values: float) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return np.array([guarded(*values) for values in zip(*(array.tolist() for array in arrays), strict=True)])


@np.errstate(over="ignore")
def roundings(x: np.ndarray) -> np.ndarray:
    return ((np.floor(x) + np.trunc(x)) + np.rint(x)) + np.ceil(x)


@np.errstate(over="ignore")
def reciprocals(x: np.ndarray) -> np.ndarray:
    return 1 / x.astype(np.float64)


ELEMENTARY = [
    ("sin", lambda x: each(math.sin, x), 2),
    ("cos", lambda x: each(math.cos, x), 2),
    ("tan", lambda x: each(math.tan, x), 4),
    ("exp", lambda x: each(math.exp, x), 2),
    ("log", lambda x: each(math.log, abs(x)), 2),
    ("pow", lambda x: each(math.pow, abs(x), np.full_like(x, 1.37)), 8),
    ("sqrt", lambda x: np.sqrt(abs(x.astype(np.float64))), 0.5),
    ("cbrt", lambda x: np.cbrt(x.astype(np.float64)), 2),
    ("atan", lambda x: each(math.atan, x), 2),
    ("tanh", lambda x: each(math.tanh, x), 2),
    ("rsqrt", lambda x: 1 / np.sqrt(abs(x.astype(np.float64))), 2),
    ("reciprocal", reciprocals, 0.5000001),
    ("fmod", lambda x: each(math.fmod, x, np.full_like(x, 0.73)), 0),
    ("roundings", roundings, 0),
]
STATISTICS = [
    ("erf", lambda x: each(math.erf, x), 2),
    ("erfc", lambda x: each(math.erfc, x), 6),
    ("tgamma", lambda x: each(math.gamma, x), 24),
    ("lgamma", lambda x: each(math.lgamma, x), 24),
    ("expm1", lambda x: each(math.expm1, x), 2),
    ("log1p", lambda x: each(math.log1p, abs(x)), 2),
    ("hypot", lambda x: each(math.hypot, x, np.full_like(x, 1.5)), 3),
    ("atan2", lambda x: each(math.atan2, x, np.full_like(x, -0.5)), 3),
]


def sweep(run: Program, kernel: str, x: np.ndarray, functions: list, slack: float = 0.0) -> None:
    out = np.zeros((len(functions), x.size), x.dtype)
    run.launch(kernel, -(-x.size // 64), 64, x, out, x.size)
    for result, (name, reference, ulps) in zip(out, functions, strict=True):
        least = 1.0 if name == "lgamma" else 0.0  # near its zeros the reference is not exact itself
        within_ulps(result, reference(x), ulps + (slack if ulps > 0 else 0), name, least)


@program("special_functions_f32")
def test_functions_of_floats(run: Program) -> None:
    ordinary = [run.floats(-10, 10, 100), run.floats(-1, 1, 20) * np.float32(1e-3), run.floats(-300, 300, 20)]
    large = [
        run.floats(1e5, 1e6, 20),
        np.array([1e10, -3e20, 1.5e30, 3.3e38, 123456.789, -105615.0], np.float32),
    ]
    small = [np.array([1e-30, -1e-20, 1e-38, 3e-41, 1.0, -1.0, 88.7, -87.3, -100.0, 0.5], np.float32)]
    sweep(run, "elementary_f32", np.concatenate(ordinary + large + small), ELEMENTARY)
    positive = [
        run.floats(0.01, 10, 60),
        run.floats(10, 34, 20),
        np.array([0.5, 1.0, 2.0, 3.0, 1e-5], np.float32),
    ]
    negative = [run.floats(-1.9, -1.1, 20), run.floats(-0.9, -0.1, 20)]
    sweep(run, "statistics_f32", np.concatenate(positive + negative), STATISTICS)


@program("special_functions_f64")
def test_functions_of_doubles(run: Program) -> None:
    """The references are themselves off by up to one ulp, the gamma functions by more."""
    ordinary = [run.floats(-10, 10, 60, np.float64), run.floats(-700, 700, 20, np.float64)]
    large = [run.floats(1e9, 1e12, 20, np.float64), np.array([1e22, -3e100, 1.5e300, 2**53 + 1.0])]
    small = [np.array([1e-300, -1e-200, 1e-5, 5e-320, 1.0, -1.0, 709.7, -708.3, -740.0, 0.5])]
    sweep(run, "elementary_f64", np.concatenate(ordinary + large + small), ELEMENTARY, slack=1.5)
    positive = [
        run.floats(0.01, 10, 40, np.float64),
        run.floats(10, 150, 20, np.float64),
        np.array([0.5, 1.0, 2.0]),
    ]
    negative = [run.floats(-1.9, -1.1, 20, np.float64), run.floats(-0.9, -0.1, 20, np.float64)]
    sweep(run, "statistics_f64", np.concatenate(positive + negative), STATISTICS, slack=1.5)


@program("special_functions_f32")
def test_fast_functions_of_floats(run: Program) -> None:
    x, out = run.floats(0.1, 3.1, 100), np.zeros((8, 100), np.float32)
    run.launch("fast_f32", 2, 64, x, out, 100)
    wide = x.astype(np.float64)
    functions = (np.sin, np.cos, np.exp, np.log, lambda value: 2 / value, np.exp2, np.log2)
    for result, function in zip(out, functions, strict=False):
        close(result, function(wide), rtol=2e-6, atol=1e-6)
    equal(out[7], x.clip(0, 1))


def permuted(low: int, high: int, selector: int) -> int:
    """Four bytes chosen out of eight; the upper bit of a choice repeats the sign of the byte."""
    source = low | high << 32
    result = 0
    for byte_index in range(4):
        choice = selector >> 4 * byte_index & 15
        byte = source >> 8 * (choice & 7) & 255
        if choice & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * byte_index
    return result


def reversed_bits(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def bits_row(x: int, y: int) -> list[int]:
    wide = x << 32 | y
    both = y << 32 | x
    lowest = wide & ~0xFFFF
    return [
        x.bit_count(),
        wide.bit_count(),
        32 - x.bit_length(),
        64 - (wide >> (x & 63)).bit_length(),
        reversed_bits(x, 32),
        reversed_bits(wide, 64) >> 16,
        (x & -x).bit_length(),
        (lowest & -lowest).bit_length(),
        permuted(x, y, 0x5172),
        permuted(x, y, x & 0x7777),
        both << (y & 31) >> 32,
        both >> 11,
        both << min(x & 63, 32) >> 32,
        both >> min(y & 63, 32),
        (x << 32 | x) >> (32 - (y & 31)),
        (x & y) ^ (~x | y),
        signed(x) >> (y & 31),
        abs(signed(x) - signed(y)) + 5,
        abs(x - y) + 5,
        (signed(x) + signed(y)) >> 1,
        (signed(x) + signed(y) + 1) >> 1,
    ]


@program("integer_bits")
def test_integer_bits(run: Program) -> None:
    a, b, out = run.words(200), np.roll(run.words(200), 3), np.zeros((21, 200), np.uint32)
    run.launch("integer_bits", 4, 64, a, b, out, 200)
    compare_rows(out, [bits_row(int(x), int(y)) for x, y in zip(a, b, strict=True)])


def dot(a: int, b: int, a_bits: int, is_signed: bool, bytes_used: int, shift: int = 0) -> int:
    """Sum of products of the parts of a word with bytes of another."""
    total = 0
    for byte_index in range(bytes_used):
        left = a >> a_bits * byte_index & ((1 << a_bits) - 1)
        right = b >> (shift + 8 * byte_index) & 255
        total += signed(left, a_bits) * signed(right, 8) if is_signed else left * right
    return total


def products_row(x: int, y: int) -> list[int]:
    u, v = x & MASK, y & MASK
    return [
        x * y >> 32,
        u * v >> 32,
        signed(x, 24) * signed(y, 24),
        (u & 0xFFFFFF) * (v & 0xFFFFFF),
        dot(u, v, 8, True, 4) + 100,
        dot(u, v, 8, False, 4) + 100,
        dot(u, v, 16, True, 2) - 7,
        dot(u, v, 16, True, 2, 16) - 7,
        dot(u, v, 16, False, 2) + 9,
        dot(u, v, 16, False, 2, 16) + 9,
        quotient(x, y) if y else 0,
        x - quotient(x, y) * y if y else 0,
        u // (v | 1),
        quotient(x, 7) + x - quotient(x, 10) * 10,
        min(x, y) - max(x, y),
        abs(x),
    ]


def wide_row(x: int, y: int) -> list[int]:
    u, v = x & WIDE_MASK, (y | 1) & WIDE_MASK
    return [
        quotient(x, y) if y else 0,
        x - quotient(x, y) * y if y else 0,
        u // v,
        u % v,
        x * y >> 64,
        u * v >> 64,
        quotient(x, 1000003),
        x * y + (x >> 7) - (u >> 9),
        abs(x),
    ]


@program("integer_arithmetic")
def test_integer_arithmetic(run: Program) -> None:
    a, b, out = run.words(200, np.int32), np.roll(run.words(200, np.int32), 5), np.zeros((16, 200), np.int32)
    b[40:80] >>= 20
    run.launch("integer_products", 4, 64, a, b, out, 200)
    compare_rows(out, [products_row(int(x), int(y)) for x, y in zip(a, b, strict=True)])

    a, b, out = run.words(150, np.int64), np.roll(run.words(150, np.int64), 5), np.zeros((9, 150), np.int64)
    b[40:80] >>= 40
    run.launch("integer_wide", 3, 64, a, b, out, 150)
    compare_rows(out, [wide_row(int(x), int(y)) for x, y in zip(a, b, strict=True)], 64)

    a, b = run.words((70, 2), np.uint64), run.words((70, 2), np.uint64)[::-1].copy()
    out = np.zeros((3, 70, 2), np.uint64)
    run.launch("integer_128", 2, 64, a, b, out, 70)
    for column in range(70):
        x, y = (int(pair[0]) | int(pair[1]) << 64 for pair in (a[column], b[column]))
        results = [int(pair[0]) | int(pair[1]) << 64 for pair in out[:, column]]
        assert results == [value & ((1 << 128) - 1) for value in (x + y, x - y, x * y)]


def inline_row(x: int, y: int, z: int) -> list[int]:
    product = x * y
    field = x >> (y & 31) & ((1 << (z & 31)) - 1)
    start, length = y & 63, z & 63
    sign = signed(x) >> min(start + length - 1, 31) & 1 if length else 0
    signed_field = signed(x) >> start & ((1 << min(length, max(32 - start, 0))) - 1)
    if sign:
        signed_field |= ~0 << min(length, max(32 - start, 0))
    insert = ((1 << (x & 31)) - 1) << (z & 31) & MASK
    negative = y ^ MASK if y >> 31 else y
    return [
        (x & y) | (x & z) | (y & z),
        sum((0x1B >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i for i in range(32)),
        permuted(x, y, z & 0xFFFF),
        (x | y << 32) >> 8 * (z & 3),
        field,
        signed_field,
        (y & ~insert) | (x << (z & 31) & insert),
        x.bit_length() - 1,
        32 - negative.bit_length() if negative else -1,
        product + z,
        (product + z) >> 32,
        z + (x + y >> 32),
        (z if z and x < y else 5) + (9 if z and not x < y else 0),
        x if signed(z) >= 0 else y,
        (y << 32 | x) << (z & 31) >> 32,
        abs(signed(x) - signed(y)) + z,
        min(max(signed(x) + signed(y), -(1 << 31)), (1 << 31) - 1),
        (signed(x) * signed(y) >> 32) + z,
        x >> 16 | x << 16,
        MASK if signed(x) > signed(y) else 0,
        1 - (x & 1),
    ]


@program("inline_instructions")
def test_inline_instructions(run: Program) -> None:
    a, b, c = run.words(200), np.roll(run.words(200), 3), np.roll(run.words(200), 6)
    out = np.zeros((21, 200), np.uint32)
    run.launch("inline_instructions", 4, 64, a, b, c, out, 200)
    compare_rows(out, [inline_row(*map(int, values)) for values in zip(a, b, c, strict=True)])


@program("half_arithmetic")
def test_half_arithmetic(run: Program) -> None:
    count = 100
    a, b = run.floats(-8, 8, count, np.float16), run.floats(-8, 8, count, np.float16)
    out = np.zeros((11, count), np.float16)
    run.launch("half_arithmetic", 2, 64, a, b, out, count)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    expected = [
        wide + other,
        wide - other,
        wide * other,
        wide * other + 0.25,
        np.minimum(wide, other),
        -wide,
        np.sqrt(abs(wide)),
        wide * 3,
        np.trunc(wide) + 1,
        np.floor(other),
        1 / 3 * np.arange(count),
    ]
    for row, (result, reference) in enumerate(zip(out, expected, strict=True)):
        within_ulps(result, reference, 0.51, str(row))

    x, y = run.floats(-4, 4, (90, 2), np.float16), run.floats(-4, 4, (90, 2), np.float16)
    factors = np.array([1.5, -0.75], np.float16)
    reference = factors.astype(np.float64) * x + y
    run.launch("half2_axpy", 3, 32, factors.tobytes(), x, y, 90)
    equal(y, reference.astype(np.float16))


@program("half_arithmetic")
def test_pairs_of_halves(run: Program) -> None:
    x, y = run.floats(-4, 4, (90, 2), np.float16), run.floats(-4, 4, (90, 2), np.float16)
    out = np.zeros((6, 90, 2), np.float16)
    run.launch("half2_mixed", 3, 32, x, y, out, 90)
    wide = x.astype(np.float32)
    expected = [
        x + y,
        x * y,
        x[:, ::-1],
        np.stack([x[:, 0], y[:, 1]], axis=1),
        x > y,
        np.stack([wide[:, 0] * wide[:, 1], wide[:, 0] - wide[:, 1]], axis=1).astype(np.float16),
    ]
    for result, reference in zip(out, expected, strict=True):
        equal(result, reference)


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounded to eight bits, as float."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(fraction * 256) / 256, exponent).astype(np.float32)


@program("bfloat16_arithmetic")
def test_bfloat16_arithmetic(run: Program) -> None:
    a, b = (to_bfloat16(run.floats(-8, 8, (2, 80), np.float64)) for _ in range(2))
    bits = [(array.view(np.uint32) >> 16).astype(np.uint16) for array in (a, b)]
    x, y = a.astype(np.float64), b.astype(np.float64)

    def values(out: np.ndarray) -> np.ndarray:
        return (out.astype(np.uint32) << 16).view(np.float32)

    out = np.zeros((8, 80), np.uint16)
    run.launch("bfloat16_arithmetic", 2, 64, bits[0][0].copy(), bits[1][0].copy(), out, 80)
    p, q = x[0], y[0]
    expected = [p + q, p * q, p * q + p, np.maximum(p, q), np.minimum(p, q), -p, p * 3, np.maximum(p, q)]
    equal(values(out), [to_bfloat16(row) for row in expected])

    out = np.zeros((2, 80, 2), np.uint16)
    run.launch("bfloat16_pairs", 2, 64, bits[0].T.copy(), bits[1].T.copy(), out, 80)
    equal(values(out), np.stack([to_bfloat16(x * y + y).T, np.maximum(a, b).T]))
