# SPDX-License-Identifier: Apache-2.0
"""Systems as TOML files: what was run can be run again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale import toml_text, units
from manyscale.errors import InputError, nearest
from manyscale.results.files import FileKind, write_file
from manyscale.spec import Count, Ratio, Spec, Time, build, dump, parameter
from manyscale.system.component import Hints
from manyscale.system.drawing import model_name
from manyscale.toml_text import inline, toml_value

if TYPE_CHECKING:
    from manyscale.system.component import Component
    from manyscale.system.system import System

FORMAT = "manyscale.system/1"
_LARGEST_FILE = 64 * 2**20
_SYSTEM = FileKind("a saved system", lambda head: b'format = "manyscale.system/' in head)


class ComponentEntry(Spec):
    """A component in a saved system."""

    name: str = parameter(doc="its path, such as gpu.sm[3]")
    model: str = parameter(doc="a model of the core, or the name of a Python class")
    group: str = parameter("", doc="components of one group stay on one thread")
    weight: Ratio = parameter(1.0, doc="expected share of the work", minimum=0)


class LinkEntry(Spec):
    """A link in a saved system."""

    a: str = parameter(doc="one port, as component.port")
    b: str = parameter(doc="the other port, as component.port")
    latency: Time = parameter(doc="time from one end to the other", minimum="0fs")


class SystemEntry(Spec):
    """The head of a saved system."""

    format: str = parameter(doc=f"{FORMAT} for what this version writes")
    name: str = parameter("system", doc="for people")
    seed: Count = parameter(0, doc="of all random numbers", minimum=0)
    cut_latency: Time = parameter("0fs", doc="shorter links are never cut; 0 chooses", minimum="0fs")
    component: list[ComponentEntry] = parameter(doc="the components")
    link: list[LinkEntry] = parameter([], doc="the links")


def to_toml(system: System) -> str:
    """The system as TOML text."""
    return "\n".join(_lines(system)) + "\n"


def _lines(system: System) -> Iterator[str]:
    head = {"format": FORMAT, "name": system.name, "seed": system.seed}
    yield from toml_text.lines(head | {"cut_latency": units.format(system.cut_latency, units.TIME)})
    plain = Hints()
    parameters = _ParameterText()
    for component in system.components.values():
        yield f"\n[[component]]\nname = {inline(component.name)}\nmodel = {inline(model_name(component))}"
        hints = system.hints.get(component.name, plain)
        if hints.group:
            yield f"group = {inline(hints.group)}"
        if hints.weight != 1.0:
            yield f"weight = {inline(hints.weight)}"
        if text := parameters.of(component.spec):
            yield text
    for link in system.links:
        latency = units.format(link.latency, units.TIME)
        yield f"\n[[link]]\na = {inline(link.a)}\nb = {inline(link.b)}\nlatency = {inline(latency)}"


class _ParameterText:
    """The table of a component's parameters, made once for components that are alike."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], str] = {}

    def of(self, spec: Spec) -> str:
        values = (type(spec), *spec.__dict__.values())
        try:
            text = self._made.get(values)
        except TypeError:  # a list among them
            return self._make(spec)
        if text is None:
            text = self._made[values] = self._make(spec)
        return text

    @staticmethod
    def _make(spec: Spec) -> str:
        parameters = dump(spec)
        if not parameters:
            return ""
        path = "component.parameters"
        return "\n".join(["", f"[{path}]", *toml_text.lines(parameters, path)])


def save(system: System, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Writes the system to a file; over another saved system only with `force`."""
    content = to_toml(system).encode()
    write_file(path, lambda file: file.write(content), _SYSTEM, force=force)


def load(
    path: str | os.PathLike[str],
    models: Iterable[type[Component]] = (),
    changes: Iterable[str] = (),
    seed: int | None = None,
) -> System:
    """The system in a file; Python models are looked up in `models` by class name."""
    name = os.fspath(path)
    try:
        if Path(path).stat().st_size > _LARGEST_FILE:
            raise InputError(f"{name} is larger than a system can be (64 MiB)")
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    try:
        data = toml_text.parse(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: {error}") from None
    if seed is not None:
        data["seed"] = seed
    return _from_data(data, name, models, _read_changes(changes))


def _read_changes(changes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Changes such as "stage[0].slots=8", by component and parameter."""
    read: dict[str, dict[str, Any]] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        component, dot, name = path.strip().rpartition(".")
        if not (equals and dot and component and name):
            raise InputError(
                f"--set {units.shown(change)}: expected component.parameter=value, such as stage[0].slots=8"
            )
        read.setdefault(component, {})[name] = toml_value(text)
    return read


def _from_data(
    data: dict[str, Any],
    where: str,
    models: Iterable[type[Component]],
    changes: dict[str, dict[str, Any]],
) -> System:
    from manyscale.system.system import System

    if data.get("format") != FORMAT:
        raise InputError(f"{where} is not a saved system: it needs format = '{FORMAT}' at its top")
    classes = {model.__name__: model for model in models}
    parameters = [_take_parameters(entry, where) for entry in _tables(data, "component", where)]
    head = build(SystemEntry, data, where)
    system = System(head.name, seed=head.seed, cut_latency=units.format(head.cut_latency, units.TIME))
    names = [entry.name for entry in head.component]
    for name in changes:
        if name not in names:
            raise InputError(f"--set: there is no component '{name}' in {where}; {nearest(name, names)}")
    for entry, given in zip(head.component, parameters, strict=True):
        given |= changes.get(entry.name, {})
        if "." in entry.model:
            component: Any = system.add(entry.model, entry.name, **given)
        elif entry.model in classes:
            component = system.add(classes[entry.model], entry.name, **given)
        else:
            raise InputError(
                f"{where}: component {entry.name} is a Python model '{entry.model}', which must be given: "
                f"System.load(path, models=[{entry.model}]); {nearest(entry.model, classes)}"
            )
        if entry.group or entry.weight != 1.0:
            system.hint(component, group=entry.group or None, weight=entry.weight)
    for link in head.link:
        system.connect(system.port(link.a), system.port(link.b), units.format(link.latency, units.TIME))
    return system


def _tables(data: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    entries = data.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{where}: expected [[{key}]] tables")
    return entries


def _take_parameters(entry: dict[str, Any], where: str) -> dict[str, Any]:
    """Parameters belong to the model, which checks them; the rest of the entry is checked here."""
    parameters = entry.pop("parameters", {})
    if not isinstance(parameters, dict) or not all(isinstance(key, str) for key in parameters):
        raise InputError(f"{where}: the parameters of {entry.get('name')} are not a table")
    return parameters
