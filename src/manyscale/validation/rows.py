# SPDX-License-Identifier: Apache-2.0
"""One comparison of the simulator with hardware, and what several of them come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Use = Literal["calibrated", "test", "other code"]
"""What a measurement was used for: a parameter of the model was fitted to it or stated from it, or it only
tests; of other code (another build of the program), neither."""

LEAST_CORRELATED = 3  # rows of one unit from which on a correlation says something


@dataclass(frozen=True)
class Row:
    """A quantity as simulated and as measured on hardware."""

    name: str
    simulated: float
    reference: float
    unit: str
    source: str
    use: Use = "test"

    @property
    def error_percent(self) -> float:
        """How far the simulated value is above (or, negative, below) the reference."""
        return 100 * (self.simulated - self.reference) / self.reference


def calibrated(rows: Sequence[Row]) -> list[Row]:
    """Rows whose references parameters were fitted to or stated from: they prove nothing by themselves."""
    return [replace(row, use="calibrated") for row in rows]


def headline_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows whose errors count: the test rows; where there is none, the calibrated ones."""
    return [row for row in rows if row.use == "test"] or list(rows)


def mean_error_percent(rows: Sequence[Row]) -> float:
    """The mean of the absolute errors."""
    return sum(abs(row.error_percent) for row in rows) / len(rows)


def max_error_percent(rows: Sequence[Row]) -> float:
    """The largest absolute error."""
    return max(abs(row.error_percent) for row in rows)


def correlations(rows: Sequence[Row]) -> dict[str, float]:
    """Pearson's coefficient between simulated and reference values, for each unit with enough rows that differ.

    Rows of different units are not put together: how cycles compare with bytes says nothing about the simulator.
    """
    found = {}
    for unit in dict.fromkeys(row.unit for row in rows):
        pairs = [(row.simulated, row.reference) for row in rows if row.unit == unit]
        coefficient = _pearson(pairs) if len(pairs) >= LEAST_CORRELATED else None
        if coefficient is not None:
            found[unit] = coefficient
    return found


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    """None where one of the two does not vary."""
    count = len(pairs)
    mean_x, mean_y = sum(x for x, _ in pairs) / count, sum(y for _, y in pairs) / count
    product = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    squares = sum((x - mean_x) ** 2 for x, _ in pairs) * sum((y - mean_y) ** 2 for _, y in pairs)
    return product / math.sqrt(squares) if squares > 0 else None
