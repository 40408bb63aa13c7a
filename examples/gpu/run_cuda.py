# SPDX-License-Identifier: Apache-2.0
"""A kernel in CUDA C++ (`reduction.cu`), compiled here and executed without a GPU.

It needs nvcc, or NVRTC: pip install 'manyscale[cuda]'
"""

import sys
from pathlib import Path

import numpy as np

from manyscale import gpu
from manyscale.gpu.cuda_compiler import NoCompilerError

device = gpu.Device()
try:
    module = device.load(Path(__file__).with_name("reduction.cu"), target="sm_80")
except NoCompilerError as error:
    print(f"Nothing was run. {error}")
    sys.exit(0)

values = np.random.default_rng(0).integers(0, 100, 50_000).astype(np.float32)
total = device.zeros(1)
launch = module["sum"][8, 256](device.array(values), total, values.size)
print(f"{launch.warp_instructions} warp instructions")
# Whole numbers below 2^24: their sum is exact, in whichever order they are added.
print(f"sum: {total.numpy()[0]:.0f}, expected {values.sum():.0f}")
print("the sum is exact:", "yes" if total.numpy()[0] == values.sum() else "no")
