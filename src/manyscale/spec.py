# SPDX-License-Identifier: Apache-2.0
"""Specs: immutable descriptions; each parameter is declared once, with type, default, unit, range and doc.

People write quantities with units; a Spec holds them as whole numbers of the base unit (see `units`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import tomlkit
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, PydanticUndefined, core_schema
from tomlkit.exceptions import TOMLKitError

from manyscale import units
from manyscale.errors import InputError, nearest
from manyscale.reads import Reads
from manyscale.units import Dimension, shown

Location = tuple[int | str, ...]
Where = str | Callable[[Location], str]


class Base(int):
    """A number already in base units: how the core's own values enter a Spec without a unit."""


@dataclass(frozen=True)
class Quantity:
    """Marks a type as a quantity of one dimension and reads its values."""

    dimension: Dimension

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def _validate(self, value: object) -> int | float:
        try:
            return self.read(value)
        except InputError as error:
            raise _problem(str(error)) from None

    def read(self, value: object) -> int | float:
        """The value in base units, from text with a unit, a plain number where that is clear, or a `Base`."""
        dimension = self.dimension
        if isinstance(value, str):
            return units.parse(value, dimension)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(
                f"expected {dimension.described} such as {dimension.example!r}, got {shown(value)}"
            )
        if isinstance(value, float) and not isfinite(value):
            raise InputError(f"{shown(value)} is not a finite number")
        if not dimension.whole:
            return self._as_float(value)
        if dimension.needs_unit and not isinstance(value, Base):
            raise InputError(
                f"{shown(value)} has no unit; {dimension.described} takes {dimension.accepted}, "
                f"such as {dimension.example!r}"
            )
        if value != int(value):
            raise InputError(f"{shown(value)} is not whole; {dimension.described} is a whole number")
        return units.check_range(int(value), value, dimension)

    def _as_float(self, value: int | float) -> float:
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"{shown(value)} is beyond the range of {self.dimension.described}") from None


Time = Annotated[int, Quantity(units.TIME)]
Frequency = Annotated[int, Quantity(units.FREQUENCY)]
Bytes = Annotated[int, Quantity(units.BYTES)]
Bandwidth = Annotated[int, Quantity(units.BANDWIDTH)]
Cycles = Annotated[int, Quantity(units.CYCLES)]
Count = Annotated[int, Quantity(units.COUNT)]
Ratio = Annotated[float, Quantity(units.RATIO)]


def parameter(default: Any = PydanticUndefined, *, doc: str, minimum: Any = None, maximum: Any = None) -> Any:
    """Declares a parameter; without a default it is required. Default and bounds may be text with units."""
    return Field(default, description=doc, json_schema_extra={"minimum": minimum, "maximum": maximum})


class Spec(BaseModel):
    """The base of all Specs: immutable, no unknown names, every parameter documented."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_default=True,
        protected_namespaces=(),
        defer_build=True,  # most models are never used in a run, and each takes its time
    )

    _reads: Reads | None = PrivateAttr(None)  # not None: it is watched

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattribute__(self, name: str) -> Any:
            """As ever; of a Spec that is watched (see `reads`), it is remembered which parameters are read."""
            value = super().__getattribute__(name)
            if name in type(self).__pydantic_fields__ and (reads := self._reads) is not None:
                reads.add(name)
            return value

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if not field.description:
                raise TypeError(f"{cls.__name__}.{name} has no doc; declare it with parameter(..., doc=...)")
            kind = field_type(field)
            if kind.optional and field.default is not None:
                # Saved descriptions leave out what is None, so None must be what its absence means.
                raise TypeError(f"{cls.__name__}.{name} may be None, so its default must be None")
            bounds = _bounds(field)
            if bounds != (None, None) and kind.quantity is None:
                raise TypeError(f"{cls.__name__}.{name} has bounds but is no quantity")

    @field_validator("*", mode="after")
    @classmethod
    def _within_range(cls, value: Any, info: ValidationInfo) -> Any:
        quantity, minimum, maximum = _limits(cls, info.field_name or "")
        if value is None or quantity is None:
            return value
        if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
            given = units.format(value, quantity.dimension)
            field = cls.model_fields[info.field_name or ""]
            raise _problem(f"{given} is out of range; it must be {_range_text(field)}")
        return value

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value}" for name, value in self._shown_values())
        return f"{type(self).__name__}({parts})"

    __str__ = __repr__

    def _shown_values(self) -> list[tuple[str, str]]:
        rows = []
        for name, field in type(self).model_fields.items():
            value = vars(self)[name]  # to be shown is not to be read
            if value is not None:
                rows.append((name, repr(_plain(value, field_type(field).quantity))))
        return rows


AnySpec = TypeVar("AnySpec", bound=Spec)


def build(spec: type[AnySpec], data: object, where: Where) -> AnySpec:
    """A validated Spec from plain data; all that is wrong with it is one `InputError`, a line a problem.

    `where` names the origin of the data, or is a function that names the origin of what is at a location.
    """
    try:
        return spec.model_validate(data)
    except ValidationError as error:
        raise refusal(_explain(error, spec, where)) from None


def refusal(problems: Sequence[str]) -> InputError:
    """One error for all problems of a description, a line for each; of very many, the first ones."""
    more = len(problems) - _PROBLEMS_SHOWN
    lines = [*problems[:_PROBLEMS_SHOWN], *([f"… and {more} more problems"] if more > 0 else [])]
    return InputError("\n".join(lines))


def _explain(error: ValidationError, spec: type[Spec], where: Where) -> list[str]:
    """The one place where pydantic's errors become messages for people."""
    lines = []
    for problem in error.errors(include_url=False):
        location = problem["loc"]
        origin = where if isinstance(where, str) else where(location)
        path = path_text(location)
        lines.append(
            f"{origin}: {path}: {_message(problem, spec)}" if path else f"{origin}: {_message(problem, spec)}"
        )
    return lines


def _message(problem: Mapping[str, Any], spec: type[Spec]) -> str:
    kind, location, value = problem["type"], problem["loc"], problem["input"]
    if kind == "extra_forbidden":
        names = section_type(spec, location[:-1]).model_fields
        return f"there is no such parameter; {nearest(str(location[-1]), names)}"
    if kind == "missing":
        field = section_type(spec, location[:-1]).model_fields[str(location[-1])]
        return f"is required ({field_type(field).name}): {field.description}"
    if kind == _PROBLEM:
        return str(problem["ctx"]["reason"])
    expected = {
        "bool_type": "true or false",
        "string_type": "text",
        "model_type": "a section of parameters",
        "list_type": "a list",
        "literal_error": problem.get("ctx", {}).get("expected"),
    }.get(kind)
    return f"expected {expected}, got {shown(value)}" if expected else f"{problem['msg']}, got {shown(value)}"


_PROBLEM = "manyscale"
_PROBLEMS_SHOWN = 50


def _problem(reason: str) -> PydanticCustomError:
    return PydanticCustomError(_PROBLEM, "{reason}", {"reason": reason})


def toml_value(text: str) -> Any:
    """A value as people write it on a command line: TOML, or a bare word such as 1.5GHz."""
    try:
        return tomlkit.value(text.strip()).unwrap()
    except (TOMLKitError, ValueError, RecursionError):
        return text.strip()


def path_text(location: Location) -> str:
    """A location as a dotted path: ("nodes", 0, "clock") is "nodes[0].clock"."""
    text = ""
    for part in location:
        name = str(part) if len(str(part)) <= 60 else str(part)[:57] + "…"
        text += f"[{part}]" if isinstance(part, int) else f".{name}" if text else name
    return text


class FieldType(NamedTuple):
    """What a field's annotation says."""

    name: str
    quantity: Quantity | None
    spec: type[Spec] | None
    is_list: bool
    optional: bool


def field_type(field: FieldInfo) -> FieldType:
    """What the annotation of a field says."""
    for item in field.metadata:
        if isinstance(item, Quantity):
            return FieldType(item.dimension.name, item, None, False, False)
    return _annotation_type(field.annotation)


def _annotation_type(annotation: Any) -> FieldType:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        quantity = next((item for item in arguments[1:] if isinstance(item, Quantity)), None)
        if quantity is not None:
            return FieldType(quantity.dimension.name, quantity, None, False, False)
        return _annotation_type(arguments[0])
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        inner = next(argument for argument in arguments if argument is not type(None))
        return _annotation_type(inner)._replace(optional=True)
    if origin is list:
        inner_type = _annotation_type(arguments[0])
        return inner_type._replace(name=f"list of {inner_type.name}", is_list=True)
    if origin is Literal:
        return FieldType(" | ".join(map(str, arguments)), None, None, False, False)
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return FieldType("section", None, annotation, False, False)
    if annotation in (bool, str):
        return FieldType({bool: "true or false", str: "text"}[annotation], None, None, False, False)
    raise TypeError(
        f"{annotation} is no type of a parameter: use a quantity, bool, str, Literal, a Spec or a list of one"
    )


def _bounds(field: FieldInfo) -> tuple[int | float | None, int | float | None]:
    extra = field.json_schema_extra
    quantity = field_type(field).quantity
    if not isinstance(extra, dict) or quantity is None:
        return None, None
    low, high = extra.get("minimum"), extra.get("maximum")
    return (
        None if low is None else quantity.read(low),
        None if high is None else quantity.read(high),
    )


@functools.cache
def _limits(spec: type[Spec], name: str) -> tuple[Quantity | None, int | float | None, int | float | None]:
    """What a parameter is and its bounds: asked for each time a component is made."""
    field = spec.model_fields[name]
    return (field_type(field).quantity, *_bounds(field))


def _range_text(field: FieldInfo) -> str:
    minimum, maximum = _bounds(field)
    quantity = field_type(field).quantity
    if quantity is None:
        return ""
    low, high = (
        None if bound is None else units.format(bound, quantity.dimension) for bound in (minimum, maximum)
    )
    if low is not None and high is not None:
        return f"from {low} to {high}"
    if low is not None:
        return f"at least {low}"
    return "" if high is None else f"at most {high}"


def section_type(spec: type[Spec], location: Location) -> type[Spec]:
    """The Spec of the section at a location, such as ("gpu", "sm")."""
    for part in location:
        if isinstance(part, str):
            spec = field_type(spec.model_fields[part]).spec or spec
    return spec


class Parameter(NamedTuple):
    """One parameter as documentation shows it."""

    path: str
    type: str
    unit: str
    default: str
    range: str
    doc: str


def parameters(spec: type[Spec], prefix: str = "") -> list[Parameter]:
    """Every parameter of a Spec and of the Specs within it, in the order of declaration."""
    rows = []
    for name, field in spec.model_fields.items():
        kind = field_type(field)
        path = prefix + name + ("[]" if kind.is_list else "")
        if kind.spec is not None:
            rows.extend(parameters(kind.spec, f"{path}."))
            continue
        unit = kind.quantity.dimension.base or "1" if kind.quantity else "none"
        rows.append(
            Parameter(
                path, kind.name, unit, _default_text(field, kind), _range_text(field), field.description or ""
            )
        )
    return rows


def _default_text(field: FieldInfo, kind: FieldType) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "not stated"
    value = field.default
    if kind.quantity is not None and not kind.is_list:
        return units.format(kind.quantity.read(value), kind.quantity.dimension)
    return str(value).lower() if isinstance(value, bool) else str(value)


def dump(spec: Spec, *, names: Collection[str] | None = None, reads: bool = True) -> dict[str, Any]:
    """Plain data with units, without what is not stated; `build` makes an equal Spec of it.

    With `names`, these parameters only. With `reads`, whoever asked is taken to read all of it (see `reads`).
    """
    plain = {}
    values = vars(spec)
    if reads and spec._reads is not None:
        spec._reads.update(values if names is None else names)
    nested = dump if reads else functools.partial(dump, reads=False)
    for name, quantity in _quantities(type(spec)):
        value = values[name]
        if value is not None and (names is None or name in names):
            plain[name] = _plain(value, quantity, nested=nested)
    return plain


@functools.cache
def _quantities(spec: type[Spec]) -> list[tuple[str, Quantity | None]]:
    """The parameters of a Spec and what they are quantities of: asked for each time a component is saved."""
    return [(name, field_type(field).quantity) for name, field in spec.model_fields.items()]


def _plain(value: Any, quantity: Quantity | None, nested: Callable[[Spec], Any] = lambda spec: spec) -> Any:
    if isinstance(value, list):
        return [_plain(item, quantity, nested) for item in value]
    if isinstance(value, Spec):
        return nested(value)
    if quantity is None or quantity.dimension in (units.COUNT, units.RATIO):
        return value
    return units.format(value, quantity.dimension)


_TABLE_TYPES: Mapping[str, Any] = {
    "time": Time,
    "frequency": Frequency,
    "bytes": Bytes,
    "bandwidth": Bandwidth,
    "cycles": Cycles,
    "count": Count,
    "ratio": Ratio,
}


def spec_from_table(name: str, doc: str, fields: Sequence[Mapping[str, Any]]) -> type[Spec]:
    """A Spec class from a parameter table of the core, whose defaults and bounds are in base units.

    A field is `name` ("section.name" within a section), `type` ("int", "float", "bool", "str"), `unit` (a
    dimension, or "none"), `default` (absent: it is required), `minimum`, `maximum`, `doc`. A bound that no value can
    pass (None, infinite, beyond 64 bits) is no bound.
    """
    definitions: dict[str, Any] = {}
    sections: dict[str, list[Mapping[str, Any]]] = {}
    for field in fields:
        section, dot, rest = field["name"].partition(".")
        if dot:
            sections.setdefault(section, []).append({**field, "name": rest})
            definitions.setdefault(section, None)  # keeps the order of the table
            continue
        default = field.get("default", PydanticUndefined)
        definitions[section] = (
            _table_type(field),
            parameter(
                Base(default) if type(default) is int else default,
                doc=field["doc"],
                minimum=_table_bound(field, "minimum"),
                maximum=_table_bound(field, "maximum"),
            ),
        )
    for section, within in sections.items():
        part = spec_from_table(f"{name}.{section}", f"{section} of {name}", within)
        required = any(field.is_required() for field in part.model_fields.values())
        default = PydanticUndefined if required else part()
        definitions[section] = (part, parameter(default, doc=f"{section} of {name}"))
    return create_model(name, __base__=Spec, __doc__=doc, **definitions)


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
