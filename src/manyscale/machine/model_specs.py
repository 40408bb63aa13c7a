# SPDX-License-Identifier: Apache-2.0
"""Sections of a machine that are made of what the core's own tables say of its models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Optional

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from manyscale.errors import InputError
from manyscale.spec import Spec, parameters
from manyscale.system.catalogue import model

# Set from what the description says elsewhere when a system is built, or meant for tests of a model alone.
_BUILT = ("slices", "memory_interleave", "interleave_channels", "interleave_bytes")
_FOR_TESTS = ("keep_values", "log_commands", "jitter", "reorder")


def some_of(name: str, doc: str, fields: Mapping[str, FieldInfo], names: Iterable[str]) -> type[Spec]:
    """A Spec of some of a model's parameters, as the core declares them."""
    chosen = {part: fields[part] for part in names}
    return _spec(name, doc, {part: _like(field, field.default) for part, field in chosen.items()})


def any_of(name: str, doc: str, kinds: Iterable[str], *, without: Iterable[str] = ()) -> type[Spec]:
    """A Spec of all parameters of several models; one that is not stated is the model's own default."""
    fields = [field for kind in kinds for field in model(kind).spec.model_fields.items()]
    return _optional(name, doc, [field for field in fields if field[0] not in without])


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


def _optional(name: str, doc: str, fields: Iterable[tuple[str, FieldInfo]]) -> type[Spec]:
    definitions: dict[str, tuple[Any, Any]] = {}
    for part, field in fields:
        if part in _BUILT or part in _FOR_TESTS or part in definitions:
            continue
        annotation, declared = _like(field, None)
        if isinstance(annotation, type) and issubclass(annotation, Spec):
            annotation = _optional(f"{name}.{part}", f"{part} of it", annotation.model_fields.items())
        definitions[part] = (Optional[annotation], declared)  # noqa: UP045 - X | None fails for some types
    return _spec(name, doc, definitions)


def _like(field: FieldInfo, default: Any) -> tuple[Any, Any]:
    """The type of a field, and a declaration like its own with this default."""
    declared = Field(default, description=field.description, json_schema_extra=field.json_schema_extra)
    return field.rebuild_annotation(), declared


def _spec(name: str, doc: str, definitions: Mapping[str, Any]) -> type[Spec]:
    return create_model(name, __base__=Spec, __doc__=doc, **definitions)
