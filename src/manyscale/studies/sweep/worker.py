# SPDX-License-Identifier: Apache-2.0
"""Running one point, wherever that is: on a worker of this machine, of a Dask cluster, or right here."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, TypedDict

from manyscale.errors import ManyscaleError
from manyscale.studies.sweep.kinds import kind_of
from manyscale.studies.sweep.metrics import evaluate
from manyscale.studies.sweep.workload import RunRequest

_LONGEST_ERROR = 4000


class Task(TypedDict):
    """A point as it is sent to a worker: plain data only."""

    key: str
    kind: str
    workload: dict[str, Any]
    machine: str | None
    changes: list[str]
    seed: int
    threads: int
    statistics: list[str]


class _Asked(TypedDict, total=False):
    asked: list[str]  # of a point that failed: the metrics that were asked for


class Record(_Asked):
    """The result of a point as it is kept: plain data only."""

    key: str
    status: str  # "done" or "failed"
    values: dict[str, int | float | None]
    units: dict[str, str]
    error: str | None
    wall_seconds: float
    attempts: int


def run_task(task: Task) -> Record:
    """Runs a point; whatever goes wrong with it is its result."""
    began = time.perf_counter()
    try:
        kind = kind_of(task["kind"])
        request = RunRequest(
            kind.checked(task["workload"], "workload"),
            task["machine"],
            task["changes"],
            task["seed"],
            task["threads"],
        )
        outcome = kind.run(request)
        values: dict[str, int | float | None] = {}
        units: dict[str, str] = {}
        for name, entry in outcome.headline.items():
            values[name], units[name] = _plain(entry["value"]), str(entry["unit"])
        for name, number in evaluate(task["statistics"], outcome.columns).items():
            values[name], units[name] = _plain(number.value), number.unit
    except Exception as error:
        return failed(task["key"], _message(error), time.perf_counter() - began)
    return {
        "key": task["key"],
        "status": "done",
        "values": values,
        "units": units,
        "error": None,
        "wall_seconds": time.perf_counter() - began,
        "attempts": 1,
    }


def failed(key: str, error: str, wall_seconds: float = 0.0, attempts: int = 1) -> Record:
    """The result of a point that has none."""
    return {
        "key": key,
        "status": "failed",
        "values": {},
        "units": {},
        "error": error[:_LONGEST_ERROR],
        "wall_seconds": wall_seconds,
        "attempts": attempts,
    }


def missing_metrics(record: Mapping[str, Any], wanted: list[str]) -> list[str]:
    """The metrics that a result does not have."""
    return [text for text in wanted if text not in record["values"]]


def _plain(value: Any) -> int | float | None:
    """A number that JSON can hold; one that is not finite has no value."""
    if value is None or isinstance(value, int):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _message(error: Exception) -> str:
    text = str(error)
    return text if isinstance(error, ManyscaleError) and text else f"{type(error).__name__}: {text}"
