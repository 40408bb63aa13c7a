# SPDX-License-Identifier: Apache-2.0
"""What a model written in Python declares in its class body: ports, timers, clocks and statistics.

Each is declared once, with its unit and documentation, and becomes a live object on every instance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from manyscale import _core, units
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.system.component import Component

Links = Literal["one", "optional", "many"]
Live = TypeVar("Live")
Method = TypeVar("Method", bound=Callable[..., Any])


def femtoseconds(value: int | str) -> int:
    """A time as a model gives it: text with a unit, or femtoseconds as they come from `now` or a Spec."""
    return int(units.parse(value, units.TIME)) if isinstance(value, str) else value


class Declaration(Generic[Live]):
    """An entry of a model's class body; `instance.name` gives its live object."""

    name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Declaration[Live]: ...
    @overload
    def __get__(self, instance: Component, owner: type) -> Live: ...
    def __get__(self, instance: Component | None, owner: type) -> Declaration[Live] | Live:
        if instance is None:
            return self
        live: Live = instance._live[self.name]
        return live


class Handled(Declaration[Live]):
    """A declaration whose events a method of the model takes."""

    handler: str | None = None

    def __call__(self, method: Method) -> Method:
        """Marks the method that takes the events: `@port`, `@clock`, `@timer`."""
        self.handler = method.__name__
        return method

    def handle(self, component: Component, *arguments: Any) -> Any:
        """Calls the marked method."""
        if self.handler is None:
            raise InputError(
                f"{component.name}.{self.name} got an event but {type(component).__name__} has no method "
                f"marked @{self.name}"
            )
        return getattr(component, self.handler)(*arguments)


class LivePort:
    """A port of an instance."""

    def __init__(self, component: Component, index: int, native: _core.Port) -> None:
        self._component = component
        self._index = index
        self.native = native

    @property
    def width(self) -> int:
        """How many links the port has."""
        return int(self.native.width)

    def send(self, message: object = None, delay: int | str = 0, lane: int = 0, priority: int = 128) -> None:
        """Sends over a link; it arrives after the link's latency and this delay.

        To a model of the core a message is a dictionary of the protocol's fields; between Python models it
        is any object. Of messages that meet at one time, those of lower priority are taken first.
        """
        self._component._send(self._index, message, femtoseconds(delay), lane, priority)

    def __repr__(self) -> str:
        return f"<port {self.native.path}: {self.native.role} of '{self.native.protocol}'>"


class Port(Handled[LivePort]):
    """A port that speaks `protocol` in `role`; it connects to ports in `other_role` (default: the same)."""

    def __init__(
        self, protocol: str, role: str = "peer", other_role: str = "", *, doc: str, links: Links = "one"
    ) -> None:
        self.protocol, self.role, self.other_role = protocol, role, other_role or role
        self.doc, self.links = doc, links

    def bind(self, component: Component, index: int) -> LivePort:
        native = component.native.add_port(
            self.name, self.protocol, self.role, self.other_role, self.links, self.doc
        )
        return LivePort(component, index, native)


class LiveTimer:
    """A timer of an instance."""

    def __init__(self, component: Component, index: int) -> None:
        self._component = component
        self._index = index

    def after(self, delay: int | str, payload: object = None) -> None:
        """Calls the marked method with the payload after the delay; may be set many times over."""
        self._component._set_timer(self._index, femtoseconds(delay), payload)


class Timer(Handled[LiveTimer]):
    """Lets a model call itself later: `@timer` marks the method, `self.timer.after("10ns", payload)` sets it."""

    def bind(self, component: Component, index: int) -> LiveTimer:
        component.native.add_timer()
        return LiveTimer(component, index)


class LiveClock:
    """A clock of an instance; it ticks only when asked to."""

    def __init__(self, component: Component, index: int, period: int) -> None:
        self._native = component.native
        self._index = index
        self.period = period

    @property
    def cycle(self) -> int:
        """The cycle whose edge was last."""
        return int(self._native.cycle(self._index))

    def wake(self) -> None:
        """Makes sure of a tick at the next edge."""
        self._native.wake(self._index)

    def wake_at(self, cycle: int) -> None:
        """Makes sure of a tick no later than that cycle."""
        self._native.wake_at(self._index, cycle)


class Clock(Handled[LiveClock]):
    """A clock that sleeps: the marked method takes the cycle and returns the next one it wants, or None.

    The frequency is text ("1.2GHz") or the name of a parameter of the Spec.
    """

    def __init__(self, frequency: str) -> None:
        self.frequency = frequency

    def bind(self, component: Component, index: int) -> LiveClock:
        if self.frequency in type(component.spec).model_fields:
            hertz = getattr(component.spec, self.frequency)
        else:
            hertz = int(units.parse(self.frequency, units.FREQUENCY))
        if hertz <= 0:
            raise InputError(f"{component.name}.{self.name}: a clock's frequency must be above 0Hz")
        period = (10**15 + hertz // 2) // hertz
        component.native.add_clock(period)
        return LiveClock(component, index, period)


class Statistic(Declaration[Live]):
    """A number that a model keeps for its user, declared with its unit and what it means."""

    make: Callable[[], Live]

    def __init__(self, unit: str, doc: str) -> None:
        if not unit or not doc:
            raise InputError("a statistic needs a unit (a plain number has the unit '1') and a description")
        self.unit, self.doc = unit, doc

    def bind(self, component: Component) -> Live:
        live = type(self).make()
        component.native.declare_statistic(self.name, self.unit, self.doc, live)
        return live


class Counter(Statistic[_core.Counter]):
    """How often something happened: `self.name.add()`."""

    make = _core.Counter


class Gauge(Statistic[_core.Gauge]):
    """A level that goes up and down: `self.name.set(value)`; keeps the last, lowest and highest."""

    make = _core.Gauge


class Histogram(Statistic[_core.Histogram]):
    """How whole values are spread: `self.name.record(value)`."""

    make = _core.Histogram


class Series(Statistic[_core.Series]):
    """How much per interval of simulated time: `self.name.add(self.now, amount)`."""

    make = _core.Series
