# SPDX-License-Identifier: Apache-2.0
"""Files that are added to the directory of a run after it has ended, such as its report."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from manyscale.errors import RunError
from manyscale.results.files import Write, cannot_write, replace_file
from manyscale.results.integrity import checksum, sealed
from manyscale.results.run import read_info
from manyscale.results.run_directory import RUN_FILE


def add_file(directory: Path, name: str, write: Write) -> Path:
    """Writes a file into the directory of a run, and lists it with its checksum in `run.json`.

    While the run goes on, and where there is no run or one of before there were checksums, it is only written.
    """
    return add_listed(directory, name, write, RUN_FILE, read_info)


def add_listed(
    directory: Path, name: str, write: Write, document: str, read: Callable[[Path], dict[str, Any]]
) -> Path:
    """The same for any directory with a sealed document that lists its files; `read` gives what that says."""
    path = directory / name

    def keep(info: dict[str, Any]) -> None:
        replace_file(directory / document, lambda file: file.write(sealed(info)))

    try:
        with _alone(directory):
            info = read(directory) if (directory / document).is_file() else {}
            if info.get("status") == "running" or "files" not in info:
                replace_file(path, write)
                return path
            before = info["files"].pop(name, None)
            if before is not None:
                keep(
                    info
                )  # if this process is killed meanwhile, the file is not listed rather than listed wrong
            try:
                replace_file(path, write)
                info["files"][name] = checksum(path)
            except BaseException:
                if before is not None:
                    info["files"][name] = before
                    keep(info)
                raise
            keep(info)
    except OSError as error:
        raise RunError(str(cannot_write(path, error))) from None
    return path


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Two additions to one directory come one after the other."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
