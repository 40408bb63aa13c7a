# SPDX-License-Identifier: Apache-2.0
"""Exact quantities: text with a unit becomes a whole number of a base unit, and back.

Arithmetic is on fractions, never on floats, so "37.5GB/s" is exactly 37 500 000 000 bytes per second.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from manyscale.errors import InputError

SMALLEST = -(2**63)
LARGEST = 2**63 - 1

_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?\s*([^0-9\s.].*)?", re.DOTALL)
# Above this a quantity is out of range whatever its unit, and its digits would only cost memory.
_LARGEST_EXPONENT = 400
_LONGEST_TEXT = 1000


@dataclass(frozen=True, eq=False)
class Dimension:
    """A kind of quantity: its base unit, the spellings of its units, and the ones used when writing."""

    name: str
    article: str
    base: str
    units: Mapping[str, Fraction]  # every accepted spelling, in base units
    written: tuple[str, ...]  # spellings `format` may use, smallest first
    spoken: Mapping[str, int]  # spellings `humanize` may use, smallest first
    needs_unit: bool = True
    whole: bool = True
    example: str = ""

    @property
    def accepted(self) -> str:
        """The accepted units in words, for messages."""
        if not self.units:
            return "no unit"
        names = ", ".join(self.units)
        return names if self.needs_unit else f"{names} or no unit"

    @property
    def described(self) -> str:
        """The dimension with its article: "a time", "an amount of bytes"."""
        return f"{self.article} {self.name}"


def _scaled(base: str, prefixes: Mapping[str, Fraction | int]) -> dict[str, Fraction]:
    return {prefix + base: Fraction(factor) for prefix, factor in prefixes.items()}


_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_SECONDS = {"fs": 1, "ps": 10**3, "ns": 10**6, "us": 10**9, "ms": 10**12, "s": 10**15}
_BYTES = {**_scaled("B", _DECIMAL), **_scaled("B", {"K": 10**3}), **_scaled("B", _BINARY)}
_BITS = _scaled("", {prefix: Fraction(factor, 8) for prefix, factor in {**_DECIMAL, "K": 10**3}.items()})
_BYTES_WRITTEN = ("B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "PB", "PiB")


def _per_second(units: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {f"{unit}/s": factor for unit, factor in units.items()}


TIME = Dimension(
    "time",
    "a",
    "fs",
    # The two micro signs look alike: U+00B5 (micro) and U+03BC (Greek mu).
    {**_scaled("", _SECONDS), "\u00b5s": Fraction(10**9), "\u03bcs": Fraction(10**9)},
    tuple(_SECONDS),
    _SECONDS,
    example="750ps",
)
FREQUENCY = Dimension(
    "frequency",
    "a",
    "Hz",
    {f"{prefix}Hz": Fraction(factor) for prefix, factor in _DECIMAL.items() if prefix != "P"},
    ("Hz", "kHz", "MHz", "GHz", "THz"),
    {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9, "THz": 10**12},
    example="1312MHz",
)
BYTES = Dimension(
    "amount of bytes",
    "an",
    "B",
    _BYTES,
    _BYTES_WRITTEN,
    {"B": 1, **{f"{prefix}B": factor for prefix, factor in _BINARY.items()}},
    example="192KiB",
)
BANDWIDTH = Dimension(
    "bandwidth",
    "a",
    "B/s",
    {
        **_per_second(_BYTES),
        **{f"{prefix}b/s": factor for prefix, factor in _BITS.items()},
        **{f"{prefix}bit/s": factor for prefix, factor in _BITS.items()},
    },
    tuple(f"{unit}/s" for unit in _BYTES_WRITTEN),
    {f"{prefix}B/s": factor for prefix, factor in _DECIMAL.items()},
    example="16GB/s",
)
CYCLES = Dimension(
    "number of cycles",
    "a",
    "cycles",
    {"cycles": Fraction(1), "cycle": Fraction(1)},
    ("cycles",),
    {"cycles": 1, "kcycles": 10**3, "Mcycles": 10**6, "Gcycles": 10**9},
    needs_unit=False,
    example="100cycles",
)
COUNT = Dimension(
    "count",
    "a",
    "",
    {},
    ("",),
    {"": 1, "k": 10**3, "M": 10**6, "G": 10**9},
    needs_unit=False,
    example="84",
)
RATIO = Dimension("ratio", "a", "", {}, ("",), {"": 1}, needs_unit=False, whole=False, example="0.5")

DIMENSIONS: Mapping[str, Dimension] = {
    "time": TIME,
    "frequency": FREQUENCY,
    "bytes": BYTES,
    "bandwidth": BANDWIDTH,
    "cycles": CYCLES,
    "count": COUNT,
    "ratio": RATIO,
}


def shown(value: object) -> str:
    """A value as it may appear in a message: never long, never an error of its own."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of many thousand digits, or a very deep list
        return f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "…"


@functools.lru_cache(maxsize=4096)  # a machine with many channels or SMs states the same for each
def parse(text: str, dimension: Dimension) -> int | float:
    """The value of `text` in base units, exactly; a ratio is the nearest float.

    >>> parse("0.75 ns", TIME)
    750000
    """
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise InputError(
            f"{shown(text)} is not {dimension.described}; "
            f"write a number such as {dimension.example!r} (units: {dimension.accepted})"
        )
    digits, exponent, unit = match.group(1), int(match.group(2) or 0), (match.group(3) or "").strip()
    factor = _factor(text, unit, dimension)
    if abs(exponent) > _LARGEST_EXPONENT:
        raise InputError(f"{shown(text)} is beyond the range of {dimension.described}")
    return _in_base(Fraction(digits) * Fraction(10) ** exponent * factor, text, dimension)


def _factor(text: str, unit: str, dimension: Dimension) -> Fraction:
    if not unit:
        if dimension.needs_unit:
            raise InputError(f"{shown(text)} has no unit; {dimension.described} takes {dimension.accepted}")
        return Fraction(1)
    if unit not in dimension.units:
        raise InputError(
            f"{shown(text)}: {shown(unit)} is no unit of {dimension.described}, "
            f"which takes {dimension.accepted}"
        )
    return dimension.units[unit]


def _in_base(value: Fraction, text: str, dimension: Dimension) -> int | float:
    if not dimension.whole:
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"{shown(text)} is beyond the range of {dimension.described}") from None
    if value.denominator != 1:
        if not dimension.needs_unit:
            raise InputError(f"{shown(text)} is not whole; {dimension.described} is a whole number")
        raise InputError(
            f"{shown(text)} is finer than {dimension.described} can be: "
            f"it is not a whole number of {dimension.base}"
        )
    return check_range(value.numerator, text, dimension)


def check_range(value: int, given: object, dimension: Dimension) -> int:
    """The value itself, if it fits the core's 64 bits; `given` is what the person wrote."""
    if not SMALLEST <= value <= LARGEST:
        raise InputError(
            f"{shown(given)} is beyond the range of {dimension.described}, "
            f"at most {humanize(LARGEST, dimension)}"
        )
    return value


def format(value: int | float, dimension: Dimension) -> str:
    """The value in the largest unit that gives a whole number; `parse` gives the same value back.

    >>> format(750000, TIME)
    '750ps'
    """
    if not dimension.whole:
        return repr(float(value))
    whole = int(value)
    if dimension is CYCLES and whole == 1:
        return "1cycle"
    for unit, factor in _written(dimension):
        if whole % factor == 0 and whole != 0:
            return f"{whole // factor}{unit}"
    return f"{whole}{dimension.base}"


@functools.cache
def _written(dimension: Dimension) -> list[tuple[str, int]]:
    """The units in which values are written, the largest first, each in base units."""
    return [(unit, int(dimension.units.get(unit, 1))) for unit in reversed(dimension.written)]


def humanize(value: int | float, dimension: Dimension) -> str:
    """The value rounded to four significant digits, in the unit that reads best.

    >>> humanize(5750800000, TIME)
    '5.751us'
    """
    if not isfinite(value):
        return f"{value}{dimension.base}"
    if not dimension.whole:
        return f"{value:.4g}"
    if value == 1 and dimension is CYCLES:
        return "1cycle"
    text = ""
    for unit, factor in dimension.spoken.items():
        rounded = _four_digits(Fraction(value) / factor)
        if text and abs(rounded) < 1:
            break
        text = f"{_plain(rounded)}{unit}"
    return text


def _four_digits(value: Fraction) -> Fraction:
    if value == 0:
        return value
    decimals = 3
    while abs(value) * Fraction(10) ** decimals < 1000 and decimals < 12:
        decimals += 1
    while abs(value) * Fraction(10) ** decimals >= 9999.5 and decimals > 0:
        decimals -= 1
    return round(value, decimals)


def _plain(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.12f}".rstrip("0")
