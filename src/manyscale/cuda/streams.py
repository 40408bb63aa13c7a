# SPDX-License-Identifier: Apache-2.0
"""The streams and events of a process, and the rules of the default stream."""

from __future__ import annotations

import itertools
from typing import Any

from .clock import MICROSECOND, HostClock
from .node import Gpu
from .status import CudaError, Status
from .timed_gpu import end_of
from .wire import NON_BLOCKING

DEFAULT = 0  # the number of the default stream of each GPU
_DISABLE_TIMING = 2  # a flag of cudaEventCreateWithFlags
_POLL = MICROSECOND  # by which a query of unfinished work advances the host clock


class CudaStream:
    """A stream: a queue of a GPU, and the last command in it."""

    def __init__(self, number: int, gpu: Gpu, queue: Any, blocking: bool) -> None:
        self.number = number
        self.gpu = gpu
        self.queue = queue
        self.blocking = blocking  # synchronises with the default stream
        self.last: Any = None
        self.unjoined = False  # has work that the default stream does not wait for yet
        self.epoch = 0  # default stream: number of its commands; others: how many of them it waits for


class CudaEvent:
    """An event, and its record in a stream."""

    def __init__(self, number: int, flags: int) -> None:
        self.number = number
        self.timed = not flags & _DISABLE_TIMING
        self.queued: Any = None
        self.gpu: Gpu | None = None


class Streams:
    """All streams and events of a process."""

    def __init__(self, clock: HostClock) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self._streams: dict[int, CudaStream] = {}
        self._destroyed: list[CudaStream] = []  # with work that has not ended
        self._defaults: dict[Gpu, CudaStream] = {}
        self._events: dict[int, CudaEvent] = {}

    # --- Streams ---

    def create(self, gpu: Gpu, flags: int, priority: int) -> CudaStream:
        number = next(self._numbers)
        stream = CudaStream(number, gpu, gpu.stream(priority), not flags & NON_BLOCKING)
        self._streams[number] = stream
        return stream

    def find(self, number: int, gpu: Gpu) -> CudaStream:
        """A stream by its number; 0 is the default stream of the GPU."""
        if number == DEFAULT:
            default = self._defaults.get(gpu)
            if default is None:
                default = self._defaults[gpu] = CudaStream(DEFAULT, gpu, gpu.stream(0), True)
            return default
        stream = self._streams.get(number)
        if stream is None:
            raise CudaError(Status.INVALID_RESOURCE_HANDLE, f"there is no stream {number}")
        return stream

    def destroy(self, number: int) -> None:
        """Destroys a stream; its work continues, and the default stream still waits for it."""
        stream = self._streams.pop(number, None)
        if stream is None:
            raise CudaError(Status.INVALID_RESOURCE_HANDLE, f"there is no stream {number}")
        self._destroyed.append(stream)

    def _others(self, gpu: Gpu) -> list[CudaStream]:
        """The streams of a GPU beside its default stream, including destroyed ones with unfinished work."""
        self._destroyed = [each for each in self._destroyed if each.last is not None and not each.last.done]
        return [each for each in (*self._streams.values(), *self._destroyed) if each.gpu is gpu]

    def enter(self, stream: CudaStream) -> None:
        """Before a command: lets the default stream wait for blocking streams, and these for it."""
        gpu = stream.gpu
        gpu.host_time = self._clock.now
        if not gpu.has_time:
            return
        default = self._defaults.get(gpu)
        if stream is default:
            for other in self._others(gpu):
                if other.unjoined:
                    other.unjoined = False
                    self._follow(stream, other)
            stream.epoch += 1
        elif stream.blocking:
            stream.unjoined = True
            if default is not None and stream.epoch != default.epoch:
                stream.epoch = default.epoch
                self._follow(stream, default)

    def _follow(self, stream: CudaStream, other: CudaStream) -> None:
        """Lets a stream wait for another of the same GPU."""
        if other.last is not None and not other.last.done:
            stream.queue.wait(other.queue.record())

    def synchronize(self, stream: CudaStream) -> None:
        """The host waits for all that is in a stream."""
        if stream.number == DEFAULT:
            self.enter(stream)
            for other in self._others(stream.gpu):
                if other.blocking:
                    self._finish(other)
        self._finish(stream)

    def _finish(self, stream: CudaStream) -> None:
        if stream.last is not None:
            self.wait_for(stream.gpu, stream.last)

    def wait_for(self, gpu: Gpu, queued: Any) -> None:
        """The host waits for something that was queued."""
        if not gpu.has_time:
            return
        gpu.finish(queued)
        self._clock.wait_until(end_of(queued))

    def synchronize_device(self, gpu: Gpu) -> None:
        """The host waits for all work of a GPU."""
        gpu.finish_all()
        self._clock.wait_until(gpu.last_end)

    def is_done(self, gpu: Gpu, queued: Any) -> bool:
        """Whether a command has ended by now; a query takes time, so that a polling program makes progress."""
        if queued is None or queued.done:
            return True
        self._clock.wait_until(self._clock.now + _POLL)
        gpu.advance(self._clock.now)
        return bool(queued.done)

    def query(self, stream: CudaStream) -> bool:
        if stream.number == DEFAULT and stream.gpu.has_time:
            others = [other for other in self._others(stream.gpu) if other.blocking]
            return all(self.is_done(stream.gpu, each.last) for each in (*others, stream))
        return self.is_done(stream.gpu, stream.last)

    # --- Events ---

    def create_event(self, flags: int) -> CudaEvent:
        number = next(self._numbers)
        event = self._events[number] = CudaEvent(number, flags)
        return event

    def event(self, number: int) -> CudaEvent:
        event = self._events.get(number)
        if event is None:
            raise CudaError(Status.INVALID_RESOURCE_HANDLE, f"there is no event {number}")
        return event

    def destroy_event(self, number: int) -> None:
        self.event(number)
        del self._events[number]

    def record(self, event: CudaEvent, stream: CudaStream) -> None:
        """Records an event: the end of all that is in the stream now."""
        self.enter(stream)
        event.gpu = stream.gpu
        event.queued = stream.last = stream.gpu.record_event(stream.queue)

    def wait_event(self, stream: CudaStream, event: CudaEvent) -> None:
        """Lets later commands of the stream wait for the event."""
        if event.queued is None or event.gpu is None or not stream.gpu.has_time:
            return
        self.enter(stream)
        if event.gpu is stream.gpu:
            if not event.queued.done:
                stream.queue.wait(event.queued)
                stream.last = stream.queue._last
            return
        # GPUs are simulated one after the other.
        event.gpu.finish(event.queued)
        stream.gpu.not_before(stream.queue, end_of(event.queued))

    def synchronize_event(self, event: CudaEvent) -> None:
        if event.queued is not None and event.gpu is not None:
            self.wait_for(event.gpu, event.queued)

    def elapsed(self, begin: CudaEvent, end: CudaEvent) -> float:
        """Milliseconds between two events."""
        for event in (begin, end):
            if event.queued is None or not event.timed:
                raise CudaError(Status.INVALID_RESOURCE_HANDLE, "the event was not recorded, or has no time")
            if not event.queued.done:
                raise CudaError(Status.NOT_READY)
        return (_when(end) - _when(begin)) / 10**12

    def forget_gpu(self, gpu: Gpu) -> None:
        """Removes the streams and events of a GPU that was reset."""
        self._defaults.pop(gpu, None)
        self._streams = {number: stream for number, stream in self._streams.items() if stream.gpu is not gpu}
        self._destroyed = [stream for stream in self._destroyed if stream.gpu is not gpu]
        self._events = {number: event for number, event in self._events.items() if event.gpu is not gpu}


def _when(event: CudaEvent) -> int:
    queued = event.queued
    return int(queued.when) if hasattr(queued, "when") else end_of(queued)
