# SPDX-License-Identifier: Apache-2.0
"""Reading a run directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import RunError
from manyscale.results import statistics
from manyscale.results.files import is_locked
from manyscale.results.notebook import NotebookView, headline_table
from manyscale.results.run_directory import LOCK_FILE, MACHINE_FILE, RUN_FILE, SCHEMA_VERSION, STATS_FILE

if TYPE_CHECKING:
    import polars as pl

_NEEDED: dict[str, type] = {
    "status": str,
    "command": list,
    "workload": dict,
    "workload_hash": str,
    "seed": int,
    "versions": dict,
    "created": str,
    "headline": dict,
}

_WRITTEN_STATUSES = ("running", "done", "failed", "stopped")


def load(path: str | os.PathLike[str]) -> Run:
    """The run in directory `path`, as it is now."""
    directory = Path(path)
    info = _read_info(directory)
    if info["status"] == "running" and not is_locked(directory / LOCK_FILE):
        # The run may have ended between the two looks, so only a second one tells.
        info = _read_info(directory)
        if info["status"] == "running":
            info["status"] = "interrupted"
    return Run(directory, info)


class Run(NotebookView):
    """What a run left behind: how it ended, its headline numbers, its machine and its statistics."""

    def __init__(self, path: Path, info: dict[str, Any]) -> None:
        self.path = path
        self.info = info

    @property
    def status(self) -> str:
        """How the run ended: "done", "failed", "stopped" (Ctrl-C) or "interrupted" (killed); or "running"."""
        return str(self.info["status"])

    @property
    def headline(self) -> dict[str, dict[str, Any]]:
        """Name -> {"value": number or None, "unit": text}."""
        headline: dict[str, dict[str, Any]] = self.info["headline"]
        return headline

    @cached_property
    def machine_text(self) -> str:
        """The resolved machine, as TOML."""
        path = self.path / MACHINE_FILE
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise RunError(f"the run in {self.path} ({self.status}) has no {MACHINE_FILE}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"cannot read {path}: {error}") from None

    @property
    def has_stats(self) -> bool:
        """Whether the run got as far as writing statistics."""
        return (self.path / STATS_FILE).exists()

    @cached_property
    def stats(self) -> pl.DataFrame:
        """The tidy table of statistics; see `manyscale.results.statistics`."""
        import polars as pl

        path = self.path / STATS_FILE
        if not self.has_stats:
            raise RunError(
                f"the run in {self.path} ({self.status}) has no statistics: {STATS_FILE} is missing"
            )
        try:
            table = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            reason = str(error).strip().splitlines()[0]
            raise RunError(f"{path} is damaged or truncated: {reason}; run the simulation again") from None
        if table.schema != pl.Schema(statistics.schema()):
            raise RunError(
                f"{path} is not a table of statistics: its columns are {', '.join(table.columns)}, "
                f"and should be {', '.join(statistics.schema())}"
            )
        return table

    def value(self, component: str, statistic: str, scope: str = "run") -> int | float:
        """One scalar statistic: the exact integer where one was given, a float otherwise."""
        return statistics.scalar(self.stats, component, statistic, scope, f"the run in {self.path}")

    def to_pandas(self) -> Any:
        """The statistics as a pandas.DataFrame."""
        try:
            return self.stats.to_pandas()
        except ImportError as error:
            raise RunError(
                f"pandas tables need the optional libraries ({error}): pip install 'manyscale[pandas]'"
            ) from None

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics as CSV."""
        table = self.stats
        try:
            with Path(path).open("wb") as file:
                table.write_csv(file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RunError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={show(entry)}" for name, entry in self.headline.items())
        return f"Run('{self.path}', {self.status}{numbers})"

    def _notebook(self) -> Iterable[str]:
        yield headline_table(f"{self.path}: {self.status}", self.headline)


def show(entry: dict[str, Any]) -> str:
    """A headline number with its unit, for people."""
    value, unit = entry["value"], entry["unit"]
    if value is None:
        return "none"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    return text if unit == "1" else f"{text} {unit}"


def _read_info(directory: Path) -> dict[str, Any]:
    path = directory / RUN_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        what = f"it has no {RUN_FILE}" if directory.is_dir() else "there is no such directory"
        raise RunError(f"{directory} is not a run: {what}") from None
    except NotADirectoryError:
        raise RunError(f"{directory} is not a run: it is a file; give the directory of the run") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read {path}: {error}") from None
    try:
        info = json.loads(text)
    except json.JSONDecodeError as error:
        raise RunError(f"{path} is broken at line {error.lineno}: {error.msg}") from None
    if not isinstance(info, dict) or not isinstance(info.get("schema_version"), int):
        raise RunError(f"{path} is not the description of a run: it has no schema_version")
    version = info["schema_version"]
    if version > SCHEMA_VERSION:
        raise RunError(
            f"{path} has schema version {version}, and this Manyscale reads up to {SCHEMA_VERSION}: "
            "a newer Manyscale wrote it; update yours to read it"
        )
    for name, kind in _NEEDED.items():
        if not isinstance(info.get(name), kind):
            raise RunError(f"{path} is broken: '{name}' is missing or of a wrong type")
    if info["status"] not in _WRITTEN_STATUSES:
        raise RunError(f"{path} is broken: its status is '{info['status']}'")
    for name, entry in info["headline"].items():
        if not isinstance(entry, dict) or "value" not in entry or "unit" not in entry:
            raise RunError(f"{path} is broken: headline number '{name}' has no value or no unit")
    return info
