# SPDX-License-Identifier: Apache-2.0
"""Warps that wait for others of their CTA."""

from __future__ import annotations

from collections.abc import Iterator

from .cause import Cause, cause
from .execution import Execution


@cause
def barriers(execution: Execution) -> Iterator[Cause]:
    """If the work between barriers were spread evenly, warps would not wait at them.

    Work is all other warp cycles, except waits for memory: responses arrive one after the other, however the work is
    spread.
    """
    sm = execution.sm
    stalls = sm["stall_barrier"]
    if not stalls:
        return
    others = max(execution.warp_cycles - stalls, 1)
    work = (
        1
        - (sm["stall_long_scoreboard"] + sm["stall_drain"] + sm["stall_lg_throttle"] + sm["stall_fault"])
        / others
    )
    yield Cause(
        "barriers",
        f"{100 * execution.share(stalls):.0f}% of warp cycles wait at a barrier (Barrier) for warps that work longer",
        "Spread the work between __syncthreads() evenly over the warps, use fewer barriers or smaller blocks, or "
        "__syncwarp() where a warp is enough",
        execution.saved(stalls=work * stalls),
    )
