# SPDX-License-Identifier: Apache-2.0
"""First programs of CuPy and Numba-CUDA as they are shipped, on a simulated A100.

`MANYSCALE_CUPY_PYTHON=/path/to/python` names a Python with CuPy, `MANYSCALE_NUMBA_PYTHON` one with numba-cuda; without
them the tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CUPY = os.environ.get("MANYSCALE_CUPY_PYTHON", "")
NUMBA = os.environ.get("MANYSCALE_NUMBA_PYTHON", "")

ARRAYS = """
import cupy, numpy
x = cupy.arange(1000, dtype=cupy.float32)
print(float((x * 2 + 1).sum()), int(cupy.argmax(x)))
a = numpy.random.default_rng(1).random(500)
print(bool((cupy.asnumpy(cupy.sort(cupy.asarray(a))) == numpy.sort(a)).all()))
own = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x * x + y", "squares")
print(float(own(x, x)[9]))
"""
KERNEL = """
import numpy
from numba import cuda

@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]

x = numpy.arange(1000, dtype=numpy.float64)
out = numpy.zeros_like(x)
add[4, 256](x, x, out)
print(bool((out == 2 * x).all()))
"""


def printed(python: str, code: str, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "manyscale.cli.app", "cuda", "--machine", "a100", "--functional"]
    (folder / "program.py").write_text(code)
    done = subprocess.run(
        [*command, "--out", str(folder / "run"), "--", python, str(folder / "program.py")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=os.environ | {"CUPY_CACHE_DIR": str(folder / "cupy"), "NUMBA_CACHE_DIR": str(folder / "numba")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not CUPY, reason="MANYSCALE_CUPY_PYTHON names no Python with CuPy")
def test_arrays_of_cupy_hold_what_they_hold_in_numpy(tmp_path: Path) -> None:
    assert printed(CUPY, ARRAYS, tmp_path) == ["1000000.0 999", "True", "90.0"]


@pytest.mark.skipif(not NUMBA, reason="MANYSCALE_NUMBA_PYTHON names no Python with numba-cuda")
def test_a_kernel_of_numba_adds_arrays(tmp_path: Path) -> None:
    assert printed(NUMBA, KERNEL, tmp_path) == ["True"]
