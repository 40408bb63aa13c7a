# SPDX-License-Identifier: Apache-2.0
"""Unified memory: page faults, migrations, and the location of pages over time."""

from __future__ import annotations

from manyscale.report.evidence import Evidence
from manyscale.report.numbers import shown
from manyscale.report.sections.general import Parent

_MOST_ROWS = 20_000
_FIRST = {
    "faults": ("page faults", "1"),
    "fault_batches": ("fault batches", "1"),
    "pages_faulted_in": ("pages migrated by faults", "1"),
    "pages_prefetched": ("prefetched pages", "1"),
    "prefetched_used": ("prefetched pages used", "1"),
    "pages_evicted": ("pages evicted", "1"),
    "thrashed_pages": ("thrashed pages", "1"),
    "bytes_to_device": ("bytes to device", "B"),
    "bytes_to_host": ("bytes to host", "B"),
    "stalled": ("time stalled on pages", "fs"),
    "driver_busy": ("time the UVM driver was busy", "fs"),
}


def unified_memory(parent: Parent, evidence: Evidence) -> None:
    """Faults, transfers, and pages over time."""
    for uvm in evidence.group("uvm"):
        if not any(evidence.value(uvm, name) for name in _FIRST):
            continue
        section = parent.section("Unified memory" if uvm == "uvm" else f"Unified memory: {uvm}")
        section.numbers(
            {words: shown(evidence.value(uvm, name), unit) for name, (words, unit) in _FIRST.items()}
        )
        for name, words in (
            (
                "pages.svg",
                "Pages over time: dark where they are on the device; dots are faults and evictions.",
            ),
            ("transfers.svg", "Activity of kernels, the UVM driver, and the link in both directions."),
        ):
            picture = evidence.text(name, 8 << 20)
            if picture is not None:
                section.picture(picture, words)
        log = evidence.table("pages")
        if log is not None:
            section.table(log.head(_MOST_ROWS), "The page log; times in seconds.")
