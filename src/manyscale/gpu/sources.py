# SPDX-License-Identifier: Apache-2.0
"""Where PTX comes from: files, text, CUDA C++ compiled on the spot, kernels of Triton and Numba."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyscale.errors import InputError


def ptx_of(source: Any, *, target: str | None = None) -> tuple[bytes, str]:
    """The PTX text of a source, and a name for it in messages."""
    if isinstance(source, bytes):
        return source, "<ptx>"
    if isinstance(source, str) and ("\n" in source or ".version" in source):
        return source.encode(), "<ptx>"
    path = Path(source)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    return path.read_bytes(), path.name
