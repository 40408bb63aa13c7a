# SPDX-License-Identifier: Apache-2.0
"""Handlers of calls on memory: allocations, copies, fills, and managed memory."""

from __future__ import annotations

import struct
from typing import Any

from manyscale.errors import InputError

from .clock import SECOND
from .commands import CopyJob, CopyKind, CopyRecord, Rows
from .memory import PAGE, Allocation
from .node import Gpu
from .session import Request, answers
from .status import CudaError, Status
from .streams import CudaStream
from .wire import ASYNC, LARGEST_INLINE, Call, CopySide, MemoryKind

_STAGED_AT_ONCE = 64 * 1024
"""Bytes of pageable memory that go through the driver's pinned buffer together. A copy to the device of no more has
been taken over when the call returns (CUDA runtime API, "API synchronization behavior")."""

_HOST_BLOCK = 64 * 1024  # bytes of managed memory that migrate back with a page that the host accesses
_PATTERN = 4096  # bytes of a repeated value
_ADVICE = {
    1: "read_mostly",
    3: "preferred_location",
    5: "accessed_by",
}  # cudaMemoryAdvise; one more takes it back
_TWO_NUMBERS = struct.Struct("<QQ")


@answers(Call.MALLOC)
def allocate(request: Request, kind: int, flags: int, size: int, alignment: int) -> bytes:
    session = request.session
    try:
        memory = MemoryKind(kind)
    except ValueError:
        raise CudaError(Status.INVALID_VALUE, f"{kind} is no kind of memory") from None
    session.free_what_is_due()
    made = session.node.heap.allocate(request.gpu, memory, size, alignment, session.process)
    return _TWO_NUMBERS.pack(made.address, made.bytes)


@answers(Call.FREE)
def free(request: Request, address: int, stream_number: int) -> bytes:
    """Frees memory: after all work of the GPU, or in stream order."""
    session = request.session
    allocation = session.node.heap.at(address)
    if stream_number == 0:
        if allocation.gpu.fault is None:
            for gpu in session.node.gpus if allocation.kind != MemoryKind.DEVICE else (allocation.gpu,):
                session.streams.synchronize_device(gpu)
        session.free_what_is_due()
        session.node.heap.free(allocation)
        return b""
    stream = session.streams.find(stream_number - 1, request.gpu)
    session.freed_later.append((stream.gpu, stream.last, address))
    session.free_what_is_due()
    return b""


@answers(Call.MEMORY_INFO)
def memory_info(request: Request) -> bytes:
    total = request.gpu.description.memory
    request.session.free_what_is_due()
    return _TWO_NUMBERS.pack(total - request.session.node.heap.used(request.gpu), total)


# --- Copies ---


@answers(Call.COPY)
def copy(
    request: Request,
    stream_number: int,
    flags: int,
    source_kind: int,
    target_kind: int,
    source: int,
    source_pitch: int,
    source_slice: int,
    target: int,
    target_pitch: int,
    target_slice: int,
    width: int,
    height: int,
    depth: int,
) -> bytes:
    """Queues a copy, and waits for it where CUDA does."""
    session = request.session
    stream = session.streams.find(stream_number, request.gpu)
    height, depth = max(height, 1), max(depth, 1)
    if width == 0:
        return b""
    from_host, to_host = (kind in (CopySide.STAGED, CopySide.PINNED) for kind in (source_kind, target_kind))
    if to_host and not from_host:
        rows = Rows(width, height, depth, source_pitch, source_slice, target_pitch, target_slice)
        job = CopyJob("to_host", source, rows, 0 if target_kind == CopySide.STAGED else target)
    else:
        rows = Rows(width, height, depth, target_pitch, target_slice, source_pitch, source_slice)
        staged = source_kind == CopySide.STAGED
        data = _from_host(request, rows.bytes) if staged else b""
        kind: CopyKind = "to_device" if from_host else "within"
        job = CopyJob(kind, target, rows, 0 if staged else source, data)
    _check(request, job)
    if job.kind == "within":
        job = _between_gpus(request, stream, job)
    _give(request, stream, job, bool(flags & ASYNC))
    return b""


def _from_host(request: Request, size: int) -> bytes | memoryview:
    """Data of a copy from pageable memory: small data follows the request."""
    if size > LARGEST_INLINE or not request.tail:
        return request.staged_bytes(size) if request.gpu.has_time else request.staged_view(size)
    if len(request.tail) != size:
        raise CudaError(Status.INVALID_VALUE, f"a copy of {size} bytes came with {len(request.tail)}")
    return request.tail


def _check(request: Request, job: CopyJob) -> None:
    """Checks that both sides of a copy lie in allocated memory."""
    native = request.gpu.native
    for address, extent in ((job.address, job.rows.extent()), (job.other, job.rows.other_extent())):
        if address and not native.holds(address, extent):
            raise CudaError(
                Status.INVALID_VALUE,
                f"a copy of {extent} bytes at {address:#x} is outside of the device's memory",
            )


def _between_gpus(request: Request, stream: CudaStream, job: CopyJob) -> CopyJob:
    """A copy within the device, or, if its two sides are on different GPUs, over the link of the stream's GPU."""
    heap = request.session.node.heap
    target, source = heap.around(job.address), heap.around(job.other)
    owners = [found.gpu if found is not None else stream.gpu for found in (target, source)]
    if owners[0] is owners[1] or MemoryKind.MANAGED in (_kind(target), _kind(source)):
        return job
    for owner in owners:
        if owner is not stream.gpu and owner.busy:
            owner.finish_all()
            stream.gpu.not_before(stream.queue, owner.last_end)
    if owners[1] is stream.gpu:  # it sends
        rows = job.rows
        turned = Rows(*rows[:3], rows.other_pitch, rows.other_slice_pitch, rows.pitch, rows.slice_pitch)
        return CopyJob("to_host", job.other, turned, job.address)
    return CopyJob("to_device", job.address, job.rows, job.other)


def _kind(allocation: Allocation | None) -> MemoryKind:
    return MemoryKind.DEVICE if allocation is None else allocation.kind


def _give(request: Request, stream: CudaStream, job: CopyJob, asynchronous: bool) -> None:
    """Queues a copy; the host waits for pageable memory to be staged, and for the end of most copies."""
    session, gpu, size = request.session, stream.gpu, job.rows.bytes
    pageable = job.kind in ("to_host", "to_device") and job.other == 0
    record = CopyRecord(job.kind, gpu.number, stream.number, size, pageable)
    record.range = request.session.ranges.get(request.session.thread)
    clock, streams = session.clock, session.streams
    begin = clock.now
    rate = session.options.pageable_bandwidth if pageable and gpu.has_time else 0
    staging_time = size * SECOND // rate if rate else 0
    streams.enter(stream)
    if job.kind == "to_device" and rate:  # the first part must be staged before the GPU can fetch it
        gpu.host_time = begin + min(size, _STAGED_AT_ONCE) * SECOND // rate
    queued = stream.last = gpu.enqueue_copy(stream.queue, job, record)
    if job.kind == "to_device":
        clock.wait_until(begin + staging_time)
        if rate:
            gpu.not_before(stream.queue, begin + staging_time)
        taken_over = asynchronous or (pageable and size <= _STAGED_AT_ONCE)
        if not taken_over:
            streams.wait_for(gpu, queued)
    elif job.kind == "to_host":
        if pageable or not asynchronous:
            streams.wait_for(gpu, queued)
            clock.wait_until(record.begin + staging_time)
        if pageable:
            request.stage(queued.data)


@answers(Call.SET)
def fill(
    request: Request,
    stream_number: int,
    flags: int,
    address: int,
    pitch: int,
    slice_pitch: int,
    width: int,
    height: int,
    depth: int,
    value: int,
    element: int,
) -> bytes:
    """Queues a fill."""
    session = request.session
    stream = session.streams.find(stream_number, request.gpu)
    if element not in (1, 2, 4, 8):
        raise CudaError(Status.INVALID_VALUE, f"memory is filled with 1, 2, 4 or 8 bytes, not {element}")
    if width == 0:
        return b""
    pattern = (value & ((1 << 8 * element) - 1)).to_bytes(element, "little") * (_PATTERN // element)
    rows = Rows(width * element, max(height, 1), max(depth, 1), pitch, slice_pitch, 0, 0)
    job = CopyJob("fill", address, rows, 0, pattern)
    _check(request, job)
    _give(request, stream, job, bool(flags & ASYNC))
    return b""


# --- Managed memory ---


def _managed(request: Request, address: int, size: int) -> Allocation:
    found = request.session.node.heap.around(address)
    if found is None or found.kind != MemoryKind.MANAGED or address + size > found.address + found.bytes:
        raise CudaError(Status.INVALID_VALUE, f"the {size} bytes at {address:#x} are not managed memory")
    return found


@answers(Call.PREFETCH)
def prefetch(request: Request, stream_number: int, device: int, address: int, size: int) -> bytes:
    """Queues a prefetch of managed memory."""
    gpu = _managed(request, address, size).gpu
    if not gpu.has_time or size == 0:
        return b""
    streams = request.session.streams
    stream = streams.find(stream_number, gpu)
    if stream.gpu is not gpu:
        stream = streams.find(0, gpu)
    streams.enter(stream)
    to: Any = "host" if device < 0 else "device"
    try:
        stream.last = gpu.prefetch_range(address, size, to, stream.queue)
    except InputError as error:
        raise CudaError(Status.INVALID_VALUE, str(error)) from None
    return b""


@answers(Call.ADVISE)
def advise(request: Request, advice: int, device: int, address: int, size: int) -> bytes:
    """Advises the UVM driver on managed memory."""
    gpu = _managed(request, address, size).gpu
    on = advice in _ADVICE
    name: Any = _ADVICE.get(advice if on else advice - 1)
    if name is None:
        raise CudaError(Status.INVALID_VALUE, f"{advice} is no advice")
    at: Any = "host" if device < 0 else "device"
    try:
        gpu.advise_range(address, size, name, on, at)
    except InputError as error:
        raise CudaError(Status.INVALID_VALUE, str(error)) from None
    return b""


@answers(Call.HOST_ACCESS)
def host_access(request: Request, address: int, write: int, _: int) -> bytes:
    """The host accesses managed memory: the pages around migrate back in simulated time."""
    session = request.session
    found = session.node.heap.around(address)
    if found is None or found.kind != MemoryKind.MANAGED:  # such as a managed variable
        return _TWO_NUMBERS.pack(address // PAGE * PAGE, PAGE)
    begin = max(address // _HOST_BLOCK * _HOST_BLOCK, found.address)
    end = min(begin + _HOST_BLOCK, found.address + found.bytes)
    _bring_back(session.clock, found.gpu, begin, end - begin, bool(write))
    return _TWO_NUMBERS.pack(begin, -(-(end - begin) // PAGE) * PAGE)


def _bring_back(clock: Any, gpu: Gpu, begin: int, size: int, write: bool) -> None:
    if not gpu.has_time:
        return
    gpu.host_time = clock.now
    queued = gpu.host_access(begin, size, write)
    clock.wait_until(round(queued.end * SECOND))
