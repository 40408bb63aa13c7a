# SPDX-License-Identifier: Apache-2.0
"""Local memory: arrays that are indexed at run time, and registers that were spilled."""

from __future__ import annotations

from collections.abc import Iterator

from .cause import Cause, cause
from .execution import Execution


@cause
def local_memory(execution: Execution) -> Iterator[Cause]:
    """Values in registers need no loads and stores, and no warp waits for them."""
    sm, demands = execution.sm, execution.demands
    requests = sm["local_requests"]
    if not requests:
        return
    written = sm["local_store_sectors"]
    stores = written / max(written + sm["store_sectors"] + sm["l1_misses"], 1)  # of the traffic to the L2
    throttled = sm["stall_lg_throttle"] + sm["stall_drain"]
    stalls = sm["stall_local"] + requests + throttled * requests / execution.memory_instructions
    sub_cores = execution.sms * execution.peaks.sub_cores
    after = {
        "issue_slots": demands["issue_slots"] - requests / sub_cores,
        "pipe_lsu": demands["pipe_lsu"] - requests / sub_cores,
        "address_units": demands["address_units"] - requests * execution.peaks.global_interval / sub_cores,
        "data_stage": demands["data_stage"] - sm["local_lines"] / execution.sms,
        "tag_stage": demands["tag_stage"] - sm["local_lines"] / execution.peaks.tags / execution.sms,
        "requests": demands["requests"] * (1 - stores),
        "crossbar": execution.crossbar(sm["l1_misses"], sm["store_sectors"]),
        "l2": demands["l2"] * (1 - stores),
    }
    yield Cause(
        "local memory",
        f"{requests:,} of {execution.memory_instructions:,} memory instructions access local memory, and "
        f"{100 * execution.share(stalls):.0f}% of warp cycles wait for it (Long Scoreboard, LG Throttle)",
        "Keep the values in registers: index arrays by constants (unroll the loop), allow more registers where they "
        "are spilled, or use shared memory",
        execution.saved(stalls=stalls, demands=after),
    )
