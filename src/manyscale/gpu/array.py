# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a device."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError

if TYPE_CHECKING:
    from .device import Device
    from .stream import QueuedCopy, Stream

FREED = "the array's memory was freed"


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


@dataclass(frozen=True)
class ArrayCopy:
    """A copy between host and device, or within the device."""

    kind: Literal["to_device", "to_host", "within", "fill"]
    array: DeviceArray  # the target, or the source of a copy to the host
    source: DeviceArray | None = None  # of a copy within the device
    data: bytes = b""  # of a copy from the host; of a fill: one element
    target: npt.NDArray[Any] | None = None  # on the host

    def arrived(self, data: bytes) -> None:
        """Writes data that was copied to the host to its target."""
        if self.target is not None:
            self.target[...] = np.frombuffer(data, self.target.dtype).reshape(self.target.shape)

    def __str__(self) -> str:
        words = {"to_device": "to the device", "to_host": "to the host", "within": "within the device"}
        size = self.array.nbytes
        return f"fill {size} B" if self.kind == "fill" else f"copy {size} B {words[self.kind]}"


def copy_now(native: _core.GpuDevice, copy: ArrayCopy) -> None:
    """Carries out a copy outside of simulated time."""
    size = copy.array.nbytes
    if size == 0:
        return
    data = copy.data if copy.kind != "fill" else copy.data * copy.array.size
    if copy.kind in ("to_host", "within"):
        origin = copy.source or copy.array
        buffer = np.empty(size, np.uint8)
        if not native.read(origin.address, buffer):
            raise InputError(FREED)
        data = buffer.tobytes()
    if copy.kind == "to_host":
        copy.arrived(data)
    elif not native.write(copy.array.address, data):
        raise InputError(FREED)


class DeviceArray:
    """An array in a device's memory; `numpy()` copies it to the host, `set()` to the device.

    These two take no simulated time; on a device with time, `copy_from`, `copy_to` and `fill` do. The memory is freed
    when the array is no longer used, or by `free()`.
    """

    def __init__(
        self,
        native: _core.GpuDevice,
        address: int,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        *,
        owns: bool,
        device: Device | None = None,
    ) -> None:
        self.native = native
        self.device = device
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
        """A copy on the host, when all that was queued has ended."""
        self._synchronize()
        host = np.empty(self.shape, self.dtype)
        if host.nbytes and not self.native.read(self.address, host.reshape(-1).view(np.uint8)):
            raise InputError(FREED)
        return host

    def set(self, values: npt.ArrayLike) -> None:
        """Copies values of the same shape to the device."""
        host = host_array(values, self.dtype)
        self._check_shape(host.shape)
        self._synchronize()
        self.write(host)

    def write(self, host: npt.NDArray[Any]) -> None:
        """Writes the memory of an array of the same shape and type, whatever is queued."""
        if host.nbytes and not self.native.write(self.address, host.reshape(-1).view(np.uint8)):
            raise InputError(FREED)

    def copy_from(
        self, source: npt.ArrayLike | DeviceArray, *, stream: Stream | None = None
    ) -> QueuedCopy | None:
        """Copies values of the same shape here, from the host or from another array of the device.

        With a stream of the device the copy is queued there; the values are taken from the host now.
        """
        if isinstance(source, DeviceArray):
            if source.native is not self.native:
                raise InputError("the two arrays are on different devices")
            self._check_shape(source.shape)
            if source.dtype != self.dtype:
                raise InputError(f"an array of {source.dtype} cannot be copied to one of {self.dtype}")
            return self._copy(ArrayCopy("within", self, source=source), stream)
        host = host_array(source, self.dtype)
        self._check_shape(host.shape)
        return self._copy(ArrayCopy("to_device", self, data=host.tobytes()), stream)

    def copy_to(self, target: npt.NDArray[Any], *, stream: Stream | None = None) -> QueuedCopy | None:
        """Copies the values to an array on the host, of the same shape and type.

        With a stream of the device the copy is queued there; the target has the values after a wait for its end.
        """
        if not isinstance(target, np.ndarray) or not target.flags.writeable:
            raise InputError("the target of a copy is an array of numpy that can be written")
        if target.dtype != self.dtype:
            raise InputError(f"an array of {self.dtype} cannot be copied to one of {target.dtype}")
        self._check_shape(target.shape)
        return self._copy(ArrayCopy("to_host", self, target=target), stream)

    def fill(self, value: Any, *, stream: Stream | None = None) -> QueuedCopy | None:
        """Fills the array with one value; with a stream of the device, in stream order."""
        element = host_array(value, self.dtype)
        if element.shape != ():
            raise InputError(f"an array is filled with one value, not with an array of shape {element.shape}")
        return self._copy(ArrayCopy("fill", self, data=element.tobytes()), stream)

    def _copy(self, copy: ArrayCopy, stream: Stream | None) -> QueuedCopy | None:
        device = stream.device if stream is not None else self.device
        if device is None:
            copy_now(self.native, copy)
            return None
        if device.native is not self.native:
            raise InputError("the stream is one of another device")
        queued: QueuedCopy | None = device.copy(copy, stream)
        return queued

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != self.shape:
            raise InputError(f"an array of shape {shape} does not fit into one of shape {self.shape}")

    def _synchronize(self) -> None:
        if self.device is not None:
            self.device.synchronize()

    def free(self) -> None:
        """Frees the memory; a kernel that accesses it later faults."""
        if self._owns:
            self._owns = False
            if self.device is None:
                self.native.free(self.address)
            else:
                self.device.free_memory(self.address)

    def __del__(self) -> None:
        if not getattr(self, "_owns", False):
            return
        if self.device is None:
            self.free()
        else:
            self.device.release_memory(self.address)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype} {self.shape} at {self.address:#x}>"
