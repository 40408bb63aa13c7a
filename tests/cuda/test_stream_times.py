# SPDX-License-Identifier: Apache-2.0
"""When things happen: streams that overlap or wait for each other, events, copies, several GPUs, the host's clock."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from kernels import KERNELS, NAMES
from wire_client import OPTIONS, Client, ServerThread, serving

from manyscale.cuda.records import copies_of, launches_of
from manyscale.cuda.status import Status
from manyscale.cuda.wire import ASYNC, NON_BLOCKING, Call, CopySide, MemoryKind

pytestmark = pytest.mark.core

SPIN, EMPTY = NAMES.index("spin"), NAMES.index("empty")
MICROSECOND = 10**9
MEGABYTE = 1 << 20
# Each of 256 pages takes its bytes at 16 GB/s and the latency of the V100's link; microseconds in all.
LINK_TIME = 256 * (4096 / 16e9 + 23.84e-9) * 1e6


class Program(Client):
    def begin(self) -> None:
        self.load(KERNELS)
        for number in (SPIN, EMPTY):
            self.good(Call.FUNCTION, number, 1, tail=NAMES[number].encode())

    def spin(self, times: int = 2000, stream: int = 0) -> None:
        assert self.launch(SPIN, 1, 32, struct.pack("<I", times), stream=stream) == 0

    def stream(self, flags: int = 0, priority: int = 0) -> int:
        return int(self.good(Call.STREAM_CREATE, flags, priority)[0])

    def copy(self, source: int, target: int, to_device: bool, stream: int, size: int = MEGABYTE) -> None:
        kinds = (CopySide.PINNED, CopySide.DEVICE) if to_device else (CopySide.DEVICE, CopySide.PINNED)
        self.good(Call.COPY, stream, ASYNC, *kinds, source, 0, 0, target, 0, 0, size, 1, 1)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with serving(gpus=2) as running:
        yield running


@pytest.fixture
def program(server: ServerThread) -> Iterator[Program]:
    client = Program(server.path)
    client.begin()
    yield client
    client.close()


def kernels(server: ServerThread) -> list[Any]:
    return launches_of(server.node)


def test_kernels_of_one_stream_follow_each_other(program: Program, server: ServerThread) -> None:
    stream = program.stream()
    for _ in range(3):
        program.spin(stream=stream)
    program.good(Call.STREAM_SYNCHRONIZE, stream)
    first, second, third = kernels(server)
    assert first.end <= second.begin < second.end <= third.begin
    assert program.nanoseconds == third.end // 10**6


def test_kernels_of_two_streams_run_at_the_same_time(program: Program, server: ServerThread) -> None:
    for _ in range(2):
        program.spin(stream=program.stream())
    program.good(Call.DEVICE_SYNCHRONIZE)
    first, second = kernels(server)
    assert second.begin < first.end
    assert second.begin - first.begin == 2 * OPTIONS.call_time  # two calls later: a new stream and the launch


@pytest.mark.parametrize(("flags", "waits"), [(0, True), (NON_BLOCKING, False)])
def test_the_default_stream_waits_for_others_and_others_for_it(
    program: Program, server: ServerThread, flags: int, waits: bool
) -> None:
    one, two = program.stream(flags), program.stream(flags)
    program.spin(stream=one)
    program.spin()
    program.spin(stream=two)
    program.good(Call.DEVICE_SYNCHRONIZE)
    first, default, second = sorted(kernels(server), key=lambda record: record.begin)
    assert (default.begin >= first.end) == waits
    assert (second.begin >= default.end) == waits


def test_a_stream_waits_for_an_event_of_another(program: Program, server: ServerThread) -> None:
    one, two = (program.stream(NON_BLOCKING) for _ in range(2))
    event = program.good(Call.EVENT_CREATE, 2)[0]
    program.spin(stream=one)
    program.good(Call.EVENT_RECORD, event, one)
    program.good(Call.STREAM_WAIT_EVENT, two, event)
    program.spin(stream=two)
    program.good(Call.DEVICE_SYNCHRONIZE)
    first, second = kernels(server)
    assert second.begin >= first.end


def test_the_time_between_two_events_is_that_of_the_kernel(program: Program, server: ServerThread) -> None:
    begin, end = (program.good(Call.EVENT_CREATE, 0)[0] for _ in range(2))
    program.good(Call.DEVICE_SYNCHRONIZE)
    program.good(Call.EVENT_RECORD, begin, 0)
    program.spin(20_000)
    program.good(Call.EVENT_RECORD, end, 0)
    assert program.call(Call.EVENT_ELAPSED, begin, end)[0] == Status.NOT_READY
    program.good(Call.EVENT_SYNCHRONIZE, end)
    (kernel,) = kernels(server)
    between = program.good(Call.EVENT_ELAPSED, begin, end)[0]
    # The first event happens when its record arrives, one call before the launch does.
    assert between == pytest.approx((kernel.end - kernel.begin + OPTIONS.call_time) / 1e12, rel=1e-6)
    untimed = program.good(Call.EVENT_CREATE, 2)[0]
    assert program.call(Call.EVENT_ELAPSED, untimed, end)[0] == Status.INVALID_RESOURCE_HANDLE


def test_who_asks_again_and_again_gets_there(program: Program, server: ServerThread) -> None:
    program.spin(20_000)
    polls = 0
    while program.call(Call.STREAM_QUERY, 0)[0] == Status.NOT_READY:
        polls += 1
    (kernel,) = kernels(server)
    # A poll costs a call, and the wait until the host looks again.
    assert polls == pytest.approx((kernel.end - kernel.begin) / (2 * MICROSECOND), rel=0.1, abs=2)


def test_copies_in_both_directions_overlap(program: Program, server: ServerThread) -> None:
    pinned = [program.allocate(MEGABYTE, MemoryKind.PINNED) for _ in range(2)]
    device = [program.allocate(MEGABYTE) for _ in range(2)]
    streams = [program.stream() for _ in range(2)]
    program.copy(pinned[0], device[0], True, streams[0])
    program.copy(device[1], pinned[1], False, streams[1])
    program.good(Call.DEVICE_SYNCHRONIZE)
    to_device, to_host = sorted(copies_of(server.node), key=lambda record: record.begin)
    assert to_host.begin < to_device.end
    for record in (to_device, to_host):
        assert (record.end - record.begin) / MICROSECOND == pytest.approx(LINK_TIME, rel=0.02)


def test_copies_in_one_direction_take_turns(program: Program, server: ServerThread) -> None:
    pinned, device = program.allocate(MEGABYTE, MemoryKind.PINNED), program.allocate(MEGABYTE)
    for _ in range(2):
        program.copy(pinned, device, True, program.stream())
    program.good(Call.DEVICE_SYNCHRONIZE)
    first, second = copies_of(server.node)
    assert second.begin >= first.end


def test_an_asynchronous_copy_of_pinned_memory_does_not_hold_the_host(program: Program) -> None:
    pinned, device = program.allocate(MEGABYTE, MemoryKind.PINNED), program.allocate(MEGABYTE)
    program.good(Call.DEVICE_SYNCHRONIZE)
    before = program.nanoseconds
    program.copy(pinned, device, True, 0)
    assert program.nanoseconds == before + OPTIONS.call_time // 10**6


def test_pageable_memory_is_copied_by_the_host_first(program: Program, server: ServerThread) -> None:
    device = program.allocate(MEGABYTE)
    program.good(Call.DEVICE_SYNCHRONIZE)
    before = program.nanoseconds
    program.to_device(device, bytes(MEGABYTE))
    took = program.nanoseconds - before
    assert took == pytest.approx(MEGABYTE / OPTIONS.pageable_bandwidth * 1e9, rel=0.05)
    program.good(Call.DEVICE_SYNCHRONIZE)
    before = program.nanoseconds
    program.to_device(device, bytes(4096))  # small: it has been taken over when the call returns
    assert program.nanoseconds - before == pytest.approx(
        4096 / OPTIONS.pageable_bandwidth * 1e9 + 1000, abs=2
    )


def test_the_host_copies_to_pageable_memory_while_it_arrives(program: Program, server: ServerThread) -> None:
    device = program.allocate(MEGABYTE)
    program.spin(50_000)
    program.to_host(device, MEGABYTE)
    (copy,) = copies_of(server.node)
    (kernel,) = kernels(server)
    assert copy.begin >= kernel.end
    took = MEGABYTE / OPTIONS.pageable_bandwidth * 1e9
    assert program.nanoseconds == pytest.approx(copy.begin / 1e6 + took, abs=2)


def test_gpus_compute_at_the_same_time(program: Program, server: ServerThread) -> None:
    for device in range(2):
        program.device = device
        program.good(Call.FUNCTION, SPIN, 1, tail=b"spin")
        program.spin()
    for device in range(2):
        program.device = device
        program.good(Call.DEVICE_SYNCHRONIZE)
    first, second = kernels(server)
    assert (first.device, second.device) == (0, 1)
    assert second.begin < first.end


def test_a_stream_waits_for_an_event_of_another_gpu(program: Program, server: ServerThread) -> None:
    event = program.good(Call.EVENT_CREATE, 0)[0]
    program.spin(20_000)
    program.good(Call.EVENT_RECORD, event, 0)
    program.device = 1
    program.good(Call.FUNCTION, SPIN, 1, tail=b"spin")
    program.good(Call.STREAM_WAIT_EVENT, 0, event)
    program.spin()
    program.good(Call.DEVICE_SYNCHRONIZE)
    first, second = kernels(server)
    assert second.begin >= first.end


def test_memory_of_another_gpu_is_copied_over_the_link(program: Program, server: ServerThread) -> None:
    here = program.allocate(MEGABYTE)
    program.device = 1
    there = program.allocate(MEGABYTE)
    program.to_device(there, b"\x5a" * MEGABYTE)
    program.device = 0
    within = (0, 0, CopySide.DEVICE, CopySide.DEVICE, there, 0, 0, here, 0, 0, MEGABYTE, 1, 1)
    program.good(Call.COPY, *within)
    assert program.to_host(here, MEGABYTE) == b"\x5a" * MEGABYTE
    between = next(
        record for record in copies_of(server.node) if record.device == 0 and record.kind == "to_device"
    )
    assert (between.end - between.begin) / MICROSECOND == pytest.approx(LINK_TIME, rel=0.02)


def test_peers_are_enabled_once(program: Program) -> None:
    program.good(Call.PEER_ACCESS, 1, 1)
    assert program.call(Call.PEER_ACCESS, 1, 1)[0] == Status.PEER_ACCESS_ALREADY_ENABLED
    program.good(Call.PEER_ACCESS, 1, 0)
    assert program.call(Call.PEER_ACCESS, 1, 0)[0] == Status.PEER_ACCESS_NOT_ENABLED
    assert program.call(Call.PEER_ACCESS, 7, 1)[0] == Status.INVALID_DEVICE


def test_memory_freed_in_a_stream_is_given_back_when_its_turn_comes(program: Program) -> None:
    address = program.allocate(1 << 30)
    program.spin()
    program.good(Call.FREE, address, 1)  # in the default stream
    assert program.good(Call.MEMORY_INFO)[0] == 15 << 30
    program.good(Call.DEVICE_SYNCHRONIZE)
    assert program.good(Call.MEMORY_INFO)[0] == 16 << 30


def test_pages_of_managed_memory_move_in_simulated_time(program: Program, server: ServerThread) -> None:
    address = program.allocate(MEGABYTE, MemoryKind.MANAGED)
    assert address % (2 * MEGABYTE) == 0
    begin, size = program.good(Call.HOST_ACCESS, address + 70_000, 1, 0)
    assert begin <= address + 70_000 < begin + size
    program.heap_view(address, MEGABYTE)[:] = b"\x07" * MEGABYTE
    program.good(Call.PREFETCH, 0, 0, address, MEGABYTE)
    program.good(Call.DEVICE_SYNCHRONIZE)
    before = program.nanoseconds
    program.good(Call.HOST_ACCESS, address, 0, 0)
    assert program.nanoseconds > before + OPTIONS.call_time // 10**6
    program.good(Call.ADVISE, 1, 0, address, MEGABYTE)
    assert program.call(Call.ADVISE, 99, 0, address, MEGABYTE)[0] == Status.INVALID_VALUE
    assert program.call(Call.PREFETCH, 0, 0, address, 64 * MEGABYTE)[0] == Status.INVALID_VALUE
    program.good(Call.FREE, address, 0)


def test_times_do_not_depend_on_how_fast_the_program_is() -> None:
    times = []
    for _ in range(2):
        with serving() as server:
            program = Program(server.path)
            program.begin()
            streams = [program.stream() for _ in range(3)]
            for number in range(9):
                program.spin(100 * number, stream=streams[number % 3])
            program.good(Call.DEVICE_SYNCHRONIZE)
            times.append((program.nanoseconds, [(record.begin, record.end) for record in kernels(server)]))
            program.close()
    assert times[0] == times[1]
