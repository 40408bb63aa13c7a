# SPDX-License-Identifier: Apache-2.0
"""Handlers of calls on streams and events, and host functions in streams."""

from __future__ import annotations

import struct

from .session import AgainError, Request, answers
from .status import CudaError, Status
from .wire import Call

_NUMBER = struct.Struct("<I")


@answers(Call.STREAM_CREATE)
def create_stream(request: Request, flags: int, priority: int) -> bytes:
    return _NUMBER.pack(request.session.streams.create(request.gpu, flags, priority).number)


@answers(Call.STREAM_DESTROY)
def destroy_stream(request: Request, stream: int) -> bytes:
    request.session.streams.destroy(stream)
    return b""


@answers(Call.STREAM_SYNCHRONIZE)
def synchronize_stream(request: Request, stream: int) -> bytes:
    streams = request.session.streams
    streams.synchronize(streams.find(stream, request.gpu))
    return b""


@answers(Call.STREAM_QUERY)
def query_stream(request: Request, stream: int) -> bytes:
    streams = request.session.streams
    if not streams.query(streams.find(stream, request.gpu)):
        raise CudaError(Status.NOT_READY)
    return b""


@answers(Call.STREAM_WAIT_EVENT)
def wait_event(request: Request, stream: int, event: int) -> bytes:
    streams = request.session.streams
    streams.wait_event(streams.find(stream, request.gpu), streams.event(event))
    return b""


@answers(Call.STREAM_WAIT_VALUE)
def wait_value(request: Request, stream: int, bits: int, address: int, value: int, comparison: int) -> bytes:
    if bits not in (32, 64):
        raise CudaError(Status.INVALID_VALUE, f"a stream waits for 32 or 64 bits, not {bits}")
    session = request.session
    session.value_waits.wait_for(session.streams.find(stream, request.gpu), address, value, bits, comparison)
    return b""


@answers(Call.EVENT_CREATE)
def create_event(request: Request, flags: int) -> bytes:
    return _NUMBER.pack(request.session.streams.create_event(flags).number)


@answers(Call.EVENT_DESTROY)
def destroy_event(request: Request, event: int) -> bytes:
    request.session.streams.destroy_event(event)
    return b""


@answers(Call.EVENT_RECORD)
def record_event(request: Request, event: int, stream: int) -> bytes:
    streams = request.session.streams
    streams.record(streams.event(event), streams.find(stream, request.gpu))
    return b""


@answers(Call.EVENT_SYNCHRONIZE)
def synchronize_event(request: Request, event: int) -> bytes:
    streams = request.session.streams
    streams.synchronize_event(streams.event(event))
    return b""


@answers(Call.EVENT_QUERY)
def query_event(request: Request, number: int) -> bytes:
    streams = request.session.streams
    event = streams.event(number)
    if event.gpu is not None and not streams.is_done(event.gpu, event.queued):
        raise CudaError(Status.NOT_READY)
    return b""


@answers(Call.EVENT_ELAPSED)
def elapsed(request: Request, begin: int, end: int) -> bytes:
    streams = request.session.streams
    return struct.pack("<d", streams.elapsed(streams.event(begin), streams.event(end)))


# --- Host functions ---
#
# The order of a program's own work must not depend on the speed of this machine. So a host function is called when it
# is queued, after all before it in its stream has been simulated; the host clock waits for that, too.


@answers(Call.HOST_FUNCTION)
def host_function(request: Request, stream: int, function: int) -> bytes:
    session = request.session
    if function in session.called:
        session.called.discard(function)
        return b""
    session.streams.synchronize(session.streams.find(stream, request.gpu))
    raise AgainError(function)


@answers(Call.HOST_FUNCTION_DONE)
def host_function_done(request: Request, function: int) -> bytes:
    request.session.called.add(function)
    return b""


@answers(Call.HOST_FUNCTION_WAIT)
def host_function_wait(request: Request, function: int) -> bytes:
    return b""
