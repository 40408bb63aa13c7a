# SPDX-License-Identifier: Apache-2.0
"""Runs MPI programs that were built with this package's library on this machine: one process for each rank."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyscale.errors import InputError
from manyscale.guard import ends_with_this, temporary_folder

_GRACE_SECONDS = 5.0  # that the others get to end when one has failed
_POLL_SECONDS = 0.005


SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""The folder for what ranks share; None: that of temporary files."""


@dataclass(frozen=True)
class HostRank:
    """How one rank ended, and what it wrote. A rank ended by a signal has the exit code that a shell gives it."""

    exit_code: int
    stdout: bytes
    stderr: bytes


def run_on_host(
    program: str | os.PathLike[str],
    ranks: int,
    args: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> list[HostRank]:
    """Runs a program with so many ranks and returns what became of each.

    The program was compiled by `manyscale cpu cc --mpi --host`, or is any other that the three environment variables
    of the library reach. When a rank fails, the others are given a few seconds and then ended; all are ended when
    `timeout` seconds have passed, which is an error.
    """
    if ranks < 1:
        raise InputError(f"{ranks} ranks cannot be started; give 1 or more")
    if not Path(program).is_file():
        raise InputError(f"{program}: there is no such program")
    with temporary_folder("manyscale-mpi-", SHARED_MEMORY) as folder:
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(ranks):
                variables = os.environ | dict(environment or {})
                variables |= rank_environment(rank, ranks, folder / "segment")
                command = [os.fspath(Path(program).resolve()), *args]
                processes.append(start_rank(command, variables, folder, rank))
            timed_out = not _wait(processes, timeout)
        except OSError as error:
            raise InputError(f"cannot start {program}: {error.strerror or error}") from None
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                process.wait()
        if timed_out:
            raise InputError(f"{program}: {ranks} ranks were not done after {timeout:g} s")
        return [
            HostRank(
                128 - process.returncode if process.returncode < 0 else process.returncode,
                _output(folder, rank).read_bytes(),
                _errors(folder, rank).read_bytes(),
            )
            for rank, process in enumerate(processes)
        ]


def _output(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.out"


def _errors(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.err"


def rank_environment(rank: int, ranks: int, shared: Path) -> dict[str, str]:
    """The environment of a process: its rank, and the file that all ranks share."""
    return {
        "MANYSCALE_MPI_RANK": str(rank),
        "MANYSCALE_MPI_SIZE": str(ranks),
        "MANYSCALE_MPI_SEGMENT": str(shared),
    }


def start_rank(
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    rank: int,
    ended_by: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Starts a rank, which ends with this process; what it writes goes to files of a folder."""
    with open(_output(folder, rank), "wb") as out, open(_errors(folder, rank), "wb") as err:
        return subprocess.Popen(
            ends_with_this(command, ended_by),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(variables),
        )


def _wait(processes: Sequence[subprocess.Popen[bytes]], timeout: float | None) -> bool:
    """Waits until all have ended, or one has failed and the others had their time; False after the timeout."""
    end = None if timeout is None else time.monotonic() + timeout
    failed_at: float | None = None
    while True:
        codes = [process.poll() for process in processes]
        if all(code is not None for code in codes):
            return True
        now = time.monotonic()
        if failed_at is None and any(codes):
            failed_at = now
        if failed_at is not None and now > failed_at + _GRACE_SECONDS:
            return True
        if end is not None and now > end:
            return False
        time.sleep(_POLL_SECONDS)
