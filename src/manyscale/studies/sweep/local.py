# SPDX-License-Identifier: Apache-2.0
"""Points on the cores of this machine: worker processes that stay, and are replaced when they die."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from manyscale.errors import ManyscaleError
from manyscale.studies.sweep.executor import Finished, Lost
from manyscale.studies.sweep.worker import Task, failed

_PATIENCE = 0.5  # seconds until `wait` comes back without news
_MOST_NURSERIES = 20  # that may end without any point having had a result
_SINGLE_THREADED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def usable_cores() -> int:
    """Cores that this process may use."""
    with contextlib.suppress(AttributeError):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class _Worker:
    """A worker process as the controller sees it."""

    connection: Connection
    process: int | None = None  # until the fork server has said which
    ready: bool = False  # it has said that it waits for a point
    task: Task | None = None
    deadline: float = float("inf")
    timed_out: bool = False
    gone: bool = False  # its end of the connection is closed


class LocalExecutor:
    """So many workers on this machine; each runs one point at a time."""

    def __init__(
        self, workers: int | None = None, *, modules: Sequence[str] = (), timeout: float | None = None
    ) -> None:
        self.capacity = max(workers or usable_cores(), 1)
        self._modules = ("manyscale.studies.sweep.worker", *modules)
        self._timeout = timeout
        self._waiting: deque[Task] = deque()
        self._news: deque[Finished | Lost] = deque()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._nurseries = 0
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control_buffer = b""

    def describe(self) -> str:
        """In words, where points are run."""
        return "1 worker here" if self.capacity == 1 else f"{self.capacity} workers here"

    @property
    def processes(self) -> list[int]:
        """The workers' processes."""
        return [worker.process for worker in self._workers if worker.process is not None and not worker.gone]

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._drop_fork_server()
        self._selector.close()

    def submit(self, task: Task) -> None:
        """Takes a point."""
        self._waiting.append(task)
        self._hand_out()

    def wait(self) -> list[Finished | Lost]:
        """What has happened; at least one thing, or nothing after a short while."""
        if not self._news:
            for key, _ in self._selector.select(self._time_left()):
                if key.data is None:
                    self._on_control_readable()
                else:
                    self._receive(key.data)
            self._end_late()
        self._hand_out()
        news = list(self._news)
        self._news.clear()
        return news

    def _time_left(self) -> float:
        first = min((worker.deadline for worker in self._workers), default=float("inf"))
        return min(max(first - time.monotonic(), 0.0), _PATIENCE)

    # --- Handing out and taking back ---

    def _hand_out(self) -> None:
        if self._waiting and self._control is None:
            self._start_fork_server()
        while self._waiting and len(self._workers) < self.capacity:
            self._start_worker()
        for worker in self._workers:
            if not self._waiting:
                return
            if worker.ready and worker.task is None and not worker.gone:
                self._give(worker, self._waiting.popleft())

    def _give(self, worker: _Worker, task: Task) -> None:
        worker.task = task
        worker.timed_out = False
        if self._timeout is not None:
            worker.deadline = time.monotonic() + self._timeout
        try:
            worker.connection.send(task)
        except OSError:  # it has just died, and did not begin
            worker.task = None
            self._waiting.appendleft(task)
            self._lose(worker)

    def _receive(self, worker: _Worker) -> None:
        try:
            record: Any = worker.connection.recv()
        except (EOFError, OSError):
            self._lose(worker)
            return
        if record is None:
            worker.ready = True
            return
        worker.task, worker.deadline = None, float("inf")
        self._nurseries = 0
        self._news.append(Finished(record))

    def _lose(self, worker: _Worker) -> None:
        """Its connection is closed; how it ended is told by the fork server."""
        if not worker.gone:
            worker.gone = True
            self._selector.unregister(worker.connection)
            worker.connection.close()

    def _end_late(self) -> None:
        """Ends workers whose point takes longer than allowed."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.deadline <= now and worker.process is not None and not worker.gone:
                worker.timed_out, worker.deadline = True, float("inf")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.process, signal.SIGKILL)

    # --- The fork server ---

    def _start_fork_server(self) -> None:
        self._nurseries += 1
        if self._nurseries > _MOST_NURSERIES:
            raise ManyscaleError(
                "workers cannot be started: the process that starts them ends again and again"
            )
        ours, theirs = socket.socketpair()
        environment = dict(os.environ)
        for name in _SINGLE_THREADED:  # each worker is one thread; many of them would fight for the cores
            environment.setdefault(name, "1")
        command = [
            sys.executable,
            "-m",
            "manyscale.studies.sweep.fork_server",
            str(theirs.fileno()),
            *self._modules,
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the controller
        )
        theirs.close()
        self._control, self._control_buffer = ours, b""
        self._selector.register(ours, selectors.EVENT_READ, None)

    def _start_worker(self) -> None:
        assert self._control is not None
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._control, [b"w"], [theirs.fileno()])
        except OSError:  # the fork server has died; that is noticed when it is read
            ours.close()
            self._drop_fork_server()
            self._start_fork_server()
            return
        finally:
            theirs.close()
        worker = _Worker(Connection(ours.detach()))
        with contextlib.suppress(OSError):
            worker.connection.send(list(sys.path))
        self._workers.append(worker)
        self._selector.register(worker.connection, selectors.EVENT_READ, worker)

    def _on_control_readable(self) -> None:
        assert self._control is not None
        try:
            data = self._control.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._drop_fork_server()
            return
        *lines, self._control_buffer = (self._control_buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "started" in message:
                next(one for one in self._workers if one.process is None).process = message["started"]
            else:
                self._on_worker_exit(message["ended"], message["status"])

    def _on_worker_exit(self, process: int, status: int) -> None:
        worker = next(one for one in self._workers if one.process == process)
        if not worker.gone and worker.connection.poll():  # it may have sent a result before it ended
            self._receive(worker)
        self._lose(worker)
        self._workers.remove(worker)
        if worker.task is None:
            return
        if worker.timed_out:
            text = f"it took longer than {self._timeout:g} s, and was ended"
            self._news.append(Finished(failed(worker.task["key"], text, self._timeout or 0.0)))
        else:
            self._news.append(Lost(worker.task["key"], _ending(status)))

    def _drop_fork_server(self) -> None:
        """Ends the fork server and all workers; their points are not to blame."""
        for worker in self._workers:
            self._lose(worker)
            if worker.task is not None:
                self._news.append(Lost(worker.task["key"], "all workers ended", blamed=False))
        self._workers.clear()
        if self._control is not None:
            self._selector.unregister(self._control)
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE)  # it ends its workers when the connection is closed
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _ending(status: int) -> str:
    if status >= 0:
        return f"its process ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = " (too little memory, perhaps)" if name == "SIGKILL" else ""
    return f"its process was killed by {name}{hint}"


def _has_descriptor(stream: Any) -> bool:
    try:
        return stream.fileno() >= 0  # type: ignore[no-any-return]
    except (AttributeError, OSError, ValueError):
        return False
