# SPDX-License-Identifier: Apache-2.0
"""Writes a machine as TOML that loads back to an equal machine, each value with its source on its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import Table

from manyscale.machine.description import Machine
from manyscale.spec import dump


def to_toml(machine: Machine, sources: Mapping[str, str]) -> str:
    """The text of a machine file; `sources` holds the text for the comment behind each dotted path."""
    document = tomlkit.document()
    _fill(document, dump(machine), sources, "")
    return tomlkit.dumps(document)


def _fill(
    table: tomlkit.TOMLDocument | Table, data: Mapping[str, Any], sources: Mapping[str, str], prefix: str
) -> None:
    # TOML ends a table where the next begins, so a table's own values come before its tables.
    for name, value in sorted(data.items(), key=lambda pair: isinstance(pair[1], dict)):
        if isinstance(value, dict):
            section = tomlkit.table()
            _fill(section, value, sources, f"{prefix}{name}.")
            table.add(name, section)
            continue
        item = tomlkit.item(value)
        source = _one_line(sources.get(prefix + name, ""))
        if source:
            item.comment(source)
        table.add(name, item)


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
