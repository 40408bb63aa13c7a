# SPDX-License-Identifier: Apache-2.0
"""Atomic operations on one word, which the L2 slice of that word performs one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from manyscale.gpu.kernel_counts import LANES

from .cause import Cause, cause
from .execution import Execution


@cause
def contention(execution: Execution) -> Iterator[Cause]:
    """With one atomic operation for a whole CTA, its slice has little to do, and warps need not wait for it."""
    sm, counts = execution.sm, execution.counts
    rounds = sm["atomic_rounds_busiest"]
    if not rounds:
        return
    threads = LANES * counts.warps_per_cta
    busy = 100 * execution.demands["atomics"] / max(execution.cycles, 1)
    if busy < 50 and not sm["atomic_conflicts"]:
        return  # they do not meet
    left = (1 - sm["atomic_conflicts"] / max(sm["atomic_rounds"], 1)) / counts.warps_per_cta
    demands = execution.demands
    fewer = 1 - 1 / counts.warps_per_cta
    after = {
        "atomics": demands["atomics"] * left,
        "requests": demands["requests"] * (1 - fewer * sm["atomic_requests"] / max(sm["l2_requests"], 1)),
    }
    yield Cause(
        "contention of atomics",
        f"the busiest L2 slice performs {rounds:,} of {sm['atomic_rounds']:,} rounds of atomic operations, for "
        f"{busy:.0f}% of the time; {100 * execution.share(sm['stall_atomic']):.0f}% of warp cycles wait for them",
        f"Add up in the CTA first (shuffles, then shared memory) and let one of its {threads} threads do the atomic "
        "operation, or spread it over several words",
        execution.saved(demands=after),
    )
