# SPDX-License-Identifier: Apache-2.0
"""Global accesses that touch more sectors or lines than their bytes need, and those that move few bytes each."""

from __future__ import annotations

from collections.abc import Iterator

from manyscale.gpu.kernel_counts import LANES, SECTOR_BYTES

from .cause import Cause, cause
from .execution import LINE_BYTES, Execution

_WIDEST = 16  # bytes that an access of a lane moves at most


@cause
def uncoalesced(execution: Execution) -> Iterator[Cause]:
    """Coalesced accesses touch as few sectors as their bytes fill: fewer lines for the L1, less traffic behind it."""
    sm, counts, demands = execution.sm, execution.counts, execution.demands
    touched = sm["load_sectors"] + sm["store_sectors"]
    needed = sm["load_sectors_needed"] + sm["store_sectors_needed"]
    if touched <= needed:
        return
    wavefronts = sm["global_wavefronts"] - sm["global_wavefronts_needed"]
    lines = sm["global_lines"] - sm["lines_needed"]
    reads, writes = sm["l1_misses"], sm["store_sectors"]
    excess = max(reads - sm["load_sectors_needed"], 0) + writes - sm["store_sectors_needed"]
    traffic = 1 - excess / max(reads + writes, 1)
    bytes_needed = needed * SECTOR_BYTES
    requests = sm["lines_needed"] / max(sm["global_lines"], 1) if excess else 1.0
    after = {
        "data_stage": demands["data_stage"] - wavefronts / execution.sms,
        "tag_stage": demands["tag_stage"] - lines / execution.peaks.tags / execution.sms,
        "requests": demands["requests"] * requests,
        "crossbar": execution.crossbar(
            min(reads, sm["load_sectors_needed"]), sm["store_sectors_needed"] + sm["local_store_sectors"]
        ),
        "l2": demands["l2"] * traffic,
        "dram": demands["dram"] * min(1.0, bytes_needed / max(counts.dram_bytes, 1)),
    }
    each = touched / max(sm["global_requests"] - sm["local_requests"], 1)
    used = 100 * needed / touched
    yield Cause(
        "uncoalesced global access",
        f"a warp's access touches {each:.1f} sectors of 32 B, and the bytes that its lanes use would fill {used:.0f}% "
        "of them (Long Scoreboard)",
        "Let neighbouring threads access neighbouring addresses, with arrays of one field each instead of arrays of "
        "structures, or turn tiles around in shared memory",
        execution.saved(demands=after),
    )


@cause
def narrow(execution: Execution) -> Iterator[Cause]:
    """An access of 16 B a lane replaces several narrow ones: fewer instructions and passes for the bytes."""
    sm, demands = execution.sm, execution.demands
    requests = sm["global_requests"] - sm["local_requests"] - sm["atomic_requests"]
    if requests <= 0 or sm["load_sectors"] + sm["store_sectors"] > 1.5 * (
        sm["load_sectors_needed"] + sm["store_sectors_needed"]
    ):
        return
    bytes_of_lane = sm["global_bytes"] / max(sm["global_requests"], 1) / LANES
    if bytes_of_lane > _WIDEST / 2:
        return
    left = bytes_of_lane / _WIDEST
    instructions = requests * (1 - left)
    sub_cores = execution.sms * execution.peaks.sub_cores
    lines = max(sm["lines_needed"] - sm["global_bytes"] / LINE_BYTES, 0)
    after = {
        "issue_slots": demands["issue_slots"] - instructions / sub_cores,
        "pipe_lsu": demands["pipe_lsu"] - instructions / sub_cores,
        "address_units": demands["address_units"]
        - instructions * execution.peaks.global_interval / sub_cores,
        "data_stage": demands["data_stage"] - lines / execution.sms,
        "tag_stage": demands["tag_stage"]
        - (lines + (execution.peaks.tags - 1) * instructions) / execution.peaks.tags / execution.sms,
    }
    yield Cause(
        "narrow accesses",
        f"a global access moves {bytes_of_lane:.1f} B for each lane, so that instructions rather than bytes keep the "
        "LSU busy (LG Throttle)",
        "Use vectorised loads and stores of up to 16 B for each thread, such as uchar4, float4 or int4",
        execution.saved(demands=after),
    )
