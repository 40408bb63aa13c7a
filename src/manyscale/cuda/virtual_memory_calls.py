# SPDX-License-Identifier: Apache-2.0
"""Handlers of calls of virtual memory management."""

from __future__ import annotations

import struct

from .session import Request, answers
from .status import CudaError, Status
from .virtual_memory import HOST
from .wire import LAYOUTS, Call

_NUMBER = struct.Struct("<Q")
_DESCRIPTION = LAYOUTS[Call.PHYSICAL_RETAIN].reply()
_MAPPED = LAYOUTS[Call.MEMORY_MAP].reply()


@answers(Call.ADDRESS_RESERVE)
def reserve(request: Request, size: int, alignment: int) -> bytes:
    session = request.session
    return _NUMBER.pack(session.node.virtual.reserve(request.gpu, size, alignment, session.process))


@answers(Call.ADDRESS_FREE)
def free_addresses(request: Request, address: int, size: int) -> bytes:
    request.session.node.virtual.free_addresses(address, size)
    return b""


@answers(Call.PHYSICAL_CREATE)
def create(request: Request, size: int, device: int, shareable: int) -> bytes:
    session = request.session
    _check_device(request, device)
    gpu = request.gpu if device == HOST else session.node.gpus[device]
    session.free_what_is_due()
    return _NUMBER.pack(session.node.virtual.create(gpu, size, device, shareable, session.process).handle)


@answers(Call.PHYSICAL_RETAIN)
def retain(request: Request, handle: int, address: int, references: int) -> bytes:
    session, virtual = request.session, request.session.node.virtual
    found = virtual.find(handle) if handle else virtual.at(address).physical
    virtual.retain(found, references, session.process)
    return _DESCRIPTION.pack(found.handle, found.bytes, found.device, found.shareable)


@answers(Call.PHYSICAL_RELEASE)
def release(request: Request, handle: int) -> bytes:
    request.session.node.virtual.release(handle, request.session.process)
    return b""


@answers(Call.MEMORY_MAP)
def map_memory(request: Request, address: int, size: int, offset: int, handle: int) -> bytes:
    session = request.session
    made = session.node.virtual.map(address, size, offset, handle, session.process)
    return _MAPPED.pack(made.physical.allocation.address + offset, made.physical.device)


@answers(Call.MEMORY_UNMAP)
def unmap_memory(request: Request, address: int, size: int) -> bytes:
    """Queued kernels may still have the addresses: they come first."""
    session = request.session
    for gpu in session.node.gpus:
        if gpu.fault is None:
            session.streams.synchronize_device(gpu)
    session.node.virtual.unmap(address, size)
    return b""


@answers(Call.MEMORY_SET_ACCESS)
def set_access(request: Request, address: int, size: int, device: int, access: int) -> bytes:
    _check_device(request, device)
    request.session.node.virtual.set_access(address, size, device, access)
    return b""


@answers(Call.MEMORY_GET_ACCESS)
def get_access(request: Request, address: int, device: int) -> bytes:
    _check_device(request, device)
    return struct.pack("<I", request.session.node.virtual.access_of(address, device))


def _check_device(request: Request, device: int) -> None:
    if device != HOST and not 0 <= device < len(request.session.node.gpus):
        raise CudaError(Status.INVALID_DEVICE)
