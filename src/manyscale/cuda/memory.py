# SPDX-License-Identifier: Apache-2.0
"""The heap of device memory that programs and GPUs share: its allocations, their kinds and owners."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyscale.errors import InputError

from .status import CudaError, Status
from .wire import MemoryKind

if TYPE_CHECKING:
    from .node import Gpu

PAGE = 4096
MANAGED_ALIGNMENT = 2 << 20
DEVICE_PAGE = 2 << 20  # in which hardware maps device memory (granularity of cuMemCreate)
_ALIGNMENT = 256
_LABELS = {
    MemoryKind.DEVICE: "memory from cudaMalloc",
    MemoryKind.PINNED: "pinned memory of the host",
    MemoryKind.MANAGED: "managed memory",
}


@dataclass(frozen=True)
class Allocation:
    """An allocation in the heap."""

    address: int
    bytes: int
    kind: MemoryKind
    gpu: Gpu
    process: int


class Heap:
    """All allocations of all processes."""

    def __init__(self, gpus: Sequence[Gpu], granularity: int = 1) -> None:
        """`granularity`: of device memory that kernels may access, in bytes."""
        self._granularity = granularity
        self._gpus = gpus  # of the node, as they are at the time
        self._variables: dict[int, Allocation] = {}  # managed variables of modules
        self._by_address: dict[int, Allocation] = {}
        self._addresses: list[int] = []
        self._mapped: set[int] = set()  # addresses of those that mappings made, beside the memory itself
        self._used: dict[int, int] = {}  # bytes of device memory, by GPU

    def allocate(self, gpu: Gpu, kind: MemoryKind, size: int, alignment: int, process: int) -> Allocation:
        """Allocates memory; an error as CUDA gives it if there is not enough."""
        size = max(size, 1)
        if kind == MemoryKind.DEVICE and size > gpu.description.memory - self.used(gpu):
            raise CudaError(
                Status.MEMORY_ALLOCATION,
                f"{size} bytes do not fit into the {gpu.description.memory} bytes of device {gpu.number}, of which "
                f"{self.used(gpu)} are in use",
            )
        try:
            if kind == MemoryKind.MANAGED:
                address = gpu.managed_allocate(size)
            else:
                if kind == MemoryKind.PINNED:
                    size = -(-size // PAGE) * PAGE
                    alignment = max(alignment, PAGE)
                room = (
                    -(-size // self._granularity) * self._granularity if kind == MemoryKind.DEVICE else size
                )
                address = gpu.native.allocate(room, _LABELS[kind], max(alignment, _ALIGNMENT))
        except (MemoryError, InputError):
            raise CudaError(Status.MEMORY_ALLOCATION, f"{size} bytes do not fit into the heap") from None
        except ValueError as error:
            raise CudaError(Status.INVALID_VALUE, str(error)) from None
        if kind != MemoryKind.DEVICE:
            gpu.native.mark_written(address, size)  # the host may write there at any time
        allocation = Allocation(address, size, kind, gpu, process)
        self._enter(allocation)
        if kind == MemoryKind.DEVICE:
            self._count(gpu, size)
        return allocation

    def add_mapped(self, allocation: Allocation) -> None:
        """Adds addresses at which memory is mapped that is counted elsewhere."""
        self._mapped.add(allocation.address)
        allocation.gpu.native.mark_written(
            allocation.address, allocation.bytes
        )  # what is behind it is not followed
        self._enter(allocation)

    def has_mapped(self, address: int) -> bool:
        return address in self._mapped

    def remove_mapped(self, address: int) -> None:
        self._mapped.remove(address)
        self._forget(self._by_address[address])

    def _enter(self, allocation: Allocation) -> None:
        self._by_address[allocation.address] = allocation
        bisect.insort(self._addresses, allocation.address)
        for other in self._gpus:
            if _is_remote(allocation, other):
                other.add_remote(allocation.address, allocation.bytes)

    def _forget(self, allocation: Allocation) -> None:
        for other in self._gpus:
            if _is_remote(allocation, other):
                other.remove_remote(allocation.address)
        del self._by_address[allocation.address]
        del self._addresses[bisect.bisect_left(self._addresses, allocation.address)]

    def introduce(self, gpu: Gpu) -> None:
        """Registers the remote memory of a new GPU."""
        for allocation in self._by_address.values():
            if _is_remote(allocation, gpu):
                gpu.add_remote(allocation.address, allocation.bytes)

    def at(self, address: int) -> Allocation:
        """The allocation that begins at an address."""
        found = self._by_address.get(address)
        if found is None or address in self._mapped:
            raise CudaError(Status.INVALID_VALUE, f"no memory begins at {address:#x}")
        return found

    def around(self, address: int) -> Allocation | None:
        """The allocation that an address lies in."""
        index = bisect.bisect_right(self._addresses, address) - 1
        found = self._by_address[self._addresses[index]] if index >= 0 else None
        if found is not None and address < found.address + found.bytes:
            return found
        variable = self._variables.get(address // MANAGED_ALIGNMENT)
        return variable if variable is not None and address < variable.address + variable.bytes else None

    def add_variables(self, gpu: Gpu, address: int, size: int) -> None:
        """Makes the memory of a module's `__managed__` variables managed."""
        gpu.adopt_managed(address, size)
        variable = Allocation(address, size, MemoryKind.MANAGED, gpu, 0)
        for block in range(address // MANAGED_ALIGNMENT, (address + size - 1) // MANAGED_ALIGNMENT + 1):
            self._variables[block] = variable
        for other in self._gpus:
            if _is_remote(variable, other):
                other.add_remote(address, size)

    def free(self, allocation: Allocation) -> None:
        """Frees an allocation."""
        self._forget(allocation)
        if allocation.kind == MemoryKind.DEVICE:
            self._count(allocation.gpu, -allocation.bytes)
        if allocation.kind == MemoryKind.MANAGED:
            allocation.gpu.managed_free(allocation.address)
        else:
            allocation.gpu.native.free(allocation.address)

    def of_process(self, process: int) -> list[Allocation]:
        return [allocation for allocation in self._by_address.values() if allocation.process == process]

    def used_by(self, process: int, gpu: Gpu) -> int:
        """Bytes of device memory that a process has."""
        return sum(
            allocation.bytes
            for allocation in self.of_process(process)
            if allocation.gpu is gpu and allocation.kind == MemoryKind.DEVICE
        )

    def used(self, gpu: Gpu) -> int:
        """Bytes of device memory in use."""
        return self._used.get(gpu.number, 0)

    def _count(self, gpu: Gpu, size: int) -> None:
        self._used[gpu.number] = self.used(gpu) + size
        gpu.note_memory(self.used(gpu))


def _is_remote(allocation: Allocation, gpu: Gpu) -> bool:
    """Whether kernels of a GPU access the memory over its link."""
    return allocation.kind == MemoryKind.PINNED or allocation.gpu.number != gpu.number
