# SPDX-License-Identifier: Apache-2.0
"""The ISA that a module runs as: PTX, SASS, or SASS where it can be made and executed."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Literal, get_args

from manyscale import _core
from manyscale.errors import InputError

from .parsing import ParsedModule
from .sass import executable_sass

Isa = Literal["auto", "sass", "ptx"]
"""What to run; "auto": SASS where that is possible, else PTX."""


class IsaChoice(enum.Enum):
    """How the ISA of a module was chosen."""

    REQUESTED = "requested"
    CUBIN = "cubin"  # the file or program has SASS for the GPU
    ASSEMBLED = "assembled"  # SASS was assembled from PTX
    FALLBACK = "fallback"  # PTX, because there is no SASS that can be executed


@dataclass(frozen=True)
class LoadedCode:
    """A module on a device, the ISA that it runs as, and the reason for it."""

    native: _core.GpuModule
    isa: Literal["sass", "ptx"]
    choice: IsaChoice
    reason: str


def isa_of(value: Any) -> Isa:
    """The value as an ISA; an error if it is none."""
    if value not in get_args(Isa):
        raise InputError(f"isa is one of {', '.join(get_args(Isa))}, not {value!r}")
    return value  # type: ignore[no-any-return]


def load_code(
    device: _core.GpuDevice, parsed: ParsedModule, isa: Isa, architecture: str | None
) -> LoadedCode:
    """Loads a module of PTX as PTX or as SASS of an architecture; None: SASS of this GPU cannot be read."""
    if isa == "ptx":
        return LoadedCode(device.load(parsed.native), "ptx", IsaChoice.REQUESTED, "requested")
    if architecture is None:
        if isa == "sass":
            raise InputError(f"{parsed.name}: SASS of this GPU cannot be read; run it as PTX")
        return LoadedCode(
            device.load(parsed.native), "ptx", IsaChoice.FALLBACK, "SASS of this GPU cannot be read"
        )
    try:
        machine = executable_sass(parsed, architecture)
    except InputError as error:
        if isa == "sass":
            raise
        return LoadedCode(device.load(parsed.native), "ptx", IsaChoice.FALLBACK, str(error))
    reason = f"assembled for {architecture}"
    return LoadedCode(device.load(parsed.native, machine), "sass", IsaChoice.ASSEMBLED, reason)
