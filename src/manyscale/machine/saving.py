# SPDX-License-Identifier: Apache-2.0
"""Writes a machine as TOML that loads back to an equal machine, each value with its source on its line."""

from __future__ import annotations

from collections.abc import Mapping

from manyscale import toml_text
from manyscale.machine.description import Machine
from manyscale.spec import dump


def to_toml(machine: Machine, sources: Mapping[str, str]) -> str:
    """The text of a machine file; `sources` holds the text for the comment behind each dotted path."""
    comments = {path: _one_line(source) for path, source in sources.items()}
    return "\n".join(toml_text.lines(dump(machine, reads=False), comments=comments)) + "\n"


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
