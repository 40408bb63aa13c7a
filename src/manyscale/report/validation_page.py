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
    @property
    def use(self) -> str: ...


def _answer(page: Page, means: Mapping[str, float], rows: Sequence[Comparison]) -> None:
    rows = [row for row in rows if row.use == "test"] or rows
    errors = sorted(abs(row.error_percent) for row in rows)
    worst = max(rows, key=lambda row: abs(row.error_percent))
    first = page.answer(
        f"{len(rows):,} numbers that nothing was calibrated with are off by {sum(errors) / len(errors):.1f}% in the "
        f"mean, half of them by less than "
        f"{errors[len(errors) // 2]:.1f}%.",
        f"Furthest off: {worst.name} ({worst.error_percent:+.1f}%).",
        numbers={
            "numbers compared": f"{len(rows):,}",
            "mean absolute error": f"{sum(errors) / len(errors):.1f}%",
            "median absolute error": f"{errors[len(errors) // 2]:.1f}%",
            "within 10%": f"{sum(error <= 10 for error in errors) / len(errors):.0%}",
            "largest error": f"{errors[-1]:.1f}%",
        },
    )
    bars = {title: {"mean absolute error": mean} for title, mean in means.items()}
    first.chart(Stacks("Mean absolute error", "%", bars, labelled=True))


def validation_page(tables: Mapping[str, Sequence[Comparison]]) -> Page:
    """A section for each table: a chart of all its rows, and the rows."""
    page = Page("Validation", "what was simulated beside what is published")
    means = {
        title: sum(abs(row.error_percent) for row in rows) / len(rows)
        for title, rows in tables.items()
        if rows
    }
    if means:
        _answer(page, means, [row for rows in tables.values() for row in rows])
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
        units = [row.unit for row in rows]
        section.table(
            [
                (row.name, row.simulated, row.reference, row.error_percent, row.use, row.source)
                for row in rows
            ],
            columns=("name", "simulated", "reference", "error", "use", "source"),
            units={"simulated": units, "reference": units, "error": "%"},
        )
    return page
