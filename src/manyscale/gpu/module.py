# SPDX-License-Identifier: Apache-2.0
"""Modules on a device, their kernels, and launches."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError, nearest

from .arguments import KernelParameter, pack
from .array import DeviceArray, extents_of
from .checking import describe_problems, problems_of
from .isa import IsaChoice
from .launch import Launch

if TYPE_CHECKING:
    from .device import Device


class Module:
    """A module on a device: `module["kernel"]` is a kernel, `module.variable("name", …)` a global variable."""

    def __init__(self, device: Device, native: _core.GpuModule, name: str, kernels: list[str]) -> None:
        self._device = device
        self._native = native
        self.name = name
        self.kernels = kernels
        self.isa: Literal["sass", "ptx"] = "ptx"  # the ISA that runs
        self.isa_choice = IsaChoice.REQUESTED
        self.isa_reason = ""  # the reason for it, as text

    def __getitem__(self, name: str) -> Kernel:
        native = self._native.kernel(name)
        if native is None:
            raise InputError(f"{self.name}: there is no kernel '{name}'; {nearest(name, self.kernels)}")
        return Kernel(self._device, native, name, self)

    def variable(
        self, name: str, dtype: npt.DTypeLike = np.uint8, shape: int | Sequence[int] | None = None
    ) -> DeviceArray:
        """A variable of the module (`__device__`, `__constant__`) as an array; all of it if no shape is given."""
        placed = self._native.variable(name)
        if placed is None:
            raise InputError(
                f"{self.name}: there is no variable '{name}'; {nearest(name, self._native.variables)}"
            )
        address, size = placed
        item = np.dtype(dtype).itemsize
        if item > size:
            raise InputError(
                f"{self.name}: variable '{name}' has {size} bytes, fewer than one {np.dtype(dtype)}"
            )
        extents = (size // item,) if shape is None else extents_of(shape)
        array = DeviceArray(self._device.native, address, extents, dtype, owns=False)
        if array.nbytes > size:
            raise InputError(
                f"{self.name}: variable '{name}' has {size} bytes, fewer than the {array.nbytes} asked for"
            )
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
            raise InputError(
                f"{self.name}: launch it as kernel[grid, block](…) or kernel[grid, block, shared_bytes](…)"
            )
        grid, block = (_extents(value, self.name) for value in configuration[:2])
        shared = configuration[2] if len(configuration) == 3 else 0
        if not isinstance(shared, numbers.Integral) or not 0 <= int(shared) < 2**32:
            raise InputError(f"{self.name}: dynamic shared memory is a number of bytes, not {shared!r}")
        return _Configured(self, grid, block, int(shared))

    def _launch(self, grid: list[int], block: list[int], shared: int, arguments: tuple[Any, ...]) -> Launch:
        problems = problems_of(self._native.problems)
        if problems:
            raise InputError(
                f"kernel {self.name} cannot be executed:\n" + describe_problems(self.module.name, problems)
            )
        device = self._device
        packed = pack(self.name, self.parameters, arguments, device.native)
        launch = device.run_kernel(self.name, self._native, grid, block, shared, packed)
        if launch.printed and device.echo:
            sys.stdout.write(launch.printed)
        return launch

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(p.type_name for p in self.parameters)})>"


@dataclass(frozen=True)
class _Configured:
    """A kernel with its grid and block, to be called with the arguments."""

    kernel: Kernel
    grid: list[int]
    block: list[int]
    shared: int

    def __call__(self, *arguments: Any) -> Launch:
        return self.kernel._launch(self.grid, self.block, self.shared, arguments)


def _extents(value: Any, kernel: str) -> list[int]:
    extents = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, numbers.Integral) for extent in extents):
        raise InputError(f"{kernel}: a grid or block is one, two or three whole numbers, not {value!r}")
    if not all(0 < int(extent) < 2**32 for extent in extents):
        raise InputError(
            f"{kernel}: a grid or block has at least one element in each direction, not {value!r}"
        )
    return [int(extent) for extent in extents] + [1] * (3 - len(extents))
