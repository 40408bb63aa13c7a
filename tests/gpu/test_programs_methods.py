# SPDX-License-Identifier: Apache-2.0
"""Programs that are whole methods: graphs, grids, transforms, simulations, searches and codes, against references."""

from __future__ import annotations

import hashlib
import math
import zlib

import numpy as np
import pytest
from programs_support import Program, blocks_of, close, equal, program

pytestmark = pytest.mark.core


def random_edges(run: Program, nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    return run.integers(0, nodes, edges), run.integers(0, nodes, edges)


def rows_of_edges(key: np.ndarray, other: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The edges sorted by one of their ends: where each node's edges begin, and their other ends."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=nodes))]).astype(np.int32)
    return starts, other[np.argsort(key, kind="stable")].astype(np.int32)


@program("bfs")
def test_bfs(run: Program) -> None:
    nodes = 200
    source, target = random_edges(run, nodes, 420)
    source[:8], target[:8] = range(8), range(1, 9)
    starts, neighbours = rows_of_edges(source, target, nodes)
    expected, frontier, level = np.full(nodes, -1), [0], 0
    expected[0] = 0
    while frontier:
        level += 1
        reached = {int(other) for node in frontier for other in neighbours[starts[node] : starts[node + 1]]}
        frontier = [node for node in sorted(reached) if expected[node] < 0]
        expected[frontier] = level
    assert level > 4

    distances = run.device.array(np.where(np.arange(nodes) == 0, 0, -1).astype(np.int32))
    now, following = run.device.zeros(nodes, np.int32), run.device.zeros(nodes, np.int32)
    count, level = 1, 0
    while count:
        level += 1
        found = np.zeros(1, np.int32)
        grid = blocks_of(count, 32)
        run.launch("bfs_level", grid, 32, starts, neighbours, distances, now, count, following, found, level)
        count, now, following = int(found[0]), following, now
    equal(distances.numpy(), expected)


@program("graph_steps")
def test_pagerank(run: Program) -> None:
    nodes, edges = 120, 500
    source, target = random_edges(run, nodes, edges)
    degrees = np.bincount(source, minlength=nodes).astype(np.int32)
    ranks = run.floats(0, 1, nodes)
    expected = np.full(nodes, 0.15 / nodes)
    np.add.at(expected, target, 0.85 * ranks[source].astype(np.float64) / degrees[source])

    starts, sources = rows_of_edges(target, source, nodes)
    pulled = np.zeros(nodes, np.float32)
    run.launch("pagerank_pull", 2, 64, starts, sources, degrees, ranks, pulled, 0.85, nodes)
    close(pulled, expected)
    pushed = np.full(nodes, 0.15 / nodes, np.float32)
    run.launch("pagerank_push", 8, 64, source, target, degrees, ranks, pushed, 0.85, edges)
    close(pushed, expected)


@program("graph_steps")
def test_bellman_ford(run: Program) -> None:
    nodes, edges = 100, 260
    source, target = random_edges(run, nodes, edges)
    weights = run.integers(1, 50, edges, np.uint32)
    expected = np.full(nodes, 0xFFFFFFFF, np.int64)
    expected[0] = 0
    for _ in range(nodes):
        reachable = expected[source] < 0xFFFFFFFF
        np.minimum.at(expected, target[reachable], expected[source[reachable]] + weights[reachable])

    distances = np.full(nodes, 0xFFFFFFFF, np.uint32)
    distances[0] = 0
    changed = np.ones(1, np.int32)
    while changed[0]:
        changed[0] = 0
        run.launch("bellman_ford", 5, 64, source, target, weights, distances, changed, edges)
    equal(distances, expected)


@program("graph_steps")
def test_connected_components(run: Program) -> None:
    nodes, edges = 150, 110
    source, target = random_edges(run, nodes, edges)
    expected = np.arange(nodes)
    for _ in range(nodes):
        np.minimum.at(expected, source, expected[target])
        np.minimum.at(expected, target, expected[source])
    assert len(set(expected)) > 10

    labels, changed = np.arange(nodes, dtype=np.int32), np.ones(1, np.int32)
    while changed[0]:
        changed[0] = 0
        run.launch("hook", 2, 64, source, target, labels, changed, edges)
        run.launch("shorten", 3, 64, labels, nodes)
    equal(labels, expected)


@program("floyd_warshall")
def test_floyd_warshall(run: Program) -> None:
    n = 20
    edges = np.where(run.random.random((2, n, n)) < 0.15, run.integers(1, 99, (2, n, n)), 1_000_000)
    distances = edges.astype(np.int32)
    expected = distances.copy()
    for via in range(n):
        expected = np.minimum(expected, expected[:, :, via, None] + expected[:, None, via, :])
    run.launch("floyd_warshall", 2, 128, distances, n, shared=n * n * 4)
    equal(distances, expected)


@program("stencils")
def test_stencils(run: Program) -> None:
    line, result = run.floats(-1, 1, 300), np.zeros(300, np.float32)
    run.launch("stencil_1d", 3, 128, line, result, 300)
    close(result, np.convolve(line.astype(np.float64), np.ones(7) / 7, "same"), rtol=1e-5, atol=1e-6)

    plane, result = run.floats(-1, 1, (21, 37), np.float64), np.zeros((21, 37))
    expected = plane.copy()
    around = plane[1:-1, :-2] + plane[1:-1, 2:] + plane[:-2, 1:-1] + plane[2:, 1:-1]
    expected[1:-1, 1:-1] = 0.5 * plane[1:-1, 1:-1] + 0.125 * around
    run.launch("stencil_2d", (3, 3), (16, 8), plane, result, 37, 21)
    close(result, expected, rtol=1e-13, atol=1e-14)

    space, result = run.words((7, 10, 19), np.int32), np.zeros((7, 10, 19), np.int32)
    expected = space.copy()
    inner = space[1:-1, 1:-1, 1:-1]
    expected[1:-1, 1:-1, 1:-1] = (
        6 * inner
        - space[:-2, 1:-1, 1:-1]
        - space[2:, 1:-1, 1:-1]
        - space[1:-1, :-2, 1:-1]
        - space[1:-1, 2:, 1:-1]
        - space[1:-1, 1:-1, :-2]
        - space[1:-1, 1:-1, 2:]
    )
    run.launch("stencil_3d", (3, 3, 2), (8, 4, 4), space, result, 19, 10, 7)
    equal(result, expected)


@program("convolution")
def test_convolution(run: Program) -> None:
    weights, image = run.floats(0, 1, (5, 5)), run.floats(0, 1, (20, 50))
    run.module.variable("filter", np.float32, (5, 5)).set(weights)
    result = np.zeros_like(image)
    run.launch("convolution", (4, 3), (16, 8), image, result, 50, 20)
    padded = np.pad(image.astype(np.float64), 2, mode="edge")
    close(result, sum(weights[y, x] * padded[y : y + 20, x : x + 50] for y in range(5) for x in range(5)))

    image = run.floats(0, 1, (5, 200))
    result = np.zeros_like(image)
    run.launch("convolution_rows", (2, 5), 128, image, result, 200)
    padded = np.pad(image.astype(np.float64), ((0, 0), (2, 2)))
    close(result, sum(weights[0, x] * padded[:, x : x + 200] for x in range(5)))


@program("life")
def test_life(run: Program) -> None:
    cells, following = run.integers(0, 2, (20, 40), np.uint8), np.zeros((20, 40), np.uint8)
    run.launch("life", (3, 3), (16, 8), cells, following, 40, 20)
    steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    neighbours = sum(np.roll(cells, step, (0, 1)) for step in steps)
    equal(following, (neighbours == 3) | ((cells == 1) & (neighbours == 2)))


@program("fft")
def test_fft(run: Program) -> None:
    bits, count = 7, 128
    for kernel, real, tolerance in (("fft_f32", np.float32, 1e-5), ("fft_f64", np.float64, 1e-13)):
        signal = run.floats(-1, 1, (3, count, 2), np.float64).astype(real)
        values = signal.astype(np.float64).view(np.complex128)[..., 0]
        size = count * signal[0, 0].nbytes
        result = signal.copy()
        run.launch(kernel, 3, 48, result, bits, -1.0, shared=size)
        close(
            result.astype(np.float64).view(np.complex128)[..., 0],
            np.fft.fft(values),
            rtol=0,
            atol=tolerance * count,
        )
        run.launch(kernel, 3, 48, result, bits, 1.0, shared=size)
        close(result / count, signal, rtol=0, atol=tolerance)


@program("mandelbrot")
def test_mandelbrot(run: Program) -> None:
    width, height, limit = 50, 30, 60
    steps = np.zeros((height, width), np.uint16)
    run.launch("mandelbrot", (4, 8), (16, 4), steps, width, height, limit)
    c_re = (-2.0 + 3.0 * np.arange(width) / width)[None, :]
    c_im = (-1.25 + 2.5 * np.arange(height) / height)[:, None]
    re, im, expected = np.zeros((height, width)), np.zeros((height, width)), np.zeros((height, width), int)
    for _ in range(limit):
        inside = re * re + im * im <= 4
        expected += inside
        re, im = np.where(inside, re * re - im * im + c_re, re), np.where(inside, 2.0 * (re * im) + c_im, im)
    equal(steps, expected)


@program("nbody")
def test_nbody(run: Program) -> None:
    bodies, result = run.floats(-1, 1, (100, 4)), np.zeros((100, 3), np.float32)
    run.launch("nbody_forces", 4, 32, bodies, result, 100, 0.01, shared=32 * 16)
    at, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    apart = at[None] - at[:, None]
    cubed = ((apart**2).sum(axis=2) + np.float64(np.float32(0.01))) ** 1.5
    close(result, (apart * (mass / cubed)[..., None]).sum(axis=1), rtol=1e-4, atol=1e-3)


@program("monte_carlo")
def test_monte_carlo(run: Program) -> None:
    threads, points = 3 * 64, 30
    inside = np.zeros(1, np.uint64)
    run.launch("pi_congruential", 3, 64, 12345, points, inside)
    state = np.uint64(12345) + np.arange(threads, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hits = 0
    for _ in range(points):
        at = []
        for _ in range(2):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            at.append(state >> np.uint64(33))
        hits += int((at[0] * at[0] + at[1] * at[1] < np.uint64(1 << 62)).sum())
    assert inside[0] == hits
    assert abs(4 * hits / (threads * points) - math.pi) < 0.1

    blocks = np.zeros(3, np.uint32)
    run.launch("pi_xorshift", 3, 64, 99, points, blocks)
    word = np.uint32(99) ^ (np.arange(threads, dtype=np.uint32) + np.uint32(1)) * np.uint32(2654435761)
    expected = np.zeros(threads, int)
    for _ in range(points):
        at = []
        for _ in range(2):
            for shift in (13, -17, 5):
                word = word ^ (word << np.uint32(shift) if shift > 0 else word >> np.uint32(-shift))
            at.append((word >> np.uint32(8)).astype(np.float32) * np.float32(1 / 16777216))
        expected += at[0] * at[0] + at[1] * at[1] < 1
    equal(blocks, expected.reshape(3, 64).sum(axis=1))


@program("black_scholes")
def test_black_scholes(run: Program) -> None:
    count, rate, volatility = 200, 0.03, 0.25
    spot, strike, years = (run.floats(low, high, count) for low, high in ((50, 150), (50, 150), (0.2, 3)))
    normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    s, k, t = (array.astype(np.float64) for array in (spot, strike, years))
    d1 = (np.log(s / k) + (rate + volatility**2 / 2) * t) / (volatility * np.sqrt(t))
    d2 = d1 - volatility * np.sqrt(t)
    discounted = k * np.exp(-rate * t)
    expected_call = s * normal(d1) - discounted * normal(d2)
    expected_put = discounted * normal(-d2) - s * normal(-d1)
    for kernel, dtype, tolerance in (
        ("black_scholes_f32", np.float32, 1e-4),
        ("black_scholes_f64", np.float64, 1e-12),
    ):
        call, put = np.zeros(count, dtype), np.zeros(count, dtype)
        inputs = (array.astype(dtype) for array in (spot, strike, years))
        run.launch(kernel, 4, 64, *inputs, rate, volatility, call, put, count)
        close(call, expected_call, rtol=tolerance, atol=tolerance)
        close(put, expected_put, rtol=tolerance, atol=tolerance)


@program("kmeans")
def test_kmeans(run: Program) -> None:
    count, clusters = 200, 5
    points, centres = run.floats(-1, 1, (4, count)), run.floats(-1, 1, (clusters, 4))
    nearest, sizes = np.zeros(count, np.int32), np.zeros(clusters, np.int32)
    sums = np.zeros((clusters, 4), np.float32)
    run.launch(
        "kmeans_assign", 4, 64, points, centres, nearest, sums, sizes, count, clusters, shared=clusters * 16
    )
    distances = ((points.T[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2)
    expected = distances.argmin(axis=1)
    equal(nearest, expected)
    equal(sizes, np.bincount(expected, minlength=clusters))
    close(
        sums,
        [points[:, expected == cluster].sum(axis=1) for cluster in range(clusters)],
        rtol=1e-4,
        atol=1e-4,
    )


@program("alignment")
def test_smith_waterman(run: Program) -> None:
    a, others = run.integers(0, 4, 90, np.int8), run.integers(0, 4, (3, 60), np.int8)
    best = np.zeros(3, np.int32)
    run.launch("smith_waterman", 3, 128, a, 90, others, 60, best)
    for b, result in zip(others, best, strict=True):
        table = np.zeros((91, 61), int)
        for row in range(1, 91):
            for column in range(1, 61):
                match = 3 if a[row - 1] == b[column - 1] else -2
                gap = max(table[row - 1, column], table[row, column - 1]) - 2
                table[row, column] = max(0, table[row - 1, column - 1] + match, gap)
        assert result == table.max()


@program("alignment")
def test_longest_common_subsequence(run: Program) -> None:
    a, b = run.integers(0, 4, 30, np.int8), run.integers(0, 4, 40, np.int8)
    table = np.zeros((31, 41), np.int32)
    run.launch("longest_common", 1, 64, a, 30, b, 40, table)
    expected = np.zeros((31, 41), int)
    for row in range(1, 31):
        for column in range(1, 41):
            if a[row - 1] == b[column - 1]:
                expected[row, column] = expected[row - 1, column - 1] + 1
            else:
                expected[row, column] = max(expected[row - 1, column], expected[row, column - 1])
    equal(table, expected)


@program("knapsack")
def test_knapsack(run: Program) -> None:
    items, limit = 12, 100
    weights, values = run.integers(5, 40, (3, items)), run.integers(1, 100, (3, items))
    best = np.zeros((3, limit + 1), np.int32)
    run.launch("knapsack", 3, 64, weights, values, items, limit, best, shared=2 * (limit + 1) * 4)
    choices = np.array([[mask >> item & 1 for item in range(items)] for mask in range(1 << items)])
    for own_weights, own_values, result in zip(weights, values, best, strict=True):
        total, worth = choices @ own_weights, choices @ own_values
        equal(result, [worth[total <= weight].max() for weight in range(limit + 1)])


def messages_of(run: Program, count: int, longest: int) -> list[bytes]:
    lengths = [0, 1, longest, *run.integers(0, longest, count - 3)]
    return [run.random.bytes(int(length)) for length in lengths]


@program("crc32")
def test_crc32(run: Program) -> None:
    messages = messages_of(run, 70, 40)
    padded = np.frombuffer(b"".join(message.ljust(40, b"?") for message in messages), np.uint8).copy()
    lengths = np.array([len(message) for message in messages], np.int32)
    for kernel in ("crc32_bits", "crc32_table"):
        sums = np.zeros(70, np.uint32)
        run.launch(kernel, 2, 64, padded, lengths, 40, sums, 70)
        equal(sums, [zlib.crc32(message) for message in messages])


@program("sha256")
def test_sha256(run: Program) -> None:
    messages = messages_of(run, 40, 130)
    padded = []
    for message in messages:
        zeros = -(len(message) + 9) % 64
        padded.append(message + b"\x80" + bytes(zeros) + (8 * len(message)).to_bytes(8, "big"))
    blocks = np.array([len(message) // 64 for message in padded], np.int32)
    stride = int(blocks.max()) * 16
    words = np.frombuffer(b"".join(message.ljust(stride * 4, b"\0") for message in padded), np.uint32).copy()
    digests = np.zeros((40, 8), np.uint32)
    run.launch("sha256", 2, 32, words, blocks, stride, digests, 40)
    equal(digests.byteswap().view(np.uint8), [list(hashlib.sha256(message).digest()) for message in messages])


@program("backtracking")
def test_queens(run: Program) -> None:
    for size, expected in ((5, 10), (6, 4), (7, 40)):
        solutions = np.zeros(1, np.int32)
        run.launch("queens", 2, 32, size, solutions)
        assert solutions[0] == expected


@program("backtracking")
def test_small_sudoku(run: Program) -> None:
    whole = np.array([[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]], np.int8)
    squares = np.array([np.append(0, run.random.permutation(4) + 1)[whole] for _ in range(40)], np.int8)
    squares[run.random.random(squares.shape) < 0.6] = 0
    squares[5] = 0
    squares[6, 0] = (1, 2, 0, 0)
    squares[6, 1:] = 0
    squares[6, 1, 2:] = (3, 4)
    given = squares.copy()
    solved = np.zeros(40, np.int32)
    run.launch("small_sudoku", 2, 32, squares, solved, 40)
    equal(solved, np.arange(40) != 6)
    for i, square in enumerate(squares):
        equal(square[given[i] > 0], given[i][given[i] > 0])
        if i != 6:
            boxes = square.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(4, 4)
            for lines in (square, square.T, boxes):
                equal(np.sort(lines, axis=1), [[1, 2, 3, 4]] * 4)
