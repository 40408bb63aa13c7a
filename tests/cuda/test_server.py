# SPDX-License-Identifier: Apache-2.0
"""The server of simulated GPUs, asked by a client over its socket."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest
from kernels import KERNELS, NAMES
from wire_client import Client, ServerThread, container, serving

from manyscale.cuda.status import Status
from manyscale.cuda.wire import AGAIN, ASYNC, COOPERATIVE, STICKY, Call, CopySide, MemoryKind

pytestmark = pytest.mark.core

KERNEL = {name: number for number, name in enumerate(NAMES)}


class Program(Client):
    """A client with the kernels loaded, which it calls by name."""

    def begin(self) -> None:
        self.load(KERNELS)
        for name, number in KERNEL.items():
            self.good(Call.FUNCTION, number, 1, tail=name.encode())

    def run(self, name: str, grid: int, block: int, parameters: bytes = b"", **options: int) -> int:
        return self.launch(KERNEL[name], grid, block, parameters, **options)


@pytest.fixture(params=["timed", "functional"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with serving(functional=request.param == "functional") as running:
        yield running


@pytest.fixture
def timed() -> Iterator[ServerThread]:
    with serving() as running:
        yield running


@pytest.fixture
def program(server: ServerThread) -> Iterator[Program]:
    client = Program(server.path)
    client.begin()
    yield client
    client.close()


@pytest.fixture
def timed_program(timed: ServerThread) -> Iterator[Program]:
    client = Program(timed.path)
    client.begin()
    yield client
    client.close()


def test_a_program_computes_what_it_should(program: Program) -> None:
    n = 1000
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    addresses = [program.allocate(4 * n) for _ in range(2)]
    for address, values in zip(addresses, (x, y), strict=True):
        program.to_device(address, values.tobytes())
    assert program.run("add", 4, 256, struct.pack("<QQI", *addresses, n)) == 0
    np.testing.assert_array_equal(np.frombuffer(program.to_host(addresses[1], 4 * n), np.float32), 2 * x + y)


def test_a_device_has_properties(program: Program) -> None:
    status, fields, tail = program.call(Call.DEVICE_DESCRIPTION, 0)
    memory, name, _, count = fields
    attributes = dict(struct.iter_unpack("<ii", tail))
    assert status == 0
    assert name.rstrip(b"\0") == b"Manyscale v100"
    assert memory == 16 << 30
    assert len(attributes) == count
    assert (attributes[16], attributes[10], attributes[75]) == (80, 32, 7)  # SMs, lanes of a warp, 7.0
    assert program.call(Call.DEVICE_DESCRIPTION, 1)[0] == Status.INVALID_DEVICE


def test_the_layout_of_the_parameters_of_a_kernel(program: Program) -> None:
    _, fields, tail = program.call(Call.FUNCTION, KERNEL["add"], 1, tail=b"add")
    assert fields[-1] == 3
    assert list(struct.iter_unpack("<II", tail)) == [(0, 8), (8, 8), (16, 4)]
    _, fields, _ = program.call(Call.FUNCTION, KERNEL["large_shared"], 1, tail=b"large_shared")
    assert (fields[0], fields[3]) == (4096, 64)  # static shared memory, threads of a block


def test_a_kernel_that_is_not_there_is_an_error(program: Program, server: ServerThread) -> None:
    assert program.call(Call.FUNCTION, 99, 1, tail=b"nothing")[0] == Status.INVALID_DEVICE_FUNCTION
    assert "no kernel nothing" in server.messages[0]
    assert program.launch(99, 1, 1, b"") == Status.INVALID_DEVICE_FUNCTION


def test_variables_keep_their_values_between_launches(program: Program) -> None:
    address, size = program.good(Call.SYMBOL, 1, tail=b"counter")
    out = program.allocate(4)
    assert size == 4
    program.to_device(address, struct.pack("<I", 40))
    for _ in range(3):
        assert program.run("count", 1, 1, struct.pack("<Q", out)) == 0
    assert struct.unpack("<I", program.to_host(address, 4))[0] == 43
    assert struct.unpack("<I", program.to_host(out, 4))[0] == 42
    assert program.call(Call.SYMBOL, 1, tail=b"nothing")[0] == Status.INVALID_SYMBOL


def test_constants_can_be_changed(program: Program) -> None:
    address, _ = program.good(Call.SYMBOL, 1, tail=b"factor")
    program.to_device(address, struct.pack("<f", 10.0))
    x, y = program.allocate(4), program.allocate(4)
    program.to_device(x, struct.pack("<f", 3.0))
    program.good(Call.SET, 0, 0, y, 0, 0, 1, 1, 1, 0, 4)
    program.run("add", 1, 1, struct.pack("<QQI", x, y, 1))
    assert struct.unpack("<f", program.to_host(y, 4))[0] == 30.0


def test_what_kernels_print_comes_with_the_next_reply(program: Program) -> None:
    program.run("hello", 2, 1)
    program.good(Call.DEVICE_SYNCHRONIZE)
    assert program.printed == b"hello\n" * 2


def test_rows_with_gaps_are_copied_and_filled(program: Program) -> None:
    pitch, width, height, depth = 32, 12, 3, 2
    address = program.allocate(pitch * height * depth)
    program.good(Call.SET, 0, 0, address, 0, 0, pitch * height * depth, 1, 1, 0xEE, 1)
    data = bytes(range(width * height * depth))
    shape = (width, height, depth)
    to = (0, 0, CopySide.STAGED, CopySide.DEVICE, 0, 0, 0, address, pitch, pitch * height, *shape)
    program.good(Call.COPY, *to, staged=data)
    whole = np.frombuffer(program.to_host(address, pitch * height * depth), np.uint8)
    whole = whole.reshape(depth, height, pitch)
    np.testing.assert_array_equal(whole[:, :, :width].ravel(), np.frombuffer(data, np.uint8))
    assert (whole[:, :, width:] == 0xEE).all()
    other = program.allocate(64 * height * depth)
    within = (
        0,
        0,
        CopySide.DEVICE,
        CopySide.DEVICE,
        address,
        pitch,
        pitch * height,
        other,
        64,
        64 * height,
        *shape,
    )
    program.good(Call.COPY, *within)
    program.room(len(data))
    back = (0, 0, CopySide.DEVICE, CopySide.STAGED, other, 64, 64 * height, 0, 0, 0, *shape)
    program.good(Call.COPY, *back)
    assert program.staging is not None
    assert bytes(program.staging[: len(data)]) == data
    program.good(Call.SET, 0, 0, other, 64, 64 * height, 3, height, depth, 0x01020304, 4)
    program.good(Call.COPY, *back)
    assert bytes(program.staging[:width]) == struct.pack("<3I", *[0x01020304] * 3)


def test_pinned_memory_is_shared_with_the_program(program: Program) -> None:
    pinned, device = program.allocate(8192, MemoryKind.PINNED), program.allocate(8192)
    data = np.random.default_rng(1).bytes(8192)
    program.heap_view(pinned, 8192)[:] = data
    program.good(
        Call.COPY, 0, ASYNC, CopySide.PINNED, CopySide.DEVICE, pinned, 0, 0, device, 0, 0, 8192, 1, 1
    )
    program.good(Call.SET, 0, ASYNC, device, 0, 0, 16, 1, 1, 0xAB, 1)
    program.good(
        Call.COPY, 0, ASYNC, CopySide.DEVICE, CopySide.PINNED, device, 0, 0, pinned, 0, 0, 8192, 1, 1
    )
    program.good(Call.DEVICE_SYNCHRONIZE)
    assert bytes(program.heap_view(pinned, 8192)) == b"\xab" * 16 + data[16:]


def test_a_copy_outside_of_memory_is_an_error(program: Program) -> None:
    address = program.allocate(256)
    for target, size in ((address, 4096), (16, 4), (2**63, 8)):
        fields = (0, 0, CopySide.STAGED, CopySide.DEVICE, 0, 0, 0, target, 0, 0, size, 1, 1)
        assert program.call(Call.COPY, *fields, staged=bytes(size))[0] == Status.INVALID_VALUE
    fields = (0, 0, CopySide.STAGED, CopySide.DEVICE, 0, 0, 0, address, 0, 0, 2**40, 2**20, 1)
    assert program.call(Call.COPY, *fields, staged=bytes(8))[0] == Status.INVALID_VALUE


def test_memory_runs_out_as_on_a_card(program: Program) -> None:
    free, total = program.good(Call.MEMORY_INFO)
    assert free == total == 16 << 30
    address = program.allocate(10 << 30)
    assert program.good(Call.MEMORY_INFO)[0] == 6 << 30
    assert program.call(Call.MALLOC, 0, 0, 7 << 30, 0)[0] == Status.MEMORY_ALLOCATION
    program.good(Call.FREE, address, 0)
    assert program.good(Call.MEMORY_INFO)[0] == 16 << 30
    assert program.call(Call.FREE, address, 0)[0] == Status.INVALID_VALUE


@pytest.mark.parametrize(
    ("shape", "status"),
    [
        ((0, 32, 0), Status.INVALID_CONFIGURATION),
        ((1, 0, 0), Status.INVALID_CONFIGURATION),
        ((1, 1025, 0), Status.INVALID_CONFIGURATION),
        ((1, 32, 50000), Status.INVALID_VALUE),
    ],
)
def test_a_launch_that_cannot_be_is_refused(program: Program, shape: tuple[int, ...], status: Status) -> None:
    grid, block, shared = shape
    assert program.run("empty", grid, block, shared=shared) == status
    assert program.run("empty", 1, 32) == 0


def test_more_shared_memory_must_be_asked_for(program: Program) -> None:
    out = program.allocate(4)
    big = {"grid": 1, "block": 32, "shared": 60000}
    assert program.run("large_shared", parameters=struct.pack("<Q", out), **big) == Status.INVALID_VALUE
    program.good(Call.FUNCTION_ATTRIBUTE, KERNEL["large_shared"], 8, 60000)
    assert program.run("large_shared", parameters=struct.pack("<Q", out), **big) == 0
    assert struct.unpack("<I", program.to_host(out, 4))[0] == 60000
    assert program.call(Call.FUNCTION_ATTRIBUTE, KERNEL["large_shared"], 8, 200000)[0] == Status.INVALID_VALUE


def test_a_kernel_that_fails_fails_all_later_calls(program: Program, server: ServerThread) -> None:
    program.run("wild", 1, 1)
    assert program.call(Call.DEVICE_SYNCHRONIZE)[0] == Status.ILLEGAL_ADDRESS
    assert program.flags == STICKY
    assert program.call(Call.MALLOC, 0, 0, 4, 0)[0] == Status.ILLEGAL_ADDRESS
    assert any("kernel wild" in text and "reads 4 bytes at 0x40" in text for text in server.messages)


def test_a_trap_is_a_launch_failure_and_a_reset_helps(program: Program) -> None:
    program.run("gives_up", 1, 1)
    assert program.call(Call.DEVICE_SYNCHRONIZE)[0] == Status.LAUNCH_FAILURE
    program.good(Call.DEVICE_RESET)
    out = program.allocate(4)
    assert program.run("count", 1, 1, struct.pack("<Q", out)) == 0
    assert struct.unpack("<I", program.to_host(out, 4))[0] == 5


def test_a_cooperative_grid_meets(program: Program) -> None:
    out = program.allocate(4)
    program.good(Call.SET, 0, 0, out, 0, 0, 1, 1, 1, 0, 4)
    assert program.run("meet", 20, 1, struct.pack("<Q", out), flags=COOPERATIVE) == 0
    assert struct.unpack("<I", program.to_host(out, 4))[0] == 20
    too_many = program.run("meet", 100_000, 1, struct.pack("<Q", out), flags=COOPERATIVE)
    assert too_many == Status.COOPERATIVE_LAUNCH_TOO_LARGE


def test_occupancy(program: Program) -> None:
    assert program.good(Call.OCCUPANCY, KERNEL["empty"], 1024, 0)[0] == 2
    assert program.good(Call.OCCUPANCY, KERNEL["empty"], 32, 0)[0] == 32
    assert program.good(Call.OCCUPANCY, KERNEL["empty"], 32, 48 * 1024)[0] == 2
    assert program.good(Call.OCCUPANCY, KERNEL["large_shared"], 65, 0)[0] == 0


def test_a_texture_is_read(program: Program) -> None:
    width, height, pitch = 4, 3, 512
    address, out = program.allocate(pitch * height), program.allocate(4)
    values = np.arange(width * height, dtype=np.float32)
    fields = (0, 0, CopySide.STAGED, CopySide.DEVICE, 0, 0, 0, address, pitch, 0, 4 * width, height, 1)
    program.good(Call.COPY, *fields, staged=values.tobytes())
    made = (1, address, pitch, width, height, 1, 2, 0, 0, 0, 2, 32, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, *[0.0] * 5)
    texture = program.good(Call.TEXTURE_CREATE, *made)[0]
    program.run("texel", 1, 1, struct.pack("<QQ", texture, out))
    assert struct.unpack("<f", program.to_host(out, 4))[0] == 1 * width + 2
    program.good(Call.TEXTURE_DESTROY, texture)
    odd = (1, address, pitch, width, height, 1, 2, 0, 0, 0, 2, 24, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, *[0.0] * 5)
    assert program.call(Call.TEXTURE_CREATE, *odd)[0] == Status.NOT_SUPPORTED


def test_a_function_of_the_host_is_called_when_all_before_it_has_ended(program: Program) -> None:
    out = program.allocate(4)
    program.run("count", 1, 1, struct.pack("<Q", out))
    status, _, tail = program.call(Call.HOST_FUNCTION, 0, 77)
    assert status == AGAIN
    assert struct.unpack("<Q", tail) == (77,)
    program.good(Call.HOST_FUNCTION_DONE, 77)
    program.good(Call.HOST_FUNCTION, 0, 77)


def test_sass_alone_is_explained(program: Program, server: ServerThread) -> None:
    data = container((b"\x7fELF" + bytes(60), 80), kind=2)
    program.good(Call.LOAD_MODULE, 9, 1, 1, tail=struct.pack("<Q", len(data)), staged=data)
    assert program.call(Call.FUNCTION, 50, 9, tail=b"k")[0] == Status.NO_KERNEL_IMAGE_FOR_DEVICE
    assert "SASS for sm_80 only" in server.messages[0]


def test_an_instruction_that_is_not_supported_is_explained(program: Program, server: ServerThread) -> None:
    program.load(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry odd() { nonsense.u32; ret; }\n", 5
    )
    assert program.call(Call.FUNCTION, 51, 5, tail=b"odd")[0] == Status.NOT_SUPPORTED
    (message,) = (text for text in server.messages if "kernel odd cannot be executed" in text)
    assert "nonsense" in message
