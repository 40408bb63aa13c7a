# SPDX-License-Identifier: Apache-2.0
"""The annotated listing of kernels: instructions in order, with executions, threads, stalls and bytes."""

from __future__ import annotations

from manyscale.report.evidence import Evidence
from manyscale.report.sections.general import Parent

_MOST_ROWS = 20_000


def listing(parent: Parent, evidence: Evidence) -> None:
    """The instructions that warps spent cycles at."""
    table = evidence.columns("operations", "scope", "text", "ptx_line", "issued", "cycles", "percent")
    if table is None:
        return
    wanted = ["scope", "file", "source_line", "ptx_line", "text", "issued", "threads", "cycles", "percent"]
    wanted += [name for name in table.columns if name.startswith("stall_")]
    rows = table.select([name for name in wanted if name in table.columns]).sort("cycles", descending=True)
    rows = rows.with_columns(rows["scope"].replace(evidence.titles).alias("scope"))
    parent.section("Annotated listing").table(
        rows.head(_MOST_ROWS),
        "Cycles of warps that issued an instruction or waited to; percent of all of the kernel.",
    )
