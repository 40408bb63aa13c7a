# SPDX-License-Identifier: Apache-2.0
"""A lock on a directory's run that dies with its process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from pathlib import Path


class RunLock:
    """An exclusive lock on a new file, released by the kernel however the process ends."""

    def __init__(self, path: Path) -> None:
        """Create the file and lock it; `FileExistsError` if it is there already."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        # File systems without locks (some Lustre mounts) must not stop a run: it then reads as interrupted
        # until it is done, which is the safe side.
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held.add(self)

    def release(self) -> None:
        """Unlock and remove the file."""
        self._path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Give up this process's handle; the lock lasts while another process has one."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with contextlib.suppress(OSError):  # it is closed all the same
                os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a living process holds the `RunLock` at `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        # Shared, so that two readers at once do not take each other for a writer.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


# A forked worker shares the lock and would keep it after its parent was killed.
_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _close_in_child() -> None:
    for lock in list(_held):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
