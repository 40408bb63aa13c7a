# SPDX-License-Identifier: Apache-2.0
"""Writing a run directory: it explains itself, and a killed run never looks done.

`run.json` says "running" from the start, and the process holds a lock on `.lock` until it has written how the
run ended. A reader that sees "running" without a held lock knows that the run was killed. `run.json` lists every
other file with its checksum, and carries one of its own.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import math
import numbers
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from manyscale import host_memory, processes
from manyscale.errors import InputError, ManyscaleError, RunError
from manyscale.results import statistics
from manyscale.results.files import cannot_write, remove_empty, replace_file, replace_file_by_name
from manyscale.results.integrity import Listed, sealed
from manyscale.results.journal import JOURNAL_FILE
from manyscale.results.lock import RunLock, is_locked

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 2  # 1 had no checksums

RUN_FILE = "run.json"
MACHINE_FILE = "machine.toml"
STATS_FILE = "stats.parquet"
LOCK_FILE = ".lock"

Columns = Mapping[str, Sequence[Any]]
Headline = Mapping[str, Mapping[str, Any]]
"""Name -> {"value": number, "unit": text}. A name that begins with "wall_" depends on the host's clock."""


class RunWriter:
    """A run directory while its run goes on; use it as a context manager.

    The run is done when `finish` was called. Leaving the `with` block before that sets the status to "failed"
    with the exception's message, or, for KeyboardInterrupt, to "stopped"; what was written until then stays. A run
    that never began, because what it was given was wrong, leaves nothing.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        command: Sequence[str],
        workload: Mapping[str, Any],
        seed: int,
    ) -> None:
        self.directory = processes.scratch_directory() if processes.is_other() else Path(directory)
        self._lock: RunLock | None = None
        self._made: list[Path] = []  # folders, innermost first
        self._reserve: host_memory.Reserve | None = None
        self._listed = Listed(self.directory, (RUN_FILE, LOCK_FILE, JOURNAL_FILE))
        self._info: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "status": "running",
            "command": list(command),
            "workload": dict(workload),
            "workload_hash": _hash(_json(workload, "the workload")),
            "seed": int(seed),
            "machine": None,
            "versions": {
                "manyscale": package_version(),
                "python": platform.python_version(),
                "platform": platform.platform(),
            },
            "created": _now(),
            "ended": None,
            "partial": False,
            "error": None,
            "headline": {},
            "files": {},
        }

    def __enter__(self) -> RunWriter:
        self._claim()
        try:
            self._reserve = host_memory.Reserve()
            self._write_info()
        except BaseException:
            self._withdraw()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._lock is None:
            return
        self._use_reserve()
        if isinstance(error, InputError) and not self._has_results():
            self._withdraw()
            return
        if isinstance(error, KeyboardInterrupt):
            self._info["status"] = "stopped"
        elif error is not None:
            self._info.update(status="failed", error=_message(error))
        else:
            self._info.update(status="failed", error="the run ended without calling finish()")
        try:
            self._end()
        except RunError:
            # The first error is the one to report; unwritten, the run reads as interrupted, which is true.
            if error is None:
                raise
        finally:
            self._release()
        if error is None:
            raise RunError(f"the run in {self.directory} ended without calling finish(), so it is not done")

    def write_machine(self, text: str) -> None:
        """Keep the resolved machine, from which the same numbers come again."""
        self._write(MACHINE_FILE, text.encode())
        self._info["machine"] = {"file": MACHINE_FILE, "hash": _hash(text)}
        self._write_info()

    def describe_code(self, code: Mapping[str, Any]) -> None:
        """Keep what the kernels of the run were executed as."""
        _json(code, "the code")
        self._info["code"] = dict(code)

    def write_stats(self, columns: Columns) -> None:
        """Keep the statistics; the columns are those of `statistics.frame`."""
        self._use_reserve()
        self._check_running()
        self.write_table(STATS_FILE, statistics.frame(columns))

    def write_table(self, name: str, table: pl.DataFrame) -> None:
        """Keeps a further table, as Parquet."""
        self._check_running()
        with _written(self.directory / name) as path:
            replace_file(path, table.write_parquet)

    def write_file(self, name: str, content: bytes) -> None:
        """Keeps a further file; its folder is made if it is not there."""
        path = self.directory / name
        with _written(path):
            path.parent.mkdir(exist_ok=True)
        self._write(name, content)

    def write_by_name(self, name: str, write: Callable[[str], object]) -> None:
        """Keeps a further file that `write` opens itself, by the name it is given."""
        self._check_running()
        with _written(self.directory / name) as path:
            replace_file_by_name(path, write)

    def partial(self, columns: Columns | None = None, headline: Headline | None = None) -> None:
        """Keep what is known so far, marked as partial until `finish`."""
        if columns is not None:
            self.write_stats(columns)
        if headline is not None:
            self._info["headline"] = _checked_headline(headline)
        self._info["partial"] = True
        self._write_info()

    def finish(self, headline: Headline, *, error: str | None = None, partial: bool = False) -> None:
        """Declare the run done, or failed with its results; nothing can be written after this."""
        self._check_running()
        checked = _checked_headline(headline)
        before = dict(self._info)
        status = "done" if error is None else "failed"
        self._info.update(status=status, error=error, partial=partial, headline=checked)
        try:
            self._end()
        except BaseException:
            self._info = before
            raise
        self._release()

    def _claim(self) -> None:
        directory = self.directory
        self._made = [one for one in (directory, *directory.parents) if not one.exists()]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            names = sorted(entry.name for entry in directory.iterdir())
            if RUN_FILE in names:
                raise RunError(
                    f"{directory} already holds a run; choose another directory, or replace this one with --force"
                )
            if names:
                shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
                raise RunError(
                    f"{directory} is not empty (it holds {shown}); "
                    "choose a new or empty directory for the run"
                )
            self._lock = RunLock(directory / LOCK_FILE)
        except FileExistsError:
            if directory.is_dir():
                raise RunError(
                    f"another run has just begun in {directory}; choose another directory"
                ) from None
            raise RunError(f"{directory} is a file; choose a new or empty directory for the run") from None
        except OSError as error:
            raise _cannot_write(directory, error) from error

    def _check_running(self) -> None:
        if self._lock is None:
            raise RunError(
                f"the run in {self.directory} is not open for writing; "
                "write within its 'with' block, before finish()"
            )

    def _write(self, name: str, content: bytes) -> None:
        self._check_running()
        with _written(self.directory / name) as path:
            replace_file(path, lambda file: file.write(content))

    def _write_info(self) -> None:
        try:
            self._info["files"] = self._listed.now()
        except OSError as error:
            raise _cannot_write(self.directory / RUN_FILE, error) from error
        self._write(RUN_FILE, sealed_document(self._info, "the run"))

    def _has_results(self) -> bool:
        try:
            return bool(set(self._listed.now()) - {MACHINE_FILE})
        except OSError:
            return True

    def _withdraw(self) -> None:
        """Leaves nothing of a run that never began."""
        with contextlib.suppress(OSError):
            for name in (MACHINE_FILE, RUN_FILE):
                (self.directory / name).unlink(missing_ok=True)
        self._release()
        remove_empty(self._made)

    def _end(self) -> None:
        self._info["ended"] = _now()
        self._write_info()

    def _use_reserve(self) -> None:
        if self._reserve is not None:
            self._reserve.release()
            self._reserve = None

    def _release(self) -> None:
        self._use_reserve()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def default_directory(base: str | os.PathLike[str], name: str) -> Path:
    """Create and return the next free `<base>/runs/<name>-<n>`; two callers never get the same one."""
    if processes.is_other():
        return processes.scratch_directory()
    parent = Path(base) / "runs"
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-") or "run"
    pattern = re.compile(re.escape(stem) + r"-(\d+)")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        taken = [int(match[1]) for entry in parent.iterdir() if (match := pattern.fullmatch(entry.name))]
        number = max(taken, default=0) + 1
        while True:
            directory = parent / f"{stem}-{number}"
            with contextlib.suppress(FileExistsError):
                directory.mkdir()
                return directory
            number += 1
    except OSError as error:
        raise _cannot_write(parent, error) from error


def remove_run(directory: Path) -> None:
    """Removes the run in a directory, if there is one: its own files only, and not while it is written."""
    if not (directory / RUN_FILE).is_file():
        return
    if is_locked(directory / LOCK_FILE):
        raise RunError(f"{directory} holds a run that is being written; wait for its end, or stop it")
    try:
        listed = json.loads((directory / RUN_FILE).read_text(encoding="utf-8")).get("files", {})
        names = [str(name) for name in listed]
    except (OSError, ValueError, AttributeError):
        names = []
    others = ("report.html", "correlation.html", JOURNAL_FILE, LOCK_FILE, RUN_FILE)
    within = [
        directory / name for name in names if (directory / name).resolve().is_relative_to(directory.resolve())
    ]
    try:
        for path in (*within, *(directory / name for name in others)):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in within} - {directory}:
            with contextlib.suppress(OSError):  # it holds something else
                folder.rmdir()
    except OSError as error:
        raise _cannot_write(directory, error) from None


def package_version() -> str:
    """The installed version of Manyscale; "unknown" when it runs from a source tree."""
    try:
        return importlib.metadata.version("manyscale")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def sealed_document(info: Mapping[str, Any], what: str) -> bytes:
    """A document with its checksum, as `integrity.sealed` makes it."""
    try:
        return sealed(info, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RunError(f"{what} cannot be written as JSON: {error}") from None


def _checked_headline(headline: Headline) -> dict[str, dict[str, Any]]:
    """Plain numbers that JSON can hold; one that is not finite has no value."""
    checked = {}
    for name, entry in headline.items():
        value, unit = entry.get("value"), entry.get("unit")
        if not isinstance(unit, str) or not unit.strip():
            raise RunError(f"headline number '{name}' has no unit; a number without a unit has the unit '1'")
        if isinstance(value, bool) or not isinstance(value, numbers.Real | None):
            raise RunError(f"headline number '{name}' is {value!r}, which is not a number")
        if isinstance(value, numbers.Integral) and -(2**63) <= int(value) < 2**63:
            value = int(value)
        elif value is not None:
            value = float(value) if math.isfinite(value) else None
        checked[name] = {"value": value, "unit": unit}
    return checked


def _message(error: BaseException) -> str:
    error = host_memory.shortage(error, "the run") or error
    text = str(error)
    return text if isinstance(error, ManyscaleError) and text else f"{type(error).__name__}: {text}"


def _json(data: Mapping[str, Any], what: str) -> str:
    try:
        return json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RunError(f"{what} cannot be written as JSON: {error}") from None


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


@contextlib.contextmanager
def _written(path: Path) -> Iterator[Path]:
    try:
        yield path
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: Exception) -> RunError:
    return RunError(str(cannot_write(path, error)))
