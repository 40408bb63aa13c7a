# SPDX-License-Identifier: Apache-2.0
"""The functional GPU: memory, modules, launches, and no notion of time."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError, KernelError

from .array import ArrayCopy, DeviceArray, copy_now, extents_of, host_array
from .launch import Launch
from .module import Module
from .parsing import ParsedModule, parse
from .texture import Texture

_FORMATS = {
    "uint8": _core.GpuTexture.Format.u8,
    "uint16": _core.GpuTexture.Format.u16,
    "uint32": _core.GpuTexture.Format.u32,
    "int8": _core.GpuTexture.Format.s8,
    "int16": _core.GpuTexture.Format.s16,
    "int32": _core.GpuTexture.Format.s32,
    "float16": _core.GpuTexture.Format.f16,
    "float32": _core.GpuTexture.Format.f32,
}

_ADDRESSES = ("clamp", "wrap", "mirror", "border")
_FILTERS = ("point", "linear")
_LARGEST = 2**63 - 1  # more than any device has


class Device:
    """A GPU that executes kernels exactly, without modelling how long they take.

    `threads`: host threads that share the CTAs of a grid; the results do not depend on it. `check`: look for races in
    shared memory and for reads of memory that nobody wrote; findings are in `Launch.warnings`.
    `maximum_instructions`: warp instructions after which a launch is given up, 0 for no limit. `echo`: show what
    kernels print.
    """

    module_type: type[Module] = Module  # what `load` makes

    def __init__(
        self, *, threads: int = 1, check: bool = False, maximum_instructions: int = 0, echo: bool = True
    ) -> None:
        if not isinstance(threads, numbers.Integral) or not 1 <= threads <= 1024:
            raise InputError(f"threads must be between 1 and 1024, not {threads!r}")
        if not isinstance(maximum_instructions, numbers.Integral) or not 0 <= maximum_instructions < 2**64:
            raise InputError(
                f"maximum_instructions must not be negative, and 0 means no limit; not {maximum_instructions!r}"
            )
        self.native: _core.GpuDevice = _core.GpuDevice()
        if check:
            self.native.track_writes()
        self.threads: int = threads
        self.check: bool = check
        self.maximum_instructions: int = maximum_instructions
        self.echo: bool = echo

    def load(self, source: Any, *, target: str | None = None) -> Module:
        """Loads a module: the path of a `.ptx` or `.cu` file, PTX text, or a kernel compiled by Triton or Numba."""
        parsed = source if isinstance(source, ParsedModule) else parse(source, target=target)
        try:
            native = self.native.load(parsed.native)
        except MemoryError:
            raise InputError(f"{parsed.name}: its variables do not fit into the device's memory") from None
        return self.module_type(self, native, parsed.name, parsed.kernels)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array; its values mean nothing yet."""
        extents = extents_of(shape)
        try:
            kind = np.dtype(dtype)
        except TypeError as error:
            raise InputError(f"{dtype!r} is not a type of numbers: {error}") from None
        size = math.prod(extents) * kind.itemsize
        try:
            address = self.native.allocate(min(size, _LARGEST), f"an array {extents} of {kind}")
        except MemoryError:
            raise InputError(f"an array of {size} bytes does not fit into the device's memory") from None
        return DeviceArray(self.native, address, extents, dtype, owns=True, device=self)

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array of zeros."""
        array = self.empty(shape, dtype)
        array.write(np.zeros(array.shape, array.dtype))
        return array

    def array(self, values: npt.ArrayLike) -> DeviceArray:
        """A copy of values on the device."""
        host = host_array(values)
        array = self.empty(host.shape, host.dtype)
        array.write(host)
        return array

    def synchronize(self) -> None:
        """Waits until all that was queued has ended; here nothing is queued."""

    def copy(self, copy: ArrayCopy, stream: Any = None) -> Any:
        """Carries out a copy; use `array.copy_from`, `array.copy_to` and `array.fill`."""
        if stream is not None:
            raise InputError("this device has no time, and so no streams; gpu.TimedDevice has")
        copy_now(self.native, copy)

    def run_kernel(
        self,
        kernel: str,
        native: _core.GpuKernel,
        grid: list[int],
        block: list[int],
        shared: int,
        packed: bytes,
    ) -> Launch:
        """Runs one launch to its end; use `kernel[grid, block](…)`."""
        begin = time.perf_counter()
        try:
            result = self.native.launch(
                native, grid, block, shared, packed, self.threads, self.check, self.maximum_instructions
            )
        except _core.KernelFault as error:
            raise KernelError(str(error)) from None
        except _core.BadLaunch as error:
            raise InputError(f"kernel {kernel}: {error}") from None
        return Launch(
            kernel=kernel,
            warp_instructions=result.warp_instructions,
            thread_instructions=result.thread_instructions,
            printed=result.printed.decode(errors="replace"),
            warnings=tuple(result.warnings),
            wall_seconds=time.perf_counter() - begin,
        )

    def texture(
        self,
        values: npt.ArrayLike | DeviceArray,
        *,
        address: Literal["clamp", "wrap", "mirror", "border"] = "clamp",
        filter: Literal["point", "linear"] = "point",
        normalized: bool = False,
        read: Literal["element", "normalized"] = "element",
        channels: Literal[1, 2, 4] = 1,
        linear_memory: bool = False,
    ) -> Texture:
        """A texture object on an array of shape (width), (height, width) or (depth, height, width).

        With 2 or 4 `channels` the array has one more axis, the last. `normalized` coordinates run from 0 to 1; `read`
        as "normalized" makes integers numbers from 0 to 1 (or -1 to 1). `linear_memory` makes a buffer for
        `tex1Dfetch`: indices outside of it read zero.
        """
        array = values if isinstance(values, DeviceArray) else self.array(values)
        if array.native is not self.native:
            raise InputError("the array is on another device")
        choices = {
            "address": (address, _ADDRESSES),
            "filter": (filter, _FILTERS),
            "read": (read, ("element", "normalized")),
        }
        for option, (given, known) in choices.items():
            if given not in known:
                raise InputError(f"{option} is one of {', '.join(known)}, not {given!r}")
        if channels not in (1, 2, 4):
            raise InputError(f"a texture has 1, 2 or 4 channels, not {channels!r}")
        if array.size == 0:
            raise InputError("a texture needs at least one texel")
        if array.dtype.name not in _FORMATS:
            raise InputError(f"a texture cannot hold {array.dtype}; it can hold {', '.join(_FORMATS)}")
        shape = array.shape
        if channels != 1:
            if not shape or shape[-1] != channels:
                raise InputError(
                    f"with {channels} channels the last axis of the array must have as many, not {shape}"
                )
            shape = shape[:-1]
        if not 1 <= len(shape) <= 3:
            raise InputError(f"a texture has one, two or three dimensions, not {len(shape)}")
        whole = array.dtype.kind in "iu"
        if filter == "linear" and whole and read == "element":
            raise InputError("linear filtering needs numbers with a fraction: floats, or read='normalized'")
        if read == "normalized" and (not whole or array.dtype.itemsize > 2):
            raise InputError("only integers of 8 and 16 bits can be read as normalized")
        if linear_memory and len(shape) != 1:
            raise InputError("linear memory has one dimension")
        native = _core.GpuTexture()
        native.memory = array.address
        native.bytes = array.nbytes
        native.format = _FORMATS[array.dtype.name]
        native.channels = channels
        native.dimensions = len(shape)
        extent = list(reversed(shape)) + [1] * (3 - len(shape))
        native.extent = extent
        native.pitch = extent[0] * channels * array.dtype.itemsize
        native.normalized_coordinates = normalized
        native.normalized_values = read == "normalized"
        native.linear_memory = linear_memory
        native.filter = getattr(_core.GpuTexture.Filter, filter)
        native.address = [getattr(_core.GpuTexture.Address, address)] * 3
        return Texture(self.native, self.native.add_texture(native), array)
