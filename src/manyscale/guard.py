# SPDX-License-Identifier: Apache-2.0
"""Processes and temporary folders that do not outlive this process, however it ends, also by SIGKILL.

The program manyscale-guard (`guard/guard.cpp`) runs beside this process and tidies up after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from manyscale.errors import InputError

_MESSAGE = struct.Struct("=ii")
_STARTED, _NOT_STARTED, _ENDED = range(3)
_PR_SET_CHILD_SUBREAPER = 36
_ROUND = 0.02  # seconds


def guard_program() -> str:
    """The path of manyscale-guard."""
    path = str(files("manyscale") / "bin" / "manyscale-guard")
    if not os.access(path, os.X_OK):
        raise InputError(f"{path} is not there; reinstall the package")
    return path


def ends_with_this(command: Sequence[str], by: signal.Signals = signal.SIGKILL) -> list[str]:
    """A command that the kernel ends, by a signal, when this process ends."""
    program = shutil.which(command[0])
    if program is None:
        number = errno.EACCES if os.path.exists(command[0]) else errno.ENOENT
        raise OSError(number, os.strerror(number))
    return [guard_program(), "alone", f"{os.getpid()},{int(by)}", "--", program, *command[1:]]


# --- Folders ---


class _Folders:
    """The guard of this process's temporary folders; started when the first is made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0  # that started it: a forked child has its own
        self._control: socket.socket | None = None

    def send(self, mark: str, path: str) -> None:
        with self._lock:
            if self._process != os.getpid():
                self._start()
            assert self._control is not None
            with contextlib.suppress(OSError):  # the guard was killed: the folder still goes when it is left
                self._control.sendall(os.fsencode(mark + path) + b"\0")

    def _start(self) -> None:
        if self._control is not None:
            self._control.close()
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [guard_program(), "folders", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        process.returncode = 0  # nobody waits for it: it ends when this process has
        self._control, self._process = ours, os.getpid()


_folders = _Folders()


@contextlib.contextmanager
def temporary_folder(prefix: str = "manyscale-", parent: str | None = None) -> Iterator[Path]:
    """A new folder, removed with what is in it when it is left, or when this process ends."""
    folder = os.path.abspath(parent or tempfile.gettempdir())
    path = os.path.join(folder, prefix + secrets.token_hex(8))
    _folders.send("+", path)  # before it exists, so that there is no moment at which nobody knows of it
    try:
        os.mkdir(path, 0o700)
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _folders.send("-", path)


# --- A program and all that it starts ---


class ProcessTree:
    """A running program with all processes that it starts; none of them outlives `end` or this process.

    `mark` is text in the program's environment by which its processes are known should the guard itself be killed.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], mark: str, *, stdout: int | None = None
    ) -> None:
        self._mark = os.fsencode(mark)
        self._received = b""
        self.process = 0
        self.status: int | None = None
        """How the program ended, as `os.waitpid` gives it."""
        self._control, theirs = socket.socketpair()
        self._adopts = _adopt_orphans(True)
        try:
            with theirs:
                self._guard = subprocess.Popen(
                    [guard_program(), "tree", str(theirs.fileno()), "--", *command],
                    env=dict(environment),
                    stdout=stdout,
                    pass_fds=[theirs.fileno()],
                )
            kind, value = self._receive() or (_NOT_STARTED, 0)
        except BaseException:
            self._control.close()
            raise
        if kind == _NOT_STARTED:
            self.end()
            raise OSError(value, os.strerror(value) if value else "its guard has ended")
        self.process = value

    def fileno(self) -> int:
        """Readable when the program has ended."""
        return self._control.fileno()

    def poll(self) -> bool:
        """Whether the program has ended (or its guard has been killed, which ends the program)."""
        if self.status is None:
            self._control.setblocking(False)
            try:
                self._note_end(self._receive())
            except BlockingIOError:
                return False
            finally:
                self._control.setblocking(True)
        return True

    def end(self) -> int:
        """Ends what still runs and returns how the program ended."""
        with contextlib.suppress(OSError):
            self._control.sendall(b"q")
        while self.status is None:
            self._note_end(self._receive())
        self._control.close()
        self._guard.wait()
        if self._guard.returncode < 0:
            _end_marked(self._mark)
            with contextlib.suppress(OSError):
                os.waitpid(self.process, 0)
        _adopt_orphans(self._adopts)
        return self.status

    def _note_end(self, message: tuple[int, int] | None) -> None:
        if message is None:
            self.status = signal.SIGKILL  # with its guard
        elif message[0] == _ENDED:
            self.status = message[1]

    def _receive(self) -> tuple[int, int] | None:
        while len(self._received) < _MESSAGE.size:
            try:
                data = self._control.recv(_MESSAGE.size - len(self._received))
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._received += data
        message, self._received = self._received, b""
        kind, value = _MESSAGE.unpack(message)
        return kind, value


def _adopt_orphans(wanted: bool) -> bool:
    """Whether processes whose parents have ended become children of this one; returns how it was."""
    before = ctypes.c_int()
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_CHILD_SUBREAPER + 1, ctypes.byref(before), 0, 0, 0)
        library.prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
    return bool(before.value)


def _end_marked(mark: bytes) -> None:
    """Ends processes whose guard was killed: children of this one by now, with the mark in their environment."""
    while True:
        found = [process for process in _children() if mark in _environment(process)]
        if not found:
            return
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        time.sleep(_ROUND)


def _children() -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()
            if entry.isdigit() and int(fields[1]) == os.getpid():
                found.append(int(entry))
    return found


def _environment(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return b""
