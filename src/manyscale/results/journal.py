# SPDX-License-Identifier: Apache-2.0
"""Rows of tables that are kept while a run goes on, so that a run that is killed still has what had ended.

Each line is a checksum and one JSON document: the rows that are new, by table and column, and the headline numbers so
far. A line that the end of the process tore, or that is no such document, is left out. The tables that a run writes at
its end replace the journal.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyscale.results.definitions import headline_problem

JOURNAL_FILE = "journal.log"

Columns = Mapping[str, Sequence[Any]]


class Journal:
    """The journal of a run that goes on."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL_FILE
        self._descriptor = -1

    def append(self, tables: Mapping[str, Columns], headline: Mapping[str, Mapping[str, Any]]) -> None:
        """Keeps rows; they are there for readers when this returns, also if the process is killed then."""
        if self._descriptor < 0:
            self._descriptor = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
        text = json.dumps({"tables": tables, "headline": headline}).encode()
        data = memoryview(b"%08x %s\n" % (zlib.crc32(text), text))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def remove(self) -> None:
        """The tables are written: the journal is not needed any more."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leaves the journal as it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_journal(directory: Path) -> tuple[dict[str, dict[str, list[Any]]], dict[str, dict[str, Any]]]:
    """The tables so far, by name and column, and the last headline numbers; empty without a journal."""
    tables: dict[str, dict[str, list[Any]]] = {}
    headline: dict[str, dict[str, Any]] = {}
    try:
        lines = (directory / JOURNAL_FILE).read_bytes().split(b"\n")[:-1]
    except OSError:
        return tables, headline
    for line in lines:
        entry = _entry(line)
        if entry is None:
            continue
        for name, columns in entry["tables"].items():
            table = tables.setdefault(name, {column: [] for column in columns})
            if table.keys() != columns.keys():
                continue
            for column, values in columns.items():
                table[column] += values
        headline = entry["headline"]
    return tables, headline


def _entry(line: bytes) -> dict[str, dict[str, Any]] | None:
    """What a line says; None if it is not whole."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    tables, headline = entry.get("tables"), entry.get("headline")
    if not isinstance(tables, dict) or not all(map(_is_table, tables.values())):
        return None
    return entry if isinstance(headline, dict) and headline_problem(headline) is None else None


def _is_table(columns: object) -> bool:
    """Whether these are columns of one length."""
    if not isinstance(columns, dict) or not all(isinstance(values, list) for values in columns.values()):
        return False
    return len({len(values) for values in columns.values()}) <= 1
