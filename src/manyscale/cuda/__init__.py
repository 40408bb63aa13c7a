# SPDX-License-Identifier: Apache-2.0
"""Unmodified CUDA programs on simulated GPUs: they are given a CUDA runtime whose calls a server answers.

>>> from manyscale import cuda
>>> run = cuda.run(["./vector_add"], machine="v100")                      # doctest: +SKIP
"""

from .executable import Executable
from .node import Node, NodeOptions
from .program import CudaRun, HostOptions, Program, run
from .work import CopyRecord, LaunchRecord

__all__ = [
    "CopyRecord",
    "CudaRun",
    "Executable",
    "HostOptions",
    "LaunchRecord",
    "Node",
    "NodeOptions",
    "Program",
    "run",
]
