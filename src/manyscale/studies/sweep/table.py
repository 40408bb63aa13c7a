# SPDX-License-Identifier: Apache-2.0
"""The one table of a sweep: a row for each point that has a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from manyscale.studies.sweep.axes import Axis
from manyscale.studies.sweep.metrics import Metric
from manyscale.studies.sweep.points import Point
from manyscale.studies.sweep.quantities import plain_number
from manyscale.studies.sweep.worker import Record

if TYPE_CHECKING:
    import polars as pl

_AHEAD = ("point", "repetition", "seed")
_BEHIND = ("status", "error", "attempts", "wall_seconds")


def results_table(
    points: Sequence[Point], axes: Sequence[Axis], records: Mapping[str, Record], metrics: Sequence[Metric]
) -> pl.DataFrame:
    """Points in order with the values of their axes, how they ended, and their metrics."""
    import polars as pl

    rows = [(point, records[point.key]) for point in points if point.key in records]
    shown = metrics or headline_metrics(record for _, record in rows)
    columns: dict[str, pl.Series] = {
        "point": pl.Series("point", [point.index for point, _ in rows], pl.Int64),
        "repetition": pl.Series("repetition", [point.repetition for point, _ in rows], pl.Int64),
        "seed": pl.Series("seed", [point.request.seed for point, _ in rows], pl.Int64),
    }
    for axis in axes:
        name = free_name(axis.name, columns)
        columns[name] = _axis_column(name, axis, [point.coordinates[axis.name] for point, _ in rows])
        if axis.unit is not None:
            name = f"{axis.name} [{axis.unit}]"
            numbers = [plain_number(point.coordinates[axis.name]) for point, _ in rows]
            columns[name] = _number_column(name, numbers)
    columns["status"] = pl.Series("status", [record["status"] for _, record in rows], pl.String)
    columns["error"] = pl.Series("error", [record["error"] for _, record in rows], pl.String)
    columns["attempts"] = pl.Series("attempts", [record["attempts"] for _, record in rows], pl.Int64)
    walls = [record["wall_seconds"] for _, record in rows]
    columns["wall_seconds"] = pl.Series("wall_seconds", walls, pl.Float64)
    for metric in shown:
        name = free_name(metric.name, columns)
        columns[name] = _number_column(name, [record["values"].get(metric.text) for _, record in rows])
    return pl.DataFrame([series.alias(name) for name, series in columns.items()])


def table_problem(table: pl.DataFrame, axes: Iterable[Mapping[str, Any]]) -> str | None:
    """Why this is no table of a sweep with these axes; None if it is one."""
    import polars as pl

    types = dict.fromkeys((*_AHEAD, "attempts"), pl.Int64()) | {
        "status": pl.String(),
        "wall_seconds": pl.Float64(),
    }
    for name, expected in types.items():
        if table.schema.get(name) != expected:
            return f"its column '{name}' is {table.schema.get(name, 'missing')} instead of {expected}"
    for axis in axes:
        name, unit = axis["name"], axis.get("unit")
        column = next((each for each in (name, f"{name} (axis)") if each in table.columns), None)
        if column is None:
            return f"it has no column '{name}', which is an axis of the sweep"
        if table.schema[column] not in (pl.String, pl.Boolean, pl.Int64, pl.Float64):
            return f"its column '{column}' is {table.schema[column]}, which no axis is"
        number = f"{name} [{unit}]" if unit else None
        if number is not None and not table.schema.get(number, pl.String()).is_numeric():
            return f"its column '{number}' is {table.schema.get(number, 'missing')} instead of numbers"
        types |= {each: table.schema[each] for each in (column, number) if each is not None}
    empty = next((name for name in types if table[name].null_count()), None)
    return None if empty is None else f"its column '{empty}' has rows without a value"


def headline_metrics(records: Any) -> list[Metric]:
    """All headline numbers that any result has, in the order of the first; but not those of the host's clock."""
    names: dict[str, None] = {}
    for record in records:
        for name in record["values"]:
            if ":" not in name and not name.startswith("wall_"):
                names.setdefault(name)
    return [Metric(name, name) for name in names]


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name of a column, with an addition if another has it: a metric may be called as an axis or as ours."""
    reserved = {*_AHEAD, *_BEHIND, *taken}
    return name if name not in reserved else f"{name} (result)" if name in _BEHIND else f"{name} (axis)"


def _axis_column(name: str, axis: Axis, values: list[Any]) -> pl.Series:
    import polars as pl

    if all(isinstance(value, bool) for value in axis.values):
        return pl.Series(name, values, pl.Boolean)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in axis.values):
        return _number_column(name, values)
    return pl.Series(name, [value if isinstance(value, str) else str(value) for value in values], pl.String)


def _number_column(name: str, values: list[Any]) -> pl.Series:
    """Whole numbers where all are, floats otherwise."""
    import polars as pl

    whole = all(value is None or (isinstance(value, int) and -(2**63) <= value < 2**63) for value in values)
    if whole and any(value is not None for value in values):
        return pl.Series(name, values, pl.Int64)
    return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
