# SPDX-License-Identifier: Apache-2.0
"""A system: components and the links between them, described in Python and run by the core."""

from __future__ import annotations

import contextlib
import itertools
import marshal
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from manyscale import _core, units
from manyscale.errors import GraphError, InputError, nearest
from manyscale.spec import Quantity, Spec, build, dump
from manyscale.spec_table import table_values
from manyscale.system import catalogue
from manyscale.system.component import Component, Hints, NativeComponent, PortRef, check_name
from manyscale.system.declarations import LivePort
from manyscale.system.drawing import describe, to_dot
from manyscale.system.running import Result, run_system
from manyscale.system.saving import load, save, to_toml

AnyComponent = Component | NativeComponent
AnyPort = PortRef | LivePort
Model = TypeVar("Model", bound=Component)


class Mail:
    """Objects in flight between Python models; the core carries their numbers."""

    def __init__(self) -> None:
        self._objects: dict[int, object] = {}
        self._numbers = itertools.count()

    def post(self, message: object) -> int:
        number = next(self._numbers)
        self._objects[number] = message
        return number

    def take(self, number: int) -> Any:
        return self._objects.pop(number)


@dataclass(frozen=True)
class Link:
    """Two ports, as "component.port", joined with a latency in femtoseconds."""

    a: str
    b: str
    latency: int


class System:
    """A graph of components that can be checked, drawn, saved and run.

    >>> system = System("two stages")
    >>> first = system.add("synthetic.relay", "first", tokens=3, hops=1)
    >>> last = system.add("synthetic.relay", "last")
    >>> system.connect(first.output, last.input, latency="750ps")
    >>> system.run().value("last", "retired")
    3
    """

    def __init__(self, name: str = "system", *, seed: int = 0, cut_latency: str = "0fs") -> None:
        """`seed` makes all random numbers; links shorter than `cut_latency` are never between two threads
        (0: chosen from the graph)."""
        if not 0 <= seed < 2**64:
            raise InputError(f"the seed {seed} is out of range; it must be from 0 to 2**64 - 1")
        self.name, self.seed = name, seed
        self.cut_latency = int(Quantity(units.TIME).read(cut_latency))
        self.components: dict[str, AnyComponent] = {}
        self.links: list[Link] = []
        self.hints: dict[str, Hints] = {}
        self.simulation = _core.Simulation(seed)
        self.simulation.set_cut_latency(self.cut_latency)
        self._mail = Mail()
        self._within = ""
        self._last_specs: dict[str, tuple[bytes | None, Spec, dict[str, Any]]] = {}

    @contextlib.contextmanager
    def within(self, part: str) -> Iterator[None]:
        """Components that are added meanwhile get names within a part: `core` becomes `node[0].core`."""
        check_name(part)
        before, self._within = self._within, f"{self._within}{part}."
        try:
            yield
        finally:
            self._within = before

    @overload
    def add(self, model: str, name: str, /, **parameters: Any) -> NativeComponent: ...
    @overload
    def add(self, model: type[Model], name: str, /, **parameters: Any) -> Model: ...
    def add(self, model: str | type[Component], name: str, /, **parameters: Any) -> AnyComponent:
        """Adds a component: a model of the core by name, or one written in Python by its class."""
        name = check_name(f"{self._within}{name}")
        if name in self.components:
            raise GraphError(f"there is already a component named '{name}' in {self.name}")
        component: AnyComponent
        with graph_errors():
            if isinstance(model, str):
                spec, values = self._native_spec(model, name, parameters)
                native = self.simulation.add_model(model, name, values)
                component = NativeComponent(model, name, spec, native)
            else:
                spec = build(model.Spec, parameters, f"{name} ({model.__name__})")
                component = model(name, spec, _core.add_python_component(self.simulation, name), self._mail)
        self.components[name] = component
        return component

    def _native_spec(self, model: str, name: str, parameters: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
        """The Spec of a component and its values for the core; equal ones in a row share them."""
        try:
            key = marshal.dumps(parameters, 2)
        except ValueError:  # values of other types than those of a file
            key = None
        last = self._last_specs.get(model)
        if key is not None and last is not None and key == last[0]:
            return last[1:]
        spec = build(catalogue.model(model).spec, parameters, f"{name} ({model})")
        values = table_values(spec)
        self._last_specs[model] = key, spec, values
        return spec, values

    def connect(self, a: AnyPort, b: AnyPort, latency: str) -> None:
        """Joins two ports; what one sends arrives at the other after the latency."""
        femtoseconds = int(Quantity(units.TIME).read(latency))
        with graph_errors():
            self.simulation.connect(a.native, b.native, femtoseconds)
        self.links.append(Link(a.native.path, b.native.path, femtoseconds))

    def hint(self, *components: AnyComponent, group: str | None = None, weight: float | None = None) -> None:
        """Tells the partitioner: a `group` stays on one thread; `weight` is the share of the work."""
        for component in components:
            hints = self.hints.setdefault(component.name, Hints())
            if group is not None:
                hints.group = group
                self.simulation.set_group(component.native, group)
            if weight is not None:
                if not 0 < weight < float("inf"):
                    raise InputError(f"the weight of {component.name} is {weight}; it must be above 0")
                hints.weight = weight
                self.simulation.set_weight(component.native, weight)

    def port(self, path: str) -> AnyPort:
        """The port at "component.port"."""
        name, _, port = path.rpartition(".")
        if name not in self.components:
            raise GraphError(
                f"there is no component '{name}' (for port '{path}'); {nearest(name, self.components)}"
            )
        ports = self.components[name].ports
        if port not in ports:
            raise GraphError(f"{name} has no port '{port}'; {nearest(port, ports)}")
        return ports[port]

    def check(self) -> None:
        """Raises a GraphError that lists all that is wrong with the graph, if anything is."""
        problems = self.simulation.problems()
        if problems:
            raise GraphError("\n".join(problems))

    @property
    def lookahead(self) -> int | None:
        """The window in femtoseconds that parts of the graph can run apart; None if it cannot be cut."""
        lookahead = self.simulation.clusters()[1]
        return None if lookahead == _core.never else int(lookahead)

    def run(
        self,
        *,
        until: str | None = None,
        threads: int = 1,
        out: str | os.PathLike[str] | None = None,
        timeline: bool = False,
        progress: Callable[[int, int], None] | None = None,
        command: Iterable[str] = (),
        queue: str = "radix",
    ) -> Result:
        """Runs on from where the last run ended, until nothing is left to do or the time limit.

        Leaves a run directory in `out` if given. `timeline` writes spans and counters there as a Perfetto
        trace. `progress` is called now and then with simulated femtoseconds and events. The result does not
        depend on `threads` or `queue`.
        """
        return run_system(
            self,
            until=None if until is None else int(Quantity(units.TIME).read(until)),
            threads=threads,
            out=out,
            timeline=timeline,
            progress=progress,
            command=command,
            queue=queue,
        )

    def to_dot(self) -> str:
        """The graph as Graphviz text: `dot -Tsvg` draws it."""
        return to_dot(self)

    def to_toml(self) -> str:
        """The system as TOML text; in a file, `System.load` makes an equal system of it."""
        return to_toml(self)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes `to_toml` to a file; over another saved system only with `force`."""
        save(self, path, force=force)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        models: Iterable[type[Component]] = (),
        *,
        changes: Iterable[str] = (),
        seed: int | None = None,
    ) -> System:
        """The system in a file, with changes such as "stage[0].slots=8" and perhaps another seed.

        Models written in Python are found among `models`: a file never makes Manyscale import or run code.
        """
        return load(path, models, changes, seed)

    def parameters(self, component: AnyComponent) -> dict[str, Any]:
        """The parameters of a component, with units."""
        return dump(component.spec)

    def __str__(self) -> str:
        return describe(self)


@contextlib.contextmanager
def graph_errors() -> Iterator[None]:
    """What the core says against a graph, as a GraphError."""
    try:
        yield
    except (_core.SimulationError, ValueError) as error:
        raise GraphError(str(error)) from None
