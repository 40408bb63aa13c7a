# SPDX-License-Identifier: Apache-2.0
"""Page faults: warps that wait for pages of managed memory."""

from __future__ import annotations

from collections.abc import Iterator

from .cause import Cause, cause
from .execution import Execution


@cause
def page_faults(execution: Execution) -> Iterator[Cause]:
    sm = execution.sm
    if not sm["stall_fault"]:
        return
    yield Cause(
        "page faults",
        f"{100 * execution.share(sm['stall_fault']):.0f}% of warp cycles wait for pages of managed memory to come: "
        f"{sm['faulted_translations']:,} translations of SMs faulted",
        "Move the pages before the launch with cudaMemPrefetchAsync, or use device memory",
        execution.saved(stalls=sm["stall_fault"]),
    )
