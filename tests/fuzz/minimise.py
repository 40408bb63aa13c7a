# SPDX-License-Identifier: Apache-2.0
"""The least of a file that still fails as the whole does: pieces are left out, from halves down to single bytes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from fuzz.attempt import attempt
from fuzz.formats import Format


def failure(one: Format, path: Path, seconds: float) -> str | None:
    """How reading ends in a process of its own: the location of an error, or the status that ended it; None if well."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        os.close(reading)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        problem = attempt(one, path).problem
        os.write(writing, (problem or "").encode("utf-8", "replace")[-1000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        problem = pipe.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        return f"status {status}"
    # The message may tell of the content; where it comes from does not change.
    return re.sub(r"^(\w+): .* at ", r"\1 at ", problem, flags=re.DOTALL) or None


def smallest(content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Leaves out pieces as long as it fails."""
    size = len(content) // 2
    while size > 0:
        at = 0
        while at < len(content):
            shorter = content[:at] + content[at + size :]
            if fails(shorter):
                content = shorter
            else:
                at += size
        size //= 2
    return content


def minimised(one: Format, content: bytes, seconds: float) -> bytes:
    """A smaller file that fails in the same way; the file itself if it does not fail."""
    with tempfile.TemporaryDirectory() as name:
        path = one.make(Path(name))

        def how(data: bytes) -> str | None:
            path.write_bytes(data)
            return failure(one, path, seconds)

        expected = how(content)
        with contextlib.suppress(KeyboardInterrupt):
            if expected is not None:
                content = smallest(content, lambda data: how(data) == expected)
    return content
