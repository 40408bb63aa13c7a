# SPDX-License-Identifier: Apache-2.0
"""The result of a launch on a functional device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """The result of a launch: executed instructions, output and warnings."""

    kernel: str
    isa: str  # "ptx" or "sass": the ISA of the counted instructions
    warp_instructions: int
    thread_instructions: int
    printed: str
    warnings: tuple[str, ...]
    wall_seconds: float
