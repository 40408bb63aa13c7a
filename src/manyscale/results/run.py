# SPDX-License-Identifier: Apache-2.0
"""Reading a run directory."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import RunError
from manyscale.results import statistics
from manyscale.results.definitions import headline_problem
from manyscale.results.files import FileKind, check_output, write_file
from manyscale.results.integrity import SEAL, checksum_of, damage, difference, is_listing, seal_problem
from manyscale.results.journal import JOURNAL_FILE, read_journal
from manyscale.results.lock import is_locked
from manyscale.results.notebook import NotebookView, facts_table, headline_table
from manyscale.results.parquet import table_of
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

_FIRST_WITH_CHECKSUMS = 2  # version of the schema
_WRITTEN_STATUSES = ("running", "done", "failed", "stopped")


def load(path: str | os.PathLike[str], *, check: bool = True, ignoring: Collection[str] = ()) -> Run:
    """The run in directory `path`, as it is now.

    All files are compared with their checksums, but for those in `ignoring`. With `check=False` a file is compared
    when it is read, so that what is whole can be read beside what is damaged.
    """
    directory = Path(path)
    info = read_info(directory)
    if info["status"] == "running" and not is_locked(directory / LOCK_FILE):
        # The run may have ended between the two looks, so only a second one tells.
        info = read_info(directory)
        if info["status"] == "running":
            info["status"] = "interrupted"
    if info["status"] in ("running", "interrupted"):
        headline = read_journal(directory)[1]
        if headline:
            info |= {"headline": headline, "partial": True}
    run = Run(directory, info)
    if check and run.status != "running":
        run.check(ignoring)
    return run


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

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Name -> {"bytes": size, "sha256": checksum} of each file; empty for runs of before there were checksums."""
        files: dict[str, dict[str, Any]] = self.info.get("files", {})
        return files

    @property
    def note(self) -> str | None:
        """What limits the trust in the files of this run; None if nothing does."""
        if self.info["schema_version"] < _FIRST_WITH_CHECKSUMS:
            return (
                f"{self.path} was written by an older Manyscale, without checksums: "
                "damage to its files may go unnoticed"
            )
        return None

    def check(self, ignoring: Collection[str] = ()) -> None:
        """Compares all files with their checksums; an error names those that were changed, truncated or lost."""
        problems = damage(self.path, self.files, ignoring)
        if problems:
            raise self._damaged(problems)

    def has(self, name: str) -> bool:
        """Whether the run has a file of this name."""
        return name in self.files or (self.path / name).is_file()

    def file(self, name: str) -> Path:
        """The path of a file, which is as the run left it."""
        problems = damage(self.path, {name: self.files[name]}) if name in self.files else []
        if problems and self.status != "running":
            raise self._damaged(problems)
        return self.path / name

    def content(self, name: str) -> bytes:
        """The content of a file, as the run left it."""
        return self._content(name)[0]

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A table of the run, such as that in "ranks.parquet"; of a killed run, the rows that the journal has."""
        if not self.has(name):
            kept = read_journal(self.path)[0].get(name.removesuffix(".parquet"))
            if kept is not None:
                import polars as pl

                try:
                    return pl.DataFrame(kept).select(pl.all() if columns is None else list(columns))
                except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
                    raise self._damaged([f"{JOURNAL_FILE} has no table {name}: {error}"]) from None
        content, verified = self._content(name)
        return table_of(content, self.path / name, verified=verified, columns=columns)

    @cached_property
    def machine_text(self) -> str:
        """The resolved machine, as TOML."""
        if not self.has(MACHINE_FILE):
            raise RunError(f"the run in {self.path} ({self.status}) has no {MACHINE_FILE}")
        try:
            return self.content(MACHINE_FILE).decode()
        except UnicodeDecodeError as error:
            raise RunError(f"cannot read {self.path / MACHINE_FILE}: {error}") from None

    @property
    def has_stats(self) -> bool:
        """Whether the run got as far as writing statistics."""
        return self.has(STATS_FILE)

    @cached_property
    def stats(self) -> pl.DataFrame:
        """The tidy table of statistics; see `manyscale.results.statistics`."""
        import polars as pl

        path = self.path / STATS_FILE
        if not self.has_stats:
            raise RunError(
                f"the run in {self.path} ({self.status}) has no statistics: {STATS_FILE} is missing"
            )
        table = self.table(STATS_FILE)
        if table.schema != pl.Schema(statistics.schema()):
            raise RunError(
                f"{path} is not a table of statistics: its columns are {', '.join(table.columns)}, "
                f"and should be {', '.join(statistics.schema())}"
            )
        empty = next((name for name in statistics.FILLED_COLUMNS if table[name].null_count()), None)
        if empty is not None:
            raise RunError(f"{path} is not a table of statistics: some rows have no {empty}")
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

    def to_csv(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the statistics as CSV; over another such file only with `force`."""
        kind = FileKind.csv(*statistics.schema())
        check_output(path, kind, force=force)
        table = self.stats
        write_file(path, lambda file: table.write_csv(file), kind, force=force)

    def to_chrome_trace(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write what a CUDA program did as a trace for chrome://tracing; over another such file only with `force`."""
        from manyscale.results.chrome_trace import chrome_trace

        kind = FileKind.magic("a trace in Chrome's format", b'{"traceEvents"')
        check_output(path, kind, force=force)
        text = chrome_trace(self)
        write_file(path, lambda file: file.write(text), kind, force=force)

    def _content(self, name: str) -> tuple[bytes, bool]:
        """The content of a file, and whether it is known to be what the run wrote."""
        path, entry = self.path / name, self.files.get(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise self._damaged([f"{name} is missing"]) from None
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror or error}") from None
        if entry is None:
            return content, False
        found = checksum_of(content)
        problem = difference(found["bytes"], found["sha256"], entry)
        if problem is None:
            return content, True
        if self.status == "running":  # and has written it again meanwhile
            return content, False
        raise self._damaged([f"{name} {problem}"])

    def _damaged(self, problems: Sequence[str]) -> RunError:
        advice = "copy the run again from where it was made, or run the simulation again"
        if len(problems) < len(self.files):
            advice += "; in Python, load(path, check=False) reads the files that are whole"
        return RunError(f"the run in {self.path} is damaged: {'; '.join(problems)}. To mend it, {advice}")

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={show(entry)}" for name, entry in self.headline.items())
        return f"Run('{self.path}', {self.status}{numbers})"

    @property
    def plot(self) -> Any:
        """Plots of the run, such as `run.plot.roofline()`; `run.plot.available` names those it has left."""
        return _reports().Plots(self)

    def _notebook(self) -> Iterable[str]:
        try:
            yield facts_table(f"{self.path}: {self.status}", _reports().answer_facts(self))
        except RunError as error:  # damaged files: what run.json says is left
            yield facts_table("damaged", {"error": str(error)})
        yield headline_table("Headline", self.headline)


def _reports() -> Any:
    """Reports stand above results, which must not import them: found by name when a plot is wanted."""
    return importlib.import_module("manyscale.report.plots")


def show(entry: dict[str, Any]) -> str:
    """A headline number with its unit, for people."""
    value, unit = entry["value"], entry["unit"]
    if value is None:
        return "none"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    return text if unit == "1" else f"{text} {unit}"


def read_info(directory: Path) -> dict[str, Any]:
    """What `run.json` says, if it is whole."""
    path = directory / RUN_FILE
    try:
        content = path.read_bytes()
        text = content.decode()
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
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, nested too deeply
        raise RunError(f"{path} is broken: {error}") from None
    if not isinstance(info, dict) or not isinstance(info.get("schema_version"), int):
        raise RunError(f"{path} is not the description of a run: it has no schema_version")
    version = info["schema_version"]
    if version > SCHEMA_VERSION:
        raise RunError(
            f"{path} has schema version {version}, and this Manyscale reads up to {SCHEMA_VERSION}: "
            "a newer Manyscale wrote it; update yours to read it"
        )
    if version < 1:
        raise RunError(f"{path} is broken: there is no schema version {version}")
    has_checksums = version >= _FIRST_WITH_CHECKSUMS
    for name, kind in (_NEEDED | {"files": dict} if has_checksums else _NEEDED).items():
        if not isinstance(info.get(name), kind):
            raise RunError(f"{path} is broken: '{name}' is missing or of a wrong type")
    if info["status"] not in _WRITTEN_STATUSES:
        raise RunError(f"{path} is broken: its status is '{info['status']}'")
    if (problem := headline_problem(info["headline"])) is not None:
        raise RunError(f"{path} is broken: {problem}")
    if has_checksums:
        problem = seal_problem(content)
        if problem is None and not is_listing(info["files"]):
            problem = "its list of files is none"
        if problem is not None:
            raise RunError(
                f"{path} is damaged or was changed: {problem}; "
                "copy it again from where it was made, or run the simulation again"
            )
    elif "files" in info or SEAL in info:
        raise RunError(f"{path} is damaged or was changed: schema version {version} has no checksums")
    return info
