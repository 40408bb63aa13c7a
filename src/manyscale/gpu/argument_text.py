# SPDX-License-Identifier: Apache-2.0
"""Arguments of a kernel as text, on a command line or in a study: `x=f32[1024]:random`, `@input.npy`, `2.5`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DTYPES = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
FILLS = ("zeros", "ones", "arange", "random")

_FORMS = "x=f32[1024]:random, f32[64,64], @file.npy, 100 or 2.5"
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ARRAY = re.compile(r"(\w+)\[([^\]]*)\](?::(\w+))?")
_WHOLE = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)")


@dataclass(frozen=True)
class KernelArgument:
    """An argument of a kernel: a number, or the values of an array on the device."""

    name: str
    value: int | float | npt.NDArray[Any]

    @property
    def is_array(self) -> bool:
        return not isinstance(self.value, int | float)


def parse_arguments(texts: Sequence[str], random: np.random.Generator) -> list[KernelArgument]:
    """The arguments that texts such as `x=f32[1024]:random` describe; without a name they are called 1, 2, …"""
    arguments: dict[str, KernelArgument] = {}
    for number, text in enumerate(texts, 1):
        named = _NAMED.fullmatch(text)
        name, rest = (named[1], named[2]) if named else (str(number), text)
        if name in arguments:
            raise InputError(f"--arg {text}: there is already an argument called '{name}'")
        try:
            arguments[name] = KernelArgument(name, _value(rest.strip(), random))
        except InputError as error:
            raise InputError(f"--arg {text}: {error}") from None
    return list(arguments.values())


def _value(text: str, random: np.random.Generator) -> int | float | npt.NDArray[Any]:
    if text.startswith("@"):
        return _from_file(Path(text[1:]))
    array = _ARRAY.fullmatch(text)
    if array is not None:
        return _filled(array[1], array[2], array[3] or "zeros", random)
    if _WHOLE.fullmatch(text):
        return int(text, 0) if "x" in text.lower() else int(text)
    try:
        return float(text)
    except ValueError:
        raise InputError(f"this is neither an array nor a number; write {_FORMS}") from None


def _filled(kind: str, shape: str, fill: str, random: np.random.Generator) -> npt.NDArray[Any]:
    import numpy as np

    if kind not in DTYPES:
        raise InputError(f"'{kind}' is not a type; {nearest(kind, DTYPES)}")
    if fill not in FILLS:
        raise InputError(f"'{fill}' is not a way to fill an array; {nearest(fill, FILLS)}")
    try:
        extents = [int(extent) for extent in shape.split(",")]
    except ValueError:
        extents = []
    if not extents or min(extents) < 1:
        raise InputError(f"[{shape}] is not a shape; write whole numbers such as [1024] or [64,64]")
    dtype = np.dtype(DTYPES[kind])
    try:
        if fill == "random":
            values = random.random(extents) if dtype.kind == "f" else random.integers(0, 100, extents)
        elif fill == "arange":
            values = np.arange(math.prod(extents)).reshape(extents)
        else:
            values = np.full(extents, fill == "ones", dtype)
        return values.astype(dtype)
    except (MemoryError, ValueError, OverflowError):
        raise InputError(f"an array [{shape}] does not fit into memory") from None


def _from_file(path: Path) -> npt.NDArray[Any]:
    import numpy as np

    try:
        values = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except Exception as error:  # a damaged header is parsed as Python, which fails in many ways
        raise InputError(f"{path}: this is not a file of a numpy array ({error})") from None
    if not isinstance(values, np.ndarray):
        raise InputError(f"{path}: it holds several arrays; save one of them as .npy")
    if values.dtype.kind not in "fiu":
        raise InputError(f"{path}: it holds {values.dtype}, not numbers that a kernel could use")
    return values
