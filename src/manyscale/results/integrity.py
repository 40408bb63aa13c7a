# SPDX-License-Identifier: Apache-2.0
"""Checksums of the files of a directory, and of the document that lists them: damage is noticed, not read.

A *listing* has a line for each file: {"stats.parquet": {"bytes": 1234, "sha256": "…"}}. A *sealed* document is JSON
whose last entry is the checksum of the whole text, with zeros in place of the checksum itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

SEAL = "checksum"
_ZEROS = "0" * 64
_SEALED = re.compile(rb'"checksum": "sha256:([0-9a-f]{64})"\n\}\n\Z')
_BLOCK_BYTES = 1 << 20

Listing = dict[str, dict[str, Any]]


class Listed:
    """The listing of a directory that is being written; files that have not changed are not read again."""

    def __init__(self, directory: Path, leaving_out: Collection[str]) -> None:
        self._directory = directory
        self._leaving_out = frozenset(leaving_out)
        self._known: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}

    def now(self) -> Listing:
        """All files in the directory and its folders, by their paths within it."""
        listing: Listing = {}
        for path in sorted(self._directory.rglob("*")):
            name = path.relative_to(self._directory).as_posix()
            if name in self._leaving_out or path.name.startswith("."):
                continue
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            version = (status.st_ino, status.st_size, status.st_mtime_ns)
            known = self._known.get(name)
            if known is None or known[0] != version:
                known = self._known[name] = (version, checksum(path))
            listing[name] = known[1]
        return listing


def checksum(path: Path) -> dict[str, Any]:
    """The line of a file in a listing."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def checksum_of(content: bytes) -> dict[str, Any]:
    """The line of a file with this content."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def is_listing(listing: object) -> bool:
    """Whether this is a listing of files, none of them outside the directory."""
    return isinstance(listing, dict) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
        and "\0" not in name
        and not Path(name).is_absolute()
        and ".." not in Path(name).parts
        for name, entry in listing.items()
    )


def damage(
    directory: Path, listing: Mapping[str, Mapping[str, Any]], ignoring: Collection[str] = ()
) -> list[str]:
    """What is wrong with the files of a directory, a sentence for each that is not as listed."""
    found = []
    for name, entry in listing.items():
        if name not in ignoring and (problem := _damage(directory / name, entry)) is not None:
            found.append(f"{name} {problem}")
    return found


def difference(size: int, digest: str, entry: Mapping[str, Any]) -> str | None:
    """How a file differs from its line of a listing; None if it does not."""
    if size < entry["bytes"]:
        return f"is truncated: it has {size:,} of {entry['bytes']:,} bytes"
    if size > entry["bytes"]:
        return f"was changed: it has {size:,} bytes, and had {entry['bytes']:,}"
    return None if digest == entry["sha256"] else "was changed: it has another checksum"


def sealed(document: Mapping[str, Any], *, indent: int = 2, allow_nan: bool = True) -> bytes:
    """The document as JSON with its checksum at the end."""
    whole = {name: value for name, value in document.items() if name != SEAL} | {SEAL: f"sha256:{_ZEROS}"}
    text = json.dumps(whole, indent=indent, ensure_ascii=False, allow_nan=allow_nan) + "\n"
    before, _, after = text.rpartition(_ZEROS)
    return (before + hashlib.sha256(text.encode()).hexdigest() + after).encode()


def unsealed(content: bytes, first_sealed: int, version_key: str = "schema") -> Any:
    """What a document says, if it is as it was sealed; ValueError says why not.

    Documents of versions before `first_sealed` have no seal.
    """
    document = json.loads(content.decode())
    if isinstance(document, dict) and isinstance(version := document.get(version_key), int):
        problem = seal_problem(content) if version >= first_sealed else None
        if version < first_sealed and SEAL in document:
            problem = f"version {version} of such files has no checksum"
        if problem is not None:
            raise ValueError(f"it was changed: {problem}")
    return document


def seal_problem(content: bytes) -> str | None:
    """Why a document is not as it was sealed; None if it is."""
    found = _SEALED.search(content)
    if found is None:
        return "its checksum is missing"
    begin, end = found.span(1)
    digest = hashlib.sha256(content[:begin] + _ZEROS.encode() + content[end:]).hexdigest()
    return None if digest.encode() == found[1] else "its checksum is that of another content"


def _damage(path: Path, entry: Mapping[str, Any]) -> str | None:
    try:
        size = os.stat(path).st_size
        if size == entry["bytes"]:
            return difference(size, checksum(path)["sha256"], entry)
        return difference(size, "", entry)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
