# SPDX-License-Identifier: Apache-2.0
"""Axes of a study: what is varied, over which values, and which axes go together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from manyscale.errors import InputError, nearest
from manyscale.studies.sweep.quantities import Measure, measure, plain_number
from manyscale.units import format as format_quantity
from manyscale.units import shown

MOST_VALUES = 1_000_000
_RANGE_KEYS = ("from", "to", "step", "factor", "count")
_RANGE_FORMS = "{from = 1, to = 64, factor = 2}, or step or count instead of factor"
_ROUNDING = 1e-9  # so that the last value of a range is not lost to it
_DIGITS = 12  # of the numbers of a range that are not whole


@dataclass(frozen=True)
class Axis:
    """What is varied (a path such as "network.link.bandwidth") and the values it takes, as written."""

    name: str
    values: tuple[Any, ...]

    @property
    def unit(self) -> str | None:
        """The base unit of its values; None unless all of them have the same one."""
        measures = [measure(value) for value in self.values]
        bases = {None if found is None else found.dimension.base for found in measures}
        return bases.pop() if len(bases) == 1 else None

    @property
    def numbers(self) -> list[int | float | None]:
        """Its values as numbers, in the base unit; None for words."""
        return [plain_number(value) for value in self.values]


@dataclass(frozen=True)
class AxisGroup:
    """Axes that go together: they have equally many values, and the n-th of each belong to one point."""

    axes: tuple[Axis, ...]

    @property
    def length(self) -> int:
        return len(self.axes[0].values)


def make_axis(name: str, given: Any, where: str) -> Axis:
    """An axis of a list of values or a range; `where` is for messages."""
    if isinstance(given, Mapping):
        values = _range(given, where)
    elif isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError(
            f"{where}: expected a list of values or a range such as {_RANGE_FORMS}, got {shown(given)}"
        )
    else:
        values = list(given)
    if not values:
        raise InputError(f"{where}: an axis without values leaves no points")
    if len(values) > MOST_VALUES:
        raise InputError(f"{where}: {len(values):,} values are too many; at most {MOST_VALUES:,}")
    for value in values:
        _check_value(value, where)
    return Axis(name, tuple(values))


def make_group(given: Mapping[str, Any], where: str) -> AxisGroup:
    """Axes that go together."""
    if not given:
        raise InputError(f"{where}: it names no axes")
    axes = tuple(make_axis(name, values, f"{where}.{name}") for name, values in given.items())
    for axis in axes[1:]:
        if len(axis.values) != len(axes[0].values):
            raise InputError(
                f"{where}: axes that go together have equally many values, but {axes[0].name} has "
                f"{len(axes[0].values)} and {axis.name} has {len(axis.values)}"
            )
    return AxisGroup(axes)


def _check_value(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where}: {value} is not a finite number")
    if isinstance(value, list | tuple):
        for entry in value:
            _check_value(entry, where)
    elif not isinstance(value, str | bool | int | float):
        raise InputError(
            f"{where}: a value is a number, text, true or false, or a list of these, not {shown(value)}"
        )


def _range(given: Mapping[str, Any], where: str) -> list[Any]:
    for key in given:
        if key not in _RANGE_KEYS:
            raise InputError(f"{where}: a range has no '{key}'; {nearest(str(key), _RANGE_KEYS)}")
    ways = [way for way in ("step", "factor", "count") if way in given]
    if "from" not in given or "to" not in given or len(ways) != 1:
        raise InputError(f"{where}: a range is written as {_RANGE_FORMS}")
    first, last, unit = _ends(given["from"], given["to"], where)
    if ways[0] == "count":
        numbers = _counted(first, last, given["count"], where)
    elif ways[0] == "step":
        numbers = _stepped(first, last, _distance(given["step"], unit, where), where)
    else:
        numbers = _multiplied(first, last, given["factor"], where)
    return [_written(number, unit, where) for number in numbers]


def _ends(first: Any, last: Any, where: str) -> tuple[Fraction, Fraction, Measure | None]:
    a, b = measure(first), measure(last)
    if (a is None) != (b is None) or (a is not None and b is not None and a.dimension is not b.dimension):
        raise InputError(
            f"{where}: from and to need the same kind of unit, not {shown(first)} and {shown(last)}"
        )
    if a is not None and b is not None:
        return Fraction(a.number), Fraction(b.number), a
    return _number(first, f"{where}: from"), _number(last, f"{where}: to"), None


def _number(value: Any, where: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where}: expected a number or text with a unit such as '4KiB', got {shown(value)}")
    return Fraction(str(value))


def _distance(step: Any, unit: Measure | None, where: str) -> Fraction:
    found = measure(step)
    if (found is None) != (unit is None) or (found and unit and found.dimension is not unit.dimension):
        raise InputError(f"{where}: step needs the kind of unit that from and to have, not {shown(step)}")
    return Fraction(found.number) if found is not None else _number(step, f"{where}: step")


def _counted(first: Fraction, last: Fraction, count: Any, where: str) -> list[Fraction]:
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_VALUES:
        raise InputError(f"{where}: count is a whole number from 2 to {MOST_VALUES:,}, not {shown(count)}")
    return [first + (last - first) * index / (count - 1) for index in range(count)]


def _stepped(first: Fraction, last: Fraction, step: Fraction, where: str) -> list[Fraction]:
    if step == 0 or (last - first) / step < 0:
        raise InputError(f"{where}: steps of that size do not lead from the first value to the last")
    count = (last - first) // step + 1
    _refuse_many(count, where)
    return [first + step * index for index in range(count)]


def _multiplied(first: Fraction, last: Fraction, given: Any, where: str) -> list[Fraction]:
    factor = _number(given, f"{where}: factor")
    grows = factor > 1
    if first <= 0 or last <= 0 or factor <= 0 or factor == 1 or (last > first and not grows):
        raise InputError(
            f"{where}: a factor of {shown(given)} does not lead from the first value to the last"
        )
    if last < first and grows:
        raise InputError(f"{where}: the range ends below where it begins; give a factor below 1")
    steps = math.log(last / first) / math.log(factor)
    _refuse_many(steps, where)
    # Whole factors are exact; others are powers of a float, whose digits do not grow.
    exact = factor.denominator == 1
    return [
        first * (factor**index if exact else Fraction(float(factor) ** index))
        for index in range(math.floor(steps + _ROUNDING) + 1)
    ]


def _refuse_many(count: float, where: str) -> None:
    if count > MOST_VALUES:
        raise InputError(f"{where}: a range of {count:,.0f} values is too long; at most {MOST_VALUES:,}")


def _written(number: Fraction, unit: Measure | None, where: str) -> Any:
    if unit is None:
        return int(number) if number.denominator == 1 else float(f"{float(number):.{_DIGITS}g}")
    return format_quantity(round(number), unit.dimension)
