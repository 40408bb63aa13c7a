# SPDX-License-Identifier: Apache-2.0
"""Sections of a machine that are made of what the core's own tables say of its models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from manyscale.errors import InputError
from manyscale.spec import Spec, parameters
from manyscale.spec_table import spec_from_table
from manyscale.system.catalogue import model

# Set from what the description says elsewhere when a system is built, or meant for tests of a model alone.
_BUILT = ("slices", "memory_interleave", "interleave_channels", "interleave_bytes", "refresh_offset")
_FOR_TESTS = ("keep_values", "log_commands", "jitter", "reorder")


def some_of(name: str, doc: str, kind: str, names: Iterable[str]) -> type[Spec]:
    """A Spec of some of a model's parameters, as the core declares them."""
    table = model(kind).table
    return spec_from_table(name, doc, [row for part in names for row in table if _section(row) == part])


def required_of(name: str, doc: str, kind: str, names: Iterable[str]) -> type[Spec]:
    """A Spec of some of a model's parameters, without their defaults."""
    rows = {row["name"]: {key: row[key] for key in row if key != "default"} for row in model(kind).table}
    return spec_from_table(name, doc, [rows[part] for part in names])


def section_of(kind: str, section: str) -> type[Spec]:
    """A Spec of a section of a model's parameters, as the core declares it."""
    return spec_from_table(f"{kind}.{section}", f"{section} of {kind}", _rows_of(kind, section))


def parts_of(kind: str, section: str) -> set[str]:
    """The names of the parameters and sections within a section of a model's."""
    return {_section(row) for row in _rows_of(kind, section)}


def _rows_of(kind: str, section: str) -> list[dict[str, Any]]:
    within = [row for row in model(kind).table if _section(row) == section]
    return [{**row, "name": row["name"].partition(".")[2]} for row in within]


def any_of(name: str, doc: str, kinds: Iterable[str], *, without: Iterable[str] = ()) -> type[Spec]:
    """A Spec of all parameters of several models; one that is not stated is the model's own default."""
    rows: list[Mapping[str, Any]] = []
    for kind in kinds:
        known = {_section(row) for row in rows}
        left_out = {*known, *without, *_BUILT, *_FOR_TESTS}
        rows += [row for row in model(kind).table if left_out.isdisjoint([_section(row), *_within(row)])]
    return spec_from_table(name, doc, rows, optional=True)


def _section(row: Mapping[str, Any]) -> str:
    """The section of a row of the core's table, or its name where it is in none."""
    return str(row["name"]).partition(".")[0]


def _within(row: Mapping[str, Any]) -> list[str]:
    """Names below the section, of which those that are set elsewhere count."""
    return [part for part in str(row["name"]).split(".")[1:] if part in _BUILT or part in _FOR_TESTS]


def check_whole(
    where: str, kind: str, section: Spec | None, path: str, elsewhere: Collection[str] = ()
) -> None:
    """Refuses a section that leaves a parameter open for which its model has no default."""
    for row in parameters(model(kind).spec):
        if row.default != "required" or row.path in elsewhere:
            continue
        value: Any = section
        for name in row.path.split("."):
            value = None if value is None else getattr(value, name)
        if value is None:
            raise InputError(
                f"{where}: {path}.{row.path}: is not stated; state it, or let the section [{path}] have what it leaves "
                f'open from another machine: inherits = "v100"'
            )
