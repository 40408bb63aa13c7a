# SPDX-License-Identifier: Apache-2.0
"""What differs between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.results.run import Run

if TYPE_CHECKING:
    import polars as pl

WALL_CLOCK_PREFIX = "wall_"
"""Headline numbers so named depend on the host, not on what was simulated."""

_IDENTITY = ("component", "statistic", "scope", "key", "unit")


def compare(a: Run, b: Run, *, threshold_percent: float = 0.0) -> pl.DataFrame:
    """The statistics that differ by more than `threshold_percent` of their value in `a`, largest first.

    A row that only one run has is always there, at the end, with null for the other. From zero to something
    is an infinite percentage.
    """
    import polars as pl

    # Two samples of a series may share a time; the n-th of one run is set against the n-th of the other.
    sides = [
        run.stats.select(
            *_IDENTITY,
            pl.int_range(pl.len()).over(_IDENTITY).alias("occurrence"),
            pl.col("value").alias(side),
            pl.col("count").alias(f"{side}_count"),
        )
        for side, run in (("a", a), ("b", b))
    ]
    pairs = (
        pl.concat(sides, how="diagonal")
        .group_by(*_IDENTITY, "occurrence", maintain_order=True)
        .agg(pl.col("a", "b", "a_count", "b_count").drop_nulls().first())
    )
    return (
        pairs.with_columns(_difference())
        .with_columns(_percent())
        .filter(pl.col("percent").is_null() | (pl.col("percent").abs() > threshold_percent))
        .with_row_index("row")
        .sort(pl.col("percent").abs(), "row", descending=[True, False], nulls_last=True)
        .select(*_IDENTITY, "a", "b", "difference", "percent")
    )


def compare_headline(a: Run, b: Run) -> pl.DataFrame:
    """All headline numbers of both runs side by side, with their difference."""
    import polars as pl

    names = dict.fromkeys([*_units(a), *_units(b)])
    rows = [(name, unit, _number(a, name, unit), _number(b, name, unit)) for name, unit in names]
    return (
        pl.DataFrame(
            [(*row[:2], *map(_float, row[2:]), *map(_int, row[2:])) for row in rows],
            schema={
                "name": pl.String,
                "unit": pl.String,
                "a": pl.Float64,
                "b": pl.Float64,
                "a_count": pl.Int64,
                "b_count": pl.Int64,
            },
            orient="row",
        )
        .with_columns(_difference())
        .with_columns(_percent())
        .drop("a_count", "b_count")
    )


def identical(a: Run, b: Run) -> bool:
    """Whether two runs gave the same numbers in the same order, to the bit; wall-clock times do not count."""
    simulated = [
        {name: entry for name, entry in run.headline.items() if not name.startswith(WALL_CLOCK_PREFIX)}
        for run in (a, b)
    ]
    return simulated[0] == simulated[1] and a.stats.equals(b.stats, null_equal=True)


def _difference() -> pl.Expr:
    """`b` - `a`, from the exact integers where both have them and floats would lose the last digits."""
    import polars as pl

    a, b = pl.col("a"), pl.col("b")
    exact = (pl.col("b_count") - pl.col("a_count")).cast(pl.Float64)
    # Far apart, the integers could overflow, and floats are as good.
    near = (b - a).abs() < 2**53
    return (
        pl.when(near & exact.is_not_null())
        .then(exact)
        .when(a == b)  # also for infinities and NaN, whose difference is NaN
        .then(0.0)
        .otherwise(b - a)
        .alias("difference")
    )


def _percent() -> pl.Expr:
    import polars as pl

    difference = pl.col("difference")
    return (
        pl.when(difference == 0.0)
        .then(0.0)
        .otherwise(100.0 * difference / pl.col("a").abs())
        .alias("percent")
    )


def _units(run: Run) -> list[tuple[str, str]]:
    return [(name, entry["unit"]) for name, entry in run.headline.items()]


def _number(run: Run, name: str, unit: str) -> Any:
    entry = run.headline.get(name)
    return entry["value"] if entry is not None and entry["unit"] == unit else None


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None
