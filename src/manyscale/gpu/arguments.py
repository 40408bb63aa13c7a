# SPDX-License-Identifier: Apache-2.0
"""The parameter block of a launch, packed from Python values."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyscale import _core
from manyscale.errors import InputError

from .array import DeviceArray
from .texture import Texture

_FLOATS: Mapping[str, type[np.floating[Any]]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_FLOATS_BY_SIZE: Mapping[int, type[np.floating[Any]]] = {2: np.float16, 4: np.float32, 8: np.float64}


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel, as its PTX declares it."""

    name: str
    type: str
    offset: int
    size: int
    is_array: bool  # a structure, passed by value

    @property
    def type_name(self) -> str:
        """Its type in words."""
        return f"{self.size} bytes" if self.is_array else self.type


def pack(
    kernel: str, parameters: list[KernelParameter], arguments: tuple[Any, ...], device: _core.GpuDevice
) -> bytes:
    """The parameter block of a launch; an error if the arguments do not fit the signature."""
    if len(arguments) != len(parameters):
        signature = ", ".join(f"{p.name}: {p.type_name}" for p in parameters)
        raise InputError(
            f"kernel {kernel} takes {len(parameters)} arguments, but {len(arguments)} were given; "
            f"it is declared as ({signature})"
        )
    block = bytearray(parameters[-1].offset + parameters[-1].size if parameters else 0)
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True), 1):
        where = f"kernel {kernel}, argument {number} ({parameter.name})"
        block[parameter.offset : parameter.offset + parameter.size] = _bytes_of(
            parameter, argument, where, device
        )
    return bytes(block)


def _bytes_of(parameter: KernelParameter, argument: Any, where: str, device: _core.GpuDevice) -> bytes:
    if isinstance(argument, (DeviceArray, Texture)):
        if argument.native is not device:
            raise InputError(f"{where}: it is on another device")
        value = argument.address if isinstance(argument, DeviceArray) else argument.handle
        if parameter.size != 8 or parameter.type in _FLOATS or parameter.is_array:
            raise InputError(f"{where}: it takes {parameter.type_name}, not an address")
        return int(value).to_bytes(8, "little")
    structured = isinstance(argument, np.ndarray) and (argument.dtype.names is not None or argument.ndim == 0)
    if isinstance(argument, np.ndarray) and not structured and not parameter.is_array:
        raise InputError(f"{where}: this is an array on the host; copy it to the device with device.array(…)")
    if isinstance(argument, (bytes, bytearray, np.ndarray, np.void)):
        data = bytes(argument) if isinstance(argument, (bytes, bytearray)) else argument.tobytes()
        if len(data) != parameter.size:
            raise InputError(f"{where}: it takes {parameter.size} bytes, but {len(data)} were given")
        return data
    if parameter.is_array:
        raise InputError(f"{where}: it takes {parameter.size} bytes, as bytes or a structured numpy value")
    if not isinstance(argument, (numbers.Real, np.integer, np.floating, np.bool_)):
        raise InputError(f"{where}: {argument!r} is not a number, nor an array on the device")
    return _scalar_bytes(parameter, argument, where)


def _scalar_bytes(parameter: KernelParameter, argument: Any, where: str) -> bytes:
    is_float = isinstance(argument, (float, np.floating))
    if parameter.type in _FLOATS:
        return _float_bytes(_FLOATS[parameter.type], argument, where)
    if is_float and parameter.type.startswith("b"):
        # Compilers that use PTX's types of bits pass floats in them.
        return _float_bytes(_FLOATS_BY_SIZE[parameter.size], argument, where)
    if is_float or not isinstance(argument, (numbers.Integral, np.integer, np.bool_)):
        raise InputError(f"{where}: it takes a whole number ({parameter.type}), not {argument!r}")
    value = int(argument)
    bits = 8 * parameter.size
    if not -(2 ** (bits - 1)) <= value < 2**bits:
        raise InputError(f"{where}: {value} does not fit into {parameter.type}")
    return (value & ((1 << bits) - 1)).to_bytes(parameter.size, "little")


def _float_bytes(kind: type[np.floating[Any]], argument: Any, where: str) -> bytes:
    try:
        with np.errstate(over="ignore"):
            value = kind(argument)
        too_large = bool(np.isinf(value)) and abs(float(argument)) != float("inf")
    except OverflowError:
        too_large = True
    if too_large:
        raise InputError(f"{where}: {argument!r} does not fit into {kind.__name__}")
    return bytes(value.tobytes())
