# SPDX-License-Identifier: Apache-2.0
"""Kernels that use pinned memory of the host or memory of another GPU: what they access crosses the link."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from kernels import HEAD, KERNELS, NAMES
from wire_client import Client, ServerThread, serving

from manyscale.cuda.records import launches_of
from manyscale.cuda.wire import Call, MemoryKind

pytestmark = pytest.mark.core

ADD, EMPTY = NAMES.index("add"), NAMES.index("empty")
COUNT = 1 << 16  # numbers of 4 bytes
BANDWIDTH = 16e9  # of the V100's link in one direction, bytes a second
LATENCY = 23.84e-9 + 1800 / 1.53e9  # of the link, and of a remote access besides it
CHASE, INCREMENT = 50, 51
OTHERS = (
    HEAD
    + """
.visible .entry chase(.param .u64 from, .param .u32 times) {
  .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p;
  ld.param.u64 %rd1, [from]; ld.param.u32 %r1, [times]; mov.u32 %r2, 0;
next:
  ld.global.u64 %rd1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1; @%p bra next;
  setp.eq.u64 %p, %rd1, 0; @%p trap; ret;
}
.visible .entry increment(.param .u64 at) {
  .reg .b32 %r<3>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at]; atom.global.add.u32 %r1, [%rd1], 1; red.global.add.u32 [%rd1], %r1; ret;
}
"""
)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with serving(gpus=2) as running:
        yield running


@pytest.fixture
def program(server: ServerThread) -> Iterator[Client]:
    client = Client(server.path)
    client.load(KERNELS)
    client.load(OTHERS, 2)
    client.good(Call.FUNCTION, ADD, 1, tail=b"add")
    client.good(Call.FUNCTION, EMPTY, 1, tail=b"empty")
    client.good(Call.FUNCTION, CHASE, 2, tail=b"chase")
    client.good(Call.FUNCTION, INCREMENT, 2, tail=b"increment")
    yield client
    client.close()


def seconds(server: ServerThread, program: Client) -> float:
    """Of the kernel that was launched last."""
    program.good(Call.DEVICE_SYNCHRONIZE)
    last = max(launches_of(server.node), key=lambda record: record.end)
    return (last.end - last.begin) / 1e15


def add(server: ServerThread, program: Client, x: int, y: int) -> float:
    """Seconds of y += 2 x: reads 8 bytes and writes 4 for each number."""
    assert program.launch(ADD, COUNT // 256, 256, struct.pack("<QQI", x, y, COUNT)) == 0
    return seconds(server, program)


def test_reading_pinned_memory_takes_its_bytes_over_the_bandwidth_of_the_link(
    server: ServerThread, program: Client
) -> None:
    """Two arrays cross the link to the device, and one the other way meanwhile."""
    pinned = [program.allocate(4 * COUNT, MemoryKind.PINNED) for _ in range(2)]
    here = [program.allocate(4 * COUNT) for _ in range(2)]
    near, far = add(server, program, *here), add(server, program, *pinned)
    expected = 8 * COUNT / BANDWIDTH
    assert expected < far < 1.1 * expected + near
    assert near < expected / 4
    assert expected / 2 < add(server, program, here[0], pinned[1]) < 0.6 * expected + near
    assert add(server, program, *here) <= near  # what is here is as near as before


def test_results_in_pinned_memory_are_right(server: ServerThread, program: Client) -> None:
    x, y = (program.allocate(4 * COUNT, MemoryKind.PINNED) for _ in range(2))
    program.heap_view(x, 4 * COUNT)[:] = struct.pack("<f", 1.5) * COUNT
    program.heap_view(y, 4 * COUNT)[:] = struct.pack("<f", 1.0) * COUNT
    add(server, program, x, y)
    assert bytes(program.heap_view(y, 4 * COUNT)) == struct.pack("<f", 4.0) * COUNT


def test_each_access_of_pinned_memory_waits_for_the_link(server: ServerThread, program: Client) -> None:
    """A pointer that points to itself is read again and again: nothing of it is kept on the GPU."""
    times = 200
    at = {}
    for kind in (MemoryKind.PINNED, MemoryKind.DEVICE):
        address = program.allocate(8, kind)
        if kind == MemoryKind.PINNED:
            program.heap_view(address, 8)[:] = struct.pack("<Q", address)
        else:
            program.to_device(address, struct.pack("<Q", address))
        assert program.launch(CHASE, 1, 1, struct.pack("<QI", address, times)) == 0
        at[kind] = seconds(server, program)
    more = (at[MemoryKind.PINNED] - at[MemoryKind.DEVICE]) / times
    assert more + 30e-9 > LATENCY  # of a hit in the L1, which the other kernel has instead
    assert more < LATENCY + 32 / BANDWIDTH + 100e-9  # the way to the link and back


def test_atomic_operations_on_pinned_memory_go_there_and_back(server: ServerThread, program: Client) -> None:
    address = program.allocate(4, MemoryKind.PINNED)
    program.heap_view(address, 4)[:] = struct.pack("<I", 5)
    assert program.launch(INCREMENT, 1, 1, struct.pack("<Q", address)) == 0
    far = seconds(server, program)
    assert bytes(program.heap_view(address, 4)) == struct.pack("<I", 11)
    assert program.launch(EMPTY, 1, 1, b"") == 0
    assert far > seconds(server, program) + 2 * LATENCY  # the second needs the result of the first


def test_memory_of_another_gpu_is_beyond_the_link(server: ServerThread, program: Client) -> None:
    program.device = 1
    there = [program.allocate(4 * COUNT) for _ in range(2)]
    program.device = 0
    here = [program.allocate(4 * COUNT) for _ in range(2)]
    expected = 8 * COUNT / BANDWIDTH
    near = add(server, program, *here)
    assert near < expected / 4
    assert expected < add(server, program, *there) < 1.1 * expected + near
    program.device = 1
    program.good(Call.FUNCTION, ADD, 1, tail=b"add")
    assert add(server, program, *there) == pytest.approx(near, rel=0.1)


def test_memory_that_was_freed_is_no_longer_beyond_the_link(server: ServerThread, program: Client) -> None:
    """The heap gives the same addresses out again, maybe moved by less than a page."""
    pinned = [program.allocate(4 * COUNT, MemoryKind.PINNED) for _ in range(2)]
    for address in pinned:
        program.good(Call.FREE, address, 0)
    here = [program.allocate(4 * COUNT) for _ in range(2)]
    assert min(here) <= min(pinned) + 4096 < min(here) + 8 * COUNT
    assert add(server, program, *here) < 8 * COUNT / BANDWIDTH / 4
