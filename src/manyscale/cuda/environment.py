# SPDX-License-Identifier: Apache-2.0
"""Simulated GPUs for whatever a shell starts: a dispatcher in the background, and a server for each CUDA program.

Programs find the dispatcher through the environment. It hands the connections of each process to a server of its own,
which leaves a run directory when the process has ended, and ends itself with the shell that asked for it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import select
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyscale.errors import ManyscaleError
from manyscale.machine import ResolvedMachine

from .loader import library_folder, loader_variables, nvtx_variable, put_first
from .node import NodeOptions
from .program import SOCKET, HostOptions, Program
from .run_directory import run_recorded
from .server import Server, peer_credentials

_PERIOD = 0.2  # seconds between two looks at servers that may have ended


@dataclass(frozen=True)
class Settings:
    """What the programs of a shell run on, and where their run directories go."""

    machine: ResolvedMachine
    node: NodeOptions
    host: HostOptions
    folder: Path
    quiet: bool = False


class AttachedProgram(Program):
    """A program that somebody else has started, whose connections come through a channel."""

    def __init__(self, process: int, channel: socket.socket, settings: Settings) -> None:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[1:-1]
        command = [os.readlink(f"/proc/{process}/exe"), *(os.fsdecode(word) for word in words)]
        super().__init__(command, settings.machine, settings.node, settings.host, _say(settings))
        self._process, self._channel = process, channel

    def _serve(self, server: Server, address: str, stdout: int | None) -> None:
        server.take_connections_from(self._channel)
        ended = os.pidfd_open(self._process)
        try:
            server.serve(ended)
        finally:
            os.close(ended)


def variables(address: str) -> dict[str, str]:
    """The same for programs that this process starts."""
    folder = library_folder()
    return {SOCKET: address, **put_first(loader_variables(folder), os.environ), **nvtx_variable(folder)}


def exports(address: str, host: HostOptions) -> str:
    """What a shell has to evaluate, so that programs find the simulated GPUs."""
    folder = library_folder()
    single = {SOCKET: address, **nvtx_variable(folder)}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in single.items()]
    listed = loader_variables(folder, host_clock=host.simulated_clock, operators=host.operators)
    for name, value in listed.items():
        lines.append(f'export {name}={shlex.quote(value)}"${{{name}:+:${name}}}"')
    return "\n".join(lines)


def start(settings: Settings, process: int | None = None) -> str:
    """Starts a dispatcher in the background, which ends with a process, and gives its address.

    Without one, it is that of the shell that has started this process.
    """
    library_folder()
    address = f"@manyscale-cuda-{secrets.token_hex(16)}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + address[1:])
    listener.listen(128)
    shell = _shell() if process is None else os.pidfd_open(process)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        listener.close()
        return address
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):  # the shell waits for the end of its standard output
            os.dup2(nothing, descriptor)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        Dispatcher(listener, settings, shell).run()
        code = 0
    finally:
        os._exit(code)


class Dispatcher:
    """Hands the connections of each process to a server of its own."""

    def __init__(self, listener: socket.socket, settings: Settings, shell: int) -> None:
        self._listener, self._settings, self._shell = listener, settings, shell
        self._servers: dict[
            int, tuple[int, socket.socket]
        ] = {}  # by server: the process it serves, and its channel

    def run(self) -> None:
        """Until the shell has ended, and all that it had started."""
        gc.freeze()
        watched: list[Any] = [self._listener, self._shell]
        while self._shell in watched or self._servers:
            ready, _, _ = select.select(watched, [], [], _PERIOD)
            if self._shell in ready:
                watched.remove(self._shell)
            self._collect()
            if self._listener in ready:
                with contextlib.suppress(OSError):
                    self._dispatch(self._listener.accept()[0])

    def _collect(self) -> None:
        """Forgets servers that have ended."""
        while self._servers:
            server, _ = os.waitpid(-1, os.WNOHANG)
            if server == 0:
                return
            if server in self._servers:
                self._servers.pop(server)[1].close()

    def _dispatch(self, peer: socket.socket) -> None:
        with peer:
            process, user, _ = peer_credentials(peer)
            if user not in (os.geteuid(), 0):
                return
            channel = next((one for served, one in self._servers.values() if served == process), None)
            if channel is None:
                channel = self._new_server(process)
            with contextlib.suppress(OSError):  # it has ended meanwhile
                socket.send_fds(channel, [b"c"], [peer.fileno()])

    def _new_server(self, process: int) -> socket.socket:
        ours, theirs = socket.socketpair()
        server = os.fork()
        if server:
            theirs.close()
            self._servers[server] = process, ours
            return ours
        code = 1
        try:
            self._listener.close()
            ours.close()
            code = _serve(process, theirs, self._settings)
        finally:
            os._exit(code)


def _serve(process: int, channel: socket.socket, settings: Settings) -> int:
    """Serves a process until it has ended, and leaves its run directory; the exit code of the server."""
    from manyscale.results.run_directory import default_directory

    say = _say(settings)
    try:
        program = AttachedProgram(process, channel, settings)
        directory = default_directory(settings.folder, f"cuda-{program.path.name}")
        run_recorded(program, directory, stdout=None, command=["manyscale", *sys.argv[1:]])
    except ManyscaleError as error:
        say(str(error))
        return error.exit_code
    except OSError as error:  # it has ended before it was looked at
        say(f"process {process}: {error}")
        return 1
    return 0


def _say(settings: Settings) -> Callable[[str], None]:
    def say(text: str) -> None:
        if not settings.quiet:
            os.write(2, f"manyscale: {text}\n".encode())

    return say


def _shell() -> int:
    """A descriptor of the shell that this process was started for."""
    process = os.getppid()
    with contextlib.suppress(OSError):  # of a process that may not be looked at
        ours, theirs = os.readlink("/proc/self/fd/1"), os.readlink(f"/proc/{process}/fd/1")
        if ours == theirs and ours.startswith("pipe:"):  # a part of the shell that is only there for the $(…)
            status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
            process = int(status.rpartition(")")[2].split()[1])
    return os.pidfd_open(process)
