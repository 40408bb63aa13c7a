# SPDX-License-Identifier: Apache-2.0
"""Unmodified CUDA programs on simulated GPUs: their CUDA runtime sends its calls to a server in this process.

>>> from manyscale import cuda
>>> run = cuda.run(["./vector_add"], machine="v100")                      # doctest: +SKIP
"""

from .commands import CopyRecord, LaunchRecord
from .executable import Executable
from .node import Node, NodeOptions
from .profiling import Profiling
from .program import CudaRun, HostOptions, Program, run

__all__ = [
    "CopyRecord",
    "CudaRun",
    "Executable",
    "HostOptions",
    "LaunchRecord",
    "Node",
    "NodeOptions",
    "Profiling",
    "Program",
    "run",
]
