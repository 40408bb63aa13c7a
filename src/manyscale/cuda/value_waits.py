# SPDX-License-Identifier: Apache-2.0
"""Streams that wait for a value in memory (cuStreamWaitValue32): commands behind the wait are held until it is there.

The value comes from a command of another stream, from another process, or from the host, which no call announces. So
held commands are looked at with each call of the program; a call that waits for them is repeated by the client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .status import CudaError, Status
from .streams import DEFAULT, CudaEvent, CudaStream
from .timed_gpu import TimedGpu
from .wire import ASYNC, LARGEST_INLINE, Call, CopySide

if TYPE_CHECKING:
    from .node import Gpu
    from .session import Request, Session

POLLING = 0  # instead of a host function: the client repeats its request after a while
_HELD = frozenset(
    (Call.LAUNCH, Call.SET, Call.COPY, Call.EVENT_RECORD, Call.STREAM_WAIT_EVENT, Call.PREFETCH)
)
_OF_A_STREAM = frozenset(
    (Call.STREAM_SYNCHRONIZE, Call.STREAM_QUERY, Call.HOST_FUNCTION, Call.STREAM_DESTROY)
)
_OF_AN_EVENT = frozenset((Call.EVENT_SYNCHRONIZE, Call.EVENT_QUERY, Call.EVENT_ELAPSED))
_OF_ALL = frozenset((Call.DEVICE_SYNCHRONIZE, Call.FREE, Call.MEMORY_UNMAP))
_STREAM_FIELD = {
    Call.LAUNCH: 1,
    Call.EVENT_RECORD: 1,
}  # where the fields of a call have the stream, if not first
_COMPARISONS: dict[int, Callable[[int, int, int], bool]] = {
    0: lambda now, value, bits: ((now - value) >> (bits - 1)) & 1 == 0,  # not less, cyclically
    1: lambda now, value, bits: now == value,
    2: lambda now, value, bits: now & value != 0,
    3: lambda now, value, bits: ~(now | value) & ((1 << bits) - 1) != 0,
}


@dataclass(eq=False)
class Held:
    """A command behind a wait; it is carried out when the condition holds."""

    condition: Callable[[], bool]
    carry_out: Callable[[], Any]
    done: bool = False


class ValueWaits:
    """The streams of a process that wait for values."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.held: dict[CudaStream, deque[Held]] = {}
        self._records: dict[CudaEvent, Held] = {}  # records of events that are held
        self._opening = False

    def wait_for(self, stream: CudaStream, address: int, value: int, bits: int, comparison: int) -> None:
        """Holds what comes later in a stream until memory has a value."""
        compare = _COMPARISONS.get(comparison)
        gpu = stream.gpu
        if compare is None or address % (bits // 8) or not gpu.native.holds(address, bits // 8):
            raise CudaError(Status.INVALID_VALUE, f"a stream cannot wait for a value at {address:#x}")
        memory = np.zeros(1, np.uint64 if bits == 64 else np.uint32)
        first = self._before(stream)

        def condition() -> bool:
            if not all(each.done for each in first):
                return False
            if stream.last is not None:  # what comes before in the stream
                gpu.finish(stream.last)
            return gpu.native.read(address, memory) and compare(int(memory[0]), value, bits)

        self._session.streams.enter(stream)
        self._hold(stream, Held(condition, lambda: self._continue(stream)))
        self.carry_out()

    def _continue(self, stream: CudaStream) -> None:
        """The value is there: by now on the host, or since the last command that has ended."""
        stream.gpu.not_before(stream.queue, max(self._session.clock.now, stream.gpu.last_end))

    def _hold(self, stream: CudaStream, held: Held) -> None:
        self.held.setdefault(stream, deque()).append(held)

    def _before(self, stream: CudaStream) -> list[Held]:
        """What is held in other streams and comes first, by the rules of the default stream."""
        if not stream.blocking:
            return []
        return [
            queue[-1]
            for other, queue in self.held.items()
            if other.gpu is stream.gpu
            and other is not stream
            and other.blocking
            and (stream.number == DEFAULT or other.number == DEFAULT)
        ]

    # --- Calls of the program, while something is held ---

    def admits(self, call: Call, request: Request, fields: tuple[Any, ...]) -> bool:
        """Whether a call can be answered now; one that need not be waited for is held, and False.

        One that has to wait raises NOT_READY, of which the caller makes a repetition, or a query its answer.
        """
        self.carry_out()
        if not self.held:
            return True
        session = self._session
        if call in _HELD:
            stream = session.streams.find(fields[_STREAM_FIELD.get(call, 0)], request.gpu)
            first = self._before(stream)
            if call == Call.STREAM_WAIT_EVENT and (record := self._record_of(fields[1])) is not None:
                first.append(record)
            if not first and stream not in self.held:
                return True
            if call == Call.COPY and _is_waited_for(fields):
                return self._wait_until_done(lambda: stream not in self.held and not self._before(stream))
            self._keep(stream, call, request, fields, first)
            return False
        if call in _OF_A_STREAM:
            stream = session.streams.find(fields[0], request.gpu)
            return self._wait_until_done(
                lambda: stream not in self.held and not self._before(stream), drive=call != Call.STREAM_QUERY
            )
        if call in _OF_AN_EVENT:
            return self._wait_until_done(
                lambda: all(self._record_of(event) is None for event in fields),
                drive=call != Call.EVENT_QUERY,
            )
        if call in _OF_ALL and not (call == Call.FREE and fields[1]):
            return self._wait_until_done(lambda: not self.held)
        return True

    def _record_of(self, event: int) -> Held | None:
        return self._records.get(self._session.streams.event(event))

    def _keep(
        self, stream: CudaStream, call: Call, request: Request, fields: tuple[Any, ...], first: list[Held]
    ) -> None:
        from .session import HANDLERS

        if request.staging is not None and request.staged:
            request.staging = bytes(request.staging[: request.staged])
        held = Held(lambda: all(each.done for each in first), lambda: HANDLERS[call](request, *fields))
        if call == Call.EVENT_RECORD:
            self._records[self._session.streams.event(fields[0])] = held
        self._hold(stream, held)

    def _wait_until_done(self, done: Callable[[], bool], *, drive: bool = True) -> bool:
        """True when it is; commands of other streams that are queued come first, one by one."""
        while drive and not done() and self._advance():
            self.carry_out()
        if not done():
            raise CudaError(Status.NOT_READY)
        return True

    def _advance(self) -> bool:
        """Simulates until one more command has ended; False if none is left."""
        for gpu in self._session.node.gpus:
            if isinstance(gpu, TimedGpu) and gpu.busy and gpu.fault is None:
                gpu.finish(next(iter(gpu.queue.unfinished.values())))
                return True
        return False

    def carry_out(self) -> None:
        """Carries out what was held for a condition that holds now."""
        if self._opening:
            return
        self._opening = True
        try:
            progress = True
            while progress:
                progress = False
                for stream in list(self.held):
                    progress |= self._carry_out_of(stream)
        finally:
            self._opening = False

    def _carry_out_of(self, stream: CudaStream) -> bool:
        queue, progress = self.held[stream], False
        while queue and queue[0].condition():
            held = queue.popleft()
            held.done = progress = True
            self._records = {event: each for event, each in self._records.items() if each is not held}
            try:
                held.carry_out()
            except CudaError as failure:  # the call has returned long ago
                self._session.notify_once(f"a command behind a wait for a value fails: {failure.message}")
        if not queue:
            del self.held[stream]
        return progress

    def forget(self, gpu: Gpu | None = None) -> None:
        """Drops what is held on a GPU that is reset, or all at the end of the process."""
        gone = [stream for stream in self.held if gpu is None or stream.gpu is gpu]
        if gone:
            self._session.notify_once("commands behind a wait for a value that did not come are dropped")
        for stream in gone:
            del self.held[stream]


def _is_waited_for(fields: tuple[Any, ...]) -> bool:
    """Whether the host waits for the end of a copy: data for pageable memory, and most that are not asynchronous."""
    _, flags, source, target, *_, width, height, depth = fields
    if source == CopySide.STAGED and width * max(height, 1) * max(depth, 1) <= LARGEST_INLINE:
        return False
    return bool(target == CopySide.STAGED or not flags & ASYNC)
