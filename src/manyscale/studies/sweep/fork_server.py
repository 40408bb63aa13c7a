# SPDX-License-Identifier: Apache-2.0
"""The process that workers of this machine are forked from: it has imported what they need, so they start at once.

The controller sends it one end of a socket for each worker it wants; it answers with the worker's process, and
later with how that ended. When the controller is gone, however it ended, all of them go too.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import socket
import sys
from multiprocessing.connection import Connection
from typing import Any

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Serves the controller at the other end of a socket; arguments: its descriptor, then modules to import."""
    control = socket.socket(fileno=int(arguments[0]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the controller decides
    for number in (signal.SIGTERM, signal.SIGHUP):  # batch systems send them to all processes of a job
        signal.signal(number, lambda *_: None)  # not ignored, which programs that points run would inherit
    for module in arguments[1:]:
        with contextlib.suppress(Exception):  # the point that needs it will say why
            importlib.import_module(module)
    awake, wakes = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    children: set[int] = set()
    try:
        while True:
            ready, _, _ = select.select([control.fileno(), awake], [], [])
            if awake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(awake, 4096)
                _report_ends(control, children)
            if control.fileno() in ready:
                data, descriptors, _, _ = socket.recv_fds(control, 1, 1)
                if not data:
                    return
                children.add(_start_worker(control, descriptors[0], (awake, wakes)))
    except (BrokenPipeError, ConnectionResetError):
        return
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _start_worker(control: socket.socket, descriptor: int, own: tuple[int, int]) -> int:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            for pipe in own:
                os.close(pipe)
            _die_with(parent)
            _work(Connection(descriptor))
            code = 0
        finally:
            os._exit(code)
    os.close(descriptor)
    _tell(control, {"started": child})
    return child


def _report_ends(control: socket.socket, children: set[int]) -> None:
    while children:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if child == 0:
            return
        if child in children:
            children.discard(child)
            _tell(control, {"ended": child, "status": os.waitstatus_to_exitcode(status)})


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _die_with(parent: int) -> None:
    """Asks the kernel to end this process with its parent, where it can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _work(connection: Connection) -> None:
    """Runs points until the controller closes the connection."""
    from manyscale.studies.sweep.worker import run_task

    with contextlib.suppress(EOFError, ConnectionResetError, BrokenPipeError):
        sys.path[:] = connection.recv()
        connection.send(None)  # ready
        while True:
            connection.send(run_task(connection.recv()))


if __name__ == "__main__":
    main(sys.argv[1:])
