# SPDX-License-Identifier: Apache-2.0
"""The types of PTX: kind and width, and integers as bit patterns."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """A type as an instruction names it. `kind` is b, u, s, f or pred; packed types have several `parts`."""

    name: str
    kind: str
    width: int
    parts: int = 1

    @property
    def part(self) -> "Type":
        """The type of one part of a packed type; a plain type is its own part."""
        return TYPES[self.name.rpartition("x")[0]] if self.parts > 1 else self

    @property
    def signed(self) -> bool:
        return self.kind == "s"

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(1, self.width // 8)


def _all_types() -> dict[str, Type]:
    plain = [Type("pred", "pred", 1)]
    plain += [Type(f"{kind}{width}", kind, width) for kind in "bus" for width in (8, 16, 32, 64)]
    plain += [Type("b128", "b", 128)]
    plain += [Type(f"{kind}{width}", kind, width) for kind in "us" for width in (2, 4)]
    plain += [Type(f"f{width}", "f", width) for width in (16, 32, 64)]
    plain += [Type("bf16", "f", 16), Type("tf32", "f", 32)]
    plain += [Type("e4m3", "f", 8), Type("e5m2", "f", 8), Type("e2m1", "f", 4)]
    plain += [Type("e2m3", "f", 8), Type("e3m2", "f", 8)]
    packed = [("u16", 2), ("s16", 2), ("f16", 2), ("bf16", 2), ("f32", 2)]
    packed += [(name, 2) for name in ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")]
    types = {each.name: each for each in plain}
    for name, parts in packed:
        types[f"{name}x{parts}"] = Type(f"{name}x{parts}", types[name].kind, types[name].width * parts, parts)
    return types


TYPES = _all_types()


def mask(width: int) -> int:
    return (1 << width) - 1


def to_signed(bits: int, width: int) -> int:
    """The two's complement value of a bit pattern."""
    return bits - (1 << width) if bits >> (width - 1) & 1 else bits


def value_of(bits: int, type_: Type) -> int:
    """The integer that a bit pattern of an integer type stands for."""
    return to_signed(bits, type_.width) if type_.signed else bits


def limits(type_: Type) -> tuple[int, int]:
    """The smallest and largest integer of an integer type."""
    if type_.signed:
        return -(1 << (type_.width - 1)), (1 << (type_.width - 1)) - 1
    return 0, mask(type_.width)


def clamp(value: int, type_: Type) -> int:
    low, high = limits(type_)
    return min(max(value, low), high)


def split(bits: int, type_: Type) -> list[int]:
    """The parts of a packed value, lowest first."""
    width = type_.part.width
    return [bits >> (width * index) & mask(width) for index in range(type_.parts)]


def join(parts: list[int], width: int) -> int:
    """The packed value of parts of `width` bits each, lowest first."""
    return sum(part << (width * index) for index, part in enumerate(parts))


def widened(bits: int, type_: Type, width: int) -> int:
    """A value of `type_` in a register of `width` bits: sign-extended if the type is signed, else zero-extended."""
    return value_of(bits, type_) & mask(width)


def per_part(function: Callable[..., int], type_: Type) -> Callable[..., int]:
    """A function of single values, applied to each part of packed ones."""
    if type_.parts == 1:
        return function
    width = type_.part.width
    return lambda *operands: join(
        [function(*each) for each in zip(*(split(operand, type_) for operand in operands), strict=True)],
        width,
    )
