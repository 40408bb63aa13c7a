# SPDX-License-Identifier: Apache-2.0
"""Operations on the bytes or half-words of words (PTX ISA 9.7.18.2), without selectors and masks."""

from collections.abc import Callable

from reference.operations import Modifiers, Operation, builder
from reference.ptx_types import TYPES, Type, mask, to_signed

B32 = TYPES["b32"]


def _average(a: int, b: int) -> int:
    """The half of the sum, rounded up unless the sum is negative."""
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": _average,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


@builder(*(f"{name}{parts}" for name in _FUNCTIONS for parts in (2, 4)))
def on_parts(modifiers: Modifiers) -> Operation:
    """Each part of a with that of b; with `.add` the results are added to c, else they are the parts of the result."""
    target, a_type, b_type = modifiers.types
    function, count = _FUNCTIONS[modifiers.base[:-1]], int(modifiers.base[-1])
    width = 32 // count
    accumulate, saturate = modifiers.flag("add"), modifiers.flag("sat")

    def parts(bits: int, type_: Type) -> list[int]:
        values = [bits >> (width * index) & mask(width) for index in range(count)]
        return [to_signed(value, width) if type_.signed else value for value in values]

    def limited(value: int) -> int:
        low = -(1 << (width - 1)) if target.signed else 0
        return min(max(value, low), low + mask(width))

    def compute(a: int, b: int, c: int) -> int:
        results = [function(x, y) for x, y in zip(parts(a, a_type), parts(b, b_type), strict=True)]
        if accumulate:
            return (c + sum(results)) & mask(32)
        if saturate:
            results = [limited(each) for each in results]
        return sum((each & mask(width)) << (width * index) for index, each in enumerate(results))

    return Operation(compute, (B32, B32, B32), (B32,))
