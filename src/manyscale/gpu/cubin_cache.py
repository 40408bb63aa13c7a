# SPDX-License-Identifier: Apache-2.0
"""What the assembler made of a module, kept in the user's cache folder by the hash of all that it depends on.

Any number of processes may use it at a time: a file appears whole or not at all, and one that is damaged is not used.
The files that were not used for longest go when there are too many.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from manyscale.results.files import replace_file

MOST_BYTES = 512 * 1024 * 1024
MOST_FILES = 2000
_DIGEST = 32
_CUBIN, _REFUSAL = b"C", b"R"


def folder() -> Path:
    """Where it is: `manyscale/sass` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "manyscale" / "sass"


def key(ptx: bytes, made_with: tuple[object, ...]) -> str:
    """The name of what an assembler makes of a module with its options."""
    digest = hashlib.sha256(repr(made_with).encode() + b"\0")
    digest.update(ptx)
    return digest.hexdigest()


def read(name: str) -> bytes | str | None:
    """A cubin, or the reasons why there is none; None: it is not known."""
    file = folder() / name
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, kind, body = content[:_DIGEST], content[_DIGEST : _DIGEST + 1], content[_DIGEST + 1 :]
    if hashlib.sha256(kind + body).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # used now: it stays longer
    return body if kind == _CUBIN else body.decode(errors="replace")


def write(name: str, made: bytes | str) -> None:
    """Keeps a cubin or the reasons why there is none; a cache that cannot be written is ignored."""
    content = _CUBIN + made if isinstance(made, bytes) else _REFUSAL + made.encode()
    file = folder() / name
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, lambda out: out.write(hashlib.sha256(content).digest() + content))
        _bound(file.parent)


def _bound(where: Path) -> None:
    """Removes what was not used for longest, until the rest is within bounds."""
    found: list[tuple[float, int, str]] = []
    with os.scandir(where) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process has removed it
                about = entry.stat()
                found.append((about.st_mtime, about.st_size, entry.path))
    found.sort()
    files, size = len(found), sum(each[1] for each in found)
    for _, own, path in found:
        if files <= MOST_FILES and size <= MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        files, size = files - 1, size - own
