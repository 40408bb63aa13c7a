# SPDX-License-Identifier: Apache-2.0
"""Damaged files with the checksums of what is in them, as if they had been written so.

A directory has a sealed document that lists its files with their checksums. Without a new signature nearly every damage
ends there; that it does, `tests/results/test_integrity.py` shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manyscale.results.integrity import checksum, sealed

Read = Callable[[Path], Any]


def signed(read: Read, document: str, levels: int = 1) -> Read:
    """A reader of a file, `levels` below the directory whose document lists it, that signs the file first."""

    def sign_and_read(path: Path) -> Any:
        directory = path.parents[levels - 1]
        listing = json.loads((directory / document).read_bytes())
        listing["files"][path.relative_to(directory).as_posix()] = checksum(path)
        (directory / document).write_bytes(sealed(listing, indent=1))
        return read(path)

    return sign_and_read


def sign_as(path: Path, **changes: Any) -> None:
    """Changes entries of a sealed document, such as the status of a run that was killed."""
    path.write_bytes(sealed(json.loads(path.read_bytes()) | changes))
