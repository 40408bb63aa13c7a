# SPDX-License-Identifier: Apache-2.0
"""What an input reached that none before it did: edges of the core's readers, and lines of the package.

Edges are counted by a core that was built with sanitizers (`tests/fuzz/edges.cpp`); with another core only lines of
Python count.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import manyscale
from manyscale import _core

# A count of an edge matters by its size: 1, 2, 3, 4 to 7, 8 to 15, and so on are told apart, by a bit each.
_SIZES = np.zeros(256, np.uint8)
for _count in range(1, 256):
    _SIZES[_count] = 1 << (_count - 1 if _count < 4 else min(_count.bit_length(), 7))


class Coverage:
    """What all inputs so far have reached."""

    def __init__(self) -> None:
        self._package = str(Path(manyscale.__file__).parent)
        self._hits = _edge_counters()
        self._seen = np.zeros_like(self._hits)
        self._lines: set[tuple[CodeType, int]] = set()
        self._new_lines = 0
        self._is_ours: dict[CodeType, bool] = {}

    @property
    def edges(self) -> int:
        """Edges of the core that were taken."""
        return int(np.count_nonzero(self._seen))

    @property
    def lines(self) -> int:
        """Lines of the package that were run."""
        return len(self._lines)

    def adds(self, read: Callable[[], Any]) -> tuple[Any, bool]:
        """What reading gives, and whether it reached something new."""
        self._hits[:] = 0
        self._new_lines = 0
        sys.settrace(self._enter)
        try:
            result = read()
        finally:
            sys.settrace(None)
        found = _SIZES[self._hits]
        is_new = bool(np.any(found & ~self._seen))
        self._seen |= found
        return result, is_new or self._new_lines > 0

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        del event, argument
        code = frame.f_code
        ours = self._is_ours.get(code)
        if ours is None:
            ours = self._is_ours[code] = code.co_filename.startswith(self._package)
        return self._step if ours else None

    def _step(self, frame: FrameType, event: str, argument: object) -> Any:
        del argument
        if event == "line":
            line = (frame.f_code, frame.f_lineno)
            if line not in self._lines:
                self._lines.add(line)
                self._new_lines += 1
        return self._step


def _edge_counters() -> np.ndarray[Any, np.dtype[np.uint8]]:
    library = ctypes.CDLL(_core.__file__)
    try:
        hits, count = library.manyscale_fuzz_hits, library.manyscale_fuzz_counters
    except AttributeError:
        return np.zeros(0, np.uint8)
    hits.restype, count.restype = ctypes.c_void_p, ctypes.c_size_t
    return np.ctypeslib.as_array((ctypes.c_uint8 * count()).from_address(hits()))
