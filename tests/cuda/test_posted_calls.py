# SPDX-License-Identifier: Apache-2.0
"""Calls that a program does not wait for: their order, their failures, and what they cost."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from kernels import KERNELS
from wire_client import OPTIONS, Client, ServerThread, serving

from manyscale.cuda.records import launches_of
from manyscale.cuda.status import Status
from manyscale.cuda.wire import LAYOUTS, POSTED, REPLY, STICKY, UNTIMED, Call, CopySide

pytestmark = pytest.mark.core

COUNT, TRAP, EMPTY = 1, 2, 3


class Program(Client):
    def begin(self) -> None:
        self.load(KERNELS)
        for number, name in ((COUNT, b"count"), (TRAP, b"gives_up"), (EMPTY, b"empty")):
            self.good(Call.FUNCTION, number, 1, tail=name)

    def post(self, call: Call, *fields: Any, tail: bytes = b"", marks: int = POSTED) -> None:
        self.send(call | marks, LAYOUTS[call].request().pack(*fields) + tail)

    def post_launch(self, function: int, parameters: bytes = b"", marks: int = POSTED) -> None:
        shape = (1, 1, 1, 32 if function == EMPTY else 1, 1, 1, 0, len(parameters))
        self.post(Call.LAUNCH, function, 0, 0, *shape, tail=parameters, marks=marks)


@pytest.fixture(params=["timed", "functional"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with serving(functional=request.param == "functional") as running:
        yield running


@pytest.fixture
def program(server: ServerThread) -> Iterator[Program]:
    client = Program(server.path)
    client.begin()
    yield client
    client.close()


def test_posted_calls_are_carried_out_in_order_and_have_no_reply(program: Program) -> None:
    out = program.allocate(4)
    for _ in range(500):
        program.post_launch(COUNT, struct.pack("<Q", out))
    assert struct.unpack("<I", program.to_host(out, 4)) == (
        5 + 499,
    )  # the kernel writes what was there before


def test_data_of_a_small_copy_comes_with_its_request(program: Program) -> None:
    out = program.allocate(4096)
    sides = (CopySide.STAGED, CopySide.DEVICE)
    for value in (b"a", b"b"):
        program.post(Call.COPY, 0, 0, *sides, 0, 0, 0, out, 0, 0, 4096, 1, 1, tail=value * 4096)
    assert program.to_host(out, 4096) == b"b" * 4096
    short = program.call(Call.COPY, 0, 0, *sides, 0, 0, 0, out, 0, 0, 100, 1, 1, tail=b"c" * 99)
    assert short[0] == Status.INVALID_VALUE


def test_the_error_of_a_posted_call_comes_with_the_next_reply(program: Program) -> None:
    program.post(Call.STREAM_SYNCHRONIZE, 77)
    program.post(Call.EVENT_SYNCHRONIZE, 78)
    assert program.call(Call.MEMORY_INFO)[0] == Status.INVALID_RESOURCE_HANDLE
    assert program.call(Call.MEMORY_INFO)[0] == Status.SUCCESS


def test_a_kernel_that_fails_after_it_was_posted_stays_an_error(
    program: Program, server: ServerThread
) -> None:
    program.post_launch(TRAP)
    program.post_launch(COUNT, struct.pack("<Q", 0))
    for _ in range(2):
        assert program.call(Call.DEVICE_SYNCHRONIZE)[0] == Status.LAUNCH_FAILURE
        assert program.flags & STICKY
    assert any("gives_up" in message for message in server.messages)


def test_what_one_thread_posted_comes_before_what_a_later_one_asks(
    program: Program, server: ServerThread
) -> None:
    out = program.allocate(4)
    for _ in range(2000):
        program.post_launch(COUNT, struct.pack("<Q", out))
    other = Program(server.path, thread=2)
    assert struct.unpack("<I", other.to_host(out, 4)) == (5 + 1999,)
    other.close()


def test_what_was_posted_last_is_done_though_the_program_has_ended(
    program: Program, server: ServerThread
) -> None:
    """As when a program ends without waiting for its kernels."""
    for _ in range(100):
        program.post_launch(EMPTY)
    program.socket.shutdown(socket.SHUT_WR)
    assert program.socket.recv(1) == b""  # all was read: the server has closed the connection
    again = Program(server.path, thread=2)
    again.good(Call.DEVICE_SYNCHRONIZE)
    again.close()
    assert len(launches_of(server.node)) == 100


def test_parts_of_a_call_cost_nothing(program: Program) -> None:
    program.good(Call.DEVICE_SYNCHRONIZE)
    before = program.nanoseconds
    for _ in range(10):
        program.send(Call.MEMORY_INFO | UNTIMED, b"")
        program.receive(Call.MEMORY_INFO)
    assert program.nanoseconds == before
    program.good(Call.MEMORY_INFO)
    assert program.nanoseconds == before + OPTIONS.call_time // 10**6


def test_a_call_that_is_not_there_is_refused_whatever_its_marks(
    program: Program, server: ServerThread
) -> None:
    program.send(999 | POSTED | UNTIMED, b"")
    assert program.socket.recv(REPLY.size) == b""
    assert any("there is no call 999" in message for message in server.messages)
