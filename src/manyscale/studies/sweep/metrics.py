# SPDX-License-Identifier: Apache-2.0
"""Metrics of a study: headline numbers by name, or statistics of components such as "max(core[*]:l1.hits)"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyscale.errors import InputError, nearest
from manyscale.units import shown

Columns = Mapping[str, Sequence[Any]]
Headline = Mapping[str, Mapping[str, Any]]

_STATISTIC = re.compile(r"(?:(sum|max|min|mean)\()?([^():]+):([^():]+)(?(1)\))")
_HOW: Mapping[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "mean": lambda values: sum(values) / len(values),
}


@dataclass(frozen=True)
class Metric:
    """A number that is kept of each point: its name in the table, and the text that says which number it is."""

    name: str
    text: str

    @property
    def is_statistic(self) -> bool:
        """Whether it is a statistic of components, and no headline number."""
        return ":" in self.text


def make_metrics(given: Any, where: str) -> tuple[Metric, ...]:
    """Metrics of a list of texts, or of a table that names them."""
    if isinstance(given, Mapping):
        named = [(name, text) for name, text in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        named = [(text, text) for text in given]
    else:
        raise InputError(f'{where}: expected a list such as ["simulated_seconds"], got {shown(given)}')
    metrics = []
    for name, text in named:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where}: a metric is the name of a number, not {shown(text)}")
        if ":" in text and _STATISTIC.fullmatch(text.strip()) is None:
            raise InputError(
                f"{where}: {shown(text)} is no statistic; write component:statistic, such as core[0]:l1.hits, "
                "core[*]:l1.hits (the sum of all) or max(core[*]:l1.hits)"
            )
        metrics.append(Metric(str(name).strip(), text.strip()))
    names = [metric.name for metric in metrics]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{where}: two metrics are called '{name}'")
    return tuple(metrics)


@dataclass(frozen=True)
class Number:
    """A number with its unit."""

    value: int | float | None
    unit: str


def evaluate(texts: Iterable[str], columns: Callable[[], Columns]) -> dict[str, Number]:
    """The statistics that texts name, of the columns of the tidy table, which are made only if there are any."""
    wanted = list(texts)
    table = columns() if wanted else {}
    return {text: _statistic(text, table) for text in wanted}


def _statistic(text: str, columns: Columns) -> Number:
    match = _STATISTIC.fullmatch(text)
    assert match is not None  # `make_metrics` has looked
    how, component, statistic = match[1] or "sum", match[2].strip(), match[3].strip()
    pattern = re.compile(".*".join(re.escape(part) for part in component.split("*")))
    found: list[Any] = []
    unit = "1"
    names = columns["statistic"]
    for row, name in enumerate(names):
        if name != statistic or columns["key"][row] is not None or columns["scope"][row] != "run":
            continue
        if pattern.fullmatch(columns["component"][row]):
            found.append(columns["value"][row])
            unit = columns["unit"][row]
    if not found:
        of = [
            name for name, owner in zip(names, columns["component"], strict=True) if pattern.fullmatch(owner)
        ]
        if of:
            raise InputError(
                f"{text}: {component} has no statistic '{statistic}'; {nearest(statistic, set(of))}"
            )
        raise InputError(
            f"{text}: there is no component '{component}'; {nearest(component, set(columns['component']))}"
        )
    return Number(_HOW[how](found), unit)
