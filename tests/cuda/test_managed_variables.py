# SPDX-License-Identifier: Apache-2.0
"""Variables that host and device share (`__managed__`): their pages move to whoever uses them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from kernels import HEAD
from wire_client import Client, ServerThread, serving

from manyscale.cuda.wire import Call

pytestmark = pytest.mark.core

PAGE = 4096
PTX = (
    HEAD
    + """
.visible .global .align 4 .u32 plain = 3;
.visible .global .attribute(.managed) .align 4 .u32 counter = 5;
.visible .global .attribute(.managed) .align 4 .b8 table[200000];

.visible .entry count() {
  .reg .b32 %r<3>;
  ld.global.u32 %r1, [plain]; ld.global.u32 %r2, [counter]; add.u32 %r1, %r1, %r2; st.global.u32 [counter], %r1;
  st.global.u32 [table+8192], %r1; ret;
}
"""
)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with serving(isa="ptx") as running:
        yield running


@pytest.fixture
def program(server: ServerThread) -> Iterator[Client]:
    client = Client(server.path)
    client.load(PTX)
    client.good(Call.FUNCTION, 1, 1, tail=b"count")
    yield client
    client.close()


def address_of(program: Client, name: str) -> int:
    return int(program.good(Call.SYMBOL, 1, tail=name.encode())[0])


def touch(program: Client, address: int, write: bool = False) -> tuple[int, int, int]:
    """The host touches memory: what it may use from now on, and how many nanoseconds that takes beside the call."""
    before = program.nanoseconds
    begin, size = program.good(Call.HOST_ACCESS, address, int(write), 0)
    return begin, size, program.nanoseconds - before - 1000


def test_a_managed_variable_moves_to_the_device_and_back(server: ServerThread, program: Client) -> None:
    counter, table, plain = (address_of(program, name) for name in ("counter", "table", "plain"))
    (gpu,) = server.node.gpus
    assert touch(program, counter, write=True)[2] == 0  # nobody has it yet
    assert bytes(program.heap_view(counter, 4)) == struct.pack("<I", 5)
    program.heap_view(counter, 4)[:] = struct.pack("<I", 10)
    assert program.launch(1, 1, 1, b"") == 0
    program.good(Call.DEVICE_SYNCHRONIZE)
    assert list(gpu.page_locations(counter, 4)) == ["device"]
    faults = gpu.uvm.statistics()["faults"]
    assert faults >= 2  # one page of each variable
    begin, size, waited = touch(program, counter)
    assert (begin, size) == (counter - counter % PAGE, PAGE)  # all of the variable, in whole pages
    assert waited > 1000  # the page comes back over the link
    assert bytes(program.heap_view(counter, 4)) == struct.pack("<I", 13)
    assert list(gpu.page_locations(counter, 4)) == ["host"]
    begin, size, waited = touch(program, table + 8192)
    assert begin <= table + 8192 < begin + size <= begin + 65536
    assert bytes(program.heap_view(table + 8192, 4)) == struct.pack("<I", 13)
    # What is not managed lies elsewhere.
    assert all(abs(plain - managed) >= PAGE for managed in (counter, table))


def test_managed_variables_can_be_prefetched_and_advised(server: ServerThread, program: Client) -> None:
    table = address_of(program, "table")
    (gpu,) = server.node.gpus
    touch(program, table, write=True)
    program.good(Call.PREFETCH, 0, 0, table, 200_000)
    program.good(Call.DEVICE_SYNCHRONIZE)
    assert set(gpu.page_locations(table, 200_000)) == {"device"}
    program.good(Call.ADVISE, 1, 0, table, 200_000)  # it is mostly read
    program.good(Call.PREFETCH, 0, -1, table, 200_000)
    program.good(Call.DEVICE_SYNCHRONIZE)
    assert set(gpu.page_locations(table, 200_000)) == {"both"}
