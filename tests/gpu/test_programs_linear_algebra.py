# SPDX-License-Identifier: Apache-2.0
"""Programs of linear algebra, on ordinary cores and on tensor cores, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from programs_support import Program, close, equal, program

pytestmark = pytest.mark.core


def bfloat16(values: np.ndarray) -> np.ndarray:
    """The bits of numbers that bfloat16 can hold."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@program("gemm_tiled")
def test_gemm_tiled(run: Program) -> None:
    m, n, k = 37, 29, 50
    for kernel, dtype, tolerance in (("gemm_f32", np.float32, 1e-5), ("gemm_f64", np.float64, 1e-13)):
        a, b, c = run.floats(0, 1, (m, k), dtype), run.floats(0, 1, (k, n), dtype), np.zeros((m, n), dtype)
        run.launch(kernel, (2, 3), (16, 16), a, b, c, m, n, k)
        close(c, a.astype(np.float64) @ b, rtol=tolerance)


@program("gemm_register_blocked")
def test_gemm_register_blocked(run: Program) -> None:
    m, n, k = 96, 64, 24
    a, b, c = run.floats(0, 1, (m, k)), run.floats(0, 1, (k, n)), run.floats(0, 1, (m, n))
    expected = 1.5 * (a.astype(np.float64) @ b) - 0.5 * c
    run.launch("gemm_register_blocked", (2, 3), 64, 1.5, a, b, -0.5, c, n, k)
    close(c, expected)


@program("wmma_half")
def test_wmma_half(run: Program) -> None:
    m, n, k = 32, 48, 32
    a, b = run.integers(-4, 5, (m, k)) / 4, run.integers(-4, 5, (n, k)) / 2
    c = np.zeros((m, n), np.float32)
    run.launch("wmma_half_float", (2, 2), 64, a.astype(np.float16), b.astype(np.float16), c, m, n, k)
    equal(c, 2 * a @ b.T)

    a, b, c = (run.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 16), (16, 8), (32, 8)))
    d = np.zeros((8, 32), np.float16)
    run.launch("wmma_half_half", 1, 32, a.T.copy(), b, c, d)
    equal(d.T, a @ b + c)


@program("wmma_integer")
def test_wmma_integer(run: Program) -> None:
    k = 48
    a, b, c = run.words((16, k), np.int8), run.words((16, k), np.int8), np.zeros((16, 16), np.int32)
    run.launch("wmma_s8", 1, 32, a, b, c, k)
    equal(c, a.astype(np.int32) @ b.astype(np.int32).T)

    x, y = run.words((16, k), np.uint8), run.words((k, 16), np.uint8)
    run.launch("wmma_u8", 1, 32, x, y, c, k)
    equal(c, x.astype(np.int32) @ y.astype(np.int32))


@program("wmma_types")
def test_wmma_bfloat16_and_doubles(run: Program) -> None:
    a, b, c = run.integers(-9, 10, (16, 32)), run.integers(-9, 10, (32, 16)), np.zeros((16, 16), np.float32)
    run.launch("wmma_bf16", 1, 32, bfloat16(a / 8), bfloat16(b), c, 32)
    equal(c, (a / 8) @ b)

    x, y, z = (run.floats(-1, 1, (8, width), np.float64) for width in (12, 12, 8))
    expected = x @ y.T + z
    run.launch("wmma_f64", 1, 32, x, y, z, 12)
    close(z, expected, rtol=1e-12, atol=1e-14)


@program("wmma_types")
def test_wmma_tf32_has_ten_bits_after_the_point(run: Program) -> None:
    a, b, c = run.floats(0, 1, (16, 24)), run.floats(0, 1, (16, 24)), np.zeros((16, 16), np.float32)
    run.launch("wmma_tf32", 1, 32, a, b, c, 24)
    rounded = [
        ((part.view(np.uint32) + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32) for part in (a, b)
    ]
    close(c, rounded[0].astype(np.float64) @ rounded[1].T, rtol=2e-6)


@program("mma_pipeline")
def test_mma_pipeline(run: Program) -> None:
    k = 80
    a, b, c = run.integers(-8, 9, (48, k)), run.integers(-8, 9, (k, 8)), np.zeros((48, 8), np.float32)
    run.launch("mma_pipeline", 3, 32, a.astype(np.float16), b.astype(np.float16), c, k)
    equal(c, a @ b)

    x, y, z = run.words((16, 32), np.int8), run.words((8, 32), np.int8), np.zeros((16, 8), np.int32)
    run.launch("mma_s8", 1, 32, x, y, z)
    equal(z, x.astype(np.int32) @ y.astype(np.int32).T + 7)


@program("gemv")
def test_gemv(run: Program) -> None:
    matrix, vector, result = run.floats(0, 1, (10, 132)), run.floats(0, 1, 132), np.zeros(10, np.float32)
    run.launch("gemv", 4, 96, matrix, vector, result, 10, 132)
    close(result, matrix.astype(np.float64) @ vector)

    matrix, vector = run.floats(0, 1, (33, 100), np.float64), run.floats(0, 1, 33, np.float64)
    columns = np.zeros(100)
    run.launch("gemv_transposed", 2, 64, matrix, vector, columns, 33, 100)
    close(columns, vector @ matrix, rtol=1e-13)


@program("spmv")
def test_spmv(run: Program) -> None:
    rows = 100
    keep = run.random.random((rows, rows)) < run.random.random((rows, 1)) ** 3
    matrix, x = np.where(keep, run.floats(0.5, 1, (rows, rows)), 0), run.floats(0, 1, rows)
    expected = matrix.astype(np.float64) @ x

    columns_of = [np.flatnonzero(row) for row in keep]
    starts = np.concatenate([[0], np.cumsum([kept.size for kept in columns_of])]).astype(np.int32)
    columns = np.concatenate(columns_of).astype(np.int32)
    values = matrix[keep].astype(np.float64)
    for kernel, block, grid in (("spmv_scalar", 64, 2), ("spmv_vector", 96, 34)):
        y = np.zeros(rows)
        run.launch(kernel, grid, block, starts, columns, values, x.astype(np.float64), y, rows)
        close(y, expected, rtol=1e-12)

    width = max(kept.size for kept in columns_of)
    ell_columns, ell_values = np.full((width, rows), -1, np.int32), np.zeros((width, rows), np.float32)
    for row, kept in enumerate(columns_of):
        ell_columns[: kept.size, row] = kept
        ell_values[: kept.size, row] = matrix[row, kept]
    y = np.zeros(rows, np.float32)
    run.launch("spmv_ell", 2, 64, ell_columns, ell_values, x, y, rows, width)
    close(y, expected)


@program("factorise")
def test_lu(run: Program) -> None:
    n = 24
    matrices = run.floats(-1, 1, (3, n, n), np.float64)
    result, pivots = matrices.copy(), np.zeros((3, n), np.int32)
    run.launch("lu_factorise", 3, 32, result, pivots)
    for matrix, factors, swaps in zip(matrices, result, pivots, strict=True):
        permuted = matrix.copy()
        for row, other in enumerate(swaps):
            permuted[[row, other]] = permuted[[other, row]]
        lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
        assert np.abs(lower).max() <= 1
        close(lower @ upper, permuted, rtol=0, atol=1e-12)


@program("factorise")
def test_cholesky_and_determinants(run: Program) -> None:
    n = 24
    roots = run.floats(-1, 1, (2, n, n), np.float64)
    matrices = (roots @ roots.transpose(0, 2, 1) + n * np.eye(n)).astype(np.float32)
    expected = np.linalg.cholesky(matrices.astype(np.float64))
    run.launch("cholesky", 2, (n, n), matrices)
    close(matrices, expected, rtol=1e-4, atol=1e-5)

    small, determinants = run.floats(-2, 2, (100, 5, 5)), np.zeros(100, np.float32)
    small[7, 3] = small[7, 1]
    small[8] = 0
    run.launch("determinants", 2, 64, small, determinants, 100)
    close(determinants, np.linalg.det(small.astype(np.float64)), rtol=1e-3, atol=1e-4)


@program("linear_solvers")
def test_triangular_solve(run: Program) -> None:
    n = 50
    lower = np.tril(run.floats(-1, 1, (n, n), np.float64)) + n * np.eye(n)
    right = run.floats(-1, 1, (3, n), np.float64)
    expected = np.linalg.solve(lower, right.T).T
    run.launch("triangular_solve", 3, 32, lower, right, n, shared=n * 8)
    close(right, expected, rtol=1e-11)


@program("linear_solvers")
def test_jacobi(run: Program) -> None:
    n = 70
    matrix = (run.floats(-1, 1, (n, n)) + 2 * n * np.eye(n)).astype(np.float32)
    right = run.floats(-9, 9, n)
    x, next_x = run.device.zeros(n, np.float32), run.device.zeros(n, np.float32)
    changes = []
    for _ in range(12):
        change = np.zeros(1, np.float32)
        run.launch("jacobi_step", 3, 32, matrix, right, x, next_x, change, n)
        close(change, np.abs(next_x.numpy() - x.numpy()).max(), rtol=1e-6)
        changes.append(change[0])
        x, next_x = next_x, x
    assert changes[-1] < 1e-4 * changes[0]
    close(x.numpy(), np.linalg.solve(matrix.astype(np.float64), right), rtol=1e-3, atol=1e-5)
