# SPDX-License-Identifier: Apache-2.0
"""Compiled CUDA programs on the simulator and on the reference interpreter, on the same small inputs."""

from pathlib import Path

import numpy as np
import pytest
from instruction_support import agree

from manyscale import gpu

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent.parent / "fixtures"
RANDOM = np.random.default_rng(12)


def integers(count: int, high: int = 2**31, dtype: type = np.int32) -> np.ndarray:
    return RANDOM.integers(0, high, count, dtype)


def floats(count: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.uniform(-9, 9, count).astype(dtype)


def zeros(count: int, dtype: type = np.int32) -> np.ndarray:
    return np.zeros(count, dtype)


LAUNCHES = {
    ("vector_add", "vector_add"): (3, 32, (floats(80), floats(80), zeros(80, np.float32), 80)),
    ("saxpy", "saxpy"): (2, 24, (70, 1.5, floats(70), floats(70))),
    ("saxpy", "daxpy"): (2, 24, (70, -0.3, floats(70, np.float64), floats(70, np.float64))),
    ("divergence", "nested_loops"): (2, 32, (integers(60, 6), zeros(300), 60)),
    ("switch_cases", "branch_table"): (2, 40, (integers(77, 4, np.uint32), zeros(77, np.uint32), 77)),
    ("bitonic_sort", "bitonic_warp"): (1, 64, (floats(64),)),
    ("histogram", "histogram_global"): (2, 32, (integers(300, 256, np.uint8), zeros(256, np.uint32), 300)),
    ("histogram", "histogram_shared"): (2, 64, (integers(300, 256, np.uint8), zeros(256, np.uint32), 300)),
    ("recursion", "recursion"): (1, 20, (zeros(20), zeros(20, np.uint32), zeros(20))),
    ("function_table", "function_table"): (
        *(2, 32),
        (integers(60, 4), floats(60), floats(60), zeros(120, np.float32), 60),
    ),
    ("quicksort", "quicksort_stack"): (1, 20, (integers(20 * 12, 50), 12, 20)),
    ("quicksort", "quicksort_recursive"): (1, 20, (integers(20 * 12, 50), 12, 20)),
    ("tree_reduction", "tree_sum"): (2, 256, (integers(500, 1000), zeros(2), zeros(1, np.uint64), 500)),
    ("block_scan", "hillis_steele"): (1, 256, (integers(256, 1000), zeros(256))),
}
CASES = [
    pytest.param(path, kernel, *launch, id=f"{path.parent.name} {kernel}")
    for (program, kernel), launch in LAUNCHES.items()
    for path in sorted(FIXTURES.glob(f"sm_*/{program}.ptx"))
    if not path.parent.name.endswith("debug")
]


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


@pytest.mark.parametrize(("path", "kernel", "grid", "block", "arguments"), CASES)
def test_compiled_program(device, path, kernel, grid, block, arguments):
    agree(device, path.read_text(), kernel, grid, block, *arguments)
