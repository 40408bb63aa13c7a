# SPDX-License-Identifier: Apache-2.0
"""Programs that move, add up, count and sort data, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from programs_support import Program, blocks_of, close, equal, program

pytestmark = pytest.mark.core


@program("vector_add")
def test_vector_add(run: Program) -> None:
    a, b = run.floats(-9, 9, 1000), run.floats(-9, 9, 1000)
    result = np.full(1024, -1, np.float32)
    run.launch("vector_add", 8, 128, a, b, result, 1000)
    equal(result[:1000], a + b)
    equal(result[1000:], -1)


@program("saxpy")
def test_saxpy(run: Program) -> None:
    for kernel, dtype, tolerance in (("saxpy", np.float32, 1e-6), ("daxpy", np.float64, 1e-15)):
        x, y = run.floats(0, 9, 1111, dtype), run.floats(0, 9, 1111, dtype)
        expected = 2.5 * x.astype(np.float64) + y
        run.launch(kernel, 3, 96, 1111, 2.5, x, y)
        close(y, expected, rtol=tolerance)


@program("strided_copy")
def test_strided_copy(run: Program) -> None:
    numbers, to = run.words(3 * 300, np.int32), np.zeros(2 * 300, np.int32)
    run.launch("strided_copy", 5, 64, numbers, to, 300, 3, 2)
    equal(to[::2], numbers[::3])
    equal(to[1::2], 0)

    vectors, to_vectors = run.floats(-1, 1, (100, 4)), np.zeros((100, 4), np.float32)
    run.launch("reverse_float4", 4, 32, vectors, to_vectors, 100)
    equal(to_vectors, vectors[::-1, ::-1])

    pairs, to_pairs = run.floats(-1, 1, (50, 2), np.float64), np.zeros((50, 2))
    small, to_small = run.integers(-999, 999, (50, 4), np.int16), np.zeros((50, 4), np.int16)
    run.launch("swap_pairs", 1, 64, pairs, to_pairs, small, to_small, 50)
    equal(to_pairs, pairs[:, ::-1])
    equal(to_small, small[:, [1, 0, 3, 2]] * np.array([1, 1, -1, 1], np.int16))


@program("tree_reduction")
def test_tree_reduction(run: Program) -> None:
    values = run.integers(-1000, 1000, 3000)
    sums, total = np.zeros(6, np.int32), np.zeros(1, np.uint64)
    run.launch("tree_sum", 6, 256, values, sums, total, 3000)
    padded = np.concatenate([values, np.zeros(72, np.int32)])
    equal(sums, padded.reshape(6, 512).sum(axis=1))
    assert total.view(np.int64)[0] == values.sum()

    reals, maxima = run.floats(-5, 5, 1500, np.float64), np.zeros(4)
    run.launch("tree_max", 4, 128, reals, maxima, 1500, shared=128 * 8)
    padded = np.concatenate([reals, np.full(36, -1e300)]).reshape(-1, 4, 128)
    equal(maxima, padded.max(axis=(0, 2)))


@program("shuffle_reduction")
def test_shuffle_reduction(run: Program) -> None:
    grid, block, count = 3, 160, 2000
    for kernel, dtype, tolerance in (
        ("sum_floats", np.float32, 1e-5),
        ("sum_doubles", np.float64, 1e-13),
        ("sum_longs", np.int64, 0),
    ):
        values = run.floats(1, 1000, count, np.float64).astype(dtype)
        if dtype == np.int64:
            values = values * 123_456_789_012
        sums = np.zeros(grid, dtype)
        run.launch(kernel, grid, block, values, sums, count)
        rows = blocks_of(count, grid * block)
        padded = np.concatenate([values, np.zeros(rows * grid * block - count, dtype)])
        close(sums, padded.reshape(rows, grid, block).sum(axis=(0, 2)), rtol=tolerance)

    numbers, minima = run.words(128, np.int32), np.zeros(128, np.int32)
    run.launch("group_minimum", 2, 64, numbers, minima)
    equal(minima, numbers.reshape(-1, 8).min(axis=1).repeat(8))


@program("block_scan")
def test_block_scan(run: Program) -> None:
    values, inclusive = run.integers(-99, 99, (3, 200)), np.zeros((3, 200), np.int32)
    run.launch("hillis_steele", 3, 200, values, inclusive)
    equal(inclusive, values.cumsum(axis=1))

    words, exclusive = run.words((3, 128)), np.zeros((3, 128), np.uint32)
    run.launch("blelloch", 3, 64, words, exclusive, shared=128 * 4)
    equal(exclusive, words.cumsum(axis=1, dtype=np.uint32) - words)


@program("lookback_scan")
def test_lookback_scan(run: Program) -> None:
    values, inclusive = run.words(2500), np.zeros(2500, np.uint32)
    states, part = np.zeros(10, np.uint64), np.zeros(1, np.uint32)
    run.launch("lookback_scan", 10, 256, values, inclusive, states, part, 2500)
    equal(inclusive, values.cumsum(dtype=np.uint32))
    equal(states >> np.uint64(32), 2)
    assert part[0] == 10


@program("bitonic_sort")
def test_bitonic_sort(run: Program) -> None:
    keys = run.words((3, 256))
    expected = np.sort(keys, axis=1)
    run.launch("bitonic_sort", 3, 256, keys, shared=1024)
    equal(keys, expected)

    reals = run.floats(-9, 9, (4, 32))
    expected = np.sort(reals, axis=1)
    run.launch("bitonic_warp", 2, 64, reals)
    equal(reals, expected)


@program("radix_sort")
def test_radix_sort_is_stable(run: Program) -> None:
    keys = run.integers(0, 60, (3, 128), np.uint32) * 61
    values = np.arange(3 * 128, dtype=np.uint32).reshape(3, 128)
    order = np.argsort(keys, axis=1, kind="stable")
    expected = [np.take_along_axis(array, order, axis=1) for array in (keys, values)]
    run.launch("radix_sort", 3, 128, keys, values, 12)
    equal(keys, expected[0])
    equal(values, expected[1])


@program("merge_path")
def test_merge_path(run: Program) -> None:
    a, b = np.sort(run.integers(0, 400, 700)), np.sort(run.integers(0, 400, 300))
    merged = np.zeros(1000, np.int32)
    run.launch("merge_path", 3, 64, a, 700, b, 300, merged, 7)
    equal(merged, np.sort(np.concatenate([a, b])))


@program("odd_even_sort")
def test_odd_even_sort(run: Program) -> None:
    keys = run.integers(-500, 500, (2, 150), np.int16)
    expected_rounds = []
    for row in keys:
        row = row.copy()
        rounds, exchanged = 0, True
        while exchanged:
            before = row.copy()
            for parity in (0, 1):
                pairs = row[parity : parity + (150 - parity) // 2 * 2].reshape(-1, 2)
                pairs.sort(axis=1)
            rounds += 1
            exchanged = not np.array_equal(before, row)
        expected_rounds.append(rounds)
    expected, rounds = np.sort(keys, axis=1), np.zeros(2, np.int32)
    run.launch("odd_even_sort", 2, 80, keys, 150, rounds)
    equal(keys, expected)
    equal(rounds, expected_rounds)


@program("histogram")
def test_histogram(run: Program) -> None:
    data = run.random.normal(128, 30, 3000).clip(0, 255).astype(np.uint8)
    expected = np.bincount(data, minlength=256)
    for kernel in ("histogram_global", "histogram_shared"):
        bins = np.zeros(256, np.uint32)
        run.launch(kernel, 3, 96, data, bins, 3000)
        equal(bins, expected)
    bins = np.zeros(16, np.uint32)
    run.launch("histogram_private", 3, 64, data, bins, 3000)
    equal(bins, expected.reshape(16, 16).sum(axis=1))


@program("transpose")
def test_transpose(run: Program) -> None:
    matrix, result = run.floats(-1, 1, (45, 70)), np.zeros((70, 45), np.float32)
    run.launch("transpose", (3, 2), (32, 8), matrix, result, 70, 45)
    equal(result, matrix.T)


@program("byte_processing")
def test_byte_processing(run: Program) -> None:
    text = np.frombuffer(
        b"The quick brown fox jumps over the lazy dog; the other fox sleeps. " * 3, np.uint8
    ).copy()
    result, letters = np.zeros_like(text), np.zeros(1, np.int32)
    run.launch("upper_case", blocks_of(text.size, 64), 64, text, result, letters, text.size)
    assert result.tobytes() == text.tobytes().upper()
    assert letters[0] == sum(chr(letter).islower() for letter in text)

    pattern, found = np.frombuffer(b"fox", np.uint8).copy(), np.zeros_like(text)
    run.launch("find_pattern", blocks_of(text.size, 64), 64, text, text.size, pattern, 3, found)
    equal(found, [text[i : i + 3].tobytes() == b"fox" for i in range(text.size)])

    pixels, grey = run.words((100, 4), np.uint8), np.zeros(100, np.uint8)
    run.launch("grey", 2, 64, pixels, grey, 100)
    equal(grey, (pixels[:, :3].astype(np.int32) @ [77, 150, 29] + 128) >> 8)

    a, b = run.words(90, np.int8), run.words(90, np.int16)
    wide, narrow = np.zeros(90, np.int64), np.zeros(90, np.int16)
    run.launch("widen", 2, 64, a, b, wide, narrow, 90)
    x, y = a.astype(np.int64), b.astype(np.int64)
    equal(wide, x * y - (x & 255) + (y & 65535))
    equal(narrow, (x * 300 + y).astype(np.int16))


@program("byte_processing")
def test_operations_on_the_bytes_of_a_word(run: Program) -> None:
    count = 100
    a, b, out = run.words(count), run.words(count)[::-1].copy(), np.zeros((9, count), np.uint32)
    run.launch("four_bytes", 2, 64, a, b, out, count)
    x, y = (word.view(np.uint8).reshape(count, 4).astype(np.int32) for word in (a, b))
    xs, ys = (word.view(np.int8).reshape(count, 4).astype(np.int32) for word in (a, b))
    bytes_of = out.view(np.uint8).reshape(9, count, 4)
    equal(bytes_of[0], (x + y).clip(0, 255))
    equal(bytes_of[1].view(np.int8), (xs - ys).clip(-128, 127))
    equal(bytes_of[2], abs(x - y))
    equal(bytes_of[3], (x > y) * 255)
    equal(bytes_of[4], (x + y + 1) // 2)
    equal(bytes_of[5], np.minimum(x, y))
    equal(out[6], abs(x - y).sum(axis=1))
    halves, others = a.view(np.int16), b.view(np.int16)
    equal(out[7].view(np.int16), halves + others)
    equal(out[8].view(np.int16), np.maximum(halves, others))
