# SPDX-License-Identifier: Apache-2.0
"""One simulation on many machines: the processes that mpirun started, and how they meet (mpi4py).

After `join()` in each of them, runs are made together: each process has a share of the components. The first one has
the results; what the others leave behind goes nowhere.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from manyscale.errors import InputError
from manyscale.guard import temporary_folder
from manyscale.interrupts import STOP_SIGNALS

_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_NRANKS", "MV2_COMM_WORLD_SIZE")
_TRIES = 200  # before others may have the core
_PATIENCE = 10.0  # seconds that a process waits at its end for the others to come to theirs


class Processes:
    """The processes of a run, as one of them sees them."""

    def __init__(self, communicator: Any) -> None:
        from mpi4py import MPI

        self._communicator = communicator
        self._bytes = MPI.BYTE
        self._test_all = MPI.Request.Testall
        self.process: int = communicator.Get_rank()
        self.processes: int = communicator.Get_size()
        self.waited = 0.0
        """Seconds of its processor that this process has spent waiting for others."""

    @property
    def is_first(self) -> bool:
        """Whether this is the process that has the results."""
        return self.process == 0

    def alltoall(self, outgoing: memoryview, incoming: memoryview) -> None:
        """Equal pieces to all, and from all."""
        self._finish(self._communicator.Ialltoall([outgoing, self._bytes], [incoming, self._bytes]).Test)

    def transfer(
        self, outgoing: Sequence[tuple[int, memoryview]], incoming: Sequence[tuple[int, memoryview]]
    ) -> None:
        """Buffers to some processes and from some, which know of each other."""
        on = self._communicator
        requests = [on.Irecv([buffer, self._bytes], source) for source, buffer in incoming]
        requests += [on.Isend([buffer, self._bytes], target) for target, buffer in outgoing]
        self._finish(lambda: self._test_all(requests))

    def _finish(self, done: Callable[[], bool]) -> None:
        """Waits; not for long on a core that another process may need, as MPI libraries do."""
        if done():
            return
        begin = time.thread_time()
        for _ in range(_TRIES):
            if done():
                break
        else:
            while not done():
                os.sched_yield()
        self.waited += time.thread_time() - begin

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, in all of them."""
        gathered: list[Any] = self._communicator.allgather(value)
        return gathered

    def all_end(self) -> bool:
        """Whether all processes come to their end within a while."""
        request = self._communicator.Ibarrier()
        end = time.monotonic() + _PATIENCE
        while not request.Test():
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        return True

    def abort(self, code: int) -> None:
        """Ends all processes at once."""
        self._communicator.Abort(code)


_joined: Processes | None = None


def together() -> Processes | None:
    """The processes that this one has joined; None if it runs alone."""
    return _joined


def is_other() -> bool:
    """Whether another process has the results."""
    return _joined is not None and not _joined.is_first


def announced() -> int:
    """How many processes mpirun says it has started; 1 if it did not start this one."""
    for name in _SIZES:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return 1


def join() -> Processes | None:
    """From now on runs are made together with the other processes of mpirun; None if there are no others."""
    global _joined
    if _joined is None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise InputError(
                f"one simulation on several processes needs mpi4py and an MPI library ({error}): "
                "pip install 'manyscale[mpi]'"
            ) from None
        if MPI.COMM_WORLD.Get_size() > 1:
            _joined = Processes(MPI.COMM_WORLD.Dup())
    return _joined


def scratch_directory() -> Path:
    """A folder for what processes other than the first would write; it goes with the process."""
    return _scratch.enter_context(temporary_folder("manyscale-process-"))


_scratch = contextlib.ExitStack()
atexit.register(_scratch.close)


@contextlib.contextmanager
def command_line() -> Iterator[list[int]]:
    """For the length of a command: joins if mpirun started this process, and speaks only in the first.

    Gives a list for the exit code. A process that fails alone ends all others, which would wait for it for ever.
    """
    code = [0]
    if announced() <= 1:
        yield code
        return
    found = join()
    if found is None:
        yield code
        return
    with contextlib.ExitStack() as stack:
        hidden = None if found.is_first else stack.enter_context(_speechless())
        yield code
        sys.stdout.flush()
        sys.stderr.flush()
        if not found.all_end():
            if hidden is not None:
                os.write(hidden[1], f"process {found.process}: ".encode() + hidden[0].read_bytes()[-4000:])
            found.abort(code[0] or 1)


@contextlib.contextmanager
def _speechless() -> Iterator[tuple[Path, int]]:
    """What is written to the standard streams goes to a file, which is given with the real standard error."""
    path = scratch_directory() / "output"
    sink = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    kept = [os.dup(stream) for stream in (1, 2)]
    for stream in (1, 2):
        os.dup2(sink, stream)
    os.close(sink)
    try:
        yield path, kept[1]
    finally:
        sys.stdout.flush()
        for stream, old in zip((1, 2), kept, strict=True):
            os.dup2(old, stream)
            os.close(old)


@contextlib.contextmanager
def noted_interrupts(progress: Callable[[int, int], None] | None) -> Iterator[Callable[[int, int], None]]:
    """Signals that stop a run are noted, and raised only where a run looks for them: not in the middle of a barrier
    exchange between processes."""
    noted: list[int] = []
    old: dict[int, Any] = {}

    def report(now: int, events: int) -> None:
        if noted:
            old[noted[0]](noted[0], None)  # raises KeyboardInterrupt
        if progress is not None:
            progress(now, events)

    if threading.current_thread() is not threading.main_thread():
        yield report
        return
    for stop in STOP_SIGNALS:
        if callable(handler := signal.getsignal(stop)):
            old[stop] = handler
            signal.signal(stop, lambda number, frame: noted.append(number))
    try:
        yield report
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def gathered_columns(own: Mapping[str, Sequence[Any]], order: Sequence[str]) -> dict[str, list[Any]]:
    """The statistics of all processes, in the order of components; the rows of a component are all in one process."""
    tables = [own] if _joined is None else _joined.gather(dict(own))
    pieces: dict[str, tuple[Mapping[str, Sequence[Any]], slice]] = {}
    for table in tables:
        begin = 0
        for component, rows in itertools.groupby(table["component"]):
            end = begin + sum(1 for _ in rows)
            pieces[component] = table, slice(begin, end)
            begin = end
    whole: dict[str, list[Any]] = {name: [] for name in own}
    for component in order:
        if component in pieces:
            table, rows_of_component = pieces[component]
            for name, values in whole.items():
                values += table[name][rows_of_component]
    return whole
