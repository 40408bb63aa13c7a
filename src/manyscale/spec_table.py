# SPDX-License-Identifier: Apache-2.0
"""Specs from tables of the core, in which each parameter of a model is declared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import Any, Optional

from pydantic import create_model
from pydantic_core import PydanticUndefined

from manyscale import units
from manyscale.spec import Bandwidth, Base, Bytes, Count, Cycles, Frequency, Ratio, Spec, Time, parameter

_TABLE_TYPES: Mapping[str, Any] = {
    "time": Time,
    "frequency": Frequency,
    "bytes": Bytes,
    "bandwidth": Bandwidth,
    "cycles": Cycles,
    "count": Count,
    "ratio": Ratio,
}


class _TableSpec(Spec):
    """A Spec that is made of a table of the core, which has been checked."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if _TableSpec not in cls.__bases__:
            super().__pydantic_init_subclass__(**kwargs)


def spec_from_table(
    name: str, doc: str, fields: Sequence[Mapping[str, Any]], *, optional: bool = False
) -> type[Spec]:
    """A Spec class from a parameter table of the core, whose defaults and bounds are in base units.

    A field is `name` ("section.name" within a section), `type` ("int", "float", "bool", "str"), `unit` (a
    dimension, or "none"), `default` (absent: it is required), `minimum`, `maximum`, `doc`. A bound that no value can
    pass (None, infinite, beyond 64 bits) is no bound. With `optional`, any parameter may be left out, and has no
    default.
    """
    definitions: dict[str, Any] = {}
    sections: dict[str, list[Mapping[str, Any]]] = {}
    for field in fields:
        section, dot, rest = field["name"].partition(".")
        if dot:
            sections.setdefault(section, []).append({**field, "name": rest})
            definitions.setdefault(section, None)  # keeps the order of the table
            continue
        default = None if optional else field.get("default", PydanticUndefined)
        kind = _table_type(field)
        definitions[section] = (
            Optional[kind] if optional else kind,  # noqa: UP045 - X | None fails for some types
            parameter(
                Base(default) if type(default) is int else default,
                doc=field["doc"],
                minimum=_table_bound(field, "minimum"),
                maximum=_table_bound(field, "maximum"),
            ),
        )
    for section, within in sections.items():
        part = spec_from_table(f"{name}.{section}", f"{section} of {name}", within, optional=optional)
        if optional:
            definitions[section] = (Optional[part], parameter(None, doc=f"{section} of {name}"))  # noqa: UP045
            continue
        required = any(field.is_required() for field in part.model_fields.values())
        default = PydanticUndefined if required else _defaults(part)
        definitions[section] = (part, parameter(default, doc=f"{section} of {name}"))
    return create_model(name, __base__=_TableSpec, __doc__=doc, **definitions)


def _defaults(part: type[Spec]) -> Spec:
    """A section of defaults; those of the core's tables are valid, and to check them would take longer."""
    values: dict[str, Any] = {name: field.default for name, field in part.model_fields.items()}
    return part.model_construct(
        None, **{name: int(value) if isinstance(value, Base) else value for name, value in values.items()}
    )


def table_values(spec: Spec, prefix: str = "", without: Collection[str] = ()) -> dict[str, Any]:
    """The base values of a Spec by the names of the core's table, in which sections are joined by dots.

    `without` are names that the core's table does not have.
    """
    values: dict[str, Any] = {}
    for name in type(spec).model_fields:
        if name in without:
            continue
        value = getattr(spec, name)
        values |= (
            table_values(value, f"{prefix}{name}.") if isinstance(value, Spec) else {prefix + name: value}
        )
    return values


def _table_type(field: Mapping[str, Any]) -> Any:
    kind, unit = field["type"], field["unit"]
    if kind in ("bool", "str") and unit == "none":
        return {"bool": bool, "str": str}[kind]
    if unit == "none":
        unit = {"int": "count", "float": "ratio"}.get(kind, unit)
    if unit not in _TABLE_TYPES or kind != ("float" if unit == "ratio" else "int"):
        raise TypeError(
            f"parameter {field['name']!r}: type {kind!r} with unit {field['unit']!r} is no quantity"
        )
    return _TABLE_TYPES[unit]


def _table_bound(field: Mapping[str, Any], side: str) -> int | float | None:
    bound = field.get(side)
    if bound is None or field["type"] not in ("int", "float") or not isfinite(bound):
        return None
    if field["type"] == "float":
        return float(bound)
    return Base(bound) if units.SMALLEST < bound < units.LARGEST else None
