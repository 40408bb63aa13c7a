# SPDX-License-Identifier: Apache-2.0
"""The server of a program's simulated GPUs: answers the requests of its threads, one after the other."""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import select
import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from . import device_calls, kernel_calls, memory_calls, stream_calls, texture_calls
from .node import Node
from .records import Records
from .session import HANDLERS, Session, SessionOptions
from .status import Status
from .wire import LAYOUTS, POSTED, REPLY, REQUEST, UNPAID, VERSION, WATCH_MANAGED, Call

_CALLS = (device_calls, kernel_calls, memory_calls, stream_calls, texture_calls)  # they say who answers what
_AT_ONCE = 1 << 16
_LARGEST_REQUEST = 1 << 26
_MOST_DESCRIPTORS = 4
_HELLO = LAYOUTS[Call.HELLO]
_STAGING = LAYOUTS[Call.STAGING].request()
_NANOSECOND = 10**6
_NUMBER = 0xFFFF ^ POSTED ^ UNPAID  # of a call, without its marks
_BY_NUMBER = {int(call): call for call in HANDLERS}
_CREDENTIALS = struct.Struct("iII")  # process, user and group of a connection


class ProtocolError(Exception):
    """A client that does not speak as it should."""


class Connection:
    """One thread of the program."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.session: Session | None = None
        self.thread = 0
        self.staging: mmap.mmap | None = None
        self.failed: tuple[int, int] | None = (
            None  # status and flags of a posted call, of which it does not know yet
        )
        self._received = bytearray()
        self._descriptors: list[int] = []

    def receive(self) -> bool:
        """Takes what has come; False if the other side has closed."""
        data, ancillary, _, _ = self.socket.recvmsg(_AT_ONCE, socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS))
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._descriptors += numbers
        self._received += data
        return bool(data)

    def requests(self) -> Iterator[tuple[int, int, int, int, bytes]]:
        """The call, device, nanoseconds, staged bytes and fields of each request that has come as a whole."""
        received, at, header = self._received, 0, REQUEST.size
        while len(received) - at >= header:
            size, call, device, nanoseconds, staged = REQUEST.unpack_from(received, at)
            if size > _LARGEST_REQUEST:
                raise ProtocolError(f"a request of {size} bytes")
            end = at + header + size
            if len(received) < end:
                break
            yield call, device, nanoseconds, staged, bytes(received[at + header : end])
            at = end
        del received[:at]

    def take_descriptor(self) -> int:
        """A file that the client has sent."""
        if not self._descriptors:
            raise ProtocolError("the staging memory did not come with its request")
        return self._descriptors.pop(0)

    def share(self, descriptor: int, size: int) -> None:
        """Maps the staging memory of the client."""
        if self.staging is not None:
            self.staging.close()
            self.staging = None
        try:
            if size < 1 or os.fstat(descriptor).st_size < size:
                raise ProtocolError(f"staging memory of {size} bytes in a smaller file")
            self.staging = mmap.mmap(descriptor, size)
        except (OSError, ValueError, OverflowError) as error:
            raise ProtocolError(f"the staging memory cannot be mapped: {error}") from None
        finally:
            os.close(descriptor)

    def close(self) -> None:
        self.socket.close()
        if self.staging is not None:
            self.staging.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []


class Server:
    """Listens at a socket for the threads of a program, and simulates what they ask for."""

    def __init__(
        self,
        path: Path,
        node: Node,
        options: SessionOptions,
        records: Records,
        say: Callable[[str], None],
        *,
        watch_managed: bool,
    ) -> None:
        self._node = node
        self._options = options
        self._records = records
        self._say = say
        self._flags = WATCH_MANAGED if watch_managed else 0
        self.sessions: dict[int, Session] = {}
        self.ended_sessions: list[Session] = []
        self._connections: dict[int, Connection] = {}  # by file descriptor
        self._processes: dict[int, Session] = {}  # by a descriptor of the process
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self, until: int) -> None:
        """Answers requests until the process of this descriptor has ended and all connections are closed."""
        self._selector.register(until, selectors.EVENT_READ)
        running = True
        while running or self._connections:
            ready = self._selector.select(None if running else 1.0)
            if not ready and not running:
                break  # others of its processes go on; they have lost their GPUs
            for key, _ in ready:
                if key.fileobj == until:
                    self._selector.unregister(until)
                    running = False
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.fd in self._processes:
                    self._bury(key.fd)
                elif key.fd in self._connections:
                    self._hear(self._connections[key.fd])
        for descriptor in list(self._processes):
            self._bury(descriptor)

    def close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        for descriptor in self._processes:
            os.close(descriptor)
        self._selector.close()
        self._listener.close()

    @property
    def host_time(self) -> int:
        """The latest time of any host process, in femtoseconds."""
        return max(
            (session.clock.now for session in (*self.ended_sessions, *self.sessions.values())), default=0
        )

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            peer, _ = self._listener.accept()
            peer.setblocking(True)
            self._connections[peer.fileno()] = Connection(peer)
            self._selector.register(peer, selectors.EVENT_READ)

    def _hear(self, connection: Connection) -> None:
        try:
            if not connection.receive():
                self._drop(connection)
                return
            for request in connection.requests():
                self._answer(connection, *request)
        except ProtocolError as error:
            self._say(f"a program spoke to the simulator in a way it does not know: {error}")
            self._drop(connection)
        except ConnectionError:
            self._drop(connection)

    def _answer(
        self, connection: Connection, number: int, device: int, nanoseconds: int, staged: int, payload: bytes
    ) -> None:
        posted, paid, number = number & POSTED, not number & UNPAID, number & _NUMBER
        if number == Call.HELLO:
            self._greet(connection, payload)
            return
        session = connection.session
        if session is None:
            raise ProtocolError("it did not begin with a greeting")
        if number == Call.STAGING:
            if len(payload) != _STAGING.size:
                raise ProtocolError("a wrong size of its staging memory")
            connection.share(connection.take_descriptor(), _STAGING.unpack(payload)[0])
            self._reply(connection, 0, b"", 0)
            return
        call = _BY_NUMBER.get(number)
        if call is None:
            raise ProtocolError(f"there is no call {number}")
        status, answer, flags = session.answer(
            call, device, nanoseconds, payload, connection.staging, staged, connection.thread, paid
        )
        if posted:
            if status and connection.failed is None:
                connection.failed = status, flags
            return
        if connection.failed is not None:
            if status == Status.SUCCESS:
                (status, flags), answer = connection.failed, b""
            connection.failed = None
        self._reply(connection, status, answer, flags)

    def _reply(self, connection: Connection, status: int, answer: bytes, flags: int) -> None:
        session = connection.session
        assert session is not None
        printed = session.take_printed()
        header = REPLY.pack(status, len(answer), session.clock.now // _NANOSECOND, len(printed), flags)
        connection.socket.sendall(header + answer + printed)

    def _greet(self, connection: Connection, payload: bytes) -> None:
        fields = _HELLO.request()
        if len(payload) != fields.size:
            raise ProtocolError("a greeting of a wrong size")
        version, process, thread, _ = fields.unpack(payload)
        if version != VERSION:
            raise ProtocolError(
                f"its library speaks version {version} and the simulator {VERSION}; install both anew"
            )
        session = self.sessions.get(process)
        if session is None:
            for gpu in self._node.gpus:
                if gpu.fault is not None:  # in another process
                    self._node.replace(gpu)
            session = Session(process, self._node, self._options, self._records, self._say)
            session.clock.now = self.host_time
            self.sessions[process] = session
            self._watch(connection, session)
        else:  # what its other threads have posted came before whatever this one will ask
            self._hear_all(session)
        connection.session, connection.thread = session, thread
        node = self._node
        answer = _HELLO.reply().pack(len(node.gpus), node.heap_address, node.heap_bytes, self._flags)
        header = REPLY.pack(int(Status.SUCCESS), len(answer), session.clock.now // _NANOSECOND, 0, 0)
        socket.send_fds(connection.socket, [header + answer], [node.heap_file])

    def _watch(self, connection: Connection, session: Session) -> None:
        """Notes which process a session is of, to hear of its end: its threads come and go."""
        credentials = connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        try:
            descriptor = os.pidfd_open(_CREDENTIALS.unpack(credentials)[0])
        except OSError as error:
            raise ProtocolError(f"its process cannot be watched: {error.strerror}") from None
        self._processes[descriptor] = session
        self._selector.register(descriptor, selectors.EVENT_READ)

    def _hear_all(self, session: Session) -> None:
        """Answers what the threads of a process have already sent."""
        for descriptor, connection in list(self._connections.items()):
            waiting = select.poll()
            waiting.register(descriptor, select.POLLIN)
            while connection.session is session and descriptor in self._connections and waiting.poll(0):
                self._hear(connection)

    def _drop(self, connection: Connection) -> None:
        """Forgets a thread."""
        descriptor = connection.socket.fileno()
        self._selector.unregister(connection.socket)
        del self._connections[descriptor]
        connection.close()

    def _bury(self, descriptor: int) -> None:
        """A process has ended."""
        self._selector.unregister(descriptor)
        session = self._processes.pop(descriptor)
        os.close(descriptor)
        self.sessions.pop(session.process, None)
        self._hear_all(session)  # what it posted last
        for connection in list(self._connections.values()):
            if connection.session is session:
                self._drop(connection)
        self.ended_sessions.append(session)
        session.end()
