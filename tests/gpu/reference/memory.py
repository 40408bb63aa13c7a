# SPDX-License-Identifier: Apache-2.0
"""State spaces as byte arrays, and where the windows of generic addresses are."""

from bisect import bisect_right

WINDOWS = {"shared": 1 << 44, "local": 1 << 45, "param": 1 << 46, "global": 0, "const": 0}
"""What is added to an address of a space to make it generic."""
_WINDOW_SIZE = 1 << 32
_FIRST_GLOBAL = 1 << 33
_GAP = 4096


class FaultError(Exception):
    """An access outside of what is allocated, or not aligned."""


def align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


class Region:
    """A run of bytes at an address of its space."""

    def __init__(self, base: int, data: bytearray | memoryview) -> None:
        self.base = base
        self.data = data

    def _offset(self, address: int, size: int, alignment: int | None) -> int:
        offset = address - self.base
        if offset < 0 or offset + size > len(self.data):
            extent = f"{len(self.data)} bytes at {self.base:#x}"
            raise FaultError(f"access to {size} bytes at {address:#x}, outside of the {extent}")
        if address % (alignment or size):
            raise FaultError(f"access to {size} bytes at {address:#x} is not aligned")
        return offset

    def load(self, address: int, size: int, alignment: int | None = None) -> int:
        offset = self._offset(address, size, alignment)
        return int.from_bytes(self.data[offset : offset + size], "little")

    def store(self, address: int, size: int, bits: int, alignment: int | None = None) -> None:
        offset = self._offset(address, size, alignment)
        self.data[offset : offset + size] = bits.to_bytes(size, "little")


class GlobalMemory:
    """Allocations at increasing addresses with gaps between them, so that overruns are seen."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._bases: list[int] = []
        self._top = _FIRST_GLOBAL

    def allocate(self, data: bytearray | memoryview) -> int:
        base = self._top
        self._regions.append(Region(base, data))
        self._bases.append(base)
        self._top = align(base + len(data) + _GAP, _GAP)
        return base

    def region(self, address: int) -> Region:
        index = bisect_right(self._bases, address) - 1
        if index < 0:
            raise FaultError(f"access to {address:#x}, below all allocations")
        return self._regions[index]


def window_of(generic: int) -> str:
    """The state space that a generic address belongs to. Constant variables lie in the global window here."""
    for space in ("shared", "local", "param"):
        if WINDOWS[space] <= generic < WINDOWS[space] + _WINDOW_SIZE:
            return space
    return "global"
