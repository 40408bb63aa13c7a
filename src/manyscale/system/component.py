# SPDX-License-Identifier: Apache-2.0
"""Components: models of the core, and models written in Python by subclassing `Component`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from manyscale import _core
from manyscale import spec as specs
from manyscale.errors import InputError, nearest
from manyscale.system.declarations import Clock, Port, Statistic, Timer, femtoseconds

if TYPE_CHECKING:
    from manyscale.system.system import Mail

_NAME = re.compile(r"[A-Za-z_]\w*(\[\d+\])*(\.[A-Za-z_]\w*(\[\d+\])*)*")


def check_name(name: str) -> str:
    """A component's name as a path such as "gpu.sm[3]", or an error that shows the form."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"'{name}' is no name for a component: use words of letters, digits and _, joined by dots, "
            "each with indices if there are several, such as 'gpu.sm[3]'"
        )
    return name


@dataclass
class Hints:
    """What the partitioner was told about a component."""

    group: str = ""
    weight: float = 1.0


class PortRef:
    """A port of a model of the core."""

    def __init__(self, native: _core.Port) -> None:
        self.native = native

    def __repr__(self) -> str:
        return f"<port {self.native.path}: {self.native.role} of '{self.native.protocol}'>"


class NativeComponent:
    """A model of the core within a system; its ports are attributes."""

    def __init__(self, model: str, name: str, spec: specs.Spec, native: _core.Component) -> None:
        self.model, self.name, self.spec, self.native = model, name, spec, native
        self.ports = {port.name: PortRef(port) for port in native.ports}

    def __getattr__(self, name: str) -> PortRef:
        ports: dict[str, PortRef] = self.__dict__.get("ports", {})
        if name in ports:
            return ports[name]
        raise AttributeError(f"{self.model} has no port '{name}'; {nearest(name, ports)}")

    def __repr__(self) -> str:
        return f"<{self.name}: {self.spec!r}>"


class Component:
    """A model written in Python: slow but complete, to try an idea before it is written in C++.

    Declare a nested `Spec`, and ports, timers, clocks and statistics in the class body; then write methods.
    `System.add` makes the instances.
    """

    class Spec(specs.Spec):
        """No parameters, unless a model declares its own."""

    _ports: ClassVar[list[Port]] = []
    _timers: ClassVar[list[Timer]] = []
    _clocks: ClassVar[list[Clock]] = []
    _statistics: ClassVar[list[Statistic[Any]]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            declared.update(vars(base))
        cls._ports = [entry for entry in declared.values() if isinstance(entry, Port)]
        cls._timers = [entry for entry in declared.values() if isinstance(entry, Timer)]
        cls._clocks = [entry for entry in declared.values() if isinstance(entry, Clock)]
        cls._statistics = [entry for entry in declared.values() if isinstance(entry, Statistic)]

    spec: Any  # the model's own Spec

    def __init__(self, name: str, spec: specs.Spec, native: _core.PythonComponent, mail: Mail) -> None:
        self.name, self.spec, self.native = name, spec, native
        self._mail = mail
        self._live: dict[str, Any] = {}
        self.ports = {port.name: port.bind(self, index) for index, port in enumerate(self._ports)}
        self._live.update(self.ports)
        for index, timer in enumerate(self._timers):
            self._live[timer.name] = timer.bind(self, index)
        for index, clock in enumerate(self._clocks):
            self._live[clock.name] = clock.bind(self, index)
        for statistic in self._statistics:
            self._live[statistic.name] = statistic.bind(self)

    # What a model may override.

    def start(self) -> None:
        """Called once before the first event, at time zero; first messages are sent here."""

    def settle(self) -> None:
        """Brings statistics up to the present; called before they are read."""

    def waits(self) -> list[tuple[str, str]]:
        """What the model still waits for and which component would have to act, as (what, who) pairs.

        Asked when no event is left: an answer means deadlock.
        """
        return []

    # What a model may use.

    @property
    def now(self) -> int:
        """The simulated time in femtoseconds."""
        return int(self.native.now)

    @property
    def random(self) -> _core.Random:
        """Random numbers that depend on the seed and on this component's name alone."""
        return self.native.random

    def stop(self) -> None:
        """Ends the run: now where the system is a single cluster, else at the end of the current window."""
        self.native.stop()

    def span(self, name: str, begin: int | str, end: int | str, track: int = 0) -> None:
        """Shows on the timeline that something lasted; costs nothing to speak of when there is none."""
        self.native.emit_span(name, femtoseconds(begin), femtoseconds(end), track)

    def level(self, name: str, value: float) -> None:
        """Shows a level from now on as a counter on the timeline."""
        self.native.emit_counter(name, self.now, value)

    def __repr__(self) -> str:
        return f"<{self.name}: {type(self).__name__} {self.spec!r}>"

    # What the native half calls, by these names.

    def _start(self) -> None:
        self.start()

    def _settle(self) -> None:
        self.settle()

    def _waits(self) -> list[tuple[str, str]]:
        return self.waits()

    def _send(self, port: int, message: object, delay: int, lane: int, priority: int) -> None:
        if self.native.speaks_core(port, lane):
            if not isinstance(message, dict):
                raise InputError(
                    f"{self._ports[port].name} of {self.name} speaks a protocol of the core: "
                    f"send a dictionary of its fields, not {message!r}"
                )
            self.native.send(port, message, delay, lane, priority)
        else:
            self.native.send(port, self._mail.post(message), delay, lane, priority)

    def _set_timer(self, timer: int, delay: int, payload: object) -> None:
        self.native.set_timer(timer, delay, self._mail.post(payload))

    def _receive_values(self, port: int, lane: int, message: object) -> None:
        self._ports[port].handle(self, message, lane)

    def _receive_object(self, port: int, lane: int, number: int) -> None:
        self._receive_values(port, lane, self._mail.take(number))

    def _expire(self, timer: int, number: int) -> None:
        self._timers[timer].handle(self, self._mail.take(number))

    def _tick(self, clock: int, cycle: int) -> int | None:
        wanted: int | None = self._clocks[clock].handle(self, cycle)
        if wanted is not None and wanted <= cycle:
            raise InputError(
                f"{self.name}: a tick at cycle {cycle} wants its next at {wanted}, which is not later"
            )
        return wanted
