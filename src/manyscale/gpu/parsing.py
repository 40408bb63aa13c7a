# SPDX-License-Identifier: Apache-2.0
"""Parses PTX of a file, a text or a compiled kernel into a module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyscale import _core
from manyscale.errors import InputError

from .sources import code_files, is_cuda_source, ptx_of


@dataclass(frozen=True)
class ParsedModule:
    """A PTX module that was parsed; `check` finds out whether it can be executed."""

    name: str
    kernels: list[str]
    target: str
    native: _core.PtxModule
    portable: bool = False  # its target is a default of ours: it needs no feature of newer GPUs
    files: Mapping[str, bytes] = field(default_factory=dict)  # its PTX and source, for a run directory


def parse(source: Any, *, target: str | None = None, portable: bool = False) -> ParsedModule:
    """Parses PTX.

    `source` is the path of a `.ptx` or `.cu` file, PTX text, or a kernel compiled by Triton or Numba; `target`
    (`"sm_80"`) says what CUDA C++ is compiled for. Without it, or if the PTX is `portable`, older GPUs than
    the module's target run it, too.
    """
    text, name = ptx_of(source, target=target)
    try:
        native = _core.parse_ptx(text, name)
    except _core.PtxSyntaxError as error:
        raise InputError(str(error)) from None
    portable = portable or (target is None and is_cuda_source(source))
    files = code_files(source, text, name)
    return ParsedModule(name, native.kernels, native.target, native, portable, files)
