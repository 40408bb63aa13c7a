# SPDX-License-Identifier: Apache-2.0
"""Names of C++ functions as people write them."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re

_MANGLED = re.compile(r"_Z[A-Za-z0-9_.$]+")


@functools.cache
def readable(name: str) -> str:
    """A mangled name in C++, if the C++ library of this machine can say it; else the name itself.

    >>> readable("main")
    'main'
    """
    library = _library()
    if library is None or not _MANGLED.fullmatch(name):
        return name
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return name
    try:
        found = ctypes.string_at(text).decode(errors="replace")
    finally:
        _free()(ctypes.c_void_p(text))
    return found.partition("(")[0].removeprefix("void ") or name


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(ctypes.util.find_library("stdc++") or "libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (OSError, AttributeError):
        return None
    return library


@functools.cache
def _free() -> ctypes._NamedFuncPointer:
    free = ctypes.CDLL(None).free
    free.restype = None
    return free
