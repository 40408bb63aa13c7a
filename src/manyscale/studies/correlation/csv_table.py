# SPDX-License-Identifier: Apache-2.0
"""CSV files of profilers, which have other lines before, between and behind their rows."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manyscale.errors import InputError

_NOTHING = frozenset(("", "n/a", "nan", "-", "n/d", "none", "null", "<overflow>"))
_MOST_BYTES = 1 << 30
_PREFIXES = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "μ": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
}
_BASES = {
    "second": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "byte/second": 1.0,
    "B/s": 1.0,
    "byte": 1.0,
    "B": 1.0,
    "cycle": 1.0,
}
_BASES |= {"inst": 1.0, "sector": 1.0, "register/thread": 1.0, "%": 0.01, "hz": 1.0, "Hz": 1.0}


@dataclass
class Table:
    """The rows below a header line."""

    path: Path
    columns: list[str]
    rows: list[tuple[int, list[str]]] = field(default_factory=list)  # each with its line in the file
    left_out: int = 0  # lines that are no rows

    def index(self, *names: str) -> int | None:
        """The column of the first of these names that there is, whatever its case."""
        lowered = [column.strip().lower() for column in self.columns]
        return next((lowered.index(name.lower()) for name in names if name.lower() in lowered), None)

    def need(self, *names: str) -> int:
        found = self.index(*names)
        if found is None:
            raise InputError(f"{self.path}: there is no column {names[0]}; it has {', '.join(self.columns)}")
        return found

    def number(self, line: int, column: int, cell: str) -> float | None:
        """A number, with or without commas between thousands; None if the cell says that there is none."""
        text = cell.strip()
        if text.lower() in _NOTHING:
            return None
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            name = self.columns[column].strip() or f"column {column + 1}"
            raise InputError(f"{self.path}, line {line}: {name} is {text!r}, which is no number") from None
        if not math.isfinite(value):
            raise InputError(f"{self.path}, line {line}: {self.columns[column]} is {text}")
        return value


def read_table(path: str | os.PathLike[str], is_header: Callable[[Sequence[str]], bool]) -> Table | None:
    """The table below the first line that is a header; None if there is none.

    Lines with a single cell are left out: profilers and programs write messages between the rows. An error for any
    other row that has not as many cells as the header.
    """
    path = Path(path)
    table: Table | None = None
    reader = csv.reader(_text(path).splitlines(), strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            if table is None:  # a line of other text
                continue
            raise InputError(f"{path}, line {reader.line_num}: this is not CSV: {error}") from None
        if cells is None:
            return table
        if table is None:
            if is_header([cell.strip() for cell in cells]):
                table = Table(path, [cell.strip() for cell in cells])
        elif not cells or cells[0].startswith("=="):
            continue
        elif len(cells) == 1 and len(table.columns) > 1:
            table.left_out += 1
        elif len(cells) != len(table.columns):
            raise InputError(
                f"{path}, line {reader.line_num}: {len(cells)} cells, but the header has {len(table.columns)}"
            )
        else:
            table.rows.append((reader.line_num, cells))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: more than {_MOST_BYTES >> 20} MiB; export fewer launches")
        return path.read_bytes().decode("utf-8-sig", errors="replace").replace("\0", "")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def scale(unit: str) -> float | None:
    """What a value in this unit is multiplied by, to be in seconds, bytes, bytes a second or a share; None: unknown."""
    text = unit.strip()
    if text in ("", "1"):
        return 1.0
    for base in sorted(_BASES, key=len, reverse=True):
        prefix = text.removesuffix(base)
        if prefix != text and prefix in _PREFIXES:
            return _PREFIXES[prefix] * _BASES[base]
    return None
