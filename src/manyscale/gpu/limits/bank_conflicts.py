# SPDX-License-Identifier: Apache-2.0
"""Accesses that take more than one pass: of shared memory to one bank, and of constants to many addresses.

The stage that shared memory, L1 and constants share is busy for each pass. The SM counts the cycles by which results
are late because of passes that conflicts add, as far as warps had to wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from .cause import Cause, cause
from .execution import Execution


def _added(execution: Execution) -> dict[str, int]:
    """Passes that conflicts add, by what they belong to."""
    sm = execution.sm
    return {
        "shared": sm["shared_conflicts"],
        "atomic": sm["shared_atomic_conflicts"],
        "constant": sm["constant_wavefronts"] - sm["constant_requests"],
    }


def _saved(execution: Execution, which: str) -> float:
    added = _added(execution)
    if not added[which]:
        return 0.0
    stalls = execution.sm["stall_conflict"] * added[which] / sum(added.values())
    passes = execution.demands["data_stage"] - added[which] / execution.sms
    return execution.saved(stalls=stalls, demands={"data_stage": passes})


@cause
def shared_memory(execution: Execution) -> Iterator[Cause]:
    sm = execution.sm
    if not sm["shared_conflicts"]:
        return
    ways = sm["shared_wavefronts"] / sm["shared_requests"]
    part = 100 * sm["shared_conflicts"] / sm["shared_wavefronts"]
    yield Cause(
        "bank conflicts",
        f"shared memory works with {ways:.1f} wavefronts for each request, {part:.0f}% of them due to bank conflicts: "
        "lanes want different words of one bank (Short Scoreboard)",
        "Pad the rows of the array by one word, such as tile[32][33], or permute its columns, so that the lanes of a "
        "warp use different banks",
        _saved(execution, "shared"),
    )


@cause
def shared_atomics(execution: Execution) -> Iterator[Cause]:
    sm = execution.sm
    if not sm["shared_atomic_conflicts"]:
        return
    yield Cause(
        "contention of shared-memory atomics",
        f"lanes that change the same word or bank take turns: {sm['shared_atomic_conflicts']:,} of "
        f"{sm['shared_wavefronts']:,} wavefronts of shared memory",
        "Give each warp or lane a copy of its own and add them up at the end, or combine the lanes' values with "
        "shuffles first",
        _saved(execution, "atomic"),
    )


@cause
def constants(execution: Execution) -> Iterator[Cause]:
    sm = execution.sm
    if sm["constant_wavefronts"] <= sm["constant_requests"]:
        return
    yield Cause(
        "serialised constant loads",
        f"a load of constants takes {sm['constant_wavefronts'] / sm['constant_requests']:.1f} wavefronts, one for each "
        "address among its lanes (IMC misses)",
        "Read tables that lanes index differently from shared or global memory; constant memory serves one address "
        "at a time",
        _saved(execution, "constant"),
    )
