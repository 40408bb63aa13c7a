# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels without a GPU: load PTX, SASS, CUDA C++, Triton or Numba kernels, and launch them on arrays.

>>> from manyscale import gpu
>>> device = gpu.Device()
>>> module = device.load("saxpy.ptx")                         # doctest: +SKIP
>>> module["saxpy"][grid, block](x, y, 2.0, n)                # doctest: +SKIP
"""

from .arguments import KernelParameter
from .array import DeviceArray
from .checking import KernelCheck, Problem, check
from .device import Device
from .disassembly import SassFunction, SassInstruction, SassListing, disassemble
from .launch import Launch
from .managed import ManagedArray, UnifiedMemory
from .metrics import Metric
from .module import Kernel, Module
from .parsing import ParsedModule, parse
from .profile import KernelProfile
from .stream import Activity, ActivityKind, Event, QueuedCopy, QueuedLaunch, QueuedRange, Stream
from .texture import Texture
from .timed_device import TimedDevice, TimedLaunch

__all__ = [
    "Activity",
    "ActivityKind",
    "Device",
    "DeviceArray",
    "Event",
    "Kernel",
    "KernelCheck",
    "KernelParameter",
    "KernelProfile",
    "Launch",
    "ManagedArray",
    "Metric",
    "Module",
    "ParsedModule",
    "Problem",
    "QueuedCopy",
    "QueuedLaunch",
    "QueuedRange",
    "SassFunction",
    "SassInstruction",
    "SassListing",
    "Stream",
    "Texture",
    "TimedDevice",
    "TimedLaunch",
    "UnifiedMemory",
    "check",
    "disassemble",
    "parse",
]
