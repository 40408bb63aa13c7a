# SPDX-License-Identifier: Apache-2.0
"""An opcode, such as `mad.wide.s32`, as a function from the bits of its sources to the bits of its results.

The modules of the families register a builder per base opcode; the builder reads the modifiers.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from reference.ptx_types import TYPES, Type


class UnsupportedError(Exception):
    """The reference does not know an instruction or a form of it."""


@dataclass(frozen=True)
class Operation:
    """What an instruction computes from its sources alone.

    `function` takes the bits of the sources and gives the bits of the result, or a tuple of them if there are several.
    With `reads_carry` the function takes the carry flag as a last argument, with `writes_carry` it gives the new one as
    a last result. `nan` says how exact a NaN result is: any NaN will do, or it is exactly the one computed here.
    """

    function: Callable
    sources: tuple[Type, ...]
    results: tuple[Type, ...]
    nan: str = "any"
    reads_carry: bool = False
    writes_carry: bool = False
    optional_results: int = 0
    """How many results, counted from the last, the instruction may leave out."""


class Modifiers:
    """What follows the base opcode. Types are taken from the end, the rest is asked for by name and used up."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        self.base, *self.names = opcode.split(".")
        self.types = [TYPES[name] for name in self.names if name in TYPES]
        self.left = [name for name in self.names if name not in TYPES]

    @property
    def type(self) -> Type:
        """The last type, which is that of the sources where there are several."""
        if not self.types:
            raise UnsupportedError(f"{self.opcode}: no type")
        return self.types[-1]

    def take(self, *names: str, default: str | None = None) -> str | None:
        """The one of `names` that is there."""
        found = [name for name in self.left if name in names]
        if len(found) > 1:
            raise UnsupportedError(f"{self.opcode}: {' and '.join(found)}")
        if found:
            self.left.remove(found[0])
        return found[0] if found else default

    def flag(self, name: str) -> bool:
        return self.take(name) is not None

    def finish(self) -> None:
        """Refuses modifiers that nothing has asked for."""
        if self.left:
            raise UnsupportedError(f"{self.opcode}: .{' .'.join(self.left)} is not known here")


Builder = Callable[[Modifiers], Operation]
_builders: dict[str, Builder] = {}

_FAMILIES = (
    "integer_operations",
    "float_operations",
    "compare_operations",
    "convert_operations",
    "video_operations",
)


def builder(*bases: str) -> Callable[[Builder], Builder]:
    """Registers a builder of operations for base opcodes."""

    def register(function: Builder) -> Builder:
        for base in bases:
            _builders[base] = function
        return function

    return register


@cache
def operation(opcode: str) -> Operation:
    """The operation that an opcode with all its modifiers stands for."""
    for family in _FAMILIES:
        importlib.import_module(f"reference.{family}")
    modifiers = Modifiers(opcode)
    if modifiers.base not in _builders:
        raise UnsupportedError(f"{opcode}: not an operation on registers alone")
    result = _builders[modifiers.base](modifiers)
    modifiers.finish()
    return result
