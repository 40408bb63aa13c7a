# SPDX-License-Identifier: Apache-2.0
"""Clients that do not speak as they should: the server says so, goes on, and keeps its memory small."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import resource
import socket
import struct
import threading
import time
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
        client.connect("\0" + server.path[1:])
        client.settimeout(20)
        yield client


def test_a_client_that_does_not_greet_is_dropped(server: ServerThread) -> None:
    with raw(server) as client:
        client.sendall(REQUEST.pack(0, Call.DEVICE_SYNCHRONIZE, 0, 0, 0))
        assert client.recv(1) == b""
    assert "did not begin with a handshake" in server.messages[0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (REQUEST.pack(20, Call.HELLO, 0, 0, 0) + struct.pack("<5I", 99, 1, 1, 13000, 1), "version 99"),
        (REQUEST.pack(3, Call.HELLO, 0, 0, 0) + b"abc", "wrong size"),
        (REQUEST.pack(0xFFFFFFFF, Call.HELLO, 0, 0, 0), "a request of 4294967295 bytes"),
    ],
)
def test_a_wrong_greeting_is_explained(server: ServerThread, data: bytes, words: str) -> None:
    with raw(server) as client:
        client.sendall(data)
        assert client.recv(1) == b""
    assert words in server.messages[0]


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


def test_a_silent_client_does_not_block_the_server(server: ServerThread) -> None:
    """Neither one that is silent, nor one that sends its requests byte by byte for ever, once the program has ended."""
    with raw(server), raw(server) as slow:
        other = Client(server.path)
        other.good(Call.DEVICE_SYNCHRONIZE)
        other.close()
        begin = time.monotonic()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        request = itertools.cycle(REQUEST.pack(1 << 20, Call.HELLO, 0, 0, 0))
        while stopping.is_alive() and time.monotonic() - begin < 20:
            with contextlib.suppress(OSError):
                slow.sendall(bytes([next(request)]))
            time.sleep(0.05)
        stopping.join(20)
    assert time.monotonic() - begin < 5


def test_a_client_that_leaves_in_the_middle_of_a_message_is_dropped(server: ServerThread) -> None:
    for size in (1, REQUEST.size - 1, REQUEST.size, REQUEST.size + 7):
        with raw(server) as client:
            client.sendall((REQUEST.pack(20, Call.HELLO, 0, 0, 0) + bytes(20))[:size])
    client = Client(server.path)
    client.send(Call.MALLOC, b"abc")  # a part of the fields
    client.close()
    other = Client(server.path, process=2)
    other.good(Call.DEVICE_SYNCHRONIZE)
    other.close()


def test_a_client_that_takes_no_replies_does_not_hold_up_others(server: ServerThread) -> None:
    """Its requests wait until it does, in memory of its own; then all of them are answered."""
    client, other = Client(server.path), Client(server.path, process=2)
    payload = LAYOUTS[Call.DEVICE_DESCRIPTION].request().pack(0)
    data = REQUEST.pack(len(payload), Call.DEVICE_DESCRIPTION, 0, 0, 0) + payload
    sent = 0
    client.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while sent < 100_000:
            client.socket.sendall(data)
            sent += 1
    assert 100 < sent < 100_000
    client.socket.settimeout(20)
    begin = time.monotonic()
    other.good(Call.DEVICE_SYNCHRONIZE)
    assert time.monotonic() - begin < 5
    for _ in range(sent):
        assert client.receive(Call.DEVICE_DESCRIPTION)[0] == 0
    client.close()
    other.close()


def test_more_clients_than_files_may_be_open_are_refused(server: ServerThread) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    clients = []
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                clients.append(one)
                one.connect("\0" + server.path[1:])
        end = time.monotonic() + 20
        while not server.messages and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in clients:
            one.close()
    assert "Too many open files" in server.messages[0]
    client = Client(server.path)
    client.good(Call.DEVICE_SYNCHRONIZE)
    client.close()


def test_a_process_that_becomes_another_program_gets_a_new_session(server: ServerThread) -> None:
    """After exec the process is the same, but the modules and memory of the program before are gone."""
    first = Client(server.path, program=1)
    first.load(KERNELS)
    first.allocate(1 << 20)
    free = first.good(Call.MEMORY_INFO)[0]
    first.socket.close()
    second = Client(server.path, program=2)
    assert second.good(Call.MEMORY_INFO)[0] == free + (1 << 20)
    assert second.call(Call.SYMBOL, 1, tail=b"counter")[0] != 0
    second.load(KERNELS)
    second.good(Call.SYMBOL, 1, tail=b"counter")
    second.close()
