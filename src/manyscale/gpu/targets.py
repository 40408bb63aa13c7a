# SPDX-License-Identifier: Apache-2.0
"""Compatibility of code with a GPU: the target of PTX or SASS against the compute capability."""

from __future__ import annotations

import re
import struct
from typing import Literal

from manyscale.errors import InputError

_TARGET = re.compile(r"(?:sm|compute)_(\d+)([af]?)")

Kind = Literal["PTX", "SASS"]


class WrongTargetError(InputError):
    """The code is not compatible with the GPU."""


class NewerTargetWarning(UserWarning):
    """Incompatible PTX is run because that was allowed."""


def capability_of(architecture: str) -> int:
    """The compute capability of an architecture, 70 for "sm_70"."""
    found = _TARGET.fullmatch(architecture)
    if found is None:
        raise InputError(f"{architecture!r} is not a GPU architecture; write it like sm_80")
    return int(found[1])


def fits(kind: Kind, target: str, capability: int) -> bool:
    """Whether code for a target runs on a GPU of a compute capability, by the rules of NVIDIA's driver.

    PTX runs on its target and all later GPUs, SASS on those of the same generation that are not older. Code for
    a target with an "a" (sm_90a) runs on exactly that GPU, PTX for one with an "f" on later GPUs of the same generation
    (CUDA C++ programming guide, "Feature availability").
    """
    found = _TARGET.fullmatch(target)
    if found is None:
        return True
    wanted, suffix = int(found[1]), found[2]
    if suffix == "a":
        return wanted == capability
    same_generation = wanted // 10 == capability // 10
    return wanted <= capability and (same_generation or (kind == "PTX" and suffix == ""))


def cubin_target(data: bytes, architecture: int) -> str:
    """The target of a cubin. Assemblers up to CUDA 12 mark code for exactly one GPU (sm_90a) in the header."""
    (flags,) = struct.unpack_from("<I", data, 48)
    specific = flags & 0xFF == architecture and flags & 0x800
    return f"sm_{architecture}{'a' if specific else ''}"


def refusal(name: str, kind: Kind, target: str, capability: int) -> str | None:
    """The reason why code for a target does not run on a GPU; None if it does."""
    if fits(kind, target, capability):
        return None
    newer = capability_of(target) > capability
    why = f"code for {target} runs on that GPU only" if target.endswith("a") else "it was made for other GPUs"
    if newer:
        why = "it is older than that"
    return (
        f"{name}: this {kind} is for {target}, and the GPU of this machine has compute capability "
        f"{capability // 10}.{capability % 10}: {why}. Build it for sm_{capability}, or choose a machine with a GPU "
        f"that takes it; --allow-newer (allow_newer=True) takes PTX all the same"
    )
