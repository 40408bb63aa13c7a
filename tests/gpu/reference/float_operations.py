# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic of all formats (PTX ISA 9.7.3, 9.7.4, 9.7.5).

Results are exact values rounded once. The approximations are computed in double precision here; `TOLERANCES` holds how
far from the true value PTX allows them to be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from reference import rounding
from reference.operations import Modifiers, Operation, UnsupportedError, builder
from reference.ptx_types import TYPES, per_part
from reference.rounding import FORMATS, Format, Number

ROUNDING_MODES = ("rn", "rz", "rm", "rp")
F32, F64, PRED = TYPES["f32"], TYPES["f64"], TYPES["pred"]


def saturated(bits: int, format_: Format) -> int:
    """The result clamped to [0, 1], a NaN to +0."""
    one = rounding.encode(rounding.from_integer(1), format_)
    if rounding.is_nan(bits, format_) or bits & format_.sign_bit:
        return 0
    return min(bits, one)


def relu(bits: int, format_: Format) -> int:
    """The result, or 0 if it is negative; a NaN is canonical."""
    if rounding.is_nan(bits, format_):
        return format_.nan if format_.nan is not None else format_.top
    return 0 if bits & format_.sign_bit else bits


@dataclass(frozen=True)
class Finish:
    """What modifiers do to the operands before and to the result after an operation."""

    format: Format
    flush: bool
    clamp: Callable[[int, Format], int] | None

    @classmethod
    def of(cls, modifiers: Modifiers, format_: Format) -> "Finish":
        flush = modifiers.flag("ftz")
        clamp = {"sat": saturated, "relu": relu, None: None}[modifiers.take("sat", "relu")]
        return cls(format_, flush, clamp)

    def operand(self, bits: int) -> int:
        return rounding.flushed(bits, self.format) if self.flush else bits

    def result(self, bits: int) -> int:
        if self.flush:
            bits = rounding.flushed(bits, self.format)
        return self.clamp(bits, self.format) if self.clamp else bits


_EXACT: dict[str, Callable[..., Number]] = {
    "add": lambda mode, a, b: rounding.add(a, b, mode),
    "sub": lambda mode, a, b: rounding.add(a, b.negated(), mode),
    "mul": lambda mode, a, b: rounding.multiply(a, b),
    "fma": lambda mode, a, b, c: rounding.add(rounding.multiply(a, b), c, mode),
    "mad": lambda mode, a, b, c: rounding.add(rounding.multiply(a, b), c, mode),
    "div": lambda mode, a, b: rounding.divide(a, b),
    "rcp": lambda mode, a: rounding.divide(rounding.from_integer(1), a),
    "sqrt": lambda mode, a: rounding.square_root(a),
}
_SOURCES = {"fma": 3, "mad": 3, "rcp": 1, "sqrt": 1}


def _rounded(modifiers: Modifiers, mode: str) -> Operation:
    """An operation computed exactly and rounded once. With a second type, that is the type of the factors or addend."""
    type_ = modifiers.types[0]
    narrow = modifiers.types[-1]
    base = modifiers.base
    count = _SOURCES.get(base, 2)
    formats = [FORMATS[type_.part.name]] * count
    sources = [type_] * count
    if narrow is not type_:  # mixed precision: the first operand of add and sub, both factors of fma
        for index in range(1 if base in ("add", "sub") else 2):
            formats[index], sources[index] = FORMATS[narrow.name], narrow
    finish = Finish.of(modifiers, FORMATS[type_.part.name])
    exact = _EXACT[base]

    def function(*operands: int) -> int:
        numbers = [
            rounding.decode(finish.operand(bits), format_)
            for bits, format_ in zip(operands, formats, strict=True)
        ]
        return finish.result(rounding.encode(exact(mode, *numbers), finish.format, mode))

    nan = "exact" if finish.clamp is relu else "any"
    return Operation(per_part(function, type_), tuple(sources), (type_,), nan=nan)


def _sign_operation(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    format_ = FORMATS[type_.part.name]
    finish = Finish.of(modifiers, format_)

    def function(bits: int) -> int:
        bits = finish.operand(bits)
        return bits & ~format_.sign_bit if modifiers.base == "abs" else bits ^ format_.sign_bit

    return Operation(per_part(function, type_), (type_,), (type_,))


def _extreme(modifiers: Modifiers) -> Operation:
    """min and max: NaN gives way to a number unless `.NaN` is there, and -0 is below +0."""
    type_ = modifiers.type
    format_ = FORMATS[type_.part.name]
    finish = Finish.of(modifiers, format_)
    keep_nan, xor_sign, absolute = modifiers.flag("NaN"), modifiers.flag("xorsign"), modifiers.flag("abs")
    largest = modifiers.base == "max"

    def function(a: int, b: int) -> int:
        a, b = finish.operand(a), finish.operand(b)
        sign = (a ^ b) & format_.sign_bit
        if absolute:
            a, b = a & ~format_.sign_bit, b & ~format_.sign_bit
        a_nan, b_nan = rounding.is_nan(a, format_), rounding.is_nan(b, format_)
        if (a_nan and b_nan) or (keep_nan and (a_nan or b_nan)):
            return format_.nan
        if a_nan or b_nan:
            result = b if a_nan else a
        else:
            order = rounding.compare(rounding.decode(a, format_), rounding.decode(b, format_))
            first_is_less = order < 0 or (order == 0 and a > b)  # of the zeros, -0 has the larger bits
            result = (b if first_is_less else a) if largest else (a if first_is_less else b)
        return result & ~format_.sign_bit | sign if xor_sign else result

    nan = "exact" if keep_nan else "any"
    return Operation(per_part(function, type_), (type_, type_), (type_,), nan=nan)


@builder("fma", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def float_operation(modifiers: Modifiers) -> Operation:
    """The operations that only exist, or also exist, for floating point."""
    if modifiers.base in ("abs", "neg"):
        return _sign_operation(modifiers)
    if modifiers.base in ("min", "max"):
        return _extreme(modifiers)
    if modifiers.flag("approx") or modifiers.flag("full"):
        return _approximation(modifiers)
    needs_mode = modifiers.base in ("fma", "mad", "div", "rcp", "sqrt")
    mode = modifiers.take(*ROUNDING_MODES, default=None if needs_mode else "rn")
    if mode is None:
        raise UnsupportedError(f"{modifiers.opcode}: no rounding mode")
    return _rounded(modifiers, mode)


@builder("copysign")
def copy_sign(modifiers: Modifiers) -> Operation:
    """The sign of a on the value of b."""
    sign = 1 << (modifiers.type.width - 1)
    return Operation(lambda a, b: a & sign | b & ~sign, (modifiers.type,) * 2, (modifiers.type,), nan="exact")


@builder("testp")
def test_property(modifiers: Modifiers) -> Operation:
    name = modifiers.take("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    format_ = FORMATS[modifiers.type.name]

    def function(bits: int) -> int:
        number = rounding.decode(bits, format_)
        small = 0 < bits & ~format_.sign_bit < format_.smallest_normal
        answers = {
            "finite": number.kind == "finite",
            "infinite": number.kind == "infinite",
            "number": number.kind != "nan",
            "notanumber": number.kind == "nan",
            "normal": number.kind == "finite" and not small,
            "subnormal": small,
        }
        return int(answers[name])

    return Operation(function, (modifiers.type,), (PRED,))


# Approximations


def to_float(bits: int, format_: Format) -> float:
    """A value of a format no wider than f64 as a Python float, which is exact."""
    number = rounding.decode(bits, format_)
    if number.kind == "nan":
        return math.nan
    if number.kind == "infinite":
        return -math.inf if number.negative else math.inf
    value = math.ldexp(float(number.magnitude), number.exponent)
    return -value if number.negative else value


def from_float(value: float) -> Number:
    """The exact value of a Python float."""
    if math.isnan(value):
        return rounding.NAN
    if math.isinf(value):
        return Number("infinite", value < 0)
    numerator, denominator = abs(value).as_integer_ratio()
    return Number("finite", math.copysign(1, value) < 0, numerator, 1 - denominator.bit_length())


def _power_of_two(x: float) -> float:
    if math.isnan(x):
        return x
    return 2.0 ** min(x, 1023.0) if x > -1074 else 0.0


def _logarithm(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.log2(x) if x > 0 or math.isnan(x) else math.nan


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 or math.isnan(x) else math.nan


def _quotient(a: float, b: float) -> float:
    return to_float(
        rounding.encode(rounding.divide(from_float(a), from_float(b)), FORMATS["f64"]), FORMATS["f64"]
    )


_APPROXIMATIONS: dict[str, Callable[..., float]] = {
    "ex2": _power_of_two,
    "lg2": _logarithm,
    "sin": lambda x: math.sin(x) if math.isfinite(x) else math.nan,
    "cos": lambda x: math.cos(x) if math.isfinite(x) else math.nan,
    "tanh": math.tanh,
    "rcp": lambda x: _quotient(1.0, x),
    "sqrt": _root,
    "rsqrt": lambda x: _quotient(1.0, _root(x)),
    "div": _quotient,
}


def _approximation(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    format_ = FORMATS[type_.part.name]
    finish = Finish.of(modifiers, format_)
    exact = _APPROXIMATIONS[modifiers.base]
    gross = type_ is F64 and finish.flush  # only the upper half of the operand and of the result counts

    def function(*operands: int) -> int:
        if gross:
            operands = tuple(bits & ~0xFFFFFFFF for bits in operands)
        values = [to_float(finish.operand(bits), format_) for bits in operands]
        result = finish.result(rounding.encode(from_float(exact(*values)), format_))
        if gross:
            result = result & ~0xFFFFFFFF if not rounding.is_nan(result, format_) else 0x7FFFFFFF00000000
        return result

    count = _SOURCES.get(modifiers.base, 2 if modifiers.base == "div" else 1)
    return Operation(per_part(function, type_), (type_,) * count, (type_,))


@dataclass(frozen=True)
class Tolerance:
    """How far an approximation may be from the true value: as a part of it, absolutely, or in ulps.

    Where several are given, the largest of them holds.
    """

    relative: float = 0.0
    absolute: float = 0.0
    ulps: float = 0.0


def tolerance(opcode: str, operands: list[float]) -> Tolerance | None:
    """The error that PTX allows an approximation at the given operands, or None if it promises nothing there."""
    base, *names = opcode.split(".")
    half = names[-1].removesuffix("x2") if names[-1].removesuffix("x2") in ("f16", "bf16") else None
    x = operands[-1]
    match base:
        case "rcp" | "rsqrt" if names[-1] == "f64":
            return Tolerance(relative=2.0**-19)
        case "rcp":
            return Tolerance(ulps=1)
        case "sqrt":
            return Tolerance(relative=2.0**-23)
        case "rsqrt":
            return Tolerance(relative=2.0**-22.9)
        case "sin" | "cos":
            if abs(x) > 100 * math.pi:
                return None
            return Tolerance(absolute=2.0**-20.5 if abs(x) <= 2 * math.pi else 2.0**-14.7)
        case "lg2":
            return Tolerance(absolute=2.0**-22) if 0.5 < x < 2 else Tolerance(relative=2.0**-22)
        case "ex2" if half:
            return Tolerance(relative=2.0**-9.9 if half == "f16" else 2.0**-7, ulps=1)
        case "ex2":
            return Tolerance(ulps=2)
        case "tanh" if half:
            return Tolerance(absolute=2.0**-10.987 if half == "f16" else 2.0**-8)
        case "tanh":
            return Tolerance(relative=2.0**-11)
        case "div" if "full" in names:
            return Tolerance(ulps=2)
        case "div":
            return Tolerance(ulps=2) if 2.0**-126 <= abs(x) <= 2.0**126 else None
    raise UnsupportedError(f"{opcode}: not an approximation")
