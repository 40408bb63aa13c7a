# SPDX-License-Identifier: Apache-2.0
"""Too few warps on an SM to hide latency: because of registers, shared memory or small blocks, or of a small grid.

While latency is what limits, each warp takes its time and more of them at once get more done, until a part of the
machine is busy all the time.
"""

from __future__ import annotations

from collections.abc import Iterator

from manyscale.gpu.kernel_counts import LANES, OccupancyLimit

from .cause import Cause, cause
from .execution import Execution

_FEW = 0.25  # of the warps of the kernel that fit on the SMs

_ADVICE = {
    "registers": "Let a thread use fewer registers, with __launch_bounds__ or -maxrregcount, shorter live ranges or "
    "less unrolling",
    "shared memory": "Let a block use less shared memory, with smaller tiles or narrower types",
    "small blocks": "Launch blocks of at least 128 to 256 threads",
    "large blocks": "Launch smaller blocks, of which more warps fit on an SM",
}


@cause
def low_occupancy(execution: Execution) -> Iterator[Cause]:
    counts, peaks = execution.counts, execution.peaks
    if counts.ctas <= counts.ctas_per_sm * peaks.sms:
        return  # more would fit
    fitting, holds = counts.ctas_per_sm * counts.warps_per_cta, peaks.warps
    limit = counts.occupancy_limit_text
    what, most = _next_limit(execution)
    most = min(most, counts.ctas * counts.warps_per_cta / peaks.sms)
    if most <= fitting:
        return
    yield Cause(
        f"low occupancy: {what}",
        f"occupancy {100 * fitting / holds:.0f}% is limited by {limit}: {fitting} of {holds} warps "
        f"fit on an SM, and {_latency(execution):.0f}% of warp cycles wait for latency that further warps would hide",
        _ADVICE[what],
        execution.saved_by_warps(most / fitting),
    )


@cause
def small_grid(execution: Execution) -> Iterator[Cause]:
    """The grid gives the SMs fewer warps than fit on them."""
    counts, peaks = execution.counts, execution.peaks
    fitting = counts.ctas_per_sm * counts.warps_per_cta
    warps = counts.ctas * counts.warps_per_cta / peaks.sms
    if warps > _FEW * fitting or counts.sms < peaks.sms:
        return
    yield Cause(
        "too few CTAs",
        f"a grid of {counts.ctas} CTAs gives an SM {warps:.0f} of the {fitting} warps that fit there, and "
        f"{_latency(execution):.0f}% of warp cycles wait for latency that further warps would hide",
        "Split the work among more threads and CTAs",
        execution.saved_by_warps(fitting / warps),
    )


def _latency(execution: Execution) -> float:
    return 100 * execution.share(execution.latency)


def _next_limit(execution: Execution) -> tuple[str, float]:
    """What limits occupancy, and the warps of an SM if it did not."""
    counts, limits = execution.counts, execution.peaks.limits
    holds = min(limits["warps"], limits["threads"] // LANES, execution.peaks.warps)
    by_size = holds // counts.warps_per_cta * counts.warps_per_cta
    by_number = limits["ctas"] * counts.warps_per_cta
    if counts.occupancy_limit is OccupancyLimit.REGISTERS:
        return "registers", min(by_size, by_number)
    if counts.occupancy_limit is OccupancyLimit.SHARED_MEMORY:
        each = max(counts.registers, 1) * LANES * counts.warps_per_cta
        return "shared memory", min(by_size, by_number, limits["registers"] // each * counts.warps_per_cta)
    return ("small blocks" if by_number < by_size else "large blocks"), holds
