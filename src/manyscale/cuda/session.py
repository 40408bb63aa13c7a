# SPDX-License-Identifier: Apache-2.0
"""A session: one process of the program with its clock, modules and streams, and the dispatch of its calls."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from manyscale.errors import DeadlockError, KernelError, ManyscaleError

from .clock import HostClock
from .modules import CudaModule, LoadedKernel
from .node import Gpu, Node
from .records import CallLog, Records
from .status import CudaError, Status, status_of_fault
from .streams import Streams
from .value_waits import POLLING, ValueWaits
from .wire import AGAIN, LAYOUTS, STICKY, Call

if TYPE_CHECKING:
    from .ranges import Range


@dataclass(frozen=True)
class SessionOptions:
    """How the host of a program is simulated. Times in femtoseconds, rates in bytes per second."""

    call_time: int
    measured_host: bool
    pageable_bandwidth: int


class AgainError(Exception):
    """The client has to call a host function, and then repeat the request."""

    def __init__(self, function: int) -> None:
        super().__init__()
        self.function = function


@dataclass(slots=True)
class Request:
    """A call of a thread of the program."""

    session: Session
    gpu: Gpu
    tail: bytes
    staging: Any  # memory that the client shares, or None
    staged: int  # bytes in it that belong to the request

    def staged_bytes(self, size: int) -> bytes:
        """The request's data in the staging memory."""
        return bytes(self.staged_view(size))

    def staged_view(self, size: int) -> memoryview:
        """The same without a copy: for those who are done with it when they answer."""
        if self.staging is None or size > self.staged or self.staged > len(self.staging):
            raise CudaError(
                Status.INVALID_VALUE, f"the request has {self.staged} bytes of data instead of {size}"
            )
        return memoryview(self.staging)[:size]

    def stage(self, data: bytes | memoryview) -> None:
        """Writes data for the client into the staging memory."""
        if self.staging is None or len(data) > len(self.staging):
            raise CudaError(Status.INVALID_VALUE, f"the staging memory has no room for {len(data)} bytes")
        self.staging[: len(data)] = data


Handler = Callable[..., bytes]
HANDLERS: dict[Call, Handler] = {}
_REQUESTS = {call: layout.request() for call, layout in LAYOUTS.items()}
_HAS_TAIL = {call: bool(layout.tail) for call, layout in LAYOUTS.items()}


def answers(call: Call) -> Callable[[Handler], Handler]:
    """Registers the handler of a call: a function of the request and the call's fields."""

    def note(handler: Handler) -> Handler:
        HANDLERS[call] = handler
        return handler

    return note


@dataclass
class Function:
    """A kernel of the program by the number that the client gave it."""

    module: CudaModule
    name: str
    on: dict[Gpu, LoadedKernel] = field(default_factory=dict)

    def kernel(self, gpu: Gpu) -> LoadedKernel:
        kernel = self.on.get(gpu)
        if kernel is None:
            kernel = self.on[gpu] = self.module.kernel(gpu, self.name)
        return kernel


class Session:
    """One process of the program."""

    def __init__(
        self,
        process: int,
        node: Node,
        options: SessionOptions,
        records: Records,
        notify: Callable[[str], None],
    ):
        self.process = process  # numbered in the order of connection, as threads are
        self.threads = 0
        self.node = node
        self.options = options
        self.records = records
        self.notify = notify  # shows the user a message
        self.clock = HostClock(options.call_time, options.measured_host)
        self.streams = Streams(self.clock)
        self.value_waits = ValueWaits(self)
        self.modules: dict[int, CudaModule] = {}
        self.functions: dict[int, Function] = {}
        self.refused: dict[int, str] = {}  # functions that cannot be executed, with the reason
        self.printed = bytearray()  # by kernels, on its way to the program
        self.called: set[int] = set()  # functions of the host that the client has called
        self.peers: set[tuple[int, int]] = set()
        self.freed_later: list[tuple[Gpu, Any, int]] = []
        self.textures_destroyed: dict[tuple[Gpu, int], None] = {}  # whose handles kernels may still read
        self.failures: dict[int, Status] = {}  # sticky errors, by device
        self.ranges: dict[int, Range] = {}  # NVTX ranges that threads are in
        self.known_ranges: dict[int, Range] = {}  # by the number that the process gave them
        self.thread = 0  # whose call is answered
        self._said: set[str] = set()

    def answer(
        self,
        call: Call,
        device: int,
        nanoseconds: int,
        payload: bytes,
        staging: Any,
        staged: int,
        thread: int,
        timed: bool = True,
    ) -> tuple[int, bytes, int]:
        """The status of a call, its answer, and flags; an untimed call does not advance the host clock."""
        clock, self.thread = self.clock, thread
        begin = clock.called(nanoseconds, timed and call not in _OF_THE_LIBRARY)
        status, answer, flags = int(Status.SUCCESS), b"", 0
        gpu = self.node.gpus[device] if device < len(self.node.gpus) else self.node.gpus[0]
        try:
            if call not in _AFTER_FAILURE and (device in self.failures or gpu.fault is not None):
                return self._earlier_failure(gpu, device), b"", STICKY
            fields = _REQUESTS[call]
            if len(payload) < fields.size or (len(payload) > fields.size and not _HAS_TAIL[call]):
                raise CudaError(
                    Status.INVALID_VALUE,
                    f"a request of {call.name} has {len(payload)} bytes instead of {fields.size}",
                )
            request = Request(self, gpu, payload[fields.size :], staging, staged)
            values = fields.unpack_from(payload)
            if not self.value_waits.held or self._admits(call, request, values):
                answer = HANDLERS[call](request, *values)
        except AgainError as again:
            status, answer = AGAIN, struct.pack("<Q", again.function)
            if again.function == POLLING:  # how often depends on the speed of this machine
                clock.now = begin
                return status, answer, flags
        except CudaError as failure:
            status = int(failure.status)
            if failure.message:
                self.notify_once(failure.message)
        except (KernelError, DeadlockError) as error:
            status, flags = int(self._failed(gpu, error)), STICKY
        except (
            ManyscaleError,
            OverflowError,
            TypeError,
            ValueError,
        ) as error:  # values that the core refuses
            status = int(Status.INVALID_VALUE)
            self.notify_once(f"{call.name.lower().replace('_', ' ')}: {error}")
        except MemoryError:
            status = int(Status.MEMORY_ALLOCATION)
        self.records.calls.add(CallLog(self.process, thread, call, device, begin, clock.now, status))
        return status, answer, flags

    def _admits(self, call: Call, request: Request, values: tuple[Any, ...]) -> bool:
        """Whether a call can be answered while streams wait for values; one that has to wait is repeated."""
        try:
            return self.value_waits.admits(call, request, values)
        except CudaError as error:
            if error.status != Status.NOT_READY or call in (Call.STREAM_QUERY, Call.EVENT_QUERY):
                raise
            raise AgainError(POLLING) from None

    def notify_once(self, message: str) -> None:
        """Shows the user a message, once."""
        if message not in self._said:
            self._said.add(message)
            self.notify(message)
            self.records.notes.append(message)

    def found(self, gpu: Gpu) -> None:
        """Shows what checks have found in a launch."""
        for text in gpu.findings:
            what = text.split("\n  kernel ")[0]  # without the threads that met it
            if what not in self._said:
                self._said.add(what)
                self.records.findings.append(text)
                self.notify(text)
        gpu.findings.clear()

    def _earlier_failure(self, gpu: Gpu, device: int) -> int:
        """The sticky error of a device, after a kernel has failed."""
        if device not in self.failures:
            assert gpu.fault is not None
            return int(self._failed(gpu, gpu.fault))
        return int(self.failures[device])

    def _failed(self, gpu: Gpu, error: KernelError | DeadlockError) -> Status:
        """Records a fault: the GPU cannot be used until it is reset."""
        failed = next(
            (each for each in self.node.gpus if each.fault is not None and each.number not in self.failures),
            gpu,
        )
        status = status_of_fault(error)
        self.failures[failed.number] = status
        self.notify_once(str(error) + (_HARDWARE_MAY_PASS if "bytes past the end of" in str(error) else ""))
        return status

    def take_printed(self) -> bytes:
        """What kernels have printed since the last call."""
        if not self.printed:
            return b""
        text = bytes(self.printed)
        self.printed.clear()
        return text

    def function(self, number: int) -> Function:
        function = self.functions.get(number)
        if function is None:
            raise CudaError(Status.INVALID_DEVICE_FUNCTION, f"there is no function {number}")
        return function

    def free_what_is_due(self) -> None:
        """Frees memory whose stream-ordered free has been reached, and texture handles that no queued kernel can
        read."""
        for gpu, texture in [key for key in self.textures_destroyed if not key[0].busy]:
            del self.textures_destroyed[(gpu, texture)]
            gpu.native.remove_texture(texture)
        if not self.freed_later:
            return
        waiting = []
        for gpu, queued, address in self.freed_later:
            if queued is None or queued.done:
                self.node.heap.free(self.node.heap.at(address))
            else:
                waiting.append((gpu, queued, address))
        self.freed_later = waiting

    def end(self) -> None:
        """Ends the session: simulates queued work, and frees its memory."""
        self.value_waits.forget()
        for gpu in self.node.gpus:
            if gpu.number not in self.failures and gpu.fault is None:
                try:
                    self.streams.synchronize_device(gpu)
                except (KernelError, DeadlockError) as error:
                    self._failed(gpu, error)
        for allocation in self.node.heap.of_process(self.process):
            if allocation.gpu.fault is None:
                self.node.heap.free(allocation)
        if all(gpu.fault is None for gpu in self.node.gpus):
            self.node.virtual.end(self.process)


_HARDWARE_MAY_PASS = (
    "\n  hardware notices that only at the end of a page; with --bounds pages, so does the simulated GPU"
)
# Calls of the library itself, beside those of the program: they take no host time.
_OF_THE_LIBRARY = frozenset(
    (
        Call.FUNCTION,
        Call.KERNELS,
        Call.SYMBOL,
        Call.LOAD_MODULE,
        Call.UNLOAD_MODULE,
        Call.NOTE,
        Call.RANGES,
        Call.HOST_FUNCTION_DONE,
    )
)
_AFTER_FAILURE = frozenset(
    (
        Call.HELLO,
        Call.STAGING,
        Call.DEVICE_DESCRIPTION,
        Call.DEVICE_RESET,
        Call.GOODBYE,
        Call.NOTE,
        Call.RANGES,
        Call.UNLOAD_MODULE,
    )
)
