# SPDX-License-Identifier: Apache-2.0
"""Values of an axis: text with a unit tells its dimension by itself, so a study needs no types."""

from __future__ import annotations

from typing import Any, NamedTuple

from manyscale.errors import InputError
from manyscale.units import BANDWIDTH, BYTES, CYCLES, FREQUENCY, TIME, Dimension, parse

_DIMENSIONS = (BYTES, BANDWIDTH, TIME, FREQUENCY, CYCLES)


class Measure(NamedTuple):
    """A number of a base unit."""

    number: int | float
    dimension: Dimension


def measure(value: Any) -> Measure | None:
    """The number and unit of text such as "256KiB"; None for anything that has no unit."""
    if not isinstance(value, str) or not value[:1].strip() or value[0] not in "+-.0123456789":
        return None
    for dimension in _DIMENSIONS:
        unit = value.strip().lstrip("+-.0123456789eE").strip()
        if unit in dimension.units:
            try:
                return Measure(parse(value, dimension), dimension)
            except InputError:
                return None
    return None


def canonical(value: Any) -> Any:
    """A form in which equal values are equal: "1KiB" and "1024B" give the same."""
    found = measure(value)
    if found is not None:
        return f"{found.number}{found.dimension.base}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {name: canonical(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(entry) for entry in value]
    return value


def plain_number(value: Any) -> int | float | None:
    """The number that a value stands for in a curve; None for words."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    found = measure(value)
    return None if found is None else found.number
