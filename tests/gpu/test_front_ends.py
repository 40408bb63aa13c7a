# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled by Triton, Numba and Clang run and give what numpy gives; their fixtures are made by `make.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from manyscale import InputError, gpu

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures" / "frontends"


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def fixtures(prefix: str) -> Any:
    paths = sorted(FIXTURES.glob(f"{prefix}-sm_*.ptx"))
    assert paths, f"there is no fixture of {prefix}"
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


class Triton:
    """A kernel of Triton, compiled for four warps, with the shared memory that it asks for."""

    def __init__(self, path: Path) -> None:
        self.device = gpu.Device()
        module = self.device.load(path)
        self.kernel = module[module.kernels[0]]
        self.shared = int(re.search(r"shared memory: (\d+) bytes", path.read_text())[1])

    def __call__(self, grid: Any, *arguments: Any) -> None:
        scratch = (0, 0)  # pointers to memory that these kernels do not ask for
        self.kernel[grid, 128, self.shared](*arguments, *scratch)


@fixtures("triton-add")
def test_triton_adds(path: Path) -> None:
    run = Triton(path)
    x, y = rng().random((2, 1000), np.float32)
    out = run.device.zeros(1024)
    run(4, run.device.array(x), run.device.array(y), out, 1000)
    np.testing.assert_array_equal(out.numpy(), np.append(x + y, np.zeros(24, np.float32)))


@fixtures("triton-softmax")
def test_triton_softmax(path: Path) -> None:
    run = Triton(path)
    x = rng().normal(0, 5, (5, 200)).astype(np.float32)
    out = run.device.zeros(x.shape)
    run(5, run.device.array(x), out, 200)
    np.testing.assert_allclose(out.numpy(), softmax(x), rtol=1e-5, atol=1e-7)


@fixtures("triton-layer_norm")
def test_triton_layer_norm(path: Path) -> None:
    run = Triton(path)
    x = rng().normal(3, 2, (6, 250)).astype(np.float32)
    weight, bias = rng().normal(1, 0.3, (2, 250)).astype(np.float32)
    out = run.device.zeros(x.shape, np.float16)
    run(6, *(run.device.array(values) for values in (x, weight, bias)), out, 250, 1e-5)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out.numpy(), normal * weight + bias, rtol=2e-3, atol=1e-3)


@fixtures("triton-histogram")
def test_triton_atomics(path: Path) -> None:
    run = Triton(path)
    x = rng().integers(0, 10_000, 1000, np.int32)
    counts, largest = run.device.zeros(13, np.int32), run.device.zeros(1, np.int32)
    total = run.device.zeros(1, np.float32)
    run(4, run.device.array(x), counts, largest, total, 1000, 13)
    np.testing.assert_array_equal(counts.numpy(), np.bincount(x % 13))
    assert largest.numpy()[0] == x.max()
    assert total.numpy()[0] == x.sum()  # whole numbers below 2^24: exact in any order


@pytest.mark.parametrize("shape", [(32, 32, 32), (50, 70, 90)], ids=["one-tile", "ragged"])
@pytest.mark.parametrize(
    ("name", "dtype", "relative"),
    [("half", np.float16, 1e-6), ("tf32", np.float32, 1e-3), ("ieee", np.float32, 1e-6)],
)
@pytest.mark.parametrize("target", [75, 80, 90])
def test_triton_multiplies_matrices(
    target: int, name: str, dtype: Any, relative: float, shape: tuple[int, int, int]
) -> None:
    run = Triton(FIXTURES / f"triton-matmul_{name}-sm_{target}.ptx")
    m, n, k = shape
    a, b = rng().random((m, k)).astype(dtype), rng().random((k, n)).astype(dtype)
    c = run.device.zeros((m, n))
    run((-(-m // 32), -(-n // 32)), run.device.array(a), run.device.array(b), c, m, n, k)
    np.testing.assert_allclose(c.numpy(), a.astype(np.float64) @ b.astype(np.float64), rtol=relative)


def test_what_hopper_alone_can_do_is_found_before_the_run() -> None:
    """Tiles of 64 x 64 make Triton use wgmma, which is not supported."""
    path = FIXTURES / "triton-matmul_large-sm_90.ptx"
    (kernel,) = gpu.check(path)
    assert kernel.problems
    assert all(problem.instruction.startswith("wgmma.") for problem in kernel.problems)
    run = Triton(path)
    with pytest.raises(
        InputError, match=r"kernel matmul cannot be executed:\n  triton-matmul_large-sm_90.ptx:\d+:\d+: wgmma"
    ):
        run(1, 0, 0, 0, 64, 64, 64)


class Numba:
    """A kernel of Numba, to which an array is passed as several values."""

    def __init__(self, path: Path) -> None:
        self.device = gpu.Device()
        module = self.device.load(path)
        self.kernel = module[module.kernels[0]]

    def __call__(self, grid: Any, block: Any, *arrays: gpu.DeviceArray) -> None:
        values = [value for array in arrays for value in self.passed(array)]
        self.kernel[grid, block](*values)

    @staticmethod
    def passed(array: gpu.DeviceArray) -> tuple[Any, ...]:
        strides = np.empty(array.shape, array.dtype).strides
        return (0, 0, array.size, array.dtype.itemsize, array, *array.shape, *strides)


@fixtures("numba-add")
def test_numba_adds(path: Path) -> None:
    run = Numba(path)
    x, y = rng().random((2, 1000), np.float32)
    out = run.device.zeros(1000)
    run(8, 128, run.device.array(x), run.device.array(y), out)
    np.testing.assert_array_equal(out.numpy(), x + y)


@fixtures("numba-softmax")
def test_numba_softmax(path: Path) -> None:
    run = Numba(path)
    x = rng().normal(0, 5, (3, 300)).astype(np.float32)
    out = run.device.zeros(x.shape)
    run(3, 128, run.device.array(x), out)
    np.testing.assert_allclose(out.numpy(), softmax(x), rtol=1e-5, atol=1e-7)


@fixtures("numba-matmul")
def test_numba_multiplies_matrices(path: Path) -> None:
    run = Numba(path)
    a, b = rng().random((20, 40), np.float32), rng().random((40, 30), np.float32)
    c = run.device.zeros((20, 30))
    run((2, 2), (16, 16), run.device.array(a), run.device.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


@fixtures("numba-histogram")
def test_numba_atomics(path: Path) -> None:
    run = Numba(path)
    x = rng().integers(0, 1000, 900, np.int32)
    counts = run.device.zeros(17, np.int32)
    run(4, 256, run.device.array(x), counts)
    np.testing.assert_array_equal(counts.numpy(), np.bincount(x % 17))


@fixtures("numba-row_sums")
def test_numba_shuffles(path: Path) -> None:
    run = Numba(path)
    x = rng().integers(0, 100, (5, 77)).astype(np.float32)
    out = run.device.zeros(5)
    run(5, 32, run.device.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x.sum(1))


@fixtures("clang-kernels")
def test_clang(path: Path) -> None:
    device = gpu.Device()
    module = device.load(path)
    x, y = rng().random((2, 1000), np.float32)
    on_device, result, sums = device.array(x), device.array(y), device.zeros(8)
    module["saxpy"][8, 128](2.0, on_device, result, 1000)
    np.testing.assert_allclose(result.numpy(), 2 * x + y, rtol=1e-6)
    module["block_sums"][8, 128](on_device, sums, 1000)
    expected = np.append(x, np.zeros(24, np.float32)).reshape(8, 128).sum(1)
    np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-6)

    whole = rng().integers(-5000, 5000, 500, np.int32)
    out = device.zeros(500, np.int32)
    module["steps"][4, 128](device.array(whole), out, 500)
    assert out.numpy().tolist() == [stepped(int(value), i % 7) for i, value in enumerate(whole)]


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def stepped(value: int, steps: int) -> int:
    """What the kernel `steps` of Clang does to a number."""
    cases: list[Callable[[int], int]] = [
        lambda v: v + 11,
        lambda v: v * 3 + 1,
        lambda v: v ^ 0x55,
        lambda v: int(v / 3),
        lambda v: v - 17,
        lambda v: v << 1 | 1,
        lambda v: -v,
        lambda v: int(np.fmod(v, 1000)) + 5,
    ]
    for _ in range(steps):
        value = cases[value & 7](value)
    return value


# What Triton and Numba hand out, without them.

PTX = (FIXTURES / "triton-add-sm_80.ptx").read_text()


def test_a_kernel_compiled_by_triton_is_a_source() -> None:
    compiled = SimpleNamespace(asm={"ptx": PTX, "cubin": b"\x7fELF"}, name="add")
    assert gpu.parse(compiled).kernels == ["add"]


def test_what_numba_returns_is_a_source() -> None:
    assert gpu.parse((PTX, None)).kernels == ["add"]
    once = SimpleNamespace(inspect_asm=lambda: {("float32",): PTX}, __name__="add")
    assert gpu.parse(once).kernels == ["add"]
    assert gpu.parse(once.inspect_asm()[("float32",)]).kernels == ["add"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            SimpleNamespace(inspect_asm=dict, __name__="f"),
            "the Numba kernel f is not compiled for any signature yet",
        ),
        (
            SimpleNamespace(inspect_asm=lambda: {"(int32,)": PTX, "(int64,)": PTX}, __name__="f"),
            r"compiled for several signatures \(\(int32,\), \(int64,\)\)",
        ),
        (SimpleNamespace(asm={"cubin": b""}), "SimpleNamespace is no source of PTX; give the path"),
        (3.5, "float is no source of PTX"),
        (None, "NoneType is no source of PTX"),
    ],
)
def test_other_objects_are_refused(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        gpu.parse(source)
