# SPDX-License-Identifier: Apache-2.0
"""What a program with unified memory needs of a device: memory, its kernels, and a record of what it launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale.errors import ManyscaleError
from manyscale.gpu import Device, Launch, TimedDevice, parse
from manyscale.gpu.array import DeviceArray

_HERE = Path(__file__).parent
_BLOCK, _SMALLEST = 2 << 20, 64 << 10
_BEYOND_BLOCKS = (
    3 << 19
)  # of the 11,009.5 MiB that were free when the programs were measured: what is no whole block


class Session:
    """One run of a program on a device.

    With `managed`, what the program shares with the host is managed memory, written by the host at first; otherwise
    it is ordinary memory of the device. `oversubscribed` is how often the memory that the program needs at once would
    have to fit into what the device has for it; without it, there is enough.
    """

    def __init__(
        self, device: Device, program: str, *, managed: bool = True, oversubscribed: float | None = None
    ) -> None:
        self.device = device
        self.managed = managed
        self._oversubscribed = oversubscribed
        self.launches: list[Launch] = []
        self.working_set = 0  # bytes that the device needs at once of what is shared with the host
        self._own = 0  # bytes that only the device uses
        self._kept: list[DeviceArray] = []  # so that the pages can be looked at when the program has ended
        self._program = program
        self._module = device.load(parse(_HERE / f"{program}.ptx", portable=True))

    def shared(self, values: npt.NDArray[Any], *, counted: bool = True) -> DeviceArray:
        """An array that host and device use, with values that the host wrote.

        Not `counted` is what the device has done with before it needs the most.
        """
        if counted:
            self.working_set += managed_bytes(values.nbytes)
        if not self.managed:
            return self.device.array(values)
        array = self.device.managed(values.shape, values.dtype)
        array.set(values)
        self._kept.append(array)
        return array

    def blank(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike, *, counted: bool = True
    ) -> DeviceArray:
        """An array of zeros that host and device use, and that nobody has written: its pages are nowhere."""
        array = self.device.managed(shape, dtype) if self.managed else self.device.zeros(shape, dtype)
        if counted:
            self.working_set += managed_bytes(array.nbytes)
        self._kept.append(array)
        return array

    def own(self, values: npt.NDArray[Any]) -> DeviceArray:
        """An array that only the device uses."""
        self._own += values.nbytes
        return self.device.array(values)

    def launch(self, kernel: str, grid: Any, block: Any, *arguments: Any) -> None:
        """Launches a kernel of the program and waits for its end."""
        if not self.launches and self._oversubscribed is not None:
            assert isinstance(self.device, TimedDevice)
            self.device.uvm.capacity = usable_bytes(int(self.working_set / self._oversubscribed), self._own)
        self.launches.append(self._module[kernel][grid, block](*arguments))

    def expect(
        self, what: str, found: npt.NDArray[Any], expected: npt.NDArray[Any], tolerance: float = 0.0
    ) -> None:
        """Compares with what numpy computed; `tolerance` is relative to the largest element."""
        difference = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0)
        if not difference <= tolerance * max(np.abs(expected).max(initial=0.0), 1.0):
            raise ManyscaleError(f"{self._program}: {what} differs from numpy's by up to {difference:g}")


def managed_bytes(size: int) -> int:
    """What an allocation of managed memory takes: blocks of 2 MiB, and the rest 64 KiB times a power of two."""
    whole, rest = divmod(size, _BLOCK)
    return whole * _BLOCK + (max(_SMALLEST, 1 << (rest - 1).bit_length()) if rest else 0)


def usable_bytes(free: int, own: int = 0) -> int:
    """What managed pages can use of so many bytes that were to be free: whole blocks, and at least one.

    So it was when the programs were measured. Of what was free on the card, 11,009.5 MiB, all but these bytes were
    taken by one allocation, which is a multiple of 2 MiB; what then is left over of 2 MiB is of no use for pages. And
    the program's own allocations, which came later, share blocks of 2 MiB.
    """
    return max((free - _BEYOND_BLOCKS) // _BLOCK - -(-own // _BLOCK), 1) * _BLOCK


def blocks(elements: int, per_block: int) -> int:
    """Blocks that it takes for so many elements."""
    return -(-elements // per_block)
