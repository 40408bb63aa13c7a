# SPDX-License-Identifier: Apache-2.0
"""Running a study: hands points to an executor, keeps each result at once, and tries lost points again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyscale.errors import nearest
from manyscale.studies.sweep.executor import Executor, Finished, Lost
from manyscale.studies.sweep.executors import make_executor
from manyscale.studies.sweep.points import Point
from manyscale.studies.sweep.study import Study
from manyscale.studies.sweep.study_file import study_text
from manyscale.studies.sweep.sweep_directory import Sweep, SweepDirectory
from manyscale.studies.sweep.worker import Record, Task, failed, missing_metrics

MOST_ATTEMPTS = 3  # of a point whose worker dies each time
_STATUS_SECONDS = 1.0


@dataclass(frozen=True)
class Notice:
    """What the caller is told when a result has arrived; `point` is the first of equal ones."""

    point: Point
    record: Record
    arrived: int  # results of distinct points, those of earlier runs too
    distinct: int
    failures: int


@dataclass(frozen=True)
class Begun:
    """What the caller is told before the first point is run."""

    points: int
    distinct: int
    known: int  # that have a result from an earlier run
    failures: int  # of those
    damaged: int  # lines of the log that were not what had been written
    on: str


def run_study(
    study: Study,
    path: Path,
    *,
    on: str | Executor,
    workers: int | None,
    retry: bool,
    notice: Callable[[Any], None] | None,
    command: Sequence[str],
    options: Mapping[str, Any],
) -> Sweep:
    """See `Study.run`."""
    points = study.points()
    if study.source is None:
        study.source = study_text(study)
    executor = make_executor(on, study, workers, options) if isinstance(on, str) else on
    directory = SweepDirectory(path, study, points, command, executor.describe())
    status, problem = "failed", None
    try:
        _run_points(study, points, directory, executor, retry, notice or (lambda _: None))
        status = "done"
    except KeyboardInterrupt:
        status = "stopped"
        raise
    except BaseException as error:
        problem = str(error) or type(error).__name__
        raise
    finally:
        directory.close(status, problem)
    return Sweep(path, directory.info, directory.table())


def _run_points(
    study: Study,
    points: Sequence[Point],
    directory: SweepDirectory,
    executor: Executor,
    retry: bool,
    notice: Callable[[Any], None],
) -> None:
    by_key: dict[str, Point] = {}
    for point in points:
        by_key.setdefault(point.key, point)
    known = {
        key: record
        for key in by_key
        if (record := directory.log.records.get(key)) is not None and _answers(study, record, retry)
    }
    todo = deque(point for key, point in by_key.items() if key not in known)
    failures = sum(record["status"] == "failed" for record in known.values())
    notice(Begun(len(points), len(by_key), len(known), failures, directory.log.damaged, executor.describe()))
    if not todo:
        return
    statistics = [metric.text for metric in study.metrics if metric.is_statistic]
    deaths: dict[str, int] = {}
    running: set[str] = set()
    arrived = len(known)
    told = time.monotonic()
    with executor:
        while todo or running:
            while todo and len(running) < executor.capacity:
                point = todo.popleft()
                running.add(point.key)
                executor.submit(_task(study, point, statistics))
            for news in executor.wait():
                key = news.record["key"] if isinstance(news, Finished) else news.key
                running.discard(key)
                record = _record_of(news, deaths)
                if record is None:
                    todo.appendleft(by_key[key])
                    continue
                record = _with_metrics(study, record)
                directory.keep(record)
                arrived += 1
                failures += record["status"] == "failed"
                notice(Notice(by_key[key], record, arrived, len(by_key), failures))
            if time.monotonic() - told > _STATUS_SECONDS:
                told = time.monotonic()
                directory.write_status("running")


def _record_of(news: Finished | Lost, deaths: dict[str, int]) -> Record | None:
    """The result that some news mean; None if the point is to be tried again."""
    if isinstance(news, Finished):
        record = news.record
        record["attempts"] = deaths.get(record["key"], 0) + record["attempts"]
        return record
    if news.blamed:
        deaths[news.key] = deaths.get(news.key, 0) + 1
    if deaths.get(news.key, 0) < MOST_ATTEMPTS:
        return None
    return failed(
        news.key, f"given up after {MOST_ATTEMPTS} workers died of it: {news.reason}", 0.0, MOST_ATTEMPTS
    )


def _answers(study: Study, record: Record, retry: bool) -> bool:
    """Whether an earlier result will do: it has the numbers asked for, or failed when the same were asked for."""
    if record["status"] == "failed":
        return not retry and record.get("asked") == _asked(study)
    return not missing_metrics(record, _asked(study))


def _asked(study: Study) -> list[str]:
    return [metric.text for metric in study.metrics]


def _with_metrics(study: Study, record: Record) -> Record:
    """The result; a point that did not give a number that is asked for has failed."""
    missing = missing_metrics(record, _asked(study)) if record["status"] == "done" else []
    if missing:
        text = f"the run has no number '{missing[0]}'; {nearest(missing[0], record['values'])}"
        record = failed(record["key"], text, record["wall_seconds"], record["attempts"])
    if record["status"] == "failed":
        record["asked"] = _asked(study)
    return record


def _task(study: Study, point: Point, statistics: list[str]) -> Task:
    request = point.request
    return {
        "key": point.key,
        "kind": study.kind.name,
        "workload": dict(request.workload),
        "machine": request.machine,
        "changes": request.changes,
        "seed": request.seed,
        "threads": request.threads,
        "statistics": statistics,
    }
