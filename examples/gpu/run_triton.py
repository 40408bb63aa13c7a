# SPDX-License-Identifier: Apache-2.0
"""A Triton kernel, compiled for a GPU that is not there and executed: the softmax of each row of a matrix.

It needs Triton: pip install triton
"""

import os
import sys
import tempfile

import numpy as np

from manyscale import gpu

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError:
    print("Nothing was run. This example needs Triton: pip install triton")
    sys.exit(0)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + j, mask=j < columns, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + j, powers / tl.sum(powers, axis=0), mask=j < columns)


def compile_for(target: GPUTarget):
    source = ASTSource(
        softmax,
        signature={"x": "*fp32", "out": "*fp32", "columns": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 512},
    )
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        return triton.compile(source, target=target, options={"num_warps": 4, "enable_fp_fusion": True})


def main() -> None:
    compiled = compile_for(GPUTarget("cuda", 80, 32))
    device = gpu.Device()
    kernel = device.load(compiled)[compiled.metadata.name]
    threads, shared = 32 * compiled.metadata.num_warps, compiled.metadata.shared

    rows, columns = 16, 500
    x = np.random.default_rng(0).normal(0, 4, (rows, columns)).astype(np.float32)
    out = device.zeros(x.shape)
    arguments = [device.array(x), out, columns]
    # Triton adds pointers to scratch memory, which this kernel does not use.
    arguments += [0] * (len(kernel.parameters) - len(arguments))
    kernel[rows, threads, shared](*arguments)

    powers = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    error = np.abs(out.numpy() - powers / powers.sum(1, keepdims=True)).max()
    print(f"softmax of {rows} rows, compiled by Triton {triton.__version__} for {compiled.metadata.arch}")
    print("it agrees with numpy:", "yes" if error < 1e-6 else f"no, off by {error}")


main()
