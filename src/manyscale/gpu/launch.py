# SPDX-License-Identifier: Apache-2.0
"""What came of a launch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """What a launch has done."""

    kernel: str
    isa: str  # what the kernel ran as: "ptx" or "sass"; its instructions are counted
    warp_instructions: int
    thread_instructions: int
    printed: str
    warnings: tuple[str, ...]
    wall_seconds: float
