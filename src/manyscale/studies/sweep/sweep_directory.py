# SPDX-License-Identifier: Apache-2.0
"""The directory of a sweep: the study, the results as they arrive, how far it is, and the table."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.documents import Document, Natural, validated
from manyscale.errors import InputError, RunError
from manyscale.results.additions import add_listed
from manyscale.results.files import Write, cannot_write, replace_file
from manyscale.results.integrity import SEAL, checksum, damage, is_listing, seal_problem, sealed
from manyscale.results.lock import is_locked
from manyscale.results.notebook import NotebookView, rows_table
from manyscale.results.parquet import read_table, table_of
from manyscale.results.run_directory import package_version
from manyscale.studies.sweep.result_log import ResultLog, read_log
from manyscale.studies.sweep.table import headline_metrics, results_table, table_problem

if TYPE_CHECKING:
    import polars as pl

    from manyscale.studies.sweep.points import Point
    from manyscale.studies.sweep.study import Study
    from manyscale.studies.sweep.worker import Record

SCHEMA_VERSION = 2  # 1 had no checksums
SWEEP_FILE = "sweep.json"
STUDY_FILE = "study.toml"
LOG_FILE = "results.log"
TABLE_FILE = "results.parquet"
LOCK_FILE = ".lock"
_OWN_FILES = (STUDY_FILE, LOG_FILE, TABLE_FILE)

_LOOKED_AT = 100  # results, for the units of metrics


class SweepDirectory:
    """The directory while its sweep goes on; only one process can have it."""

    def __init__(
        self, path: Path, study: Study, points: Sequence[Point], command: Sequence[str], on: str
    ) -> None:
        self.path = path
        self._study = study
        self._points = points
        self._lock = _claim(path)
        try:
            self.log = ResultLog(path / LOG_FILE)
            keys = dict.fromkeys(point.key for point in points)
            self._counts = {"points": len(points), "distinct": len(keys), "done": 0, "failed": 0}
            for key in keys:
                if key in self.log.records:
                    self._count(self.log.records[key], 1)
            before = _before(path)
            self._added = {  # such as a report
                name: entry for name, entry in before.get("files", {}).items() if name not in _OWN_FILES
            }
            self.info: dict[str, Any] = _started(study, points, command, on)
            self.info["created"] = str(before.get("created") or _now())
            if study.source is not None:
                self._write(STUDY_FILE, study.source.encode())
            self.write_status("running")
        except BaseException:
            os.close(self._lock)
            raise

    def keep(self, record: Record) -> None:
        """Keeps a result; a process that is killed after this does not lose it."""
        before = self.log.records.get(record["key"])
        if before is not None:
            self._count(before, -1)
        self._count(record, 1)
        self.log.append(record)

    def write_status(self, status: str, error: str | None = None) -> None:
        """Says how far the sweep is."""
        self.info |= {
            "status": status,
            "counts": dict(self._counts),
            "error": error,
            "metrics": self._metrics(),
        }
        names = [STUDY_FILE]
        if status != "running":
            self.info["ended"] = _now()
            names += [LOG_FILE, TABLE_FILE]
        paths = {name: self.path / name for name in names}
        try:
            listed = {name: checksum(path) for name, path in paths.items() if path.exists()}
        except OSError as error:
            raise RunError(str(cannot_write(self.path / SWEEP_FILE, error))) from None
        self.info["files"] = listed | self._added
        self._write(SWEEP_FILE, sealed(self.info))

    def _count(self, record: Record, by: int) -> None:
        self._counts[record["status"]] += by

    def close(self, status: str, error: str | None = None) -> None:
        """Writes the table and how the sweep ended, and gives up the directory."""
        try:
            self.log.close()
            table = self.table()
            replace_file(self.path / TABLE_FILE, table.write_parquet)
            self.write_status(status, error)
        except OSError as problem:
            raise RunError(str(cannot_write(self.path, problem))) from None
        finally:
            os.close(self._lock)

    def table(self) -> pl.DataFrame:
        """The table of all results so far."""
        return results_table(self._points, self._study.plan.axes, self.log.records, self._study.metrics)

    def _metrics(self) -> list[dict[str, Any]]:
        records = list(self.log.records.values())[-_LOOKED_AT:]
        metrics = self._study.metrics or headline_metrics(records)
        units: dict[str, str] = {}
        for record in records:
            units |= record["units"]
        return [
            {"name": metric.name, "text": metric.text, "unit": units.get(metric.text)} for metric in metrics
        ]

    def _write(self, name: str, content: bytes) -> None:
        try:
            replace_file(self.path / name, lambda file: file.write(content))
        except OSError as error:
            raise RunError(str(cannot_write(self.path / name, error))) from None


class Sweep(NotebookView):
    """What a sweep has found so far: how far it is, and the table of its points."""

    def __init__(
        self, path: Path, info: Mapping[str, Any], table: pl.DataFrame, note: str | None = None
    ) -> None:
        self.path = path
        self.info = info
        self.note = note
        """What limits the trust in what was read; None if nothing does."""
        self.table = table
        """A row for each point that has a result: its axes, how it ended, its metrics (polars)."""

    @property
    def status(self) -> str:
        """ "running", "done", "stopped" (Ctrl-C), "failed" (the sweep itself) or "interrupted" (killed)."""
        return str(self.info["status"])

    @property
    def failed(self) -> pl.DataFrame:
        """The points that failed, with their errors."""
        return self.table.filter(self.table["status"] == "failed")

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame."""
        try:
            return self.table.to_pandas()
        except ImportError as error:
            raise RunError(
                f"pandas tables need the optional libraries ({error}): pip install 'manyscale[pandas]'"
            ) from None

    def _notebook(self) -> Iterable[str]:
        yield rows_table(repr(self), self.table.columns, self.table.iter_rows())

    def __repr__(self) -> str:
        counts = self.info["counts"]
        failures = f", {counts['failed']:,} failed" if counts["failed"] else ""
        return f"Sweep('{self.path}', {self.status}, {counts['done']:,} of {counts['distinct']:,} done{failures})"


class _Named(Document):
    """An axis or a metric."""

    name: str
    unit: str | None = None


class _Counts(Document):
    """Of points."""

    points: Natural
    distinct: Natural
    done: Natural
    failed: Natural


class _Info(Document):
    """What readers of a sweep's directory rely on; there is more."""

    status: str
    counts: _Counts
    axes: list[_Named]
    metrics: list[_Named]


def load_sweep(path: str | os.PathLike[str], *, ignoring: Collection[str] = ()) -> Sweep:
    """The sweep in a directory, as it is now: also while it runs, or after it was killed.

    Its files are compared with their checksums, but for those in `ignoring`.
    """
    directory = Path(path)
    info = read_info(directory)
    if info["status"] == "running" and not is_locked(directory / LOCK_FILE):
        info = read_info(directory)
        if info["status"] == "running":
            info["status"] = "interrupted"
    if info["status"] in ("running", "interrupted"):
        table, damaged = _table_so_far(directory)
        note = (
            f"{damaged:,} lines of {LOG_FILE} are damaged; their points will be run again"
            if damaged
            else None
        )
        return Sweep(directory, info, table, note)
    if "files" not in info:
        note = (
            f"{directory} was written by an older Manyscale, without checksums: damage to it may go unnoticed"
        )
        return Sweep(directory, info, _checked(read_table(directory / TABLE_FILE), directory, info), note)
    problems = damage(directory, info["files"], ignoring)
    if problems:
        raise RunError(
            f"the sweep in {directory} is damaged: {'; '.join(problems)}. To mend it, copy it again from where it was "
            "made, or run the study again: points whose results are whole are not run twice"
        )
    content = (directory / TABLE_FILE).read_bytes()
    table = table_of(content, directory / TABLE_FILE, verified=True)
    return Sweep(directory, info, _checked(table, directory, info))


def add_to_sweep(directory: Path, name: str, write: Write) -> Path:
    """Writes a file into the directory of a sweep, and lists it with its checksum."""
    return add_listed(directory, name, write, SWEEP_FILE, read_info)


def read_info(directory: Path) -> dict[str, Any]:
    """What the directory says of its sweep."""
    path = directory / SWEEP_FILE
    try:
        content = path.read_bytes()
        info = json.loads(content.decode())
    except FileNotFoundError:
        raise RunError(f"{directory} is not a sweep: it has no {SWEEP_FILE}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None
    if not isinstance(info, dict) or info.get("kind") != "sweep" or not isinstance(info.get("counts"), dict):
        raise RunError(f"{path} does not describe a sweep")
    version = info.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RunError(f"{path} has schema version {version}; this Manyscale reads up to {SCHEMA_VERSION}")
    if version == SCHEMA_VERSION:
        problem = seal_problem(content)
        if problem is None and not is_listing(info.get("files")):
            problem = "its list of files is none"
        if problem is not None:
            raise RunError(
                f"{path} is damaged or was changed: {problem}; copy it again from where it was made, or run the "
                "study again"
            )
    elif version < 1 or "files" in info or SEAL in info:
        raise RunError(f"{path} is damaged or was changed: schema version {version} has no checksums")
    try:
        validated(info, _Info, f"{path} does not describe a sweep")
    except InputError as error:
        raise RunError(str(error)) from None
    names = [axis["name"] for axis in info["axes"]]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RunError(f"{path} does not describe a sweep: two of its axes are {twice}")
    return info


def _checked(table: pl.DataFrame, directory: Path, info: Mapping[str, Any]) -> pl.DataFrame:
    """The table, if it is one of this sweep."""
    problem = table_problem(table, info["axes"])
    if problem is not None:
        raise RunError(
            f"{directory / TABLE_FILE} is not the table of this sweep: {problem}; run the study again"
        )
    return table


def _table_so_far(directory: Path) -> tuple[pl.DataFrame, int]:
    """The table of a sweep that has not ended, from its study and log; and how many lines of that are damaged."""
    from manyscale.studies.sweep.study_file import read_study

    study = read_study(directory / STUDY_FILE, trusted=True)
    records, damaged = read_log(directory / LOG_FILE)
    return results_table(study.points(), study.plan.axes, records, study.metrics), damaged


def _claim(path: Path) -> int:
    """Makes the directory and locks it; the kernel frees the lock however this process ends."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in path.iterdir()}
        if names and SWEEP_FILE not in names and not names <= {LOCK_FILE, LOG_FILE, STUDY_FILE}:
            raise RunError(f"{path} is not empty and holds no sweep; choose another directory")
        descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(str(cannot_write(path, error))) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise RunError(
            f"another process is running the sweep in {path}; wait for it or choose another directory"
        ) from None
    except OSError:  # a file system without locks must not stop a sweep
        pass
    return descriptor


def _started(study: Study, points: Sequence[Point], command: Sequence[str], on: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "sweep",
        "name": study.name,
        "status": "running",
        "workload": {"kind": study.kind.name, **_plain(study.plan.workload)},
        "machine": study.plan.machine,
        "axes": [
            {"name": axis.name, "unit": axis.unit, "values": list(axis.values), "numbers": axis.numbers}
            for axis in study.plan.axes
        ],
        "repetitions": study.plan.repetitions,
        "seed": study.plan.seed,
        "on": on,
        "command": list(command),
        "versions": {
            "manyscale": package_version(),
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
        "created": None,
        "begun": _now(),
        "ended": None,
    }


def _plain(workload: Mapping[str, Any]) -> dict[str, Any]:
    """The workload for people; a function that was sent along has no name."""
    from manyscale.studies.sweep.functions import shown_name

    return {
        name: shown_name(value) if name == "function" and isinstance(value, str) else value
        for name, value in workload.items()
    }


def _before(path: Path) -> dict[str, Any]:
    """What the directory said before this sweep; the log is what counts, so damage to it is no reason to end."""
    try:
        return read_info(path)
    except RunError:
        return {}


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
