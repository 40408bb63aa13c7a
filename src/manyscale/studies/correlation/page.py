# SPDX-License-Identifier: Apache-2.0
"""The page of a correlation: the answer, each quantity simulated beside measured, and what explains differences."""

from __future__ import annotations

from collections.abc import Sequence

from manyscale.report.charts import Lines
from manyscale.report.page import Page, Section

from .comparison import Correlation, KernelComparison
from .values import QUANTITIES, Quantity

_NAME = 48


def correlation_page(correlation: Correlation) -> Page:
    """The page of a correlation, for `Page.write`."""
    page = Page(
        f"Correlation of {correlation.program}",
        f"simulated on {correlation.machine}, measured: {correlation.measurements.source}",
    )
    _answer(page, correlation)
    _kernels(page.section("Kernels", folded=False), correlation)
    _explanations(page.section("What explains the differences", folded=False), correlation)
    plots = page.section("Simulated beside measured")
    for quantity in QUANTITIES:
        _scatter(plots, correlation, quantity)
    _launches(page.section("Launches", folded=True), correlation)
    return page


def _answer(page: Page, correlation: Correlation) -> None:
    matched, errors = correlation.matched, correlation
    kernels = [kernel for kernel in correlation.kernels if kernel.time_error is not None]
    left = []
    if matched.only_measured:
        left.append(f"{matched.only_measured:,} measured launches were not simulated.")
    if matched.only_simulated:
        left.append(f"{matched.only_simulated:,} simulated launches were not measured.")
    numbers = {
        "launches compared": f"{len(matched.pairs):,}",
        "mean absolute error": _percent(errors.mean_error),
        "weighted by time": _percent(errors.weighted_error),
        "error of the whole time": _signed(errors.total_error),
        "correlation": "" if errors.coefficient is None else f"{errors.coefficient:.4f}",
    }
    if kernels:
        worst = max(kernels, key=lambda kernel: abs(kernel.time_error or 0.0) * kernel.weight)
        text = (
            f"{len(kernels):,} kernels are off by {_percent(errors.mean_error)} in the mean, "
            f"{_percent(errors.weighted_error)} weighted by time."
        )
        advice = f"Most of it: {worst.kernel} ({_signed(worst.time_error)}), {correlation.explanation(worst).text}. "
    else:
        text, advice = "No time was measured; counters are compared.", ""
    first = page.answer(
        text,
        (advice + " ".join(left)).strip(),
        numbers={name: value for name, value in numbers.items() if value},
    )
    time = next((q for q in QUANTITIES if any(kernel.time == q.name for kernel in kernels)), None)
    if time is not None:
        _scatter(first, correlation, time)


def _kernels(section: Section, correlation: Correlation) -> None:
    shown = [q for q in QUANTITIES if any(kernel.error(q.name) is not None for kernel in correlation.kernels)]
    columns, units = ["kernel", "launches", "error of time"], {"error of time": "%"}
    for quantity in shown:
        columns += [quantity.title, f"{quantity.title}, measured", f"{quantity.title}, error"]
        unit = quantity.unit
        units |= {quantity.title: unit, f"{quantity.title}, measured": unit, f"{quantity.title}, error": "%"}
    rows = []
    for kernel in correlation.kernels:
        row: list[object] = [kernel.kernel, len(kernel.pairs), _hundred(kernel.time_error)]
        for quantity in shown:
            factor = 100 if quantity.share else 1
            values = (kernel.simulated(quantity.name), kernel.measured(quantity.name))
            row += [None if value is None else factor * value for value in values]
            row.append(_hundred(kernel.error(quantity.name)))
        rows.append(row)
    section.table(
        rows,
        "Means of the launches of each kernel; the error of a share is the difference in percentage points.",
        columns=columns,
        units=units,
    )


def _scatter(section: Section, correlation: Correlation, quantity: Quantity) -> None:
    dots: dict[str, list[tuple[float, float]]] = {}
    factor = 100 if quantity.share else 1
    for kernel in correlation.kernels:
        for pair in kernel.pairs:
            ours, theirs = (side.values.get(quantity.name) for side in (pair.simulated, pair.measured))
            if ours is not None and theirs is not None and (quantity.share or (ours > 0 and theirs > 0)):
                dots.setdefault(_short(kernel.kernel), []).append((factor * theirs, factor * ours))
    if not dots:
        return
    ends = [value for points in dots.values() for point in points for value in point]
    low, high = (0.0, 100.0) if quantity.share else (min(ends), max(ends))
    title = f"{quantity.title[0].upper()}{quantity.title[1:]}"
    section.chart(
        Lines(
            title,
            f"measured ({quantity.unit})",
            f"simulated ({quantity.unit})",
            dots=dots,
            roofs={"equal": [(low, low), (high, high)]},
            log_x=not quantity.share,
            log_y=not quantity.share,
        ),
        "Each launch; on the line both are equal.",
    )


def _explanations(section: Section, correlation: Correlation) -> None:
    section.table(
        [
            (kernel.kernel, _hundred(kernel.time_error), correlation.explanation(kernel).text)
            for kernel in correlation.kernels
        ],
        "The counter that differs most. Where instructions differ by more than 10%, other code was measured.",
        columns=("kernel", "error of time", "explanation"),
        units={"error of time": "%"},
    )
    if not correlation.sensitivities:
        section.words(
            "--sensitivity also says what the time of each kernel depends on: latency, bandwidth or issue."
        )
        return
    names = sorted({name for powers in correlation.sensitivities.values() for name in powers})
    section.table(
        [
            (kernel, *(powers.get(name) for name in names))
            for kernel, powers in correlation.sensitivities.items()
        ],
        "By which power of it the time changes, by simulation with 25% more: longer links to L2 and memory, a faster "
        "memory, faster SMs.",
        columns=("kernel", *names),
    )


def _launches(section: Section, correlation: Correlation) -> None:
    sides = ("cycles", "seconds")
    rows = [
        (
            index,
            pair.simulated.base,
            *(side.values.get(name) for name in sides for side in (pair.simulated, pair.measured)),
        )
        for index, pair in enumerate(correlation.matched.pairs)
    ]
    section.table(
        rows,
        "All launches that were found on both sides, in the order of the program.",
        columns=("number", "kernel", "cycles", "cycles, measured", "time", "time, measured"),
        units={"time": "s", "time, measured": "s"},
    )


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _hundred(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _signed(share: float | None) -> str:
    return "" if share is None else f"{share:+.1%}"


def table_rows(kernels: Sequence[KernelComparison]) -> list[tuple[str, ...]]:
    """The cells of each kernel for a terminal."""
    return [
        (
            _short(kernel.kernel),
            f"{len(kernel.pairs):,}",
            _number(kernel.simulated(kernel.time)),
            _number(kernel.measured(kernel.time)),
            _signed(kernel.time_error),
            _signed(kernel.error("warp_instructions")),
            *(_both(kernel, name) for name in ("achieved_occupancy", "l1_hit_rate", "l2_hit_rate")),
            _signed(kernel.error("dram_sectors")),
        )
        for kernel in kernels
    ]


TABLE_COLUMNS = (
    *("kernel", "launches", "simulated", "measured", "error", "instructions"),
    *("occupancy", "L1 hits", "L2 hits", "DRAM sectors"),
)


def _both(kernel: KernelComparison, name: str) -> str:
    ours, theirs = kernel.simulated(name), kernel.measured(name)
    return "" if ours is None or theirs is None else f"{100 * ours:.0f}/{theirs:.0%}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1 else f"{value * 1e6:,.2f} us"
