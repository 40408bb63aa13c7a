# SPDX-License-Identifier: Apache-2.0
"""The protocol between a CUDA program and the server of its simulated GPUs; cudart/wire.hpp defines the same.

Each thread of the program has a connection of its own and waits for the reply to each request, unless it is posted.
All numbers are little endian, and nothing is padded. A request is a header, the fields of its call and, for some calls,
a tail of bytes; a reply is a header, the fields of the call's answer, for some a tail, and last the text that kernels
printed.

Memory is one heap that both sides map at the same addresses. Bytes of the program that are not in the heap pass
through the connection's staging memory, a file without a name (memfd) that the client makes.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

VERSION = 4

REQUEST = struct.Struct("<IHHQQ")
"""Bytes after the header; the call; the thread's current device; nanoseconds of the host since the last reply (or
since the connection was made); bytes at the beginning of the staging memory that belong to the request."""

REPLY = struct.Struct("<iIQII")
"""A cudaError_t, or AGAIN; bytes of the fields and their tail; the simulated time of the host in nanoseconds; bytes of
printed text after them; flags."""

POSTED = 0x8000
"""Flag of a posted call: it has no reply, and if it fails, the next reply of the thread has its error."""

UNTIMED = 0x4000
"""Flag of a call that is part of another: it takes no host time."""

LARGEST_INLINE = 4096
"""Data of a copy to the device of no more bytes than this follows its request instead of being staged."""

AGAIN = -1
"""The status of a reply that names a host function: the client calls it and repeats the request."""

WATCH_MANAGED = 1
"""Flag of the answer to HELLO: the client reports host accesses to managed memory."""

MEASURED_HOST = 2
"""The same: the time of the host goes on between calls, too."""

STICKY = 1
"""Flag of a reply with a sticky error of the device: all later calls return it again."""


class MemoryKind(enum.IntEnum):
    """Kinds of memory in `MALLOC`."""

    DEVICE = 0
    PINNED = 1
    MANAGED = 2


class CopySide(enum.IntEnum):
    """Where one side of a copy is."""

    STAGED = 0  # pageable memory of the host: in the staging memory, row after row without gaps
    PINNED = 1
    DEVICE = 2
    MANAGED = 3


ASYNC = 1  # of a copy or a fill: the host does not wait
COOPERATIVE = 1  # of a launch
NON_BLOCKING = 1  # of a stream: it does not wait for the default stream
PER_THREAD = 1 << 31  # of a stream: the default stream of one thread


class Call(enum.IntEnum):
    """The calls by number."""

    HELLO = 1
    STAGING = 2
    DEVICE_DESCRIPTION = 3
    LOAD_MODULE = 4
    UNLOAD_MODULE = 5
    FUNCTION = 6
    SYMBOL = 7
    MALLOC = 8
    FREE = 9
    COPY = 10
    SET = 11
    LAUNCH = 12
    STREAM_CREATE = 13
    STREAM_DESTROY = 14
    STREAM_SYNCHRONIZE = 15
    STREAM_QUERY = 16
    STREAM_WAIT_EVENT = 17
    EVENT_CREATE = 18
    EVENT_DESTROY = 19
    EVENT_RECORD = 20
    EVENT_SYNCHRONIZE = 21
    EVENT_QUERY = 22
    EVENT_ELAPSED = 23
    DEVICE_SYNCHRONIZE = 24
    DEVICE_RESET = 25
    HOST_FUNCTION = 26
    HOST_FUNCTION_DONE = 27
    HOST_FUNCTION_WAIT = 28
    MEMORY_INFO = 29
    PREFETCH = 30
    ADVISE = 31
    HOST_ACCESS = 32
    OCCUPANCY = 33
    FUNCTION_ATTRIBUTE = 34
    TEXTURE_CREATE = 35
    TEXTURE_DESTROY = 36
    LIMIT = 37
    PROFILER = 38
    GOODBYE = 39
    PEER_ACCESS = 40
    NOTE = 41
    ADDRESS_RESERVE = 42
    ADDRESS_FREE = 43
    PHYSICAL_CREATE = 44
    PHYSICAL_RETAIN = 45
    PHYSICAL_RELEASE = 46
    MEMORY_MAP = 47
    MEMORY_UNMAP = 48
    MEMORY_SET_ACCESS = 49
    MEMORY_GET_ACCESS = 50
    STREAM_WAIT_VALUE = 51
    LINK = 52
    DEVICE_STATUS = 53
    HOST_TIME = 54
    KERNELS = 55
    RANGES = 56


@dataclass(frozen=True)
class Layout:
    """The fields of a request and of its answer, each as (name, format of `struct` without the byte order).

    `tail` says what follows the fields of the request, `answer_tail` what follows those of the answer; "" for nothing.
    """

    fields: tuple[tuple[str, str], ...] = ()
    answer: tuple[tuple[str, str], ...] = ()
    tail: str = ""
    answer_tail: str = ""

    def request(self) -> struct.Struct:
        return struct.Struct("<" + "".join(form for _, form in self.fields))

    def reply(self) -> struct.Struct:
        return struct.Struct("<" + "".join(form for _, form in self.answer))


def _fields(text: str) -> tuple[tuple[str, str], ...]:
    """Fields from words such as "stream:I flags:I"."""
    return tuple((name, form) for name, _, form in (word.partition(":") for word in text.split()))


LAYOUTS: dict[Call, Layout] = {
    # `runtime` is 11000, 12000 or 13000. The reply carries the heap as a file descriptor.
    Call.HELLO: Layout(
        _fields("version:I process:I thread:I runtime:I program:I"),
        _fields("devices:I heap:Q heap_bytes:Q flags:Q"),
    ),
    # The request carries the staging memory as a file descriptor.
    Call.STAGING: Layout(_fields("bytes:Q")),
    Call.DEVICE_DESCRIPTION: Layout(
        _fields("device:I"),
        _fields("memory:Q name:256s uuid:16s attributes:I"),
        answer_tail="attributes x {i32 number of cudaDeviceGetAttribute, i32 value}",
    ),
    # `wrapper`: 2 if the parts are linked together (relocatable device code), 3 if the first of them is the linked SASS
    # of the others. The parts lie in the staging memory.
    Call.LOAD_MODULE: Layout(_fields("module:I wrapper:I parts:I"), tail="parts x u64 bytes"),
    Call.UNLOAD_MODULE: Layout(_fields("module:I")),
    Call.FUNCTION: Layout(
        _fields("function:I module:I"),
        _fields(
            "shared:I constant:I local:I threads:I registers:I ptx_version:I dynamic_shared:i carveout:i"
            " binary_version:I cache_mode:I parameters:I"
        ),
        tail="the name in the module",
        answer_tail="parameters x {u32 offset, u32 bytes}",
    ),
    Call.SYMBOL: Layout(_fields("module:I"), _fields("address:Q bytes:Q"), tail="the name in the module"),
    Call.MALLOC: Layout(_fields("kind:I flags:I bytes:Q alignment:Q"), _fields("address:Q bytes:Q")),
    # `stream` counts from 1; 0: at once.
    Call.FREE: Layout(_fields("address:Q stream:I")),
    Call.COPY: Layout(
        _fields(
            "stream:I flags:I source_kind:I target_kind:I source:Q source_pitch:Q source_slice:Q"
            " target:Q target_pitch:Q target_slice:Q width:Q height:Q depth:Q"
        ),
        tail="the data of a few bytes that come from pageable memory",
    ),
    # `width` in elements of 1, 2, 4 or 8 bytes.
    Call.SET: Layout(
        _fields("stream:I flags:I address:Q pitch:Q slice:Q width:Q height:Q depth:Q value:Q element:I")
    ),
    Call.LAUNCH: Layout(
        _fields(
            "function:I stream:I flags:I grid_x:I grid_y:I grid_z:I block_x:I block_y:I block_z:I shared:I bytes:I"
        ),
        tail="the parameters, as FUNCTION says they lie",
    ),
    Call.STREAM_CREATE: Layout(_fields("flags:I priority:i"), _fields("stream:I")),
    Call.STREAM_DESTROY: Layout(_fields("stream:I")),
    Call.STREAM_SYNCHRONIZE: Layout(_fields("stream:I")),
    Call.STREAM_QUERY: Layout(_fields("stream:I")),
    Call.STREAM_WAIT_EVENT: Layout(_fields("stream:I event:I")),
    Call.EVENT_CREATE: Layout(_fields("flags:I"), _fields("event:I")),
    Call.EVENT_DESTROY: Layout(_fields("event:I")),
    Call.EVENT_RECORD: Layout(_fields("event:I stream:I")),
    Call.EVENT_SYNCHRONIZE: Layout(_fields("event:I")),
    Call.EVENT_QUERY: Layout(_fields("event:I")),
    Call.EVENT_ELAPSED: Layout(_fields("begin:I end:I"), _fields("milliseconds:d")),
    Call.DEVICE_SYNCHRONIZE: Layout(),
    Call.DEVICE_RESET: Layout(),
    # A host function in a stream, by a number that the client chooses.
    Call.HOST_FUNCTION: Layout(_fields("stream:I function:Q"), answer_tail="of AGAIN: u64 function"),
    Call.HOST_FUNCTION_DONE: Layout(_fields("function:Q")),
    Call.HOST_FUNCTION_WAIT: Layout(_fields("function:Q"), answer_tail="of AGAIN: u64 function"),
    Call.MEMORY_INFO: Layout((), _fields("free:Q total:Q")),
    # `device` -1 is the host.
    Call.PREFETCH: Layout(_fields("stream:I device:i address:Q bytes:Q")),
    # `advice` by the numbers of cudaMemoryAdvise.
    Call.ADVISE: Layout(_fields("advice:I device:i address:Q bytes:Q")),
    # The program has accessed managed memory that is protected; the answer has the range that it may access now.
    Call.HOST_ACCESS: Layout(_fields("address:Q write:I reserved:I"), _fields("address:Q bytes:Q")),
    Call.OCCUPANCY: Layout(_fields("function:I threads:I shared:Q"), _fields("blocks:I")),
    # `attribute` by the numbers of cudaFuncAttribute.
    Call.FUNCTION_ATTRIBUTE: Layout(_fields("function:I attribute:i value:i")),
    # `kind`: 0 linear, 1 with a pitch, 2 array; `surface` 1 for a surface; modes by CUDA's numbers.
    Call.TEXTURE_CREATE: Layout(
        _fields(
            "kind:I address:Q pitch:Q width:Q height:Q depth:Q dimensions:I layered:I cube:I surface:I format:I"
            " bits_x:I bits_y:I bits_z:I bits_w:I mode_x:I mode_y:I mode_z:I filter:I read:I srgb:I normalized:I"
            " mipmap_bias:f border_x:f border_y:f border_z:f border_w:f"
        ),
        _fields("texture:Q"),
    ),
    Call.TEXTURE_DESTROY: Layout(_fields("texture:Q")),
    # `limit` by the numbers of cudaLimit.
    Call.LIMIT: Layout(_fields("limit:I value:Q")),
    Call.PROFILER: Layout(_fields("on:I")),
    Call.GOODBYE: Layout(),
    Call.PEER_ACCESS: Layout(_fields("peer:I enable:I")),
    # A note on something that is not supported; kept with the run.
    Call.NOTE: Layout(tail="text"),
    # Virtual memory management. `device` -1 is the host; `access` by the numbers of CUmemAccess_flags.
    Call.ADDRESS_RESERVE: Layout(_fields("bytes:Q alignment:Q"), _fields("address:Q")),
    Call.ADDRESS_FREE: Layout(_fields("address:Q bytes:Q")),
    Call.PHYSICAL_CREATE: Layout(_fields("bytes:Q device:i shareable:I"), _fields("handle:Q")),
    # The memory of a handle, or that at a mapped address if the handle is 0; `references` of it are added.
    Call.PHYSICAL_RETAIN: Layout(
        _fields("handle:Q address:Q references:I"), _fields("handle:Q bytes:Q device:i shareable:I")
    ),
    Call.PHYSICAL_RELEASE: Layout(_fields("handle:Q")),
    # The answer says where the heap's file has the memory.
    Call.MEMORY_MAP: Layout(_fields("address:Q bytes:Q offset:Q handle:Q"), _fields("memory:Q device:i")),
    Call.MEMORY_UNMAP: Layout(_fields("address:Q bytes:Q")),
    Call.MEMORY_SET_ACCESS: Layout(_fields("address:Q bytes:Q device:i access:I")),
    Call.MEMORY_GET_ACCESS: Layout(_fields("address:Q device:i"), _fields("access:I")),
    # `comparison` by the numbers of CUstreamWaitValue_flags.
    Call.STREAM_WAIT_VALUE: Layout(_fields("stream:I bits:I address:Q value:Q comparison:I")),
    # Parts are linked into one module; the staging memory has them, and then the module. `kind` by CUjitInputType.
    Call.LINK: Layout(_fields("parts:I"), _fields("bytes:Q"), tail="parts x {u64 kind, u64 bytes}"),
    # What NVML tells of a GPU; it needs no handshake. Clocks in kHz.
    Call.DEVICE_STATUS: Layout(
        _fields("device:I"),
        _fields(
            "devices:I memory:Q used:Q name:96s uuid:16s capability:I bus:I clock:I memory_clock:I bus_width:I"
        ),
        answer_tail="processes x {u32 process, u64 bytes}",
    ),
    Call.KERNELS: Layout(
        _fields("module:I"), answer_tail="the names of the kernels, each with a zero behind it"
    ),
    # The simulated time of the host is in the header of the reply, as in every one.
    Call.HOST_TIME: Layout(),
    # The NVTX ranges that the thread is in from now on, the outermost first.
    Call.RANGES: Layout(_fields("levels:I"), tail="levels x {u64 instance, u32 bytes, the name}"),
}
