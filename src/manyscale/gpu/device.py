# SPDX-License-Identifier: Apache-2.0
"""The functional GPU: memory, modules and launches, without time."""

from __future__ import annotations

import math
import numbers
import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError, KernelError, OutOfMemoryError

from .array import ArrayCopy, DeviceArray, copy_now, extents_of, host_array
from .isa import CodeRules, Isa, IsaChoice, LoadedCode, isa_of, load_code
from .launch import Launch
from .managed import PAGE, AdviceName, ManagedArray, Side, advice_of, side_of
from .module import Module
from .parsing import ParsedModule, parse
from .sass import architecture_near, read_sass
from .sources import cubin_of
from .targets import NewerTargetWarning, WrongTargetError, cubin_target, refusal
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
_LARGEST = 2**63 - 1  # bytes, more than any device has
_MANAGED_ALIGNMENT = 2 * 1024 * 1024  # of managed memory, which the UVM driver handles in blocks of 2 MiB


class Device:
    """A GPU that executes kernels exactly, without modelling how long they take.

    `threads`: host threads that share the CTAs of a grid; the results do not depend on it. `check`: find races in
    shared memory and uninitialised reads; findings are in `Launch.warnings`.
    `maximum_instructions`: limit of warp instructions per launch, 0 for none. `echo`: show what
    kernels print. `isa`: what kernels run as: PTX (`"ptx"`; also `"auto"`, for no machine says whose SASS it would
    be) or SASS (`"sass"`) of the GPU that the PTX is for. `allow_newer`: take PTX for newer GPUs than the machine's,
    with a warning; without it that is an error. `native`: a device of the core, such as one that shares its memory with
    another.
    """

    module_type: type[Module] = Module  # what `load` makes

    def __init__(
        self,
        *,
        threads: int = 1,
        check: bool = False,
        maximum_instructions: int = 0,
        echo: bool = True,
        isa: Isa = "auto",
        allow_newer: bool = False,
        native: _core.GpuDevice | None = None,
    ) -> None:
        if not isinstance(threads, numbers.Integral) or not 1 <= threads <= 1024:
            raise InputError(f"threads must be between 1 and 1024, not {threads!r}")
        if not isinstance(maximum_instructions, numbers.Integral) or not 0 <= maximum_instructions < 2**64:
            raise InputError(
                f"maximum_instructions must not be negative, and 0 means no limit; not {maximum_instructions!r}"
            )
        self.native: _core.GpuDevice = _core.GpuDevice() if native is None else native
        if check:
            self.native.track_writes()
        self.threads: int = threads
        self.check: bool = check
        self.maximum_instructions: int = maximum_instructions
        self.echo: bool = echo
        self.isa: Isa = isa_of(isa)
        self.allow_newer: bool = allow_newer
        self._managed: dict[int, int] = {}  # bytes of managed memory, by address
        self.code_files: dict[str, bytes] = {}  # PTX and sources of the modules, for a run directory
        self.loaded_code: dict[str, LoadedCode] = {}  # by the names of the modules

    def load(self, source: Any, *, target: str | None = None, isa: Isa | None = None) -> Module:
        """Loads a module: the path of a `.ptx`, `.cu` or `.cubin` file, PTX text, the contents of a cubin, or a kernel
        compiled by Triton or Numba.

        `isa`: the ISA to run, that of the device if None; `Module.isa` is the result.
        """
        machine = cubin_of(source)
        name = "the module"
        try:
            if machine is not None:
                data, name = machine
                return self._load_cubin(data, name, isa)
            parsed = source if isinstance(source, ParsedModule) else parse(source, target=target)
            name = parsed.name
            self._check_target(parsed)
            code = load_code(self.native, parsed, self.code_rules(parsed, isa))
        except MemoryError as error:
            raise OutOfMemoryError(f"{name}: there is not enough memory for it and its variables") from error
        self.code_files |= parsed.files
        return self._module(code, parsed.name, parsed.kernels)

    def _module(self, code: LoadedCode, name: str, kernels: list[str]) -> Module:
        self.loaded_code[name] = code
        module = self.module_type(self, code.native, name, kernels)
        module.isa, module.isa_choice, module.isa_reason = code.isa, code.choice, code.reason
        return module

    def _load_cubin(self, data: bytes, name: str, isa: Isa | None) -> Module:
        if isa == "ptx":
            raise InputError(f"{name}: this is SASS and has no PTX; load it with isa='sass'")
        file = read_sass(data, name)
        if self.capability is not None:
            why = refusal(name, "SASS", cubin_target(data, file.architecture), self.capability)
            if why is not None:
                raise WrongTargetError(why)
        code = LoadedCode(self.native.load(file), "sass", IsaChoice.CUBIN, "the file has SASS only")
        return self._module(code, name, file.kernels)

    @property
    def capability(self) -> int | None:
        """The compute capability of the GPU, 70 for 7.0; None: it takes code for any."""
        return None

    def _check_target(self, parsed: ParsedModule) -> None:
        """Refuses PTX that the GPU does not support."""
        if self.capability is None or parsed.portable:
            return
        why = refusal(parsed.name, "PTX", parsed.target, self.capability)
        if why is None:
            return
        if not self.allow_newer:
            raise WrongTargetError(why)
        warnings.warn(why, NewerTargetWarning, stacklevel=3)

    def code_rules(self, parsed: ParsedModule | None = None, isa: Isa | None = None) -> CodeRules:
        """How the ISA of a module is chosen; `isa` replaces that of the device."""
        near = None if parsed is None else architecture_near(parsed.target)
        return CodeRules(isa_of(isa or self.isa), near, why_ptx=IsaChoice.UNTIMED)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array, uninitialised."""
        extents, kind = extents_of(shape), _type_of(dtype)
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

    # --- Managed memory; without time it is memory like any other ---

    def managed(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> ManagedArray:
        """A new array in managed memory, uninitialised."""
        extents, kind = extents_of(shape), _type_of(dtype)
        size = max(math.prod(extents) * kind.itemsize, 1)
        address = self._allocate_managed(size, f"a managed array {extents} of {kind}")
        return ManagedArray(self.native, address, extents, kind, owns=True, device=self)

    def managed_allocate(self, bytes: int) -> int:
        """Managed memory as an address, a multiple of 2 MiB; free it by `managed_free`."""
        if not isinstance(bytes, numbers.Integral) or bytes < 1:
            raise InputError(f"managed memory has at least one byte, not {bytes!r}")
        return self._allocate_managed(int(bytes), f"{bytes} bytes of managed memory")

    def managed_free(self, address: int) -> None:
        """Frees managed memory, when all queued work has ended."""
        if address not in self._managed:
            raise InputError(f"no managed memory begins at {address:#x}")
        self._free_managed(address)
        del self._managed[address]

    def release_managed(self, address: int) -> None:
        """Frees managed memory without references, now or later."""
        if address in self._managed:
            self.managed_free(address)

    def managed_ranges(self) -> list[tuple[int, int]]:
        """The managed memory there is: addresses and bytes."""
        return sorted(self._managed.items())

    def prefetch_range(self, address: int, bytes: int, to: Side = "device", stream: Any = None) -> Any:
        """Migrates pages of managed memory to the device or to the host; with a stream, in stream order."""
        self._check_managed(address, bytes)
        return self._move_range(f"prefetch_to_{side_of(to, 'to')}", address, bytes, stream)

    def advise_range(
        self, address: int, bytes: int, advice: AdviceName, on: bool = True, at: Side = "device"
    ) -> None:
        """Advises the UVM driver; see `ManagedArray.advise`."""
        self._check_managed(address, bytes)
        self._advise_range(address, bytes, advice_of(advice, on, at))

    def host_access(self, address: int, bytes: int, write: bool = False, *, wait: bool = True) -> Any:
        """The host reads or writes managed memory: pages on the device migrate back."""
        self._check_managed(address, bytes)
        return self._access_range("host_write" if write else "host_read", address, bytes, wait)

    def page_locations(self, address: int, bytes: int) -> npt.NDArray[np.str_]:
        """The location of each page of managed memory; without time, all are on both sides."""
        self._check_managed(address, bytes)
        first = address // PAGE
        return np.full((address + bytes + PAGE - 1) // PAGE - first, "both")

    def _check_managed(self, address: int, bytes: int) -> None:
        if not isinstance(bytes, numbers.Integral) or bytes < 0:
            raise InputError(f"a range has a number of bytes, not {bytes!r}")
        begin = max((begin for begin in self._managed if begin <= address), default=None)
        if begin is None or address + bytes > begin + self._managed[begin]:
            raise InputError(f"the {bytes} bytes at {address:#x} are not within one piece of managed memory")

    def _allocate_managed(self, size: int, label: str) -> int:
        try:
            address = self._reserve_managed(min(size, _LARGEST), label)
        except MemoryError:
            raise InputError(f"{size} bytes of managed memory do not fit into the address space") from None
        self._managed[address] = size
        return address

    def _reserve_managed(self, size: int, label: str) -> int:
        return self.native.allocate(size, label, _MANAGED_ALIGNMENT)

    def _free_managed(self, address: int) -> None:
        self.native.free(address)

    def _move_range(self, kind: str, address: int, size: int, stream: Any) -> Any:
        if stream is not None:
            raise InputError("this device has no time, and so no streams; gpu.TimedDevice has")

    def _access_range(self, kind: str, address: int, size: int, wait: bool) -> Any:
        return None

    def _advise_range(self, address: int, size: int, advice: _core.GpuAdvice) -> None:
        pass

    def synchronize(self) -> None:
        """Waits until all that was queued has ended; here nothing is queued."""

    def free_memory(self, address: int) -> None:
        """Frees the memory of an array."""
        self.native.free(address)

    def release_memory(self, address: int) -> None:
        """Frees the memory of an array without references, now or later."""
        self.native.free(address)

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
                native, grid, block, shared, packed, self.threads, 15 * self.check, self.maximum_instructions
            )
        except _core.KernelFault as error:
            raise KernelError.of(error) from None
        except _core.BadLaunch as error:
            raise InputError(f"kernel {kernel}: {error}") from None
        return Launch(
            kernel=kernel,
            isa=native.isa,
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


def _type_of(dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise InputError(f"{dtype!r} is not a type of numbers: {error}") from None
