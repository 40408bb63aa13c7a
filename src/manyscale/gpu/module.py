# SPDX-License-Identifier: Apache-2.0
"""Loaded modules, their kernels, and launches of these."""

from __future__ import annotations

import numbers
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError, KernelError, nearest

from .array import DeviceArray
from .checking import describe_problems, problems_of
from .texture import Texture

if TYPE_CHECKING:
    from .device import Device

_FLOATS: Mapping[str, type[np.floating[Any]]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel, as its PTX declares it."""

    name: str
    type: str
    offset: int
    size: int
    is_array: bool  # a structure, passed by value


@dataclass(frozen=True)
class Launch:
    """What a launch has done."""

    kernel: str
    warp_instructions: int
    thread_instructions: int
    printed: str
    warnings: tuple[str, ...]
    wall_seconds: float


class Module:
    """A PTX module on a device: `module["kernel"]` is a kernel, `module.variable("name", …)` a global variable."""

    def __init__(self, device: Device, native: _core.GpuModule, name: str, kernels: list[str]) -> None:
        self._device = device
        self._native = native
        self.name = name
        self.kernels = kernels

    def __getitem__(self, name: str) -> Kernel:
        native = self._native.kernel(name)
        if native is None:
            raise InputError(f"{self.name}: there is no kernel '{name}'; {nearest(name, self.kernels)}")
        return Kernel(self._device, native, name, self)

    def variable(self, name: str, dtype: npt.DTypeLike = np.uint8, shape: int | Sequence[int] | None = None) -> DeviceArray:
        """A variable of the module (`__device__`, `__constant__`) as an array; all of it if no shape is given."""
        placed = self._native.variable(name)
        if placed is None:
            raise InputError(f"{self.name}: there is no variable '{name}'; {nearest(name, self._native.variables)}")
        address, size = placed
        item = np.dtype(dtype).itemsize
        extents = (size // item,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        array = DeviceArray(self._device.native, address, extents, dtype, owns=False)
        if array.nbytes > size:
            raise InputError(f"{self.name}: variable '{name}' has {size} bytes, fewer than the {array.nbytes} asked for")
        return array

    def __repr__(self) -> str:
        return f"<Module {self.name}: {', '.join(self.kernels)}>"


class Kernel:
    """A kernel: `kernel[grid, block](arguments…)` runs it, `kernel[grid, block, bytes](…)` with dynamic shared memory.

    `grid` and `block` are a number or up to three.
    """

    def __init__(self, device: Device, native: _core.GpuKernel, name: str, module: Module) -> None:
        self._device = device
        self._native = native
        self.name = name
        self.module = module
        self.parameters = [KernelParameter(*row) for row in native.parameters]

    def __getitem__(self, configuration: Any) -> _Configured:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 3:
            raise InputError(f"{self.name}: launch it as kernel[grid, block](…) or kernel[grid, block, shared_bytes](…)")
        grid, block = (_extents(value, self.name) for value in configuration[:2])
        shared = int(configuration[2]) if len(configuration) == 3 else 0
        return _Configured(self, grid, block, shared)

    def _launch(self, grid: list[int], block: list[int], shared: int, arguments: tuple[Any, ...]) -> Launch:
        problems = problems_of(self._native.problems)
        if problems:
            raise InputError(f"kernel {self.name} cannot be executed:\n" + describe_problems(self.module.name, problems))
        device = self._device
        packed = self._pack(arguments)
        start = time.perf_counter()
        try:
            result = device.native.launch(
                self._native, grid, block, shared, packed, device.threads, device.check, device.maximum_instructions
            )
        except _core.KernelFault as error:
            raise KernelError(str(error)) from None
        except _core.BadLaunch as error:
            raise InputError(f"kernel {self.name}: {error}") from None
        printed = result.printed.decode(errors="replace")
        if printed and device.echo:
            sys.stdout.write(printed)
        return Launch(
            kernel=self.name,
            warp_instructions=result.warp_instructions,
            thread_instructions=result.thread_instructions,
            printed=printed,
            warnings=tuple(result.warnings),
            wall_seconds=time.perf_counter() - start,
        )

    def _pack(self, arguments: tuple[Any, ...]) -> bytes:
        if len(arguments) != len(self.parameters):
            signature = ", ".join(f"{p.name}: {_type_name(p)}" for p in self.parameters)
            raise InputError(
                f"kernel {self.name} takes {len(self.parameters)} arguments, but {len(arguments)} were given; "
                f"it is declared as ({signature})"
            )
        last = self.parameters[-1] if self.parameters else None
        block = bytearray(last.offset + last.size if last else 0)
        for number, (parameter, argument) in enumerate(zip(self.parameters, arguments, strict=True), 1):
            block[parameter.offset : parameter.offset + parameter.size] = _bytes_of(
                parameter, argument, f"kernel {self.name}, argument {number} ({parameter.name})"
            )
        return bytes(block)

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(_type_name(p) for p in self.parameters)})>"


@dataclass(frozen=True)
class _Configured:
    """A kernel with its grid and block, to be called with the arguments."""

    kernel: Kernel
    grid: list[int]
    block: list[int]
    shared: int

    def __call__(self, *arguments: Any) -> Launch:
        return self.kernel._launch(self.grid, self.block, self.shared, arguments)


def _type_name(parameter: KernelParameter) -> str:
    return f"{parameter.size} bytes" if parameter.is_array else parameter.type


def _extents(value: Any, kernel: str) -> list[int]:
    extents = [value] if isinstance(value, numbers.Integral) else list(value)
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, numbers.Integral) for extent in extents):
        raise InputError(f"{kernel}: a grid or block is one, two or three whole numbers, not {value!r}")
    if not all(0 < int(extent) < 2**32 for extent in extents):
        raise InputError(f"{kernel}: a grid or block has at least one element in each direction, not {value!r}")
    return [int(extent) for extent in extents] + [1] * (3 - len(extents))


def _bytes_of(parameter: KernelParameter, argument: Any, where: str) -> bytes:
    """An argument as the bytes of a parameter; an error if it cannot be one."""
    if isinstance(argument, (DeviceArray, Texture)):
        value = argument.address if isinstance(argument, DeviceArray) else argument.handle
        if parameter.size != 8 or parameter.type in _FLOATS:
            raise InputError(f"{where}: it takes {_type_name(parameter)}, not an address")
        return value.to_bytes(8, "little")
    if isinstance(argument, np.ndarray) and argument.dtype.names is None and argument.nbytes != parameter.size:
        raise InputError(f"{where}: this is an array on the host; copy it to the device with device.array(…)")
    if isinstance(argument, (bytes, bytearray, np.ndarray, np.void)):
        data = bytes(argument) if isinstance(argument, (bytes, bytearray)) else argument.tobytes()
        if len(data) != parameter.size:
            raise InputError(f"{where}: it takes {parameter.size} bytes, but {len(data)} were given")
        return data
    if parameter.is_array:
        raise InputError(f"{where}: it takes {parameter.size} bytes, as bytes or a structured numpy value")
    if not isinstance(argument, (numbers.Number, np.generic)):
        raise InputError(f"{where}: {argument!r} is not a number, nor an array on the device")
    return _scalar_bytes(parameter, argument, where)


def _scalar_bytes(parameter: KernelParameter, argument: Any, where: str) -> bytes:
    if parameter.type in _FLOATS:
        return _FLOATS[parameter.type](argument).tobytes()
    if isinstance(argument, np.generic) and argument.dtype.itemsize == parameter.size:
        return argument.tobytes()
    if isinstance(argument, (float, np.floating)):
        if parameter.type.startswith("b"):  # compilers that use PTX's types of bits pass floats in them
            kinds = {2: np.float16, 4: np.float32, 8: np.float64}
            return bytes(kinds[parameter.size](argument).tobytes())
        raise InputError(f"{where}: it takes a whole number ({parameter.type}), not {argument!r}")
    value = int(argument)
    bits = 8 * parameter.size
    if not -(2 ** (bits - 1)) <= value < 2**bits:
        raise InputError(f"{where}: {value} does not fit into {parameter.type}")
    return (value % 2**bits).to_bytes(parameter.size, "little")
