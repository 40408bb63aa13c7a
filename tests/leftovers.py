# SPDX-License-Identifier: Apache-2.0
"""What a command leaves behind that it should not: processes, temporary files, shared memory."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_SHARED_MEMORY = Path("/dev/shm")
_PATIENCE = 30.0
_ROUND = 0.02

# A shell that started the tests in the background may have had them ignore SIGINT, and nohup SIGHUP.
_COMMAND = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "signal.signal(signal.SIGHUP, signal.{hangup});"
    "from manyscale.cli.app import main; sys.exit(main())"
)


def wait_until(there: Callable[[], Any], what: str) -> Any:
    """Waits until something is there, and returns it."""
    end = time.monotonic() + _PATIENCE
    while not (found := there()):
        assert time.monotonic() < end, f"waited {_PATIENCE:g} s for {what}"
        time.sleep(_ROUND)
    return found


class Started:
    """A command that runs with a folder for temporary files of its own; its processes carry a mark."""

    def __init__(
        self, folder: Path, *arguments: str, environment: dict[str, str] | None = None, nohup: bool = False
    ) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self._mark = f"MANYSCALE_TEST_MARK={secrets.token_hex(8)}"
        self._shared = self._shared_memory()
        name, _, value = self._mark.partition("=")
        self._output, self._errors = folder / "stdout", folder / "stderr"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND.format(hangup="SIG_IGN" if nohup else "SIG_DFL"), *arguments],
                cwd=folder,
                env=os.environ | {"TMPDIR": str(self.temporary), name: value} | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def stdout(self) -> str:
        return self._output.read_text()

    @property
    def stderr(self) -> str:
        return self._errors.read_text()

    def processes(self) -> list[int]:
        """Those of the command that live."""
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and self._mark.encode() in Path("/proc", entry, "environ").read_bytes():
                    found.append(int(entry))
        return found

    def named(self, name: str) -> int:
        """How many of its processes execute a program of this name."""
        count = 0
        for process in self.processes():
            with contextlib.suppress(OSError):
                count += os.readlink(f"/proc/{process}/exe").endswith(f"/{name}")
        return count

    def let_work(self, seconds: float) -> None:
        """Waits until the command has computed for so long, however busy this machine is."""
        stat = Path(f"/proc/{self.process.pid}/stat")

        def computed() -> float:
            fields = stat.read_bytes().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        begin = computed()
        wait_until(
            lambda: self.process.poll() is not None or computed() - begin >= seconds, f"{seconds:g} s of work"
        )

    def kill(self, number: signal.Signals) -> int:
        """Sends the command a signal, and returns its exit code when it has ended."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(_PATIENCE)

    def check_nothing_left(self) -> None:
        """No process, no temporary file, no shared memory."""
        wait_until(lambda: not self.processes(), f"the end of {self._names()}")
        wait_until(lambda: not list(self.temporary.iterdir()), "the temporary files to go")
        # Others on this machine use it too, but what they make goes away.
        for name in self._shared_memory() - self._shared:
            wait_until(lambda name=name: not (_SHARED_MEMORY / name).exists(), f"/dev/shm/{name} to go")

    def end(self) -> None:
        """Whatever came of the test: nothing of it stays."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()

    def _names(self) -> str:
        names = []
        for process in self.processes():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
                names.append(b" ".join(words)[:60].decode(errors="replace"))
        return ", ".join(names) or "all processes"

    @staticmethod
    def _shared_memory() -> set[str]:
        return set(os.listdir(_SHARED_MEMORY)) if _SHARED_MEMORY.is_dir() else set()


@contextlib.contextmanager
def started(
    folder: Path, *arguments: str, environment: dict[str, str] | None = None, nohup: bool = False
) -> Iterator[Started]:
    """`manyscale` with these arguments, running in a folder."""
    command = Started(folder, *arguments, environment=environment, nohup=nohup)
    try:
        yield command
    finally:
        command.end()
