# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a device."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError


def extents_of(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple; an error if it is not one."""
    extents = (shape,) if isinstance(shape, numbers.Integral) else shape
    if not isinstance(extents, Sequence) or isinstance(extents, str):
        raise InputError(f"{shape!r} is not a shape; a shape is a whole number or several")
    if not all(isinstance(extent, numbers.Integral) and int(extent) >= 0 for extent in extents):
        raise InputError(f"{shape!r} is not a shape; a shape is a whole number or several, none negative")
    return tuple(int(extent) for extent in extents)


def host_array(values: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Values as an array whose memory can be copied to a device."""
    try:
        host = np.asarray(values, dtype=dtype, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"this is not an array of numbers: {error}") from None
    if host.dtype.kind not in "biufcV":
        raise InputError(f"an array of {host.dtype} cannot be copied to a device; it takes numbers")
    return host


class DeviceArray:
    """An array in a device's memory; `numpy()` copies it to the host, `set()` to the device.

    The memory is given back when the array is no longer used, or by `free()`.
    """

    def __init__(
        self, native: _core.GpuDevice, address: int, shape: Sequence[int], dtype: npt.DTypeLike, *, owns: bool
    ) -> None:
        self.native = native
        self._owns = owns
        self.address = address
        self.shape = tuple(int(extent) for extent in shape)
        self.dtype = np.dtype(dtype)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def numpy(self) -> npt.NDArray[Any]:
        """A copy on the host."""
        host = np.empty(self.shape, self.dtype)
        if host.nbytes and not self.native.read(self.address, host.reshape(-1).view(np.uint8)):
            raise InputError("the array's memory was freed")
        return host

    def set(self, values: npt.ArrayLike) -> None:
        """Copies values of the same shape to the device."""
        host = host_array(values, self.dtype)
        if host.shape != self.shape:
            raise InputError(f"an array of shape {host.shape} does not fit into one of shape {self.shape}")
        if host.nbytes and not self.native.write(self.address, host.reshape(-1).view(np.uint8)):
            raise InputError("the array's memory was freed")

    def free(self) -> None:
        """Gives the memory back to the device; kernels that still use it are told so."""
        if self._owns:
            self._owns = False
            self.native.free(self.address)

    def __del__(self) -> None:
        if getattr(self, "_owns", False):
            self.free()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype} {self.shape} at {self.address:#x}>"
