# SPDX-License-Identifier: Apache-2.0
"""A Numba kernel, compiled for a GPU that is not there and executed: a product of matrices through shared memory.

It needs Numba with its CUDA target: pip install 'numba-cuda[cu12]'
"""

import sys

import numpy as np

from manyscale import gpu

try:
    from numba import cuda, float32
except ImportError:
    print("Nothing was run. This example needs Numba: pip install 'numba-cuda[cu12]'")
    sys.exit(0)

TILE = 16


def multiply(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        left[y, x] = a[row, start + x]
        right[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[row, column] = total


def passed(array: gpu.DeviceArray) -> tuple:
    """An array as Numba passes it: two pointers of its own, counts, the data, then its shape and strides."""
    strides = np.empty(array.shape, array.dtype).strides
    return (0, 0, array.size, array.dtype.itemsize, array, *array.shape, *strides)


matrix = float32[:, ::1]
compiled = cuda.compile_ptx(multiply, (matrix, matrix, matrix), cc=(8, 0))

device = gpu.Device()
module = device.load(compiled)
kernel = module[module.kernels[0]]

a, b = np.random.default_rng(0).integers(-9, 9, (2, 64, 64)).astype(np.float32)
c = device.zeros((64, 64))
arguments = [value for array in (device.array(a), device.array(b), c) for value in passed(array)]
kernel[(4, 4), (TILE, TILE)](*arguments)
print("a product of two matrices of 64 x 64, compiled by Numba")
print("it is exact:", "yes" if np.array_equal(c.numpy(), a @ b) else "no")
