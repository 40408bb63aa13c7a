# SPDX-License-Identifier: Apache-2.0
"""One comparison of the simulator with hardware, and what several of them come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A quantity as simulated and as measured on hardware."""

    name: str
    simulated: float
    reference: float
    unit: str
    source: str

    @property
    def error_percent(self) -> float:
        """How far the simulated value is above (or, negative, below) the reference."""
        return 100 * (self.simulated - self.reference) / self.reference


def mean_error_percent(rows: Sequence[Row]) -> float:
    """The mean of the absolute errors."""
    return sum(abs(row.error_percent) for row in rows) / len(rows)


def max_error_percent(rows: Sequence[Row]) -> float:
    """The largest absolute error."""
    return max(abs(row.error_percent) for row in rows)
