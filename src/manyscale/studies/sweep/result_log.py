# SPDX-License-Identifier: Apache-2.0
"""The results of a sweep as they arrive: a file that only grows, in which each line carries its checksum.

A database would do the same on a local disk, but its locks and shared memory do not work on the file systems that
clusters share. One process appends whole lines here, so a kill leaves at most one torn line, at the end.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from manyscale.errors import RunError
from manyscale.studies.sweep.worker import Record

_SYNC_SECONDS = 1.0  # what a power failure may cost; a killed process loses nothing
_LONGEST_LINE = 16 << 20
_MOST_ATTEMPTS = 2**31
_LARGEST = 10**300  # a whole number that is a float as well


class ResultLog:
    """The log while a sweep goes on; the last record of a key counts."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the file; a torn line at its end is cut off."""
        self.path = path
        self.records: dict[str, Record] = {}
        self.damaged = 0
        """Lines in the middle that were not what had been written; their points are run again."""
        whole = 0
        if path.exists():
            self.records, whole, self.damaged = _read(path)
        try:
            self._file = path.open("ab")
            if self._file.tell() > whole:
                self._file.truncate(whole)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror or error}") from None
        self._synced = time.monotonic()

    def append(self, record: Record) -> None:
        """Keeps a result; when this returns, a killed process does not lose it."""
        self.records[record["key"]] = record
        try:
            self._file.write(_line(record))
            self._file.flush()
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self.sync()
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror or error}") from None

    def sync(self) -> None:
        """Makes sure that also a power failure loses nothing."""
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Ends writing."""
        if not self._file.closed:
            self.sync()
            self._file.close()


def read_log(path: Path) -> tuple[dict[str, Record], int]:
    """The results so far, by key, also while they are being written; and how many lines are damaged."""
    if not path.exists():
        return {}, 0
    records, _, damaged = _read(path)
    return records, damaged


def _line(record: Record) -> bytes:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _read(path: Path) -> tuple[dict[str, Record], int, int]:
    """Records by key, bytes up to the end of the last whole line, and damaged lines."""
    records: dict[str, Record] = {}
    whole = damaged = 0
    try:
        with path.open("rb") as file:
            for line in _lines(file):
                if not line.endswith(b"\n"):
                    break  # torn: the process that wrote it was killed
                whole += len(line)
                record = _record(line)
                if record is None:
                    damaged += 1
                else:
                    records[record["key"]] = record
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from None
    return records, whole, damaged


def _lines(file: Any) -> Iterator[bytes]:
    while line := file.readline(_LONGEST_LINE):
        yield line


def _record(line: bytes) -> Record | None:
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            return None
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if _is_record(record) else None


def _is_record(record: object) -> TypeGuard[Record]:
    if not isinstance(record, dict):
        return False
    values, units, attempts = record.get("values"), record.get("units"), record.get("attempts")
    return (
        isinstance(record.get("key"), str)
        and record.get("status") in ("done", "failed")
        and isinstance(values, dict)
        and all(value is None or _is_number(value) for value in values.values())
        and isinstance(units, dict)
        and all(isinstance(unit, str) for unit in units.values())
        and isinstance(record.get("error", 0), str | None)
        and _is_number(record.get("wall_seconds"))
        and isinstance(attempts, int)
        and 0 <= attempts < _MOST_ATTEMPTS
    )


def _is_number(value: object) -> bool:
    """Whether this is a number that a table can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not isinstance(value, int) or abs(value) < _LARGEST
