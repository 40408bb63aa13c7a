# SPDX-License-Identifier: Apache-2.0
"""Code that the instruction caches do not hold."""

from __future__ import annotations

from collections.abc import Iterator

from .cause import Cause, cause
from .execution import LINE_BYTES, Execution

_LINES_AT_ONCE = 4  # that a miss brings (core/gpu/sm/sm_issue.cpp)


@cause
def instruction_fetch(execution: Execution) -> Iterator[Cause]:
    """Code that fits is fetched once by each sub-core; what is fetched again would not be waited for."""
    sm, counts, peaks = execution.sm, execution.counts, execution.peaks
    if not sm["stall_no_instruction"]:
        return
    lines = -(-counts.code_bytes // LINE_BYTES)
    once = execution.sms * peaks.sub_cores * -(-lines // _LINES_AT_ONCE)
    again = max(1 - once / max(sm["fetch_l0_misses"], 1), 0.0)
    waits = 100 * execution.share(sm["stall_no_instruction"])
    yield Cause(
        "instruction fetch",
        f"{waits:.0f}% of warp cycles wait for instructions (No Instruction); the program has "
        f"{counts.code_bytes / 1024:.0f} KiB of instructions, a sub-core's cache "
        f"{peaks.instruction_cache / 1024:.0f} KiB",
        "Let the hot loop fit into the instruction cache: unroll less, and do not inline what is called often",
        execution.saved(stalls=again * sm["stall_no_instruction"]),
    )
