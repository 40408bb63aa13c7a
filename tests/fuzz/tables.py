# SPDX-License-Identifier: Apache-2.0
"""Damage to tables in Parquet files: columns and values that readers may not expect, written as polars writes them.

What is damaged byte by byte is polars' to refuse; see `manyscale.results.parquet` for how that is kept from harm.
"""

from __future__ import annotations

import io
import random
from typing import Any

import polars as pl

from fuzz.mutations import TEXTS

_TYPES = (
    pl.String,
    pl.Int64,
    pl.UInt8,
    pl.Float64,
    pl.Boolean,
    pl.List(pl.Int64),
    pl.Binary,
    pl.Date,
    pl.Null,
)
_NUMBERS = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 1e308, -0.0, float("nan"), float("inf"), float("-inf"))


def of_table(content: bytes, source: random.Random) -> bytes:
    """Columns that are missing, renamed, exchanged or of another type; rows that are; values that become others."""
    table = pl.read_parquet(io.BytesIO(content))
    for _ in range(source.randint(1, 2)):
        table = _changed(table, source)
    out = io.BytesIO()
    table.write_parquet(out)
    return out.getvalue()


def _changed(table: pl.DataFrame, source: random.Random) -> pl.DataFrame:
    if table.width == 0:
        return pl.DataFrame({"x": [1]})
    name = source.choice(table.columns)
    what = source.randrange(9)
    if what == 0:
        return table.drop(name)
    if what == 1:
        return table.rename({name: source.choice([text for text in TEXTS if text not in table.columns])})
    if what == 2:
        return table.select(source.sample(table.columns, table.width))
    if what == 3:
        return table.with_columns(table[name].cast(source.choice(_TYPES), strict=False))
    if what == 4:
        begin = source.randrange(table.height + 1)
        return table.slice(begin, source.choice((0, 1, table.height)))
    if what == 5:
        return pl.concat(
            [table, table.sample(source.randint(0, min(table.height, 3)), seed=source.getrandbits(30))]
        )
    if what == 6:
        return table.with_columns(table[name].shuffle(seed=source.getrandbits(30)))
    return table.with_columns(_with_values(table[name], source))


def _with_values(column: pl.Series, source: random.Random) -> pl.Series:
    """Some values, or all, become ones that the type still takes."""
    values: list[Any] = column.to_list()
    everywhere = source.random() < 0.2
    for at in range(len(values)) if everywhere else source.sample(range(len(values)), min(len(values), 2)):
        other: tuple[Any, ...] = TEXTS if column.dtype == pl.String else _NUMBERS
        values[at] = source.choice((*other, None, source.choice(values)))
    return pl.Series(column.name, values, dtype=column.dtype, strict=False)
