# SPDX-License-Identifier: Apache-2.0
"""Virtual memory management: addresses that are reserved, memory by handle, and mappings of one to the other."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .memory import Allocation, Heap
from .status import CudaError, Status
from .wire import MemoryKind

if TYPE_CHECKING:
    from .node import Gpu

GRANULARITY = 2 << 20  # bytes of which sizes, addresses and offsets are multiples, as on GPUs
HOST = -1  # the number of the host, where GPUs have theirs
_NO_ACCESS = 0


@dataclass
class Physical:
    """Memory by its handle: it is freed when nobody has the handle and nothing is mapped to it."""

    handle: int
    allocation: Allocation
    bytes: int
    device: int  # HOST for memory of the host
    shareable: int  # types of handles that it can be exported as
    references: Counter[int] = field(default_factory=Counter)  # by process
    mappings: int = 0


@dataclass
class Mapping:
    """Memory behind reserved addresses."""

    physical: Physical
    address: int
    bytes: int
    offset: int
    process: int
    access: dict[int, int] = field(default_factory=dict)  # by device


class VirtualMemory:
    """Reservations, handles and mappings of all processes of a node."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._handles = itertools.count(1)
        self._reserved: dict[int, tuple[int, int, Gpu]] = {}  # by address: bytes, process, where from
        self._physical: dict[int, Physical] = {}
        self._mappings: dict[int, Mapping] = {}  # by address
        self._addresses: list[int] = []  # of mappings, sorted

    # --- Addresses ---

    def reserve(self, gpu: Gpu, size: int, alignment: int, process: int) -> int:
        _check_multiple("the size of reserved addresses", size)
        try:
            address = gpu.native.reserve_addresses(size, max(alignment, GRANULARITY))
        except MemoryError:
            raise CudaError(Status.MEMORY_ALLOCATION, f"{size} bytes of addresses are not free") from None
        self._reserved[address] = size, process, gpu
        return int(address)

    def free_addresses(self, address: int, size: int) -> None:
        reserved, _, gpu = self._reserved.get(address, (0, 0, None))
        if gpu is None or reserved != size:
            raise CudaError(Status.INVALID_VALUE, f"no {size} addresses are reserved at {address:#x}")
        index = bisect.bisect_left(self._addresses, address)
        if index < len(self._addresses) and self._addresses[index] < address + size:
            raise CudaError(Status.INVALID_VALUE, f"memory is mapped to the addresses at {address:#x}")
        if not gpu.native.release_addresses(address, size):
            raise CudaError(Status.INVALID_VALUE, f"the addresses at {address:#x} cannot be given back")
        del self._reserved[address]

    # --- Memory ---

    def create(self, gpu: Gpu, size: int, device: int, shareable: int, process: int) -> Physical:
        _check_multiple("the size of memory", size)
        kind = MemoryKind.PINNED if device == HOST else MemoryKind.DEVICE
        allocation = self._heap.allocate(gpu, kind, size, GRANULARITY, process=0)
        made = Physical(next(self._handles), allocation, size, device, shareable, Counter({process: 1}))
        self._physical[made.handle] = made
        return made

    def find(self, handle: int) -> Physical:
        found = self._physical.get(handle)
        if found is None:
            raise CudaError(Status.INVALID_VALUE, f"there is no memory with the handle {handle}")
        return found

    def at(self, address: int) -> Mapping:
        """The mapping that an address lies in."""
        index = bisect.bisect_right(self._addresses, address) - 1
        found = self._mappings[self._addresses[index]] if index >= 0 else None
        if found is None or address >= found.address + found.bytes:
            raise CudaError(Status.INVALID_VALUE, f"nothing is mapped at {address:#x}")
        return found

    def retain(self, physical: Physical, references: int, process: int) -> None:
        physical.references[process] += references

    def release(self, handle: int, process: int) -> None:
        physical = self.find(handle)
        if physical.references[process] < 1:
            raise CudaError(Status.INVALID_VALUE, f"the process does not have the handle {handle}")
        physical.references[process] -= 1
        self._free_unused(physical)

    def _free_unused(self, physical: Physical) -> None:
        if physical.mappings == 0 and physical.references.total() == 0:
            del self._physical[physical.handle]
            self._heap.free(physical.allocation)

    # --- Mappings ---

    def map(self, address: int, size: int, offset: int, handle: int, process: int) -> Mapping:
        physical = self.find(handle)
        for what, number in (("an address", address), ("the size of a mapping", size), ("an offset", offset)):
            _check_multiple(what, number, zero=what == "an offset")
        if offset + size > physical.bytes:
            raise CudaError(Status.INVALID_VALUE, f"the memory of the handle {handle} is too small")
        index = bisect.bisect_left(self._addresses, address)
        near = [self._mappings[each] for each in self._addresses[max(index - 1, 0) : index + 1]]
        reserved = any(
            begin <= address and address + size <= begin + room
            for begin, (room, _, _) in self._reserved.items()
        )
        if not reserved or any(
            each.address < address + size and address < each.address + each.bytes for each in near
        ):
            raise CudaError(Status.INVALID_VALUE, f"{size} bytes at {address:#x} are not reserved, or mapped")
        made = self._mappings[address] = Mapping(physical, address, size, offset, process)
        self._addresses.insert(index, address)
        physical.mappings += 1
        return made

    def _whole(self, address: int, size: int) -> list[Mapping]:
        """The mappings that a range consists of."""
        found, at = [], address
        while at < address + size and (mapping := self._mappings.get(at)) is not None:
            found.append(mapping)
            at += mapping.bytes
        if not found or at != address + size:
            raise CudaError(Status.INVALID_VALUE, f"{size} bytes at {address:#x} are no whole mappings")
        return found

    def unmap(self, address: int, size: int) -> None:
        for mapping in self._whole(address, size):
            self._set_accessible(mapping, accessible=False)
            del self._mappings[mapping.address]
            del self._addresses[bisect.bisect_left(self._addresses, mapping.address)]
            mapping.physical.mappings -= 1
            self._free_unused(mapping.physical)

    def set_access(self, address: int, size: int, device: int, access: int) -> None:
        for mapping in self._whole(address, size):
            mapping.access[device] = access
            self._set_accessible(mapping, accessible=any(mapping.access.values()))

    def access_of(self, address: int, device: int) -> int:
        return self.at(address).access.get(device, _NO_ACCESS)

    def _set_accessible(self, mapping: Mapping, *, accessible: bool) -> None:
        """Lets GPUs access memory at its mapped addresses, or not any more; all of them, if one may."""
        allocation, native = mapping.physical.allocation, mapping.physical.allocation.gpu.native
        if accessible == self._heap.has_mapped(mapping.address):
            return
        if accessible:
            if not native.map(mapping.address, allocation.address + mapping.offset, mapping.bytes):
                raise CudaError(Status.MEMORY_ALLOCATION, f"the host cannot map {mapping.address:#x}")
            shown = Allocation(mapping.address, mapping.bytes, allocation.kind, allocation.gpu, 0)
            self._heap.add_mapped(shown)
        else:
            if not native.unmap(mapping.address, mapping.bytes):
                raise CudaError(Status.MEMORY_ALLOCATION, f"the host cannot unmap {mapping.address:#x}")
            self._heap.remove_mapped(mapping.address)

    def end(self, process: int) -> None:
        """Gives back what an ended process has."""
        for mapping in [each for each in self._mappings.values() if each.process == process]:
            self.unmap(mapping.address, mapping.bytes)
        for physical in [each for each in self._physical.values() if each.references.pop(process, 0)]:
            self._free_unused(physical)
        for address, (size, owner, _) in list(self._reserved.items()):
            if owner == process:
                self.free_addresses(address, size)


def _check_multiple(what: str, number: int, *, zero: bool = False) -> None:
    if number % GRANULARITY or (number == 0 and not zero):
        raise CudaError(Status.INVALID_VALUE, f"{what} is a multiple of {GRANULARITY} bytes, not {number}")
