# SPDX-License-Identifier: Apache-2.0
"""The device properties and attributes of a GPU, from the description of the machine."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import Any

from manyscale.errors import InputError
from manyscale.gpu.targets import capability_of
from manyscale.machine import Machine
from manyscale.machine.gpu_system import channel_count, channel_parameters
from manyscale.units import BYTES, CYCLES, FREQUENCY, parse

_DEFAULT_CAPABILITY = 70  # of a machine that states no gpu.architecture
_KILOHERTZ = 1000
_LIMITS = ("ctas", "threads", "warps", "registers", "shared")  # of gpu.scheduler.limits
# KiB: CUDA C++ programming guide, technical specifications
_SHARED_OPTIN = {60: 48, 61: 48, 70: 96, 75: 64, 80: 163, 86: 99, 89: 99, 90: 227}
_CONSTANT_MEMORY = 65536
_REGISTERS_OF_A_BLOCK = (
    65536  # CUDA C++ programming guide, technical specifications: of all compute capabilities
)
_BLOCK = (1024, 1024, 64)
_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_PITCH = 2**31 - 1


class Attribute(enum.IntEnum):
    """Some of cudaDeviceAttr; those that are not here are 0 or in the table of limits."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2  # y and z follow
    MAX_GRID_DIM_X = 5  # y and z follow
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    TOTAL_CONSTANT_MEMORY = 9
    WARP_SIZE = 10
    MAX_PITCH = 11
    MAX_REGISTERS_PER_BLOCK = 12
    CLOCK_RATE = 13
    TEXTURE_ALIGNMENT = 14
    GPU_OVERLAP = 15
    MULTIPROCESSOR_COUNT = 16
    CAN_MAP_HOST_MEMORY = 19
    SURFACE_ALIGNMENT = 30
    CONCURRENT_KERNELS = 31
    PCI_BUS_ID = 33
    MEMORY_CLOCK_RATE = 36
    GLOBAL_MEMORY_BUS_WIDTH = 37
    L2_CACHE_SIZE = 38
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    ASYNC_ENGINE_COUNT = 40
    UNIFIED_ADDRESSING = 41
    TEXTURE_PITCH_ALIGNMENT = 51
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    STREAM_PRIORITIES_SUPPORTED = 78
    GLOBAL_L1_CACHE_SUPPORTED = 79
    LOCAL_L1_CACHE_SUPPORTED = 80
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    MANAGED_MEMORY = 83
    MULTI_GPU_BOARD_GROUP_ID = 85
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87
    CONCURRENT_MANAGED_ACCESS = 89
    COMPUTE_PREEMPTION_SUPPORTED = 90
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91
    CAN_USE_STREAM_MEM_OPS = 92
    CAN_USE_64_BIT_STREAM_MEM_OPS = 93
    CAN_USE_STREAM_WAIT_VALUE_NOR = 94
    COOPERATIVE_LAUNCH = 95
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    HOST_REGISTER_SUPPORTED = 99
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    MEMORY_POOLS_SUPPORTED = 115
    CAN_USE_64_BIT_STREAM_MEM_OPS_V2 = 122
    CAN_USE_STREAM_WAIT_VALUE_NOR_V2 = 123
    IPC_EVENT_SUPPORT = 125


# Limits of textures and surfaces: CUDA C++ programming guide, technical specifications of 6.x to 8.x. By the numbers of
# cudaDeviceGetAttribute.
_TEXTURE_LIMITS = {
    21: 131072,
    22: 131072,
    23: 65536,
    24: 16384,
    25: 16384,
    26: 16384,
    27: 32768,
    28: 32768,
    29: 2048,
    42: 32768,
    43: 2048,
    45: 32768,
    46: 32768,
    47: 8192,
    48: 8192,
    49: 32768,
    52: 32768,
    53: 32768,
    54: 2046,
    55: 32768,
    56: 131072,
    57: 65536,
    58: 16384,
    59: 16384,
    60: 16384,
    61: 32768,
    62: 2048,
    63: 32768,
    64: 32768,
    65: 2048,
    66: 32768,
    67: 32768,
    68: 2046,
    69: 1 << 28,
    70: 131072,
    71: 65000,
    72: 2097120,
    73: 32768,
    74: 32768,
    77: 32768,
}


@dataclass(frozen=True)
class DeviceDescription:
    """The properties of a GPU."""

    name: str
    uuid: bytes
    memory: int
    capability: int
    attributes: dict[int, int]

    @property
    def shared_optin(self) -> int:
        """The largest shared memory of a block, with opting in."""
        return self.attributes[Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]


def describe(machine: Machine, number: int, gpus: int) -> DeviceDescription:
    """The description of one of the GPUs of a machine."""
    gpu = machine.gpu
    assert gpu is not None
    limits = _limits(machine)
    capability = _DEFAULT_CAPABILITY if gpu.architecture is None else capability_of(gpu.architecture)
    memory = _memory(machine)
    assert gpu.clock is not None
    optin = min(_SHARED_OPTIN.get(capability, 96) << 10, limits["shared"])
    attributes = {
        Attribute.MAX_THREADS_PER_BLOCK: 1024,
        **dict(zip(range(Attribute.MAX_BLOCK_DIM_X, Attribute.MAX_BLOCK_DIM_X + 3), _BLOCK, strict=True)),
        **dict(zip(range(Attribute.MAX_GRID_DIM_X, Attribute.MAX_GRID_DIM_X + 3), _GRID, strict=True)),
        Attribute.MAX_SHARED_MEMORY_PER_BLOCK: 48 << 10,
        Attribute.TOTAL_CONSTANT_MEMORY: _CONSTANT_MEMORY,
        Attribute.WARP_SIZE: 32,
        Attribute.MAX_PITCH: _LARGEST_PITCH,
        Attribute.MAX_REGISTERS_PER_BLOCK: min(limits["registers"], _REGISTERS_OF_A_BLOCK),
        Attribute.CLOCK_RATE: gpu.clock // _KILOHERTZ,
        Attribute.TEXTURE_ALIGNMENT: 512,
        Attribute.GPU_OVERLAP: 1,
        Attribute.MULTIPROCESSOR_COUNT: gpu.sm_count or 1,
        Attribute.CAN_MAP_HOST_MEMORY: 1,
        Attribute.SURFACE_ALIGNMENT: 512,
        Attribute.CONCURRENT_KERNELS: 1,
        Attribute.PCI_BUS_ID: number + 1,
        Attribute.MEMORY_CLOCK_RATE: memory.clock // _KILOHERTZ,
        Attribute.GLOBAL_MEMORY_BUS_WIDTH: memory.bus_width,
        Attribute.L2_CACHE_SIZE: (gpu.l2_slices or 1) * (gpu.l2_slice_capacity or 0),
        Attribute.MAX_THREADS_PER_MULTIPROCESSOR: limits["threads"],
        Attribute.ASYNC_ENGINE_COUNT: (machine.link.copy_engines if machine.link is not None else None) or 2,
        Attribute.UNIFIED_ADDRESSING: 1,
        Attribute.TEXTURE_PITCH_ALIGNMENT: 32,
        Attribute.COMPUTE_CAPABILITY_MAJOR: capability // 10,
        Attribute.COMPUTE_CAPABILITY_MINOR: capability % 10,
        Attribute.STREAM_PRIORITIES_SUPPORTED: 1,
        Attribute.GLOBAL_L1_CACHE_SUPPORTED: 1,
        Attribute.LOCAL_L1_CACHE_SUPPORTED: 1,
        Attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: limits["shared"],
        Attribute.MAX_REGISTERS_PER_MULTIPROCESSOR: limits["registers"],
        Attribute.MANAGED_MEMORY: 1,
        Attribute.MULTI_GPU_BOARD_GROUP_ID: number,
        Attribute.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: _precision_ratio(machine),
        Attribute.CONCURRENT_MANAGED_ACCESS: 1,
        Attribute.COMPUTE_PREEMPTION_SUPPORTED: 1,
        Attribute.CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: 1,
        Attribute.CAN_USE_STREAM_MEM_OPS: 1,
        Attribute.CAN_USE_64_BIT_STREAM_MEM_OPS: 1,
        Attribute.CAN_USE_STREAM_WAIT_VALUE_NOR: 1,
        Attribute.COOPERATIVE_LAUNCH: 1,
        Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: optin,
        Attribute.HOST_REGISTER_SUPPORTED: 1,
        Attribute.VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: 1,
        Attribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: 1,
        Attribute.MAX_BLOCKS_PER_MULTIPROCESSOR: limits["ctas"],
        Attribute.RESERVED_SHARED_MEMORY_PER_BLOCK: _reserved_shared(machine),
        Attribute.MEMORY_POOLS_SUPPORTED: 1,
        Attribute.CAN_USE_64_BIT_STREAM_MEM_OPS_V2: 1,
        Attribute.CAN_USE_STREAM_WAIT_VALUE_NOR_V2: 1,
        Attribute.IPC_EVENT_SUPPORT: 1,
        **_TEXTURE_LIMITS,
    }
    name = f"Manyscale {machine.name or 'GPU'}"
    uuid = hashlib.sha256(f"{name} {number} of {gpus}".encode()).digest()[:16]
    return DeviceDescription(name, uuid, memory.capacity, capability, attributes)


@dataclass(frozen=True)
class _DeviceMemory:
    """The memory of a GPU as CUDA describes it: two transfers of the bus in each clock are its peak bandwidth."""

    capacity: int  # bytes
    clock: int  # hertz
    bus_width: int  # bits


def _memory(machine: Machine) -> _DeviceMemory:
    where = machine.name or "the machine"
    gpu = machine.gpu
    if gpu is None or gpu.memory is None or gpu.memory.capacity is None:
        raise InputError(f"{where}: gpu.memory.capacity: is not stated")
    channel = channel_parameters(gpu.memory, where)
    burst_bits = 8 * parse(channel["burst_bytes"], BYTES)
    width = burst_bits // (2 * parse(str(channel["burst_cycles"]), CYCLES))
    channels = channel_count(gpu.memory, gpu.l2_slices or 1, where)
    return _DeviceMemory(gpu.memory.capacity, int(parse(channel["clock"], FREQUENCY)), int(width) * channels)


def _precision_ratio(machine: Machine) -> int:
    """How many times as fast single precision is as double precision."""
    sm: Any = machine.gpu and machine.gpu.sm
    intervals = []
    for kind in ("fp32", "fp64"):
        timing = getattr(sm.timing, kind) if sm is not None and sm.timing is not None else None
        if timing is None or timing.interval is None:
            raise InputError(f"{machine.name or 'the machine'}: gpu.sm.timing.{kind}.interval: is not stated")
        intervals.append(int(timing.interval))
    return max(1, intervals[1] // intervals[0])


def _reserved_shared(machine: Machine) -> int:
    """Bytes of each CTA's shared memory that the system takes."""
    assert machine.gpu is not None
    scheduler: Any = machine.gpu.scheduler
    reserved = None if scheduler is None or scheduler.units is None else scheduler.units.shared_reserved
    if reserved is None:
        raise InputError(
            f"{machine.name or 'the machine'}: gpu.scheduler.units.shared_reserved: is not stated"
        )
    return int(reserved)


def _limits(machine: Machine) -> dict[str, int]:
    """The resources of an SM, as the machine states them."""
    assert machine.gpu is not None
    scheduler: Any = machine.gpu.scheduler
    limits = None if scheduler is None else scheduler.limits
    found: dict[str, int] = {}
    for name in _LIMITS:
        value = None if limits is None else getattr(limits, name)
        if value is None:
            raise InputError(f"{machine.name or 'the machine'}: gpu.scheduler.limits.{name}: is not stated")
        found[name] = int(value)
    return found
