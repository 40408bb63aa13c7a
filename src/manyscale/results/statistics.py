# SPDX-License-Identifier: Apache-2.0
"""The tidy table of statistics: one row per number, each with its unit and description.

`value` is a float64, which holds whole numbers exactly only up to 2**53 (nine seconds in femtoseconds). A
value given as an integer is therefore also kept, exactly, in the last column, `count`, which is null for
values given as floats. Counters count whole things: a counter given as a float of 2**53 or more may already
have lost its last digits and is refused. Sums of real numbers (an energy, say) are gauges.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from manyscale.errors import InputError, RunError, nearest

if TYPE_CHECKING:
    import polars as pl

KINDS = ("counter", "gauge", "histogram", "series")

TEXT_COLUMNS = ("component", "statistic", "kind", "unit", "description", "scope")

COLUMNS = (*TEXT_COLUMNS, "key", "value")
"""The columns that `frame` is given; the table has `count` besides."""

FILLED_COLUMNS = (*TEXT_COLUMNS, "value")
"""Columns with a value in every row."""

_EXACT_IN_FLOAT64 = 2**53


def schema() -> dict[str, pl.DataType]:
    """The columns of the table, in order, with their polars types."""
    import polars as pl

    types: dict[str, pl.DataType] = {name: pl.String() for name in TEXT_COLUMNS}
    return types | {"key": pl.Float64(), "value": pl.Float64(), "count": pl.Int64()}


def frame(columns: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """The table made of `columns` (those of `COLUMNS`, equally long), checked row by row.

    `key` is None for scalars, a bucket's lower bound for histograms, a sample's time in seconds for series.
    """
    import polars as pl

    _check_shape(columns)
    data: dict[str, Sequence[Any]] = {name: list(columns[name]) for name in COLUMNS}
    data["count"] = _exact_counts(data)
    data["value"] = [float(value) for value in data["value"]]
    try:
        table = pl.DataFrame(data, schema=schema(), strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise RunError(f"the statistics have a column of a wrong type: {error}") from None
    _check_text(table)
    return table


def scalar(
    table: pl.DataFrame, component: str, statistic: str, scope: str = "run", where: str = "the result"
) -> int | float:
    """One scalar statistic of the table: the exact integer where one was given, a float otherwise."""
    import polars as pl

    rows = table
    for column, wanted in (("component", component), ("statistic", statistic), ("scope", scope)):
        found = rows.filter(pl.col(column) == wanted)
        if found.is_empty():
            raise InputError(
                f"{where} has no {column} '{wanted}' "
                f"(looking for '{statistic}' of '{component}' in scope '{scope}'): "
                f"{nearest(wanted, rows[column].unique().to_list())}"
            )
        rows = found
    rows = rows.filter(pl.col("key").is_null())
    if rows.height != 1:
        why = "has no single value but keys" if rows.is_empty() else f"has {rows.height} values"
        raise InputError(
            f"'{statistic}' of '{component}' in scope '{scope}' {why} in {where}; look at its rows in .stats"
        )
    count, value = rows["count"][0], rows["value"][0]
    return int(count) if count is not None else float(value)


def _check_shape(columns: Mapping[str, Sequence[Any]]) -> None:
    for name in COLUMNS:
        if name not in columns:
            raise RunError(f"the statistics have no column '{name}'; they need {', '.join(COLUMNS)}")
    for name in columns:
        if name not in COLUMNS:
            raise RunError(f"the statistics have an unknown column '{name}': {nearest(name, COLUMNS)}")
    lengths = {name: len(columns[name]) for name in COLUMNS}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise RunError(f"the columns of the statistics differ in length: {shown}")


def _check_text(table: pl.DataFrame) -> None:
    import polars as pl

    for name in TEXT_COLUMNS:
        empty = (table[name].fill_null("").str.strip_chars() == "").arg_true()
        if len(empty):
            hint = "; a number without a unit has the unit '1'" if name == "unit" else ""
            _fail(table.row(empty[0], named=True), empty[0], f"its {name} is empty{hint}")
    unknown = table.select((~pl.col("kind").is_in(KINDS)).arg_true()).to_series()
    if len(unknown):
        row = table.row(unknown[0], named=True)
        _fail(row, unknown[0], f"its kind is '{row['kind']}', which is none of {', '.join(KINDS)}")


def _exact_counts(data: Mapping[str, Sequence[Any]]) -> list[int | None]:
    """The values that were given as integers, exactly; None for the others."""
    counts: list[int | None] = []
    for row, value in enumerate(data["value"]):
        problem = ""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            problem = f"its value is {value!r}, which is not a number"
        elif isinstance(value, numbers.Integral):
            counts.append(int(value))
            if not -(2**63) <= int(value) < 2**63:
                problem = f"its value {value} does not fit into 64 bits"
        else:
            counts.append(None)
            if data["kind"][row] == "counter" and abs(float(value)) >= _EXACT_IN_FLOAT64:
                problem = (
                    f"it is a counter given as the float {value!r}, which may have lost digits; "
                    "from 2**53 on, give an integer"
                )
        if problem:
            _fail({name: data[name][row] for name in COLUMNS}, row, problem)
    return counts


def _fail(row: Mapping[str, Any], index: int, problem: str) -> NoReturn:
    name = f"component '{row['component']}', statistic '{row['statistic']}', scope '{row['scope']}'"
    raise RunError(f"row {index} of the statistics ({name}) is wrong: {problem}")
