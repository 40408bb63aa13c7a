# SPDX-License-Identifier: Apache-2.0
"""Handlers of calls on devices: properties, limits, peer access, synchronisation, reset."""

from __future__ import annotations

import struct

from .session import Request, answers
from .status import CudaError, Status
from .wire import LAYOUTS, Call

_DESCRIPTION = LAYOUTS[Call.DEVICE_DESCRIPTION].reply()


@answers(Call.DEVICE_DESCRIPTION)
def description(request: Request, device: int) -> bytes:
    gpus = request.session.node.gpus
    if device >= len(gpus):
        raise CudaError(Status.INVALID_DEVICE)
    described = gpus[device].description
    attributes = b"".join(struct.pack("<ii", number, value) for number, value in described.attributes.items())
    name = described.name.encode()[:255]
    return _DESCRIPTION.pack(described.memory, name, described.uuid, len(described.attributes)) + attributes


@answers(Call.DEVICE_SYNCHRONIZE)
def synchronize(request: Request) -> bytes:
    request.session.streams.synchronize_device(request.gpu)
    request.session.free_what_is_due()
    return b""


@answers(Call.DEVICE_RESET)
def reset(request: Request) -> bytes:
    """Releases all resources of the process on the GPU; a GPU on which a kernel has failed is replaced."""
    session, gpu = request.session, request.gpu
    session.value_waits.forget(gpu)
    if gpu.fault is None:
        session.streams.synchronize_device(gpu)
        heap = session.node.heap
        session.freed_later = [row for row in session.freed_later if row[0] is not gpu]
        for allocation in heap.of_process(session.process):
            if allocation.gpu is gpu:
                heap.free(allocation)
    else:
        session.node.replace(gpu)
    session.failures.pop(gpu.number, None)
    session.textures_destroyed = {key: None for key in session.textures_destroyed if key[0] is not gpu}
    session.streams.forget_gpu(gpu)
    for module in session.modules.values():
        module.forget(gpu)
    for function in session.functions.values():
        function.on.pop(gpu, None)
    return b""


@answers(Call.LIMIT)
def limit(request: Request, number: int, value: int) -> bytes:
    """Accepts limits such as that of the heap for malloc in kernels; none of them is modelled."""
    return b""


@answers(Call.PEER_ACCESS)
def peer_access(request: Request, peer: int, enable: int) -> bytes:
    """Enables or disables peer access; kernels can access memory of other GPUs in any case."""
    session = request.session
    if peer >= len(session.node.gpus) or peer == request.gpu.number:
        raise CudaError(Status.INVALID_DEVICE)
    pair = (request.gpu.number, peer)
    if enable and pair in session.peers:
        raise CudaError(Status.PEER_ACCESS_ALREADY_ENABLED)
    if not enable and pair not in session.peers:
        raise CudaError(Status.PEER_ACCESS_NOT_ENABLED)
    (session.peers.add if enable else session.peers.discard)(pair)
    return b""


@answers(Call.PROFILER)
def profiler(request: Request, on: int) -> bytes:
    """cudaProfilerStart and cudaProfilerStop, which are recorded in the table of calls."""
    return b""


@answers(Call.GOODBYE)
def goodbye(request: Request) -> bytes:
    """The process exits: simulates all that it has queued."""
    for gpu in request.session.node.gpus:
        if gpu.fault is None:
            request.session.streams.synchronize_device(gpu)
    return b""


@answers(Call.NOTE)
def note(request: Request) -> bytes:
    """Records a note of the library on something that is not supported."""
    request.session.records.notes.append(request.tail.decode(errors="replace"))
    return b""
