# SPDX-License-Identifier: Apache-2.0
"""The memory of the host: how much is left, who needs how much, and what is said when it is not enough.

Memory is limited three times: by the machine, by the control group of a container or a batch job, and by the address
space of the process (`ulimit -v`). Libraries that end the process when they get none (polars, OpenBLAS) are only used
where there is enough for them.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from manyscale.errors import OutOfMemoryError

MEBI, GIBI = 2**20, 2**30
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Of a control group: its limit, what it uses, and how much of that are cached files, which give way (v2, then v1).
_GROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "file"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_cache",
    ),
)
# Address space that a library maps when it is imported and first used on one thread, with a margin.
_LIBRARY_BYTES = {"numpy": 96 * MEBI, "polars": 832 * MEBI, "sklearn": 512 * MEBI}
_WITHOUT_MEMORY = (  # the loader of shared libraries, and threads without room for their stack
    "failed to map segment",
    "annot allocate memory",
    "can't start new thread",
    "Resource temporarily unavailable",
)
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS")
_RATIONED = 64 * GIBI  # below such a limit of address space, libraries are kept to one thread
_RESERVE = _LIBRARY_BYTES["polars"] + 96 * MEBI  # to write what there is when the rest is used up
_SMALLEST = 48 * MEBI  # of address space, for the interpreter to import the commands
_WATCH_SECONDS = 0.2

Value = TypeVar("Value")


def address_space_left() -> int | None:
    """Bytes that this process may still map; None where addresses are not limited."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    return max(0, limit - _statm(0))


def physical_left() -> int:
    """Bytes of memory that are free, on the machine and in this process's control group."""
    left = [_available()]
    for most, used, facts, cached in _GROUP_FILES:
        with contextlib.suppress(OSError, ValueError, KeyError):
            rows = dict(line.split() for line in Path(facts).read_text().splitlines())
            taken = int(Path(used).read_text()) - int(rows[cached])
            left.append(max(0, int(Path(most).read_text()) - taken))
    return min(left)


def resident() -> int:
    """Bytes of memory that this process has."""
    return _statm(1)


def size_text(size: float) -> str:
    """
    >>> size_text(15 * 2**30), size_text(3.2 * 2**20)
    ('15 GiB', '3.2 MiB')
    """
    for name, unit in (("TiB", 2**40), ("GiB", GIBI), ("MiB", MEBI), ("KiB", 2**10)):
        if size >= unit:
            return f"{size / unit:,.3g} {name}" if size < 1000 * unit else f"{size / unit:,.0f} {name}"
    return f"{size:.0f} B"


def check_room(needed: float, what: str, hint: str = "") -> None:
    """Refuses what cannot fit, before it is tried; `what` is a subject, such as "the network of 64 nodes"."""
    mapped, physical = address_space_left(), physical_left()
    where = "on this machine"
    free = physical
    if mapped is not None and mapped < physical:
        free, where = mapped, "of the limit of address space (ulimit -v)"
    if needed > free:
        raise OutOfMemoryError(
            f"not enough memory: {what} needs about {size_text(needed)}, and {size_text(free)} is left {where}"
            f"{'; ' + hint if hint else ''}"
        )


def shortage(error: BaseException, what: str = "this command") -> OutOfMemoryError | None:
    """The error for people where an exception comes of memory that could not be had; None for any other."""
    at: BaseException | None = error
    for _ in range(20):  # an error while another is handled may hide it
        if at is None or isinstance(at, OutOfMemoryError):
            return at
        if (
            isinstance(at, MemoryError)
            or (isinstance(at, OSError) and at.errno == errno.ENOMEM)
            or (
                isinstance(at, ImportError | RuntimeError)
                and any(text in str(at) for text in _WITHOUT_MEMORY)
            )
        ):
            break
        at = at.__cause__ or at.__context__
    else:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        rest = f"{size_text(resident())} in use, {size_text(physical_left())} left on this machine"
    else:
        rest = f"{size_text(_statm(0))} mapped of a limit of {size_text(limit)} (ulimit -v)"
    return OutOfMemoryError(f"not enough memory: {what} asked for more than there is ({rest})")


def foreseen(things: Sequence[Value], what: str, hint: str = "") -> Iterator[Value]:
    """The things to build, one after the other; ends when those built so far show that the rest cannot fit."""
    before = _statm(1)
    look = 16
    for done, thing in enumerate(things):
        if done == look:
            each = (_statm(1) - before) / done
            check_room(each * (len(things) - done), f"a system of {len(things):,} {what}", hint)
            look *= 2
        yield thing


class Reserve:
    """Address space kept back, so that what was simulated can still be written when the rest is used up."""

    def __init__(self) -> None:
        self._held: mmap.mmap | None = None
        if address_space_left() is None:
            return
        check_room(_RESERVE, "writing the results of a run")
        with contextlib.suppress(OSError):
            guard_libraries()
            self._held = mmap.mmap(-1, _RESERVE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)

            _reserves.add(self)

    def release(self) -> None:
        """Gives it back; again does nothing."""
        _reserves.discard(self)
        if self._held is not None:
            self._held.close()
            self._held = None


_reserves: weakref.WeakSet[Reserve] = weakref.WeakSet()


class MemoryWatch:
    """Ends a run, with what it has so far, before the machine runs out of memory and ends it without a word."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self._progress = progress
        self._margin = min(256 * MEBI, physical_left() // 4)
        self._next = time.monotonic() + _WATCH_SECONDS

    def __call__(self, now: int, events: int) -> None:
        if time.monotonic() >= self._next:
            free = physical_left()
            # What other programs use up is theirs; a small run is not the reason.
            if free < self._margin and resident() > free:
                raise OutOfMemoryError(
                    f"not enough memory: the simulation has {size_text(resident())}, "
                    f"and {size_text(free)} is left on this machine"
                )
            self._next = time.monotonic() + _WATCH_SECONDS
        if self._progress is not None:
            self._progress(now, events)


class _Room:
    """Looks for room before a library is imported that would end the process, or stay half imported, without."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _LIBRARY_BYTES:
            free = address_space_left()
            if free is not None and free < _LIBRARY_BYTES[name]:
                for reserve in list(_reserves):  # it is for the libraries that write results, too
                    reserve.release()
                free = address_space_left()
            if free is not None and free < _LIBRARY_BYTES[name]:
                raise OutOfMemoryError(
                    f"not enough memory: the library {name} needs {size_text(_LIBRARY_BYTES[name])} of "
                    f"address space, and {size_text(free)} of the limit (ulimit -v) is left"
                )
        return None


def guard_libraries() -> None:
    """From now on libraries are imported only where they have enough address space, for one thread if it is small."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or any(isinstance(finder, _Room) for finder in sys.meta_path):
        return
    check_room(_SMALLEST, "the command")
    if limit < _RATIONED:
        for name in _ONE_THREAD:
            os.environ.setdefault(name, "1")
    sys.meta_path.insert(0, _Room())


def _statm(column: int) -> int:
    """Mapped (0) or resident (1) bytes of this process."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[column]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _available() -> int:
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith((b"MemAvailable:",)):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * _PAGE
