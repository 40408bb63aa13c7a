# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep: curves over its axes, what each axis changes, the table of points."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from manyscale.report.charts import HeatMap, Lines, Stacks
from manyscale.report.numbers import shown
from manyscale.report.page import Page, Section

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


def sweep_page(path: Path, info: Mapping[str, Any], table: pl.DataFrame) -> Page:
    """The report of a sweep in a directory: what it says of itself, and its table, a row for each point."""
    name = str(info.get("name") or path.resolve().name)
    counts = info.get("counts") if isinstance(info.get("counts"), Mapping) else {}
    page = Page(name, f"sweep · {info.get('status')} · {info.get('created')}")
    axes, metrics = _axes(info, table), _metrics(info, table)
    done = table.filter(table["status"] == "done") if "status" in table.columns else table
    _headline(page.section("Headline"), info, counts, done, metrics)
    if not done.is_empty() and metrics:
        _effects(page.section("What matters"), done, axes, metrics)
        _curves(page.section("Curves"), done, axes, metrics)
    _points(page, table, path)
    _provenance(page.section("Provenance"), path, info)
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


def _headline(
    section: Section, info: Mapping[str, Any], counts: Any, done: pl.DataFrame, metrics: Mapping[str, str]
) -> None:
    if info.get("status") != "done":
        section.finding(
            f"The sweep is {info.get('status')}: {info.get('error') or 'not all points ran'}", "warn"
        )
    numbers = {str(name): shown(value) for name, value in dict(counts).items() if isinstance(value, int)}
    for name, unit in list(metrics.items())[:4]:
        values = done[name].drop_nulls()
        if len(values):
            numbers[name.replace("_", " ")] = f"{shown(values.min(), unit)} to {shown(values.max(), unit)}"  # type: ignore[arg-type]
    section.numbers(numbers)


def _effects(section: Section, done: pl.DataFrame, axes: Sequence[_Axis], metrics: Mapping[str, str]) -> None:
    """How far each axis changes the first metric, when all others are averaged over."""
    metric, unit = next(iter(metrics.items()))
    effects = []
    for axis in axes:
        means = _means(done, axis.column, metric)
        if len(means) > 1:
            least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
            effects.append((axis, least, means[least], most, means[most]))
    effects.sort(key=lambda effect: -_ratio(effect[4], effect[2]))
    for axis, least, low, most, high in effects:
        section.finding(
            f"{axis.name} changes {metric.replace('_', ' ')} by a factor of {_ratio(high, low):.3g}: from "
            f"{shown(low, unit)} at {least} to {shown(high, unit)} at {most}"
            + (" (means over all other axes)." if len(axes) > 1 else ".")
        )
    if not effects:
        section.words("No axis has more than one value.")


def _means(done: pl.DataFrame, by: str, metric: str) -> dict[Any, float]:
    import polars as pl

    table = done.group_by(by, maintain_order=True).agg(pl.col(metric).mean())
    return {key: value for key, value in table.iter_rows() if value is not None}


def _ratio(high: float, low: float) -> float:
    return high / low if low else float("inf") if high else 1.0


def _curves(section: Section, done: pl.DataFrame, axes: Sequence[_Axis], metrics: Mapping[str, str]) -> None:
    varied = [axis for axis in axes if done[axis.column].n_unique() > 1]
    numeric = sorted((axis for axis in varied if axis.number), key=lambda axis: -done[axis.column].n_unique())
    shown_metrics = list(metrics.items())[:_MOST_METRICS]
    if numeric:
        main = numeric[0]
        others = [axis for axis in varied if axis is not main]
        for name, unit in shown_metrics:
            section.chart(_lines(done, main, others, name, unit))
        for axis in numeric[1:]:
            name, unit = shown_metrics[0]
            section.chart(_lines(done, axis, [other for other in varied if other is not axis], name, unit))
    elif varied:
        for name, unit in shown_metrics:
            bars = {str(key): {name: value} for key, value in _means(done, varied[0].column, name).items()}
            section.chart(Stacks(name.replace("_", " "), _unit(name, unit), bars))
    if len(varied) >= 2:
        name, unit = shown_metrics[0]
        section.chart(_heat_map(done, varied[0], varied[1], name, unit))


def _lines(done: pl.DataFrame, axis: _Axis, others: Sequence[_Axis], metric: str, unit: str) -> Lines:
    """A line for each combination of the other axes; of repetitions the mean, and a band from least to most."""
    assert axis.number is not None
    groups: dict[str, dict[float, list[float]]] = {}
    for row in done.iter_rows(named=True):
        x, y = row[axis.number], row[metric]
        if x is None or y is None:
            continue
        name = ", ".join(f"{other.name}={row[other.column]}" for other in others) or metric
        groups.setdefault(name, {}).setdefault(float(x), []).append(float(y))
    if len(groups) > _MOST_LINES:  # more lines than an eye can follow: their mean and extent instead
        together: dict[float, list[float]] = {}
        for line in groups.values():
            for x, values in line.items():
                together.setdefault(x, []).extend(values)
        groups = {f"mean of {len(groups)} combinations": together}
    lines = {name: [(x, fmean(line[x])) for x in sorted(line)] for name, line in groups.items()}
    bands = {
        name: [(x, min(line[x]), max(line[x])) for x in sorted(line)]
        for name, line in groups.items()
        if any(len(values) > 1 for values in line.values())
    }
    places = sorted({x for line in groups.values() for x in line})
    log_x = len(places) > 2 and places[0] > 0 and places[-1] / places[0] >= _WIDE
    heights = [y for line in lines.values() for _, y in line]
    log_y = bool(heights) and min(heights) > 0 and max(heights) / min(heights) >= _WIDE
    title = f"{metric.replace('_', ' ')} over {axis.name}"
    return Lines(title, axis.label, _unit(metric, unit), lines, log_x=log_x, log_y=log_y, bands=bands)


def _heat_map(done: pl.DataFrame, across: _Axis, down: _Axis, metric: str, unit: str) -> HeatMap:
    cells: dict[tuple[Any, Any], list[float]] = {}
    for x, y, value in done.select(across.column, down.column, metric).iter_rows():
        if value is not None:
            cells.setdefault((x, y), []).append(float(value))
    xs = list(dict.fromkeys(done[across.column].to_list()))
    ys = list(dict.fromkeys(done[down.column].to_list()))
    rows = [[fmean(cells[x, y]) if (x, y) in cells else None for x in xs] for y in ys]
    return HeatMap(
        f"{metric.replace('_', ' ')} over {across.name} and {down.name}",
        across.name,
        down.name,
        [str(x) for x in xs],
        [str(y) for y in ys],
        rows,
        _unit(metric, unit),
    )


def _points(page: Page, table: pl.DataFrame, path: Path) -> None:
    section = page.section("Points")
    more = f"; the first {_MOST_ROWS:,} of {table.height:,}" if table.height > _MOST_ROWS else ""
    section.table(table.head(_MOST_ROWS), f"All points that have a result{more}. Also in results.parquet.")
    if "status" in table.columns:
        failed = table.filter(table["status"] == "failed")
        if not failed.is_empty():
            section.finding(f"{failed.height:,} points failed; the column error says why.", "warn")


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
    return metric.replace("_", " ") + (f" [{unit}]" if unit not in ("", "1") else "")
