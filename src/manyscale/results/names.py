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
    return _without_parameters(found.replace("(anonymous namespace)::", "")).removeprefix("void ") or name


def short(name: str, most: int = 48) -> str:
    """A name for where there is little room: a long one without its namespaces and template arguments.

    >>> short("at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >")
    'vectorized_elementwise_kernel<…>'
    """
    if len(name) <= most:
        return name
    function, arguments, _ = name.partition("<")
    return function.rpartition("::")[2] + (f"{arguments}…>" if arguments else "")


def _without_parameters(text: str) -> str:
    """What stands before the parameters of a function, those of functions within template arguments left as they are.

    >>> _without_parameters("void scale<4, sum(float)::{lambda(int)#1}>(float*, int)")
    'void scale<4, sum(float)::{lambda(int)#1}>'
    """
    depth = 0
    for at, letter in enumerate(text):
        if letter == "(" and depth == 0:
            return text[:at]
        if letter in "<({":
            depth += 1
        elif letter in ")}" or (letter == ">" and text[at - 1] != "-"):
            depth -= 1
    return text


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
