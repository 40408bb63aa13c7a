# SPDX-License-Identifier: Apache-2.0
"""A client of the server of simulated GPUs, in Python: what the CUDA runtime of programs does, without a program."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

from manyscale.cuda import Node, NodeOptions
from manyscale.cuda.fatbin import MAGIC
from manyscale.cuda.records import Records
from manyscale.cuda.server import Server
from manyscale.cuda.session import SessionOptions
from manyscale.cuda.wire import LAYOUTS, REPLY, REQUEST, VERSION, Call, CopySide
from manyscale.machine import load_machine

OPTIONS = SessionOptions(call_time=10**9, measured_host=False, pageable_bandwidth=6 * 10**9)


def container(*texts: tuple[bytes, int], kind: int = 1) -> bytes:
    """A fat binary with plain PTX (or, of kind 2, SASS), each for an architecture."""
    entries = b""
    for text, architecture in texts:
        padded = text + b"\0" * (-len(text) % 8)
        entries += struct.pack(
            "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), 0, 0, 0, 7, architecture, 0, 0, 0x11, 0, 0
        )
        entries += padded
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(entries)) + entries


class Client:
    """One thread of a program."""

    def __init__(self, path: str, process: int = 1, thread: int = 1, program: int = 1) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect("\0" + path[1:])
        self.socket.settimeout(20)
        self.staging: mmap.mmap | None = None
        self.printed = b""
        self.nanoseconds = 0
        self.flags = 0
        self.device = 0
        self._received: list[int] = []
        _, fields, _ = self.call(Call.HELLO, VERSION, process, thread, 13000, program)
        self.devices, self.heap, self.heap_bytes, self.hello_flags = fields
        self.memory = mmap.mmap(self._received.pop(), self.heap_bytes)

    def call(
        self, call: Call, *fields: Any, tail: bytes = b"", staged: bytes = b""
    ) -> tuple[int, tuple[Any, ...], bytes]:
        """The status of a call, the fields of its answer (none unless it succeeded) and their tail."""
        if staged:
            self.room(len(staged))
            assert self.staging is not None
            self.staging[: len(staged)] = staged
        self.send(call, LAYOUTS[call].request().pack(*fields) + tail, len(staged))
        return self.receive(call)

    def good(self, call: Call, *fields: Any, tail: bytes = b"", staged: bytes = b"") -> tuple[Any, ...]:
        """The answer of a call that must succeed."""
        status, answer, _ = self.call(call, *fields, tail=tail, staged=staged)
        assert status == 0, f"{call.name}: {status}"
        return answer

    def send(self, call: int, payload: bytes, staged: int = 0, descriptors: tuple[int, ...] = ()) -> None:
        data = REQUEST.pack(len(payload), call, self.device, 0, staged) + payload
        if descriptors:
            socket.send_fds(self.socket, [data], list(descriptors))
        else:
            self.socket.sendall(data)

    def receive(self, call: Call) -> tuple[int, tuple[Any, ...], bytes]:
        header = self._read(REPLY.size)
        status, size, self.nanoseconds, printed, self.flags = REPLY.unpack(header)
        answer = self._read(size)
        self.printed += self._read(printed)
        layout = LAYOUTS[call].reply()
        if status or len(answer) < layout.size:
            return status, (), answer
        return status, layout.unpack_from(answer), answer[layout.size :]

    def room(self, size: int) -> None:
        """Staging memory of at least that size."""
        if self.staging is not None and len(self.staging) >= size:
            return
        file = os.memfd_create("staging")
        os.ftruncate(file, size)
        self.staging = mmap.mmap(file, size)
        self.send(Call.STAGING, struct.pack("<Q", size), descriptors=(file,))
        os.close(file)
        assert self.receive(Call.STAGING)[0] == 0

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part, descriptors, _, _ = socket.recv_fds(self.socket, size - len(data), 1)
            assert part, "the server has closed the connection"
            self._received += descriptors
            data += part
        return data

    # --- What programs do ---

    def load(self, ptx: str, number: int = 1) -> None:
        data = container((ptx.encode(), 70))
        self.good(Call.LOAD_MODULE, number, 1, 1, tail=struct.pack("<Q", len(data)), staged=data)

    def allocate(self, size: int, kind: int = 0) -> int:
        return int(self.good(Call.MALLOC, kind, 0, size, 0)[0])

    def to_device(self, address: int, data: bytes, stream: int = 0, flags: int = 0) -> None:
        self.good(
            Call.COPY,
            *(stream, flags, CopySide.STAGED, CopySide.DEVICE, 0, 0, 0, address, 0, 0, len(data), 1, 1),
            staged=data,
        )

    def to_host(self, address: int, size: int, stream: int = 0) -> bytes:
        self.room(size)
        self.good(Call.COPY, stream, 0, CopySide.DEVICE, CopySide.STAGED, address, 0, 0, 0, 0, 0, size, 1, 1)
        assert self.staging is not None
        return bytes(self.staging[:size])

    def launch(
        self,
        function: int,
        grid: int,
        block: int,
        parameters: bytes,
        *,
        stream: int = 0,
        shared: int = 0,
        flags: int = 0,
    ) -> int:
        shape = (grid, 1, 1, block, 1, 1, shared, len(parameters))
        return self.call(Call.LAUNCH, function, stream, flags, *shape, tail=parameters)[0]

    def heap_view(self, address: int, size: int) -> memoryview:
        return memoryview(self.memory)[address - self.heap : address - self.heap + size]

    def close(self) -> None:
        self.socket.close()


class ServerThread:
    """A server that runs beside a test."""

    def __init__(self, machine: str = "v100", **options: Any) -> None:
        self.path = f"@manyscale-test-{secrets.token_hex(8)}"
        self.messages: list[str] = []
        self.records = Records()
        self.node = Node(load_machine(machine).machine, NodeOptions(**options))
        self.server = Server(
            self.path, self.node, OPTIONS, self.records, self.messages.append, watch_managed=True
        )
        self._end, self._tell = os.pipe()
        self._thread = threading.Thread(target=self.server.serve, args=(self._end,))
        self._thread.start()

    def stop(self) -> None:
        if not self._thread.is_alive():
            return  # it was stopped before
        os.close(self._tell)
        self._thread.join(30)
        self.server.close()
        os.close(self._end)


@contextlib.contextmanager
def serving(machine: str = "v100", **options: Any) -> Iterator[ServerThread]:
    """A server; ends when the clients have closed."""
    server = ServerThread(machine, **options)
    try:
        yield server
    finally:
        server.stop()
