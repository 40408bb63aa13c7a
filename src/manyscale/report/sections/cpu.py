# SPDX-License-Identifier: Apache-2.0
"""Programs on cores, running or replayed: top-down, CPI stacks, misses, regions, tasks, hot lines, output."""

from __future__ import annotations

from typing import Any

from manyscale.report.charts import Lane, Lanes, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.numbers import for_people, percent, scale_of, share, shown, spoken
from manyscale.report.sections.general import Parent
from manyscale.report.top_down import cpi_shares, top_down

_MOST_CORES = 128
_MOST_ROWS = 20_000
_MOST_TASKS = 60_000


def top_down_chart(evidence: Evidence) -> Stacks | None:
    """Cycles of all cores by the groups of the top-down method."""
    shares = cpi_shares(evidence)
    if not shares:
        return None
    bars = {  # all causes in each, so that they have the colours of the CPI stacks
        group: {spoken(cause): 100 * causes.get(cause, 0.0) for cause in shares}
        for group, causes in top_down(shares).items()
    }
    return Stacks("Top-down", "% of the cycles of all cores", bars, most=100)


def cpi_chart(evidence: Evidence) -> Stacks | None:
    """The CPI stack of each core."""
    shares = cpi_shares(evidence)
    table = evidence.columns("cpi_stack", "core", "cause", "cycles", "cpi", "share")
    if not shares or table is None:
        return None
    cores = table["core"].unique(maintain_order=True).to_list()
    bars: dict[str, dict[str, float]] = {}
    if len(cores) > 1:
        bars["all cores"] = {spoken(cause): 100 * part for cause, part in shares.items()}
    for core in cores[:_MOST_CORES]:
        own = table.filter(table["core"] == core)
        bars[f"core {core}"] = {
            spoken(cause): 100 * part for cause, part in own.select("cause", "share").iter_rows()
        }
    return Stacks("CPI stacks", "% of the core's cycles", bars, most=100)


def cpi_stacks(parent: Parent, evidence: Evidence) -> None:
    """Where the cycles of the cores went."""
    groups, stacks = top_down_chart(evidence), cpi_chart(evidence)
    table = evidence.columns("cpi_stack", "core", "cause", "cycles", "cpi", "share")
    if groups is None or stacks is None or table is None:
        return
    section = parent.section("Top-down and CPI stacks")
    section.chart(
        groups,
        "Cycles of the CPI stack in the groups of the top-down method, which counts issue slots; its causes by colour.",
    )
    section.chart(stacks, "What the oldest instruction waited for.")
    import polars as pl

    rows = table.filter(table["cycles"] > 0).with_columns(pl.col("share") * 100)
    section.table(
        rows, "Cycles and cycles per instruction by cause.", names={"cpi": "CPI"}, units={"share": "%"}
    )


def misses(parent: Parent, evidence: Evidence) -> None:
    """Misses in 1000 instructions: of branches, caches and TLBs; and what prefetchers did."""
    cores = [core for core in evidence.group("core[") if evidence.has(core, "instructions")]
    instructions = evidence.total(cores, "instructions")
    if not instructions:
        return
    rows = [row for row in (_branches(evidence, cores), *_caches(evidence), *_tlbs(evidence, cores)) if row]
    if not rows:
        return
    section = parent.section("Branch, cache and TLB misses")
    per = {name: {"MPKI": 1000 * missed / instructions} for name, _, missed in rows}
    section.chart(
        Stacks("Misses in 1000 instructions (MPKI)", "misses in 1000 instructions", per, labelled=True)
    )
    section.table(
        [
            (
                name,
                accesses,
                missed,
                100 * share(missed, accesses) if accesses else None,
                1000 * missed / instructions,
            )
            for name, accesses, missed in rows
        ],
        f"Over {shown(instructions)} instructions of all cores.",
        columns=("what", "accesses", "misses", "miss rate", "MPKI"),
        units={"miss rate": "%"},
    )
    prefetching = _prefetching(evidence)
    if prefetching:
        section.table(
            prefetching,
            "Accuracy: useful of issued prefetches. Coverage: useful ones, of them and the misses that are left.",
            columns=("prefetcher of", "issued", "useful", "late", "accuracy", "coverage"),
            units={"accuracy": "%", "coverage": "%"},
        )


def _branches(evidence: Evidence, cores: list[str]) -> tuple[str, float, float] | None:
    made = evidence.total(cores, *(f"instructions.{kind}" for kind in ("branch", "jump", "indirect")))
    return ("branches", made, evidence.total(cores, "mispredicts")) if made else None


def _caches(evidence: Evidence) -> list[tuple[str, float, float]]:
    table = evidence.columns("caches", "level", "accesses", "misses")
    if table is None:
        return []
    return [
        (f"{str(level).upper()} cache" if str(level).startswith("l") else f"{level} cache", accesses, missed)
        for level, accesses, missed in table.select("level", "accesses", "misses").iter_rows()
    ]


def _tlbs(evidence: Evidence, cores: list[str]) -> list[tuple[str, float, float]]:
    found = []
    for title, name in (("instruction TLB", "instruction"), ("data TLB", "data"), ("L2 TLB", "second")):
        hits, missed = (evidence.total(cores, f"tlb.{name}_{each}") for each in ("hits", "misses"))
        if hits + missed:
            found.append((title, hits + missed, missed))
    return found


def _prefetching(evidence: Evidence) -> list[tuple[str, float, float, float, float, float]]:
    """Lines that prefetchers brought: how many were used, and what part of the misses they avoided."""
    rows = []
    cores = evidence.group("core[")
    has_l2 = bool(cores) and evidence.has(cores[0], "l2.hits")
    for title, components, prefix, level in (
        ("L1", cores, "first_prefetcher.", "l1."),
        ("L2" if has_l2 else "L1", cores, "prefetcher.", "l2." if has_l2 else "l1."),
        ("shared cache", evidence.group("slice["), "prefetcher.", ""),
    ):
        issued, useful, late = (
            evidence.total(components, prefix + name) for name in ("issued", "useful", "late")
        )
        if not issued:
            continue
        accesses = evidence.total(components, f"{level}reads", f"{level}writes")
        missed = accesses - evidence.total(components, f"{level}hits", f"{level}merged")
        accuracy, coverage = min(share(useful, issued), 1.0), share(useful, useful + max(missed, 0.0))
        rows.append((title, issued, useful, late, 100 * accuracy, 100 * coverage))
    return rows


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
            bars[region] = {spoken(cause): float(own[cause].sum()) for cause in causes}
        if any(any(bar.values()) for bar in bars.values()):
            section.chart(Stacks("Cycles by region", "cycles of all threads", bars))
    times = dict.fromkeys(("away", "shortest", "longest"), "s")
    section.table(
        table.head(_MOST_ROWS),
        "Regions of each thread; causes in cycles.",
        **for_people(table.columns, {name: unit for name, unit in times.items() if name in table.columns}),
    )


def tasks_chart(evidence: Evidence) -> Lanes | None:
    """Which core executed a task when."""
    runs = evidence.columns("task_runs", "task", "core", "begin", "end")
    if runs is None:
        return None
    rows = runs.head(_MOST_TASKS)
    factor, unit = scale_of([float(rows["end"].max() or 0.0)], "s")  # type: ignore[arg-type]
    lanes = []
    for core in rows["core"].unique().sort().to_list():
        own = rows.filter(rows["core"] == core).sort("begin")
        what = (own["copy"] if "copy" in own.columns else own["task"] * 0).to_list()
        begins, ends = ((own[name] * factor).to_list() for name in ("begin", "end"))
        lanes.append(Lane(f"core {core}", begins, ends, [int(each) % 8 for each in what], kind="cores"))
    copies = max((max(lane.what) for lane in lanes), default=0) + 1
    names = [f"copy {number}" for number in range(copies)] if copies > 1 else ["task"]
    return Lanes("Tasks over time", unit, names, lanes, from_zero=True)


def tasks(parent: Parent, evidence: Evidence) -> None:
    """Of a program with tasks, or a replay: who executed what when."""
    chart = tasks_chart(evidence)
    if chart is not None:
        parent.section("Tasks over time").chart(chart, "Gaps are cores without a task that is ready.")
    table = evidence.table("tasks")
    if table is not None:
        import polars as pl

        texts = [
            pl.col(name).list.join(", ") if isinstance(kind, pl.List) else pl.col(name)
            for name, kind in table.schema.items()
        ]
        parent.section("Tasks").table(
            table.select(texts).head(_MOST_ROWS), "Explicit OpenMP tasks.", **for_people(table.columns)
        )


def hot_lines(parent: Parent, evidence: Evidence) -> None:
    """Instructions and lines of the program that took the most cycles, with the source where it can be read."""
    table = evidence.columns(
        "hot_instructions", "cycles", "instructions", "function", "file", "line", "address"
    )
    if table is None:
        return
    import polars as pl

    section = parent.section("Annotated source and hot instructions")
    whole = max(float(table["cycles"].sum()), 1.0)
    sums = [pl.col(name).sum() for name in ("instructions", "cycles")]
    lines = table.group_by("file", "line", "function", maintain_order=True).agg(sums)
    rows: list[tuple[Any, ...]] = [
        (
            f"{file.rpartition('/')[2]}:{line}" if line else function,
            function,
            executed,
            cycles,
            100 * cycles / whole,
        )
        for file, line, function, executed, cycles in lines.sort("cycles", descending=True)
        .select("file", "line", "function", "instructions", "cycles")
        .head(_MOST_ROWS)
        .iter_rows()
    ]
    top = ", ".join(f"{row[0]} ({percent(row[4] / 100)})" for row in rows[:3])
    section.words(f"Most cycles: {top}.")
    section.table(
        rows,
        "Lines of the source, or functions where the program does not say the line.",
        columns=("line", "function", "instructions", "cycles", "of all cycles"),
        units={"of all cycles": "%"},
    )
    instructions = table.sort("cycles", descending=True).head(_MOST_ROWS)
    addresses = [f"{address:#x}" for address in instructions["address"].to_list()]
    instructions = instructions.with_columns(pl.Series("address", addresses))
    section.table(instructions, "Instructions, with their cycles by cause.")


def output(parent: Parent, evidence: Evidence) -> None:
    """What the program wrote."""
    found = {name: evidence.text(name, 1 << 20) for name in ("stdout.txt", "stderr.txt", "notes.txt")}
    if not any(text and text.strip() for text in found.values()):
        return
    section = parent.section("Output of the program")
    for name, text in found.items():
        if text and text.strip():
            section.code(text[:50_000], name)
