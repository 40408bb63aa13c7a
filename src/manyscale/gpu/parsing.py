# SPDX-License-Identifier: Apache-2.0
"""From a file or a text to a parsed PTX module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyscale import _core
from manyscale.errors import InputError

from .sources import ptx_of


@dataclass(frozen=True)
class ParsedModule:
    """A PTX module whose text is well formed; whether it can be executed, `check` says."""

    name: str
    kernels: list[str]
    target: str
    native: _core.PtxModule


def parse(source: Any, *, target: str | None = None) -> ParsedModule:
    """Parses PTX.

    `source` is the path of a `.ptx` or `.cu` file, PTX text, or a kernel compiled by Triton or Numba; `target`
    (`"sm_80"`) says what CUDA C++ is compiled for.
    """
    text, name = ptx_of(source, target=target)
    try:
        native = _core.parse_ptx(text, name)
    except _core.PtxSyntaxError as error:
        raise InputError(str(error)) from None
    return ParsedModule(name=name, kernels=native.kernels, target=native.target, native=native)
