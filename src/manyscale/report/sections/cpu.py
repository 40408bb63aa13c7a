# SPDX-License-Identifier: Apache-2.0
"""Programs on cores, running or replayed: CPI stacks, regions, tasks, hot lines, output."""

from __future__ import annotations

from manyscale.report.charts import Lane, Lanes, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.findings import cpi_shares
from manyscale.report.sections.general import Parent

_MOST_CORES = 128
_MOST_ROWS = 20_000
_MOST_TASKS = 60_000


def cpi_stacks(parent: Parent, evidence: Evidence) -> None:
    """Where the cycles of the cores went."""
    shares = cpi_shares(evidence)
    table = evidence.columns("cpi_stack", "core", "cause", "cycles", "cpi", "share")
    if not shares or table is None:
        return
    section = parent.section("Where the cycles of cores went")
    cores = table["core"].unique(maintain_order=True).to_list()
    bars: dict[str, dict[str, float]] = {}
    if len(cores) > 1:
        bars["all cores"] = {cause: 100 * part for cause, part in shares.items()}
    for core in cores[:_MOST_CORES]:
        own = table.filter(table["core"] == core)
        bars[f"core {core}"] = {cause: 100 * part for cause, part in own.select("cause", "share").iter_rows()}
    section.chart(
        Stacks("CPI stacks", "% of the core's cycles", bars), "What the oldest instruction waited for."
    )
    section.table(table.filter(table["cycles"] > 0), "Cycles and cycles per instruction by cause.")


def regions(parent: Parent, evidence: Evidence) -> None:
    """Where the time of threads went, by region of the program."""
    import polars as pl

    table = evidence.columns("regions", "region", "thread", "time")
    if table is None:
        return
    section = parent.section("Regions of the program")
    sums = (
        table.group_by("region", maintain_order=True)
        .agg(pl.col("time").sum(), pl.col("thread").n_unique().alias("threads"))
        .sort("time", descending=True)
        .head(20)
    )
    causes = [name for name in cpi_shares(evidence) if name in table.columns]
    if causes:
        bars = {}
        for region in sums["region"].to_list()[:10]:
            own = table.filter(table["region"] == region)
            bars[region] = {cause: float(own[cause].sum()) for cause in causes}
        if any(any(bar.values()) for bar in bars.values()):
            section.chart(Stacks("Cycles by region", "cycles of all threads", bars))
    section.table(table.head(_MOST_ROWS), "Regions of each thread; times in seconds, causes in cycles.")


def tasks(parent: Parent, evidence: Evidence) -> None:
    """Of a program with tasks, or a replay: who executed what when."""
    runs = evidence.columns("task_runs", "task", "core", "begin", "end")
    if runs is not None:
        rows = runs.head(_MOST_TASKS)
        lanes = []
        for core in rows["core"].unique().sort().to_list():
            own = rows.filter(rows["core"] == core).sort("begin")
            what = (own["copy"] if "copy" in own.columns else own["task"] * 0).to_list()
            lanes.append(
                Lane(
                    f"core {core}",
                    (own["begin"] * 1e6).to_list(),
                    (own["end"] * 1e6).to_list(),
                    [int(each) % 8 for each in what],
                )
            )
        names = [f"copy {number}" for number in range(max((max(lane.what) for lane in lanes), default=0) + 1)]
        parent.section("Tasks over time").chart(Lanes("Tasks", "us", names, lanes))
    table = evidence.table("tasks")
    if table is not None:
        import polars as pl

        texts = [
            pl.col(name).list.join(", ") if isinstance(kind, pl.List) else pl.col(name)
            for name, kind in table.schema.items()
        ]
        parent.section("Tasks").table(table.select(texts).head(_MOST_ROWS), "Explicit OpenMP tasks.")


def hot_lines(parent: Parent, evidence: Evidence) -> None:
    """Instructions of the program that took the most cycles."""
    table = evidence.columns("hot_instructions", "cycles")
    if table is not None:
        parent.section("Hot instructions").table(
            table.sort("cycles", descending=True).head(_MOST_ROWS), "Cycles by instruction."
        )


def output(parent: Parent, evidence: Evidence) -> None:
    """What the program wrote."""
    for name in ("stdout.txt", "stderr.txt", "notes.txt"):
        text = evidence.text(name, 1 << 20)
        if text and text.strip():
            parent.section(f"Output: {name}").code(text[:50_000], f"the first letters of {name}")
