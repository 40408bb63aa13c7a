# SPDX-License-Identifier: Apache-2.0
"""The report of validations: simulated beside measured values, the errors, and the correlation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from manyscale.report.charts import Lines, Stacks
from manyscale.report.page import Page


class Comparison(Protocol):
    """A quantity as simulated and as published."""

    @property
    def name(self) -> str: ...
    @property
    def simulated(self) -> float: ...
    @property
    def reference(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def error_percent(self) -> float: ...


def validation_page(tables: Mapping[str, Sequence[Comparison]]) -> Page:
    """A section for each table: a chart of all its rows, and the rows."""
    page = Page("Validation", "what was simulated beside what is published")
    bars = {
        title: {"mean absolute error": sum(abs(row.error_percent) for row in rows) / len(rows)}
        for title, rows in tables.items()
        if rows
    }
    if bars:
        page.section("Headline").chart(Stacks("Mean absolute error", "%", bars))
    for title, rows in tables.items():
        section = page.section(title)
        dots: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row.simulated > 0 and row.reference > 0:
                dots.setdefault(row.unit, []).append((row.reference, row.simulated))
        if dots:
            ends = [value for points in dots.values() for point in points for value in point]
            equal = [(min(ends), min(ends)), (max(ends), max(ends))]
            section.chart(
                Lines(
                    f"Correlation: {title}",
                    "reference",
                    "simulated",
                    dots=dots,
                    roofs={"equal": equal},
                    log_x=True,
                    log_y=True,
                ),
                "Each row at its reference and simulated value, by unit; on the line they are equal.",
            )
        section.table(
            [
                (row.name, row.simulated, row.reference, row.unit, row.error_percent, row.source)
                for row in rows
            ],
            columns=("name", "simulated", "reference", "unit", "error %", "source"),
        )
    return page
