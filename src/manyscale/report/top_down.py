# SPDX-License-Identifier: Apache-2.0
"""Where the cycles of cores went: causes of the CPI stack, and their groups of the top-down method.

The top-down method (Yasin, ISPASS 2014) counts issue slots; here the cycles of the CPI stack are put into its groups,
and cycles in which a core has no runnable thread are groups of their own.
"""

from __future__ import annotations

from manyscale.report.evidence import Evidence

_GROUPS = {
    "Retiring": ("base",),
    "Bad speculation": ("branch",),
    "Front-end bound": ("fetch", "fetch_tlb"),
    "Memory bound": ("l1", "l2", "l3", "shared", "peer", "dram", "tlb", "store_buffer"),
    "Core bound": ("dependency", "unit", "window"),
    "Waiting for threads": ("synchronisation", "sleeping"),
    "Idle": ("idle",),
}


def cpi_shares(evidence: Evidence) -> dict[str, float]:
    """The share of all cores' cycles that each cause took; empty if nothing was counted."""
    table = evidence.columns("cpi_stack", "core", "cause", "cycles")
    if table is None:
        return {}
    sums: dict[str, float] = {}
    for cause, cycles in table.select("cause", "cycles").iter_rows():
        sums[cause] = sums.get(cause, 0.0) + cycles
    whole = sum(sums.values())
    return {cause: cycles / whole for cause, cycles in sums.items()} if whole else {}


def top_down(shares: dict[str, float]) -> dict[str, dict[str, float]]:
    """Group -> cause -> share; only groups that took something. A cause that no group names bounds the core."""
    found: dict[str, dict[str, float]] = {}
    for cause, part in shares.items():
        if part > 0:
            group = next((name for name, causes in _GROUPS.items() if cause in causes), "Core bound")
            found.setdefault(group, {})[cause] = part
    return {group: found[group] for group in _GROUPS if group in found}
