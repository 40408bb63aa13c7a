# SPDX-License-Identifier: Apache-2.0
"""Instructions that not all lanes take part in: because branches diverge, or because blocks do not fill their warps.

An instruction takes as long for one lane as for 32. Without divergence, a warp would issue and wait for each only as
often as its lanes need it.
"""

from __future__ import annotations

from collections.abc import Iterator

from manyscale.gpu.kernel_counts import LANES

from .cause import Cause, cause
from .execution import OPERATION_CYCLES, Execution

_SCALED = (
    "issue_slots",
    "pipe_alu",
    "pipe_fma",
    "pipe_fp64",
    "pipe_xu",
    "pipe_cbu",
    "pipe_other",
)


@cause
def divergence(execution: Execution) -> Iterator[Cause]:
    counts = execution.counts
    lanes_of_block = counts.threads_per_cta / counts.warps_per_cta
    rows = counts.operations
    lost = lost_issues = 0.0
    columns = zip(rows["executed"], rows["threads"], *(rows[name] for name in OPERATION_CYCLES), strict=True)
    for executed, threads, issued, *stalls in columns:
        if executed and threads:  # an instruction that no lane takes part in is a guard that did its work
            idle = max(1 - threads / (executed * lanes_of_block), 0.0)
            lost += idle * (issued + sum(stalls))
            lost_issues += idle * issued
    if not lost:
        return
    left = 1 - lost_issues / max(execution.sm["issued_instructions"], 1)
    lanes = execution.values["threads_per_instruction"]
    yield Cause(
        "branch divergence",
        f"{lanes:.1f} of {LANES} threads take part in an instruction in the mean, since threads of a warp take "
        "different paths one after the other",
        "Sort or regroup the work so that the threads of a warp take the same path, or replace short branches by "
        "predication",
        execution.saved(stalls=lost, demands={name: left * execution.demands[name] for name in _SCALED}),
    )


@cause
def partly_filled_warps(execution: Execution) -> Iterator[Cause]:
    """As many threads in full warps are fewer warps, which issue fewer instructions."""
    counts = execution.counts
    filled = counts.threads_per_cta / counts.warps_per_cta / LANES
    if filled >= 1:
        return
    demands = {name: filled * execution.demands[name] for name in (*_SCALED, "address_units", "data_stage")}
    yield Cause(
        "partly filled warps",
        f"{execution.values['threads_per_instruction']:.1f} of {LANES} threads take part in an instruction, since "
        f"blocks of {counts.threads_per_cta} threads do not fill their warps",
        f"Launch blocks of a multiple of {LANES} threads",
        execution.saved_by_fewer(filled, demands),
    )
