# SPDX-License-Identifier: Apache-2.0
"""Streams of a device with time: queued kernels, copies and events, which end later in simulated time."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError

from .array import ArrayCopy, DeviceArray
from .module import Kernel, Module

if TYPE_CHECKING:
    from .device import Device
    from .timed_device import TimedDevice, TimedLaunch

_SECOND = 10**15  # femtoseconds


class ActivityKind(enum.Enum):
    """What occupied the GPU or its link."""

    KERNEL = "kernel"
    COPY = "copy"  # a copy or a fill
    MANAGED = "managed"  # a prefetch of managed memory, or an access of the host to it


@dataclass(frozen=True)
class Activity:
    """A kernel or a copy that has ended: its kind and description, its stream, begin and end in seconds."""

    kind: ActivityKind
    what: str
    stream: int
    begin: float
    end: float


class Queued:
    """A command in a stream: it begins when the one before it has ended."""

    def __init__(self, device: TimedDevice, stream: int, what: str) -> None:
        self._device = device
        self.stream = stream
        self.what = what
        self.command = 0
        self._times: tuple[int, int] | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended so far."""
        return self._times is not None

    @property
    def begin(self) -> float:
        """When it began, in simulated seconds; waits for its end."""
        return self._waited()[0] / _SECOND

    @property
    def end(self) -> float:
        """When it ended, in simulated seconds; waits for that."""
        return self._waited()[1] / _SECOND

    @property
    def seconds(self) -> float:
        """How long it took; waits for its end."""
        begin, end = self._waited()
        return (end - begin) / _SECOND

    def synchronize(self) -> None:
        """Simulates until it has ended."""
        self._device.wait_for(self)

    def complete(self, begin: int, end: int) -> None:
        """Sets its times in femtoseconds; called by the device."""
        self._times = (begin, end)

    def _waited(self) -> tuple[int, int]:
        self.synchronize()
        assert self._times is not None
        return self._times

    def __repr__(self) -> str:
        return f"<{self.what} in stream {self.stream}: {'done' if self.done else 'queued'}>"


class QueuedCopy(Queued):
    """A copy in a stream."""

    def __init__(self, device: TimedDevice, stream: int, copy: ArrayCopy) -> None:
        super().__init__(device, stream, str(copy))
        self.copy: ArrayCopy | None = copy  # keeps its arrays until it has ended
        self.traffic: _core.GpuTraffic | None = None

    @property
    def l2_bytes(self) -> int:
        """Bytes between it and the L2; waits for its end."""
        return self._moved().l2_bytes

    @property
    def dram_bytes(self) -> int:
        """Bytes between L2 and DRAM for it; waits for its end."""
        return self._moved().dram_bytes

    def _moved(self) -> _core.GpuTraffic:
        self.synchronize()
        assert self.traffic is not None
        return self.traffic


class QueuedRange(Queued):
    """A prefetch of managed memory, or an access of the host to it."""


class QueuedLaunch(Queued):
    """A kernel in a stream; `result` waits for its end."""

    def __init__(
        self,
        device: TimedDevice,
        stream: int,
        kernel: str,
        launch: int,
        order_matters: bool,
        shape: tuple[list[int], list[int]],
    ) -> None:
        super().__init__(device, stream, kernel)
        self.launch = launch
        self.order_matters = order_matters
        self.shape = shape  # grid and block
        self.isa = "ptx"  # what the kernel runs as
        self.printed = ""
        self.arguments: tuple[Any, ...] = ()  # kept until it has ended
        self.outcome: TimedLaunch | None = None

    @property
    def result(self) -> TimedLaunch:
        """The result of the launch."""
        self.synchronize()
        assert self.outcome is not None
        return self.outcome


_Any = TypeVar("_Any", bound=Queued)


class Event(Queued):
    """An event: the time at which all earlier commands of the stream have ended."""

    @property
    def time(self) -> float:
        """The time in simulated seconds; waits for it."""
        return self.end

    def elapsed(self, other: Event) -> float:
        """Seconds from this event to another."""
        return (other._waited()[1] - self._waited()[1]) / _SECOND

    def wait(self, stream: Stream) -> None:
        """Lets later commands of a stream begin after this event."""
        stream.wait(self)


class Stream:
    """A stream of a device: its commands run in order; those of different streams may overlap.

    Made by `device.stream(priority=…)`; as in CUDA, lower numbers are more urgent.
    """

    def __init__(self, device: TimedDevice, number: int, priority: int) -> None:
        self.device = device
        self.number = number
        self.priority = priority
        self._last: Queued | None = None

    # The interface of a device that a launch uses: on a stream, it queues the kernel.

    echo = False  # output is shown at the end of the kernel

    @property
    def native(self) -> _core.GpuDevice:
        return self.device.native

    def run_kernel(self, kernel: str, native: _core.GpuKernel, *shape: Any) -> QueuedLaunch:
        """Queues one launch; use `kernel[grid, block, shared, stream](…)`."""
        return self.queued(self.device.enqueue_kernel(self, kernel, native, *shape))

    def record(self) -> Event:
        """Records an event: the end of all commands that are in the stream now."""
        return self.queued(self.device.enqueue_record(self))

    def wait(self, event: Event) -> None:
        """Lets later commands begin after the event, which may be of another stream."""
        if not isinstance(event, Event) or event._device is not self.device:
            raise InputError("a stream waits for an event of its own device, made by stream.record()")
        self.queued(self.device.enqueue_wait(self, event))

    def synchronize(self) -> None:
        """Simulates until all commands of the stream have ended."""
        if self._last is not None:
            self._last.synchronize()

    def queued(self, last: _Any) -> _Any:
        """Remembers the last command."""
        self._last = last
        return last

    def __repr__(self) -> str:
        return f"<Stream {self.number} of priority {self.priority}>"


class StreamKernel(Kernel):
    """A kernel on a device with time: `kernel[grid, block, shared, stream](…)` is queued and returns at once."""

    def __getitem__(self, configuration: Any) -> Any:
        if not isinstance(configuration, tuple) or len(configuration) != 4:
            return super().__getitem__(configuration)
        *without, stream = configuration
        if stream is None:
            return super().__getitem__(tuple(without))
        if not isinstance(stream, Stream) or stream.device is not self._device:
            raise InputError(
                f"{self.name}: the fourth index is a stream of the same device, made by device.stream(), not {stream!r}"
            )
        on_stream = Kernel(cast("Device", stream), self._native, self.name, self.module)
        return _OnStream(on_stream[tuple(without)])


@dataclass(frozen=True)
class _OnStream:
    """A kernel with its grid, block and stream, to be called with the arguments."""

    configured: Any

    def __call__(self, *arguments: Any) -> QueuedLaunch:
        queued: QueuedLaunch = self.configured(*arguments)
        queued.arguments = arguments
        return queued


class StreamModule(Module):
    """A module on a device with time."""

    def __getitem__(self, name: str) -> StreamKernel:
        kernel = super().__getitem__(name)
        return StreamKernel(self._device, kernel._native, name, self)

    def variable(
        self, name: str, dtype: npt.DTypeLike = "uint8", shape: int | Sequence[int] | None = None
    ) -> DeviceArray:
        """A variable of the module as an array; all of it if no shape is given."""
        array = super().variable(name, dtype, shape)
        array.device = self._device
        return array
