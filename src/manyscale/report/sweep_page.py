# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep: what each axis changes, curves over them, the table of points."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.report.charts import HeatMap, Lines, Stacks
from manyscale.report.numbers import scale_of, shown, spoken
from manyscale.report.page import Page, Section
from manyscale.report.run_page import moment

if TYPE_CHECKING:
    import polars as pl

_MOST_METRICS = 8
_MOST_LINES = 12
_MOST_ROWS = 50_000
_WIDE = 30.0  # a range of values by which an axis is better drawn logarithmically


@dataclass(frozen=True)
class _Axis:
    """What was varied: the column of its values, and that of the same as numbers, if they are."""

    name: str
    column: str
    number: str | None
    unit: str | None

    @property
    def label(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class _Effect:
    """How far an axis changes a metric, all other axes averaged over."""

    axis: _Axis
    least_at: Any
    least: float
    most_at: Any
    most: float
    elasticity: float | None

    @property
    def factor(self) -> float:
        return _ratio(self.most, self.least)

    def words(self, metric: str, unit: str) -> str:
        return (
            f"{self.axis.name} changes {_spoken(metric)} by a factor of {self.factor:.3g}: from "
            f"{shown(self.least, unit)} at {self.least_at} to {shown(self.most, unit)} at {self.most_at}"
        )


def sweep_page(path: Path, info: Mapping[str, Any], table: pl.DataFrame) -> Page:
    """The report of a sweep in a directory: what it says of itself, and its table, a row for each point."""
    name = str(info.get("name") or path.resolve().name)
    page = Page(name, f"sweep · {info.get('status')} · {moment(info.get('created'))}")
    axes, metrics = _axes(info, table), _metrics(info, table)
    done = table.filter(table["status"] == "done") if "status" in table.columns else table
    has_results = not done.is_empty() and bool(metrics)
    effects = _effects(done, axes, metrics) if has_results else []
    charts = _curves(done, axes, metrics) if has_results else []
    first = _answer(page, info, done, axes, metrics, effects)
    if charts:
        first.chart(charts[0])
    if has_results:
        _sensitivities(page.section("Sensitivities"), effects, metrics, len(axes))
    if len(charts) > 1:
        section = page.section("Curves of all metrics")
        for chart in charts[1:]:
            section.chart(chart)
    _points(page, table, axes, metrics)
    _provenance(page.section("Simulator and provenance"), path, info)
    return page


def _axes(info: Mapping[str, Any], table: pl.DataFrame) -> list[_Axis]:
    found = []
    for axis in info.get("axes") or ():
        name, unit = str(axis.get("name")), axis.get("unit")
        column = next((each for each in (name, f"{name} (axis)") if each in table.columns), None)
        if column is None:
            continue
        numbers = f"{name} [{unit}]"
        if unit and numbers in table.columns:
            found.append(_Axis(name, column, numbers, str(unit)))
        else:
            numeric = table.schema[column].is_numeric()
            found.append(_Axis(name, column, column if numeric else None, None))
    return found


def _metrics(info: Mapping[str, Any], table: pl.DataFrame) -> dict[str, str]:
    """Name of a column -> unit; those of the host's clock last."""
    found: dict[str, str] = {}
    for metric in info.get("metrics") or ():
        name = str(metric.get("name"))
        column = next(
            (each for each in (name, f"{name} (result)", f"{name} (axis)") if each in table.columns), None
        )
        if (
            column is not None
            and table.schema[column].is_numeric()
            and table[column].null_count() < table.height
        ):
            found[column] = str(metric.get("unit") or "1")
    return dict(sorted(found.items(), key=lambda entry: entry[0].startswith("wall_")))


def _answer(
    page: Page,
    info: Mapping[str, Any],
    done: pl.DataFrame,
    axes: Sequence[_Axis],
    metrics: Mapping[str, str],
    effects: Sequence[_Effect],
) -> Section:
    """What matters most, the best point, and how many points there are."""
    counts = info.get("counts") if isinstance(info.get("counts"), Mapping) else {}
    numbers = {"points done": f"{done.height:,}"}
    if isinstance(counts, Mapping) and counts.get("failed"):
        numbers["points failed"] = shown(counts["failed"])
    verdict, advice = "No axis has more than one value.", ""
    if metrics and not done.is_empty():
        metric, unit = next(iter(metrics.items()))
        values = done[metric].drop_nulls()
        if len(values):
            low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
            numbers |= {
                f"least {_spoken(metric)}": shown(low, unit),
                f"most {_spoken(metric)}": shown(high, unit),
                "largest / least": shown(float(f"{_ratio(high, low):.3g}")),
            }
            best = done.filter(done[metric] == low).row(0, named=True)
            where = ", ".join(f"{axis.name} = {best[axis.column]}" for axis in axes)
            advice = f"Least {_spoken(metric)}: {shown(low, unit)} at {where}."
    if effects:
        means = " (means over all other axes)" if len(axes) > 1 else ""
        verdict = effects[0].words(*next(iter(metrics.items()))) + f"{means}."
    elif not metrics or done.is_empty():
        verdict = "No point has a result yet."
    mood = ""
    if info.get("status") != "done":
        verdict = f"The sweep is {info.get('status')}: {info.get('error') or 'not all points ran'}. {verdict}"
        mood = "warn"
    return page.answer(verdict, advice, numbers=numbers, mood=mood)


def _effects(done: pl.DataFrame, axes: Sequence[_Axis], metrics: Mapping[str, str]) -> list[_Effect]:
    """How far each axis changes the first metric, the largest first."""
    metric = next(iter(metrics))
    effects = []
    for axis in axes:
        means = _means(done, axis.column, metric)
        if len(means) > 1:
            least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
            slope = _elasticity(_means(done, axis.number, metric)) if axis.number else None
            effects.append(_Effect(axis, least, means[least], most, means[most], slope))
    return sorted(effects, key=lambda effect: -effect.factor)


def _elasticity(means: Mapping[Any, float]) -> float | None:
    """The slope of the logarithms by least squares: by how many per cent a metric changes with 1% of the axis."""
    import numpy as np

    points = [(float(x), y) for x, y in means.items() if x > 0 and y > 0]
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def _sensitivities(
    section: Section, effects: Sequence[_Effect], metrics: Mapping[str, str], axes: int
) -> None:
    if not effects:
        section.words("No axis has more than one value.")
        return
    metric, unit = next(iter(metrics.items()))
    if len(effects) > 1:
        bars = {effect.axis.name: {"factor": effect.factor} for effect in effects}
        section.chart(
            Stacks(
                f"How far each axis changes {_spoken(metric)}",
                "largest mean / least mean",
                bars,
                labelled=True,
            )
        )
    rows = [
        (
            effect.axis.name,
            effect.factor,
            effect.elasticity,
            str(effect.least_at),
            effect.least,
            str(effect.most_at),
            effect.most,
        )
        for effect in effects
    ]
    section.table(
        rows,
        "Means over all other axes." if axes > 1 else "",
        columns=("axis", "factor", "elasticity", "least at", "least", "most at", "most"),
        units={"least": unit, "most": unit},
        titles={
            "elasticity": "per cent that the metric changes by with 1% of the axis (slope of the logarithms)"
        },
    )


def _means(done: pl.DataFrame, by: str, metric: str) -> dict[Any, float]:
    import polars as pl

    table = done.group_by(by, maintain_order=True).agg(pl.col(metric).mean())
    return {key: value for key, value in table.iter_rows() if value is not None}


def _ratio(high: float, low: float) -> float:
    return high / low if low else float("inf") if high else 1.0


def _curves(
    done: pl.DataFrame, axes: Sequence[_Axis], metrics: Mapping[str, str]
) -> list[Lines | Stacks | HeatMap]:
    """Each metric over the axis with the most values, the first metric over the others, and over two at once."""
    varied = [axis for axis in axes if done[axis.column].n_unique() > 1]
    numeric = sorted((axis for axis in varied if axis.number), key=lambda axis: -done[axis.column].n_unique())
    shown_metrics = list(metrics.items())[:_MOST_METRICS]
    charts: list[Lines | Stacks | HeatMap] = []
    if numeric:
        main = numeric[0]
        others = [axis for axis in varied if axis is not main]
        charts += [_lines(done, main, others, name, unit) for name, unit in shown_metrics]
        name, unit = shown_metrics[0]
        for axis in numeric[1:]:
            charts.append(_lines(done, axis, [other for other in varied if other is not axis], name, unit))
    elif varied:
        for name, unit in shown_metrics:
            means = _means(done, varied[0].column, name)
            factor, scaled = scale_of(means.values(), unit)
            bars = {str(key): {_spoken(name): value * factor} for key, value in means.items()}
            charts.append(Stacks(_spoken(name), _unit(name, scaled), bars))
    if len(varied) >= 2:
        charts.append(_heat_map(done, varied[0], varied[1], *shown_metrics[0]))
    return charts


def _lines(done: pl.DataFrame, axis: _Axis, others: Sequence[_Axis], metric: str, unit: str) -> Lines:
    """A line for each combination of the other axes; of repetitions the mean, and a band from least to most."""
    assert axis.number is not None
    groups: dict[str, dict[float, list[float]]] = {}
    for row in done.iter_rows(named=True):
        x, y = row[axis.number], row[metric]
        if x is None or y is None:
            continue
        name = ", ".join(f"{_last(other.name)} {row[other.column]}" for other in others) or _spoken(metric)
        groups.setdefault(name, {}).setdefault(float(x), []).append(float(y))
    if len(groups) > _MOST_LINES:  # more lines than an eye can follow: their mean and extent instead
        together: dict[float, list[float]] = {}
        for line in groups.values():
            for x, values in line.items():
                together.setdefault(x, []).extend(values)
        groups = {f"mean of {len(groups)} combinations": together}
    factor, scaled = scale_of((y for line in groups.values() for ys in line.values() for y in ys), unit)
    lines = {name: [(x, factor * _mean(line[x])) for x in sorted(line)] for name, line in groups.items()}
    bands = {
        name: [(x, factor * min(line[x]), factor * max(line[x])) for x in sorted(line)]
        for name, line in groups.items()
        if any(len(values) > 1 for values in line.values())
    }
    log_x = _is_logarithmic(sorted({x for line in groups.values() for x in line}))
    heights = [y for line in lines.values() for _, y in line]
    log_y = bool(heights) and min(heights) > 0 and max(heights) / min(heights) >= _WIDE
    title = f"{_spoken(metric)} over {axis.name}"
    return Lines(title, axis.label, _unit(metric, scaled), lines, log_x=log_x, log_y=log_y, bands=bands)


def _is_logarithmic(values: Sequence[float]) -> bool:
    """Whether values of an axis grow by a factor, or reach so far that an axis is better drawn logarithmically."""
    if len(values) < 3 or values[0] <= 0:
        return False
    factors = [high / low for low, high in pairwise(values)]
    return values[-1] / values[0] >= _WIDE or (min(factors) > 1.4 and max(factors) / min(factors) < 1.2)


def _mean(values: Sequence[float]) -> float:
    """The mean; divided before it is added up, so that no sum is too large for a float."""
    return math.fsum(value / len(values) for value in values)


def _heat_map(done: pl.DataFrame, across: _Axis, down: _Axis, metric: str, unit: str) -> HeatMap:
    cells: dict[tuple[Any, Any], list[float]] = {}
    for x, y, value in done.select(across.column, down.column, metric).iter_rows():
        if value is not None:
            cells.setdefault((x, y), []).append(float(value))
    xs = list(dict.fromkeys(done[across.column].to_list()))
    ys = list(dict.fromkeys(done[down.column].to_list()))
    factor, scaled = scale_of((value for values in cells.values() for value in values), unit)
    rows = [[factor * _mean(cells[x, y]) if (x, y) in cells else None for x in xs] for y in ys]
    return HeatMap(
        f"{_spoken(metric)} over {across.name} and {down.name}",
        across.name,
        down.name,
        [str(x) for x in xs],
        [str(y) for y in ys],
        rows,
        _unit(metric, scaled),
    )


def _points(page: Page, table: pl.DataFrame, axes: Sequence[_Axis], metrics: Mapping[str, str]) -> None:
    section = page.section("Points")
    more = f"; the first {_MOST_ROWS:,} of {table.height:,}" if table.height > _MOST_ROWS else ""
    failed = table.filter(table["status"] == "failed").height if "status" in table.columns else 0
    if failed:
        section.finding(f"{failed:,} points failed; the column error says why.", "warn")
    twice = {axis.number for axis in axes if axis.number and axis.number != axis.column}
    kept = [name for name in table.columns if name not in twice]
    section.table(
        table.head(_MOST_ROWS).select(kept),
        f"All points that have a result{more}. Also in results.parquet.",
        units=dict(metrics),
        names={name: _spoken(name) for name in metrics},
    )


def _provenance(section: Section, path: Path, info: Mapping[str, Any]) -> None:
    facts = {
        name: str(info.get(name))
        for name in ("machine", "seed", "repetitions", "on", "created", "begun", "ended")
        if info.get(name) is not None
    }
    command = info.get("command")
    facts["command"] = " ".join(str(word) for word in command) if isinstance(command, list) else ""
    facts["directory"] = str(path)
    versions = info.get("versions")
    if isinstance(versions, Mapping):
        facts |= {f"version of {name}": str(version) for name, version in versions.items()}
    section.facts(facts)
    section.code(json.dumps(info.get("workload"), indent=2, ensure_ascii=False), "workload")
    study = path / "study.toml"
    if study.is_file() and study.stat().st_size < 1 << 20:
        section.code(study.read_text(encoding="utf-8", errors="replace"), "study.toml")


def _unit(metric: str, unit: str) -> str:
    return _spoken(metric) + (f", {unit}" if unit not in ("", "1") else "")


def _spoken(metric: str) -> str:
    return spoken(metric.removesuffix(" (result)").removesuffix(" (axis)"))


def _last(name: str) -> str:
    """The last part of a parameter's name, which tells lines apart."""
    return name.rpartition(".")[2]
