# SPDX-License-Identifier: Apache-2.0
"""Sums and means of scalar statistics over several components of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FEMTOSECONDS = 10**15  # of a second


class Totals:
    """The scalar statistics of a run, over several components at a time."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """`columns` are those of the tidy table."""
        rows = zip(columns["component"], columns["statistic"], columns["key"], columns["value"], strict=True)
        self._values = {(component, name): value for component, name, key, value in rows if key is None}

    def __contains__(self, statistic: tuple[str, str]) -> bool:
        return statistic in self._values

    def total(self, components: Sequence[str], name: str) -> int:
        """The sum of a counter."""
        return sum(self._values[component, name] for component in components)

    def most(self, components: Sequence[str], name: str) -> float:
        """The largest value of a statistic."""
        return max((self._values[component, name] for component in components), default=0.0)

    def seconds(self, components: Sequence[str], name: str, of: int | None = None) -> float | None:
        """The mean of a histogram of times; with `of`, spread over so many, of which the rest took none."""
        counts = [self._values[component, f"{name}.count"] for component in components]
        sums = [
            self._values[component, f"{name}.mean"] * count
            for component, count in zip(components, counts, strict=True)
        ]
        number = sum(counts) if of is None else of
        return sum(sums) / number / _FEMTOSECONDS if number else None
