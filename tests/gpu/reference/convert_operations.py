# SPDX-License-Identifier: Apache-2.0
"""Conversions between types (PTX ISA 9.7.9.21, 9.7.9.22)."""

from collections.abc import Callable

from reference import rounding
from reference.float_operations import ROUNDING_MODES, relu, saturated
from reference.operations import Modifiers, Operation, UnsupportedError, builder
from reference.ptx_types import TYPES, Type, clamp, join, mask, split, to_signed, value_of
from reference.rounding import FORMATS, Format, Number

B32, F32 = TYPES["b32"], TYPES["f32"]
INTEGER_MODES = ("rni", "rzi", "rmi", "rpi")
_TINY = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")

Convert = Callable[[int], int]


def _nan_as_integer(source: Type, target: Type) -> int:
    """Zero, but where f64 or 64-bit integers take part the pattern with only the top bit set."""
    if source.name != "f64" and target.width != 64:
        return 0
    return 1 << (target.width - 1)


def _float_to_integer(source: Type, target: Type, mode: str, flush: bool) -> Convert:
    """Rounded to a whole number and clamped to the range of the target."""
    format_ = FORMATS[source.name]

    def convert(bits: int) -> int:
        number = rounding.decode(rounding.flushed(bits, format_) if flush else bits, format_)
        if number.kind == "nan":
            return _nan_as_integer(source, target)
        if number.kind == "infinite":
            value = -(1 << 80) if number.negative else 1 << 80
        else:
            value = rounding.to_integer(number, mode)
        return clamp(value, target) & mask(target.width)

    return convert


def _to_whole_float(number: Number, mode: str) -> Number:
    """A float rounded to a whole number, which keeps the sign of the operand even if it is zero."""
    if number.kind != "finite":
        return number
    return Number("finite", number.negative, abs(rounding.to_integer(number, mode)))


def _to_float(source: Type, target: Type, modifiers: Modifiers) -> Convert:
    """From an integer or a float to a float, with everything that the modifiers say."""
    mode = modifiers.take(*ROUNDING_MODES, "rna", default="rn")
    whole = modifiers.take(*INTEGER_MODES)
    flush, limit, finite = (
        modifiers.flag("ftz"),
        modifiers.take("sat", "relu"),
        modifiers.flag("satfinite"),
    )
    source_format, format_ = FORMATS.get(source.name), FORMATS[target.name]

    def convert(bits: int) -> int:
        if source_format is None:
            number = rounding.from_integer(value_of(bits, source))
        else:
            if flush and source is F32:
                bits = rounding.flushed(bits, source_format)
            number = rounding.decode(bits, source_format)
            if whole:
                number = _to_whole_float(number, whole)
        result = _encode_finite(number, format_, mode) if finite else rounding.encode(number, format_, mode)
        if flush and target is F32:
            result = rounding.flushed(result, format_)
        if limit:
            result = {"sat": saturated, "relu": relu}[limit](result, format_)
        return result

    return convert


def _encode_finite(number: Number, format_: Format, mode: str) -> int:
    """Rounded to a finite number: what is too large becomes the largest, of the same sign."""
    bits = rounding.encode(number, format_, mode)
    if number.kind != "nan" and bits & (format_.sign_bit - 1) > format_.top:
        return bits & format_.sign_bit | format_.top
    return bits


def _integer_to_integer(source: Type, target: Type, saturate: bool) -> Convert:
    def convert(bits: int) -> int:
        value = value_of(bits, source)
        return (clamp(value, target) if saturate else value) & mask(target.width)

    return convert


@builder("cvt")
def convert(modifiers: Modifiers) -> Operation:
    if "pack" in modifiers.left:
        return _pack(modifiers)
    target, source = modifiers.types
    if target.parts == 2:
        return _convert_pair(modifiers, target, source)
    if target.kind == "f":
        same = target is source and "rni" not in modifiers.left
        function = _to_float(source, target, modifiers)
        nan = "exact" if "relu" in modifiers.names and target.name != "tf32" else "any"
        return Operation(function, (source,), (target,), nan="any" if same else nan)
    if source.kind == "f":
        mode = modifiers.take(*INTEGER_MODES)
        if mode is None:
            raise UnsupportedError(f"{modifiers.opcode}: no rounding mode")
        modifiers.flag("sat")  # floats are always clamped to the range of the integer
        return Operation(_float_to_integer(source, target, mode, modifiers.flag("ftz")), (source,), (target,))
    return Operation(_integer_to_integer(source, target, modifiers.flag("sat")), (source,), (target,))


def _convert_pair(modifiers: Modifiers, target: Type, source: Type) -> Operation:
    """Two values packed into one: the first operand, or the upper part of the only one, goes to the upper part."""
    part = _to_float(source.part, target.part, modifiers)
    width = target.part.width
    # The canonical NaN of the eight-bit formats is the only one there is up to its sign.
    nan = "exact" if "relu" in modifiers.names or target.part.name in _TINY else "any"
    if source.parts == 1:
        return Operation(lambda a, b: join([part(b), part(a)], width), (source, source), (target,), nan=nan)
    return Operation(
        lambda a: join([part(each) for each in split(a, source)], width), (source,), (target,), nan=nan
    )


def _pack(modifiers: Modifiers) -> Operation:
    """cvt.pack.sat: a above b in the lowest bits, c shifted up behind them."""
    modifiers.flag("pack")
    modifiers.flag("sat")
    target, source, *third = modifiers.types
    width = target.width

    def function(a: int, b: int, c: int = 0) -> int:
        high, low = (clamp(to_signed(each, source.width), target) & mask(width) for each in (a, b))
        return (c << 2 * width | high << width | low) & mask(32)

    return Operation(function, (source, source, *third), (TYPES["u32"],))
