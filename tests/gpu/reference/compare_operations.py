# SPDX-License-Identifier: Apache-2.0
"""Comparison and selection (PTX ISA 9.7.6, 9.7.7)."""

from collections.abc import Callable

from reference import rounding
from reference.operations import Modifiers, Operation, builder
from reference.ptx_types import TYPES, Type, join, split, value_of
from reference.rounding import FORMATS

PRED, S32, F32 = TYPES["pred"], TYPES["s32"], TYPES["f32"]

_ORDERINGS: dict[str, Callable[[int], bool]] = {
    "eq": lambda order: order == 0,
    "ne": lambda order: order != 0,
    "lt": lambda order: order < 0,
    "le": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "ge": lambda order: order >= 0,
}
"""What a comparison says of the order of its operands: negative, 0 or positive."""

_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_COMPARISONS = (*_ORDERINGS, *(f"{name}u" for name in _ORDERINGS), "num", "nan")
INTEGER_COMPARISONS = tuple(_ORDERINGS)
UNSIGNED_COMPARISONS = (*_ORDERINGS, *_UNSIGNED)

_COMBINE: dict[str | None, Callable[[int, int], int]] = {
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    None: lambda t, _c: t,
}


def _integer_comparison(name: str, type_: Type) -> Callable[[int, int], int]:
    holds = _ORDERINGS[_UNSIGNED.get(name, name)]
    return lambda a, b: int(holds(value_of(a, type_) - value_of(b, type_)))


def _float_comparison(name: str, type_: Type, flush: bool) -> Callable[[int, int], int]:
    format_ = FORMATS[type_.name]

    def compare(a: int, b: int) -> int:
        if flush:
            a, b = rounding.flushed(a, format_), rounding.flushed(b, format_)
        unordered = rounding.is_nan(a, format_) or rounding.is_nan(b, format_)
        if name in ("num", "nan"):
            return int(unordered == (name == "nan"))
        if unordered:
            return int(name.endswith("u"))
        order = rounding.compare(rounding.decode(a, format_), rounding.decode(b, format_))
        return int(_ORDERINGS[name.removesuffix("u")](order))

    return compare


def _comparison(modifiers: Modifiers) -> tuple[Callable[[int, int], int], str | None]:
    """The comparison of single values, and the name of what combines it with a predicate."""
    type_ = modifiers.type
    combine = modifiers.take("and", "or", "xor")
    flush = modifiers.flag("ftz")
    name = modifiers.take(*FLOAT_COMPARISONS, *_UNSIGNED)
    if type_.kind == "f":
        return _float_comparison(name, type_.part, flush), combine
    return _integer_comparison(name, type_), combine


@builder("setp")
def set_predicate(modifiers: Modifiers) -> Operation:
    """p is the comparison, q its complement, or of packed operands the second comparison, each combined with c."""
    type_ = modifiers.type
    compare, combine_name = _comparison(modifiers)
    combine = _COMBINE[combine_name]

    def function(a: int, b: int, c: int = 0) -> tuple[int, int]:
        if type_.parts == 1:
            outcomes = (compare(a, b), 1 - compare(a, b))
        else:
            outcomes = tuple(compare(x, y) for x, y in zip(split(a, type_), split(b, type_), strict=True))
        return tuple(combine(outcome, c) for outcome in outcomes)

    sources = (type_, type_) if combine_name is None else (type_, type_, PRED)
    return Operation(function, sources, (PRED, PRED), optional_results=1 if type_.parts == 1 else 0)


@builder("set")
def set_value(modifiers: Modifiers) -> Operation:
    """All ones or 1.0 if the comparison holds, else zero."""
    result_type, type_ = modifiers.types
    compare, combine_name = _comparison(modifiers)
    combine = _COMBINE[combine_name]
    if result_type.kind == "f":
        true = rounding.encode(rounding.from_integer(1), FORMATS[result_type.part.name])
    else:
        true = (1 << (result_type.width // type_.parts)) - 1

    def function(a: int, b: int, c: int = 0) -> int:
        if type_.parts == 1:
            return true * combine(compare(a, b), c)
        outcomes = [compare(x, y) for x, y in zip(split(a, type_), split(b, type_), strict=True)]
        return join([true * combine(outcome, c) for outcome in outcomes], type_.part.width)

    sources = (type_, type_) if combine_name is None else (type_, type_, PRED)
    return Operation(function, sources, (result_type,))


@builder("selp")
def select(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    return Operation(lambda a, b, c: a if c else b, (type_, type_, PRED), (type_,), nan="exact")


@builder("slct")
def select_by_sign(modifiers: Modifiers) -> Operation:
    """a if c >= 0, else b: a NaN selects b, -0 and flushed subnormal numbers select a."""
    type_, control = modifiers.types
    flush = modifiers.flag("ftz")
    if control.kind == "f":
        at_least_zero = _float_comparison("ge", F32, flush)
        return Operation(
            lambda a, b, c: a if at_least_zero(c, 0) else b, (type_, type_, F32), (type_,), nan="exact"
        )
    return Operation(
        lambda a, b, c: a if value_of(c, S32) >= 0 else b, (type_, type_, S32), (type_,), nan="exact"
    )
