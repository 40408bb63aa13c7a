# SPDX-License-Identifier: Apache-2.0
"""The server of the simulated GPUs: answers the requests of a program's threads, one after the other.

Its socket is in the abstract namespace ("@name"), so that no file is left when it is killed.
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import select
import selectors
import socket
import struct
import time
from collections.abc import Callable

from . import (
    device_calls,
    kernel_calls,
    memory_calls,
    ranges,
    stream_calls,
    texture_calls,
    virtual_memory_calls,
)
from .node import Node
from .properties import Attribute
from .records import Records
from .session import HANDLERS, Session, SessionOptions
from .status import Status
from .wire import (
    LAYOUTS,
    MEASURED_HOST,
    POSTED,
    REPLY,
    REQUEST,
    UNTIMED,
    VERSION,
    WATCH_MANAGED,
    Call,
)

_CALLS = (
    device_calls,
    kernel_calls,
    memory_calls,
    ranges,
    stream_calls,
    texture_calls,
    virtual_memory_calls,
)  # they register their handlers
_AT_ONCE = 1 << 16
_LARGEST_REQUEST = 1 << 26
_MOST_DESCRIPTORS = 4
_HELLO = LAYOUTS[Call.HELLO]
_STAGING = LAYOUTS[Call.STAGING].request()
_NANOSECOND = 10**6
_NUMBER = 0xFFFF ^ POSTED ^ UNTIMED  # the number of a call, without its flags
_BY_NUMBER = {int(call): call for call in HANDLERS}
_CREDENTIALS = struct.Struct("iII")  # process, user and group of a connection
_PATIENCE = 1.0  # seconds without a request, after which the server of an ended program stops
_PERIOD = 0.05  # seconds between two writes of the journal


class ProtocolError(Exception):
    """A client that violates the protocol."""


class Connection:
    """One thread of the program."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.session: Session | None = None
        self.thread = 0
        self.staging: mmap.mmap | None = None
        self.failed: tuple[int, int] | None = None  # status and flags of a posted call, for the next reply
        self.unsent = bytearray()  # replies that the client has not received; until it has, it is not read
        self._received = bytearray()
        self._descriptors: list[int] = []

    def receive(self) -> bool:
        """Receives data; False if the other side has closed."""
        try:
            data, ancillary, _, _ = self.socket.recvmsg(_AT_ONCE, socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS))
        except BlockingIOError:
            return True
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._descriptors += numbers
        self._received += data
        return bool(data)

    def next_request(self) -> tuple[int, int, int, int, bytes] | None:
        """The call, device, nanoseconds, staged bytes and fields of the next complete request."""
        received, header = self._received, REQUEST.size
        if len(received) < header:
            return None
        size, call, device, nanoseconds, staged = REQUEST.unpack_from(received)
        if size > _LARGEST_REQUEST:
            raise ProtocolError(f"a request of {size} bytes")
        end = header + size
        if len(received) < end:
            return None
        fields = bytes(received[header:end])
        del received[:end]
        return call, device, nanoseconds, staged, fields

    def send(self, data: bytes) -> None:
        """Sends a reply, as far as the socket accepts it now."""
        sent = 0
        if not self.unsent:
            with contextlib.suppress(BlockingIOError):
                sent = self.socket.send(data)
        if sent < len(data):
            self.unsent += data[sent:]

    def send_rest(self) -> None:
        """Sends more of what was not sent."""
        with contextlib.suppress(BlockingIOError):
            del self.unsent[: self.socket.send(self.unsent)]

    def take_descriptor(self) -> int:
        """A file descriptor that the client has sent."""
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


class _Channel(socket.socket):
    """A socket through which another process hands over connections."""

    def accept(self) -> tuple[socket.socket, None]:
        _, descriptors, _, _ = socket.recv_fds(self, 1, 1)
        if not descriptors:
            raise ConnectionError("nobody hands over connections any more")
        return socket.socket(fileno=descriptors[0]), None


class Server:
    """Listens on a socket for the threads of a program, and handles their calls."""

    def __init__(
        self,
        address: str,
        node: Node,
        options: SessionOptions,
        records: Records,
        notify: Callable[[str], None],
        *,
        watch_managed: bool,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        """`notify` shows the user a message; `keep` is called periodically to write what has ended."""
        self._node = node
        self._options = options
        self._records = records
        self._notify = notify
        self._keep = keep
        self._kept = time.monotonic()
        self._answered = 0.0  # time of the last answer, on the real clock
        self._numbered = 0  # number of sessions so far
        self._flags = (watch_managed and WATCH_MANAGED) | (options.measured_host and MEASURED_HOST)
        self.sessions: dict[tuple[int, int], Session] = {}  # by process, and by the program that it executes
        self.ended_sessions: list[Session] = []
        self._connections: dict[int, Connection] = {}  # by file descriptor
        self._processes: dict[int, Session] = {}  # by a descriptor of the process
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind("\0" + address[1:] if address.startswith("@") else address)
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._spare = os.open(os.devnull, os.O_RDONLY)  # closed for a moment when no descriptor is free

    def serve(self, until: int) -> None:
        """Answers requests until the process of this descriptor has ended and all connections are closed."""
        self._selector.register(until, selectors.EVENT_READ)
        running = True
        while running or self._connections:
            due = _PERIOD if self._answered > self._kept else None
            ready = self._selector.select(due if running else _PERIOD)
            now = time.monotonic()
            if now - self._kept >= _PERIOD:
                self._kept = now
                self._keep()
            if not running and now - self._answered > _PATIENCE:
                break  # other processes of it continue without GPUs
            for key, events in ready:
                if key.fileobj == until:
                    self._selector.unregister(until)
                    running = False
                    self._answered = max(self._answered, now)
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.fd in self._processes:
                    self._on_client_exit(key.fd)
                elif key.fd in self._connections:
                    self._on_readable(
                        self._connections[key.fd], writable=bool(events & selectors.EVENT_WRITE)
                    )
        for descriptor in list(self._processes):
            self._on_client_exit(descriptor)

    def take_connections_from(self, channel: socket.socket) -> None:
        """From now on, connections come as descriptors through a channel, and not to the server's own socket."""
        self._selector.unregister(self._listener)
        self._listener.close()
        self._listener = _Channel(fileno=channel.detach())
        self._selector.register(self._listener, selectors.EVENT_READ)

    def close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        for descriptor in self._processes:
            os.close(descriptor)
        self._selector.close()
        self._listener.close()
        os.close(self._spare)

    @property
    def host_time(self) -> int:
        """The latest time of any host process, in femtoseconds."""
        return max(
            (session.clock.now for session in (*self.ended_sessions, *self.sessions.values())), default=0
        )

    def _accept(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:  # no free descriptor
            os.close(self._spare)
            with contextlib.suppress(OSError):
                self._listener.accept()[0].close()  # else it would stay pending for ever
            self._spare = os.open(os.devnull, os.O_RDONLY)
            self._notify(f"a thread of the program was refused: {error.strerror}; see ulimit -n")
            return
        _, user, _ = peer_credentials(peer)
        if user not in (os.geteuid(), 0):
            peer.close()
            return
        peer.setblocking(False)
        self._connections[peer.fileno()] = Connection(peer)
        self._selector.register(peer, selectors.EVENT_READ)

    def _on_readable(self, connection: Connection, *, writable: bool = False) -> None:
        try:
            if writable:
                connection.send_rest()
                if connection.unsent:
                    return
                self._selector.modify(connection.socket, selectors.EVENT_READ)
            elif not connection.receive():
                self._drop(connection)
                return
            self._answer_all(connection)
        except ProtocolError as error:
            self._notify(f"a program violates the protocol of the simulator: {error}")
            self._drop(connection)
        except ConnectionError:
            self._drop(connection)

    def _answer_all(self, connection: Connection) -> None:
        """Answers the requests of a thread, until a reply cannot be sent."""
        while not connection.unsent and (request := connection.next_request()) is not None:
            self._answer(connection, *request)
            self._answered = time.monotonic()
        if connection.unsent:
            self._selector.modify(connection.socket, selectors.EVENT_WRITE)

    def _answer(
        self, connection: Connection, number: int, device: int, nanoseconds: int, staged: int, payload: bytes
    ) -> None:
        posted, timed, number = number & POSTED, not number & UNTIMED, number & _NUMBER
        if number == Call.HELLO:
            self._handshake(connection, payload)
            return
        if number == Call.DEVICE_STATUS:
            known, told = self._device_status(payload)
            connection.send(REPLY.pack(int(known), len(told), 0, 0, 0) + told)
            return
        session = connection.session
        if session is None:
            raise ProtocolError("it did not begin with a handshake")
        if number == Call.STAGING:
            if len(payload) != _STAGING.size:
                raise ProtocolError("a wrong size of its staging memory")
            connection.share(connection.take_descriptor(), _STAGING.unpack(payload)[0])
            self._reply(connection, 0, b"", 0)
            return
        if number == Call.HOST_TIME:
            session.clock.called(nanoseconds, costs=False)
            self._reply(connection, 0, b"", 0)
            return
        call = _BY_NUMBER.get(number)
        if call is None:
            raise ProtocolError(f"there is no call {number}")
        status, answer, flags = session.answer(
            call, device, nanoseconds, payload, connection.staging, staged, connection.thread, timed
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

    def _device_status(self, payload: bytes) -> tuple[Status, bytes]:
        """What NVML asks of a GPU: what it is, and which processes have memory on it."""
        layout = LAYOUTS[Call.DEVICE_STATUS]
        if len(payload) != layout.request().size:
            raise ProtocolError("a wrong question about a device")
        (number,) = layout.request().unpack(payload)
        if number >= len(self._node.gpus):
            return Status.INVALID_DEVICE, b""
        gpu, heap = self._node.gpus[number], self._node.heap
        told, attributes = gpu.description, gpu.description.attributes
        fields = layout.reply().pack(
            len(self._node.gpus),
            told.memory,
            heap.used(gpu),
            told.name.encode()[:95],
            told.uuid,
            told.capability,
            attributes[Attribute.PCI_BUS_ID],
            attributes[Attribute.CLOCK_RATE],
            attributes[Attribute.MEMORY_CLOCK_RATE],
            attributes[Attribute.GLOBAL_MEMORY_BUS_WIDTH],
        )
        rows = [
            (process, heap.used_by(session.process, gpu)) for (process, _), session in self.sessions.items()
        ]
        return Status.SUCCESS, fields + b"".join(struct.pack("<IQ", *row) for row in rows if row[1])

    def _reply(self, connection: Connection, status: int, answer: bytes, flags: int) -> None:
        session = connection.session
        assert session is not None
        printed = session.take_printed()
        header = REPLY.pack(status, len(answer), session.clock.now // _NANOSECOND, len(printed), flags)
        connection.send(header + answer + printed)

    def _handshake(self, connection: Connection, payload: bytes) -> None:
        fields = _HELLO.request()
        if len(payload) != fields.size:
            raise ProtocolError("a handshake of a wrong size")
        version, process, _, _, program = fields.unpack(payload)
        if version != VERSION:
            raise ProtocolError(
                f"its library has protocol version {version} and the simulator {VERSION}; install both again"
            )
        session = self.sessions.get((process, program))
        if session is None:
            self._end_replaced(process)
            for gpu in self._node.gpus:
                if gpu.fault is not None:  # in another process
                    self._node.replace(gpu)
            self._numbered += 1
            session = Session(self._numbered, self._node, self._options, self._records, self._notify)
            session.clock.now = self.host_time
            self.sessions[process, program] = session
            self._watch_process(connection, session)
        else:  # calls that its other threads have posted come first
            self._answer_posted(session)
        session.threads += 1
        connection.session, connection.thread = session, session.threads
        node = self._node
        answer = _HELLO.reply().pack(len(node.gpus), node.heap_address, node.heap_bytes, self._flags)
        header = REPLY.pack(int(Status.SUCCESS), len(answer), session.clock.now // _NANOSECOND, 0, 0)
        socket.send_fds(connection.socket, [header + answer], [node.heap_file])

    def _end_replaced(self, process: int) -> None:
        """Ends the session of a process that executes another program now (exec)."""
        replaced = [session for key, session in self.sessions.items() if key[0] == process]
        for descriptor, session in list(self._processes.items()):
            if session in replaced:
                self._on_client_exit(descriptor)

    def _watch_process(self, connection: Connection, session: Session) -> None:
        """Watches the process of a session for its exit: connections close with threads."""
        try:
            descriptor = os.pidfd_open(peer_credentials(connection.socket)[0])
        except OSError as error:
            raise ProtocolError(f"its process cannot be watched: {error.strerror}") from None
        self._processes[descriptor] = session
        self._selector.register(descriptor, selectors.EVENT_READ)

    def _answer_posted(self, session: Session) -> None:
        """Answers the requests that the threads of a process have already sent."""
        for descriptor, connection in list(self._connections.items()):
            waiting = select.poll()
            waiting.register(descriptor, select.POLLIN)
            while (
                connection.session is session
                and descriptor in self._connections
                and not connection.unsent
                and waiting.poll(0)
            ):
                self._on_readable(connection)

    def _drop(self, connection: Connection) -> None:
        """Closes the connection of a thread."""
        descriptor = connection.socket.fileno()
        self._selector.unregister(connection.socket)
        del self._connections[descriptor]
        connection.close()

    def _on_client_exit(self, descriptor: int) -> None:
        """Ends the session of a process that has exited."""
        self._selector.unregister(descriptor)
        session = self._processes.pop(descriptor)
        os.close(descriptor)
        self.sessions = {key: other for key, other in self.sessions.items() if other is not session}
        self._answer_posted(session)  # its last posted calls
        for connection in list(self._connections.values()):
            if connection.session is session:
                self._drop(connection)
        self.ended_sessions.append(session)
        session.end()


def peer_credentials(peer: socket.socket) -> tuple[int, int, int]:
    """The process, user and group at the other end."""
    process, user, group = _CREDENTIALS.unpack(
        peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return process, user, group
