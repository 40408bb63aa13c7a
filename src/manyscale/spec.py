# SPDX-License-Identifier: Apache-2.0
"""Specs: immutable descriptions; each parameter is declared once, with type, default, unit, range and doc.

People write quantities with units; a Spec holds them as whole numbers of the base unit (see `units`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, PydanticUndefined, core_schema

from manyscale import units
from manyscale.errors import InputError, nearest
from manyscale.reads import Reads
from manyscale.units import Dimension, shown

Location = tuple[int | str, ...]
_RANGE = "manyscale_range"  # key of a schema's metadata
Where = str | Callable[[Location], str]


class Base(int):
    """A number already in base units: how the core's own values enter a Spec without a unit."""


@dataclass(frozen=True)
class Quantity:
    """Marks a type as a quantity of one dimension and reads its values."""

    dimension: Dimension

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        within: _Range | None = (handler(source).get("metadata") or {}).get(_RANGE)
        if within is None:
            return core_schema.no_info_plain_validator_function(self._validate)
        check = within.checker(self)
        return core_schema.no_info_plain_validator_function(lambda value: check(self._validate(value)))

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


@dataclass(frozen=True)
class _Range:
    """Refuses values outside the bounds of a parameter."""

    minimum: Any
    maximum: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if source in (int, float):  # pydantic puts it before the Quantity, which has to read the value first
            return core_schema.any_schema(metadata={_RANGE: self})
        quantity = _annotation_type(source).quantity
        if quantity is None:
            return handler(source)
        return core_schema.no_info_after_validator_function(self.checker(quantity), handler(source))

    def checker(self, quantity: Quantity) -> Callable[[Any], Any]:
        """Gives a value back, or raises."""
        low, high = _read_bound(quantity, self.minimum), _read_bound(quantity, self.maximum)

        def check(value: Any) -> Any:
            if value is None or ((low is None or value >= low) and (high is None or value <= high)):
                return value
            given = units.format(value, quantity.dimension)
            raise _problem(f"{given} is out of range; it must be {_range_text(quantity, low, high)}")

        return check


def parameter(default: Any = PydanticUndefined, *, doc: str, minimum: Any = None, maximum: Any = None) -> Any:
    """Declares a parameter; without a default it is required. Default and bounds may be text with units."""
    field = Field(default, description=doc, json_schema_extra={"minimum": minimum, "maximum": maximum})
    if minimum is not None or maximum is not None:
        field.metadata.append(_Range(minimum, maximum))
    return field


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
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Within another Spec, a section has a validator of its own, which is made when a value is first given.

        Most runs use few of the sections of a machine, and pydantic takes a millisecond for each.
        """
        if handler.field_name is None:
            return handler(source)
        return _section_schema(cls._validate_section)

    @classmethod
    def _validate_section(cls, value: object) -> Spec:
        if isinstance(value, cls):
            return value
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            problems = _Problems(error.errors(include_url=False))
            raise PydanticCustomError(_SECTION, "problems", {"problems": problems}) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if not field.description:
                raise TypeError(f"{cls.__name__}.{name} has no doc; declare it with parameter(..., doc=...)")
            if _is_deferred(field) and field.default is None:
                continue
            kind = field_type(field)
            if kind.optional and field.default is not None:
                # Saved descriptions leave out what is None, so None must be what its absence means.
                raise TypeError(f"{cls.__name__}.{name} may be None, so its default must be None")
            bounds = _bounds(field)
            if bounds != (None, None) and kind.quantity is None:
                raise TypeError(f"{cls.__name__}.{name} has bounds but is no quantity")

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value}" for name, value in self._shown_values())
        return f"{type(self).__name__}({parts})"

    __str__ = __repr__

    def _shown_values(self) -> list[tuple[str, str]]:
        values = vars(self)  # to be shown is not to be read
        stated = [
            (name, field) for name, field in type(self).model_fields.items() if values[name] is not None
        ]
        return [(name, repr(_plain(values[name], field_type(field).quantity))) for name, field in stated]


@dataclass(frozen=True)
class Section:
    """Marks a type as a section whose Spec is made when it is first used."""

    make: Callable[[], type[Spec]]

    @property
    def spec(self) -> type[Spec]:
        return _made(self.make)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return _section_schema(lambda value: self.spec._validate_section(value))


@functools.cache
def _made(make: Callable[[], type[Spec]]) -> type[Spec]:
    return make()


def deferred(make: Callable[[], type[Spec]]) -> Any:
    """The type of a section of which few runs need the Spec, which `make` makes or imports."""
    return Annotated[Any, Section(make)]


class _Problems(list[Any]):
    """What is wrong with a section; pydantic wants a text of it, which values of any size must not be in."""

    def __str__(self) -> str:
        return f"{len(self)} problems"


AnySpec = TypeVar("AnySpec", bound=Spec)


def _section_schema(validate: Callable[[object], Spec]) -> CoreSchema:
    dump = core_schema.plain_serializer_function_ser_schema(BaseModel.model_dump)
    return core_schema.no_info_plain_validator_function(validate, serialization=dump)


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
    """Turns pydantic's errors into messages for people; nothing else does."""
    lines = []
    for problem in _problems(error.errors(include_url=False)):
        location = problem["loc"]
        origin = where if isinstance(where, str) else where(location)
        path = path_text(location)
        lines.append(
            f"{origin}: {path}: {_message(problem, spec)}" if path else f"{origin}: {_message(problem, spec)}"
        )
    return lines


def _problems(errors: Iterable[Mapping[str, Any]], prefix: Location = ()) -> Iterator[dict[str, Any]]:
    """All problems with their whole locations, those within sections too."""
    for problem in errors:
        location = (*prefix, *problem["loc"])
        if problem["type"] == _SECTION:
            yield from _problems(problem["ctx"]["problems"], location)
        else:
            yield {**problem, "loc": location}


def _message(problem: Mapping[str, Any], spec: type[Spec]) -> str:
    kind, location, value = problem["type"], problem["loc"], problem["input"]
    if kind == "extra_forbidden":
        section, name = section_type(spec, location[:-1]), str(location[-1])
        inner = [row.path for row in parameters(section) if row.path.endswith(f".{name}")]
        return f"there is no such parameter; {nearest(name, [*section.model_fields, *inner])}"
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
_SECTION = "manyscale_section"
_PROBLEMS_SHOWN = 50


def _problem(reason: str) -> PydanticCustomError:
    return PydanticCustomError(_PROBLEM, "{reason}", {"reason": reason})


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


def _is_deferred(field: FieldInfo) -> bool:
    """Whether it is an optional section whose Spec is made when it is first used."""
    within = [item for part in get_args(field.annotation) for item in getattr(part, "__metadata__", ())]
    return any(isinstance(item, Section) for item in within)


def field_type(field: FieldInfo) -> FieldType:
    """What the annotation of a field says."""
    for item in field.metadata:
        if isinstance(item, Quantity):
            return FieldType(item.dimension.name, item, None, False, False)
        if isinstance(item, Section):
            return FieldType("section", None, item.spec, False, False)
    return _annotation_type(field.annotation)


def _annotation_type(annotation: Any) -> FieldType:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        quantity = next((item for item in arguments[1:] if isinstance(item, Quantity)), None)
        if quantity is not None:
            return FieldType(quantity.dimension.name, quantity, None, False, False)
        section = next((item for item in arguments[1:] if isinstance(item, Section)), None)
        if section is not None:
            return FieldType("section", None, section.spec, False, False)
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
    return _read_bound(quantity, extra.get("minimum")), _read_bound(quantity, extra.get("maximum"))


def _read_bound(quantity: Quantity, bound: object) -> int | float | None:
    return None if bound is None else quantity.read(bound)


def _range_text(quantity: Quantity | None, minimum: int | float | None, maximum: int | float | None) -> str:
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
                path,
                kind.name,
                unit,
                _default_text(field, kind),
                _range_text(kind.quantity, *_bounds(field)),
                field.description or "",
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
    return [
        (name, None if _is_deferred(field) else field_type(field).quantity)
        for name, field in spec.model_fields.items()
    ]


def _plain(value: Any, quantity: Quantity | None, nested: Callable[[Spec], Any] = lambda spec: spec) -> Any:
    if isinstance(value, list):
        return [_plain(item, quantity, nested) for item in value]
    if isinstance(value, Spec):
        return nested(value)
    if quantity is None or quantity.dimension in (units.COUNT, units.RATIO):
        return value
    return units.format(value, quantity.dimension)
