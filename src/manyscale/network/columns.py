# SPDX-License-Identifier: Apache-2.0
"""Operands of all ranks at once: one number, an array with one for each rank, or a formula of a loop's iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale.errors import InputError

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Formula:
    """A number that changes with a loop: (base + step * iteration) modulo `modulus`, if that is not 0.

    It is what `with mpi.loop(n) as i` gives as `i`, and what +, - and * with numbers and then % make of it.
    """

    loop: int  # depth of the loop, 0 for the outermost
    base: int | IntArray = 0
    step: int = 1
    modulus: int = 0

    __array_ufunc__ = None  # so that `array + formula` comes here

    def _open(self, action: str) -> None:
        if self.modulus:
            raise InputError(f"nothing can be {action} a formula after %: write % last")

    def __add__(self, other: Any) -> Formula:
        self._open("added to")
        return replace(self, base=self.base + _whole(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Formula:
        return self.__add__(-_whole(other))

    def __rsub__(self, other: Any) -> Formula:
        return (self * -1).__add__(other)

    def __mul__(self, factor: Any) -> Formula:
        self._open("multiplied with")
        number = _whole(factor)
        if isinstance(number, np.ndarray):
            raise InputError("a formula can only be multiplied with one number for all ranks")
        return replace(self, base=self.base * number, step=self.step * number)

    __rmul__ = __mul__

    def __mod__(self, modulus: Any) -> Formula:
        self._open("done to")
        number = _whole(modulus)
        if isinstance(number, np.ndarray) or number < 1:
            raise InputError(f"the modulus of a formula is {modulus}; it must be one number of at least 1")
        return replace(self, modulus=number)

    def at(self, rank: int, iteration: int) -> int:
        """Its value for one rank in one iteration."""
        base = int(self.base[rank]) if isinstance(self.base, np.ndarray) else self.base
        value = base + self.step * iteration
        return value % self.modulus if self.modulus else value


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers by rank and by how often the rank has met the operation (beyond the last they begin again), or by rank
    and peer."""

    values: IntArray  # [rank][occurrence or peer]
    by_peer: bool = False


Column = int | IntArray | Formula | Table


def _whole(value: Any) -> int | IntArray:
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise InputError(f"{value!r} is not a whole number")
    return array.astype(np.int64) if array.ndim else int(array)


def as_column(value: Any, ranks: int, what: str) -> Column:
    """A column of what people write; an array of equal values is one number."""
    if type(value) is int:
        return value
    if isinstance(value, Formula):
        base = _plain_column(value.base, ranks, what)
        return replace(value, base=base)
    if isinstance(value, Table):
        return value
    return _plain_column(value, ranks, what)


def _plain_column(value: Any, ranks: int, what: str) -> int | IntArray:
    array = np.asarray(value)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(f"{what} is {value!r}; it must be a whole number, or an array of one for each rank")
    if array.ndim == 0:
        return int(array)
    if array.shape != (ranks,):
        raise InputError(
            f"{what} has the shape {array.shape}; it must have one value for each of {ranks} ranks"
        )
    if np.all(array == array[0]):
        return int(array[0])
    return np.ascontiguousarray(array, np.int64)


def as_array(column: Column, ranks: int) -> IntArray:
    """A column without formulas as an array of one value for each rank."""
    if isinstance(column, Formula | Table):
        raise InputError("a number that changes during the run has no single value for each rank")
    return column if isinstance(column, np.ndarray) else np.full(ranks, column, np.int64)


def extremes(column: Column) -> tuple[int, int]:
    """The least and the greatest value of a column; of a formula without %, those of its first iteration."""
    if type(column) is int:
        return column, column
    if isinstance(column, Formula):
        return (0, column.modulus - 1) if column.modulus else extremes(column.base)
    values = column.values if isinstance(column, Table) else column
    return int(np.min(values)), int(np.max(values))


def value_at(column: Column, rank: int, iterations: dict[int, int] | None = None, occurrence: int = 0) -> int:
    """The value for one rank, of a table by peers their sum; `iterations` by depth of loop."""
    if isinstance(column, Formula):
        return column.at(rank, (iterations or {}).get(column.loop, 0))
    if isinstance(column, Table):
        row = column.values[rank]
        return int(row.sum() if column.by_peer else row[occurrence % len(row)])
    return int(column[rank]) if isinstance(column, np.ndarray) else column
