# SPDX-License-Identifier: Apache-2.0
"""Binary floating point with whole numbers: a value is exact until it is rounded, once, to a format.

A finite value is (-1)**negative * magnitude * 2**exponent with a magnitude of any size. What has no finite expansion
(quotients, roots) is carried with enough bits and one more that says whether something was left over, so that rounding
still sees which side of a tie it is on.
"""

from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple


@dataclass(frozen=True)
class Format:
    """A binary format. `top` is the pattern of the largest finite magnitude; NaN and infinity may be missing."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    top: int
    infinity: int | None
    nan: int | None
    pad: int = 0

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits + self.pad

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the last bit of a subnormal number."""
        return 2 - (1 << (self.exponent_bits - 1)) - self.mantissa_bits

    @property
    def sign_bit(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits + self.pad)

    @property
    def smallest_normal(self) -> int:
        return 1 << (self.mantissa_bits + self.pad)


def _ieee(name: str, exponent_bits: int, mantissa_bits: int, pad: int = 0) -> Format:
    """A format with infinities; its canonical NaN has all bits but the sign set."""
    infinity = mask = ((1 << exponent_bits) - 1) << (mantissa_bits + pad)
    canonical = mask | ((1 << (mantissa_bits + pad)) - 1)
    return Format(name, exponent_bits, mantissa_bits, infinity - (1 << pad), infinity, canonical, pad)


FORMATS = {
    each.name: each
    for each in (
        _ieee("f16", 5, 10),
        _ieee("bf16", 8, 7),
        _ieee("f32", 8, 23),
        _ieee("f64", 11, 52),
        _ieee("tf32", 8, 10, pad=13),
        _ieee("e5m2", 5, 2),
        Format("e4m3", 4, 3, top=0x7E, infinity=None, nan=0x7F),
        Format("e2m1", 2, 1, top=0x7, infinity=None, nan=None),
        Format("e2m3", 2, 3, top=0x1F, infinity=None, nan=None),
        Format("e3m2", 3, 2, top=0x1F, infinity=None, nan=None),
    )
}


class Number(NamedTuple):
    """An exact value: kind is finite, infinite or nan."""

    kind: str
    negative: bool = False
    magnitude: int = 0
    exponent: int = 0

    @property
    def zero(self) -> bool:
        return self.kind == "finite" and self.magnitude == 0

    def negated(self) -> "Number":
        return self._replace(negative=not self.negative)


NAN = Number("nan")


def decode(bits: int, format_: Format) -> Number:
    """The exact value of a bit pattern."""
    negative = bool(bits & format_.sign_bit)
    bits &= format_.sign_bit - 1
    if bits > format_.top:
        return Number("infinite", negative) if bits == format_.infinity else Number("nan", negative)
    bits >>= format_.pad
    biased, mantissa = bits >> format_.mantissa_bits, bits & ((1 << format_.mantissa_bits) - 1)
    if biased:
        mantissa |= 1 << format_.mantissa_bits
    return Number("finite", negative, mantissa, format_.lowest_exponent + max(biased - 1, 0))


def _rounds_up(mode: str, negative: bool, kept: int, rest: int, half: int) -> bool:
    """Whether a magnitude is rounded away from zero, when `rest` of 2 * `half` is cut off."""
    match mode:
        case "rn":
            return rest > half or (rest == half and kept & 1 == 1)
        case "rna":
            return rest >= half
        case "rz":
            return False
        case "rm":
            return negative and rest > 0
        case "rp":
            return not negative and rest > 0
    raise ValueError(f"no rounding mode {mode}")


def _overflow(mode: str, negative: bool, format_: Format) -> int:
    """The magnitude of what is too large for the format."""
    away = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
    return format_.infinity if away and format_.infinity is not None else format_.top


def encode(number: Number, format_: Format, mode: str = "rn") -> int:
    """The bit pattern of a value, correctly rounded. NaN becomes the canonical NaN of the format."""
    if number.kind == "nan":
        return format_.nan if format_.nan is not None else format_.top
    sign = format_.sign_bit if number.negative else 0
    if number.kind == "infinite":
        return sign | (format_.infinity if format_.infinity is not None else format_.top)
    if number.magnitude == 0:
        return sign
    leading = number.exponent + number.magnitude.bit_length() - 1
    last = max(leading - format_.mantissa_bits, format_.lowest_exponent)
    shift = last - number.exponent
    if shift <= 0:
        kept = number.magnitude << -shift
    else:
        kept, rest = number.magnitude >> shift, number.magnitude & ((1 << shift) - 1)
        kept += _rounds_up(mode, number.negative, kept, rest, 1 << (shift - 1))
    # The leading bit of a normal number, and a carry out of the mantissa, add to the exponent field as they should.
    magnitude = (((last - format_.lowest_exponent) << format_.mantissa_bits) + kept) << format_.pad
    return sign | (_overflow(mode, number.negative, format_) if magnitude > format_.top else magnitude)


def is_nan(bits: int, format_: Format) -> bool:
    magnitude = bits & (format_.sign_bit - 1)
    return magnitude > format_.top and magnitude != format_.infinity


def flushed(bits: int, format_: Format) -> int:
    """A subnormal number becomes a zero of the same sign."""
    return bits & format_.sign_bit if bits & (format_.sign_bit - 1) < format_.smallest_normal else bits


def add(a: Number, b: Number, mode: str = "rn") -> Number:
    """The exact sum. The mode only says which zero a sum that cancels is."""
    if "nan" in (a.kind, b.kind):
        return NAN
    if "infinite" in (a.kind, b.kind):
        if a.kind == b.kind:
            return a if a.negative == b.negative else NAN
        return a if a.kind == "infinite" else b
    exponent = min(a.exponent, b.exponent)
    total = _signed_magnitude(a, exponent) + _signed_magnitude(b, exponent)
    if total:
        return Number("finite", total < 0, abs(total), exponent)
    if a.zero and b.zero and a.negative == b.negative:
        return a
    return Number("finite", mode == "rm")


def _signed_magnitude(number: Number, exponent: int) -> int:
    magnitude = number.magnitude << (number.exponent - exponent)
    return -magnitude if number.negative else magnitude


def multiply(a: Number, b: Number) -> Number:
    """The exact product."""
    negative = a.negative != b.negative
    if "nan" in (a.kind, b.kind):
        return NAN
    if "infinite" in (a.kind, b.kind):
        return NAN if a.zero or b.zero else Number("infinite", negative)
    return Number("finite", negative, a.magnitude * b.magnitude, a.exponent + b.exponent)


_QUOTIENT_BITS = 140
"""More than twice the bits of the widest format: the bit that stands for the remainder is never next to a tie."""


def divide(a: Number, b: Number) -> Number:
    """The quotient, exact as far as any format's rounding can tell."""
    negative = a.negative != b.negative
    if "nan" in (a.kind, b.kind) or (a.zero and b.zero) or (a.kind == b.kind == "infinite"):
        return NAN
    if a.kind == "infinite" or b.zero:
        return Number("infinite", negative)
    if b.kind == "infinite" or a.zero:
        return Number("finite", negative)
    shift = _QUOTIENT_BITS + b.magnitude.bit_length()
    quotient, remainder = divmod(a.magnitude << shift, b.magnitude)
    magnitude = quotient << 1 | (remainder != 0)
    return Number("finite", negative, magnitude, a.exponent - b.exponent - shift - 1)


def square_root(a: Number) -> Number:
    """The square root, exact as far as any format's rounding can tell."""
    if a.kind == "nan" or a.zero:
        return a
    if a.negative:
        return NAN
    if a.kind == "infinite":
        return a
    shift = 2 * _QUOTIENT_BITS + (a.exponent & 1)
    radicand = a.magnitude << shift
    root = isqrt(radicand)
    magnitude = root << 1 | (root * root != radicand)
    return Number("finite", False, magnitude, (a.exponent - shift) // 2 - 1)


def to_integer(number: Number, mode: str) -> int:
    """A finite value rounded to a whole number; the modes are rni, rzi, rmi and rpi."""
    if number.exponent >= 0:
        whole = number.magnitude << number.exponent
    else:
        shift = -number.exponent
        whole, rest = number.magnitude >> shift, number.magnitude & ((1 << shift) - 1)
        whole += _rounds_up(mode.removesuffix("i"), number.negative, whole, rest, 1 << (shift - 1))
    return -whole if number.negative else whole


def from_integer(value: int) -> Number:
    return Number("finite", value < 0, abs(value))


def compare(a: Number, b: Number) -> int:
    """-1, 0 or 1 for numbers that are not NaN; the two zeros are equal."""
    first, second = _infinite_sign(a), _infinite_sign(b)
    if first == second == 0:
        exponent = min(a.exponent, b.exponent)
        first, second = _signed_magnitude(a, exponent), _signed_magnitude(b, exponent)
    return (first > second) - (first < second)


def _infinite_sign(number: Number) -> int:
    if number.kind == "finite":
        return 0
    return -1 if number.negative else 1
