# SPDX-License-Identifier: Apache-2.0
"""Clients that do not speak as they should: the server says so, goes on, and keeps its memory small."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
from collections.abc import Iterator

import pytest
from kernels import KERNELS
from wire_client import Client, ServerThread, serving

from manyscale.cuda.wire import LAYOUTS, REQUEST, Call

pytestmark = pytest.mark.core


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with serving(functional=True) as running:
        yield running


@contextlib.contextmanager
def raw(server: ServerThread) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(server.path))
        client.settimeout(20)
        yield client


def test_a_client_that_does_not_greet_is_dropped(server: ServerThread) -> None:
    with raw(server) as client:
        client.sendall(REQUEST.pack(0, Call.DEVICE_SYNCHRONIZE, 0, 0, 0))
        assert client.recv(1) == b""
    assert "did not begin with a greeting" in server.said[0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (REQUEST.pack(16, Call.HELLO, 0, 0, 0) + struct.pack("<4I", 99, 1, 1, 13000), "version 99"),
        (REQUEST.pack(3, Call.HELLO, 0, 0, 0) + b"abc", "wrong size"),
        (REQUEST.pack(0xFFFFFFFF, Call.HELLO, 0, 0, 0), "a request of 4294967295 bytes"),
    ],
)
def test_a_wrong_greeting_is_explained(server: ServerThread, data: bytes, words: str) -> None:
    with raw(server) as client:
        client.sendall(data)
        assert client.recv(1) == b""
    assert words in server.said[0]


def test_an_unknown_call_ends_the_connection_and_not_the_server(server: ServerThread) -> None:
    client = Client(server.path)
    client.send(999, b"")
    assert client.socket.recv(1) == b""
    client.close()
    other = Client(server.path)
    other.good(Call.DEVICE_SYNCHRONIZE)
    other.close()


def test_staging_memory_that_is_not_there_is_refused(server: ServerThread) -> None:
    client = Client(server.path)
    client.send(Call.STAGING, struct.pack("<Q", 4096))
    assert client.socket.recv(1) == b""
    client.close()
    client = Client(server.path)
    small = os.memfd_create("small")
    os.ftruncate(small, 100)
    client.send(Call.STAGING, struct.pack("<Q", 1 << 40), descriptors=(small,))
    assert client.socket.recv(1) == b""
    os.close(small)
    client.close()


def test_requests_in_pieces_are_put_together(server: ServerThread) -> None:
    client = Client(server.path)
    payload = LAYOUTS[Call.MALLOC].request().pack(0, 0, 256, 0)
    data = REQUEST.pack(len(payload), Call.MALLOC, 0, 0, 0) + payload
    for byte in data:
        client.socket.sendall(bytes([byte]))
    assert client.receive(Call.MALLOC)[0] == 0
    client.socket.sendall(data * 3)
    assert [client.receive(Call.MALLOC)[0] for _ in range(3)] == [0, 0, 0]
    client.close()


def test_random_requests_give_answers_only(server: ServerThread) -> None:
    chance = random.Random(11)
    client = Client(server.path)
    client.load(KERNELS)
    client.room(1 << 16)
    interesting = (0, 1, 2, 7, 255, 4096, 2**31, 2**32 - 1)
    for _ in range(2000):
        call = chance.choice(sorted(set(Call) - {Call.HELLO, Call.STAGING}))
        values = []
        for _, form in LAYOUTS[call].fields:
            if form in "fd":
                values.append(chance.random())
                continue
            bits = {"I": 32, "i": 31, "Q": 64}[form]
            value = chance.choice(
                (*interesting, chance.getrandbits(bits), client.heap + chance.getrandbits(16))
            )
            values.append(value % (1 << 16) if call == Call.MALLOC else value % 2**bits)
        tail = chance.randbytes(chance.choice((0, 0, 3, 8, 24))) if LAYOUTS[call].tail else b""
        client.device = chance.choice((0, 0, 5, 65535))
        client.send(
            call, LAYOUTS[call].request().pack(*values) + tail, chance.choice((0, 64, 1 << 16, 1 << 40))
        )
        client.receive(call)
    client.send(Call.COPY, b"too short")
    assert client.receive(Call.COPY)[0] == 1
    client.close()
