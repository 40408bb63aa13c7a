# SPDX-License-Identifier: Apache-2.0
"""MPI jobs: what ranks did with their time, the network as a picture, links, latencies, the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale.report.charts import HeatMap, Lane, Lanes, Lines, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.numbers import for_people, percent, scale_of
from manyscale.report.page import Section
from manyscale.report.sections.general import Parent

if TYPE_CHECKING:
    import polars as pl

_PARTS = {
    "compute": "computing",
    "overhead": "MPI library",
    "waiting": "waiting for late ranks",
    "transfer": "messages on their way",
}
_MOST_RANKS = 64
_MOST_ROWS = 20_000
_MOST_LINKS = 48  # rows of a heat map
_MOST_COLUMNS = 400
_LINK_COLUMNS = ("from", "to", "from_node", "to_node", "link", "busy", "bytes", "queueing")


def ranks_chart(evidence: Evidence) -> Stacks | None:
    """What ranks did: the mean, and those that computed least and most."""
    table = evidence.columns("ranks", "rank", "end", *_PARTS)
    if table is None:
        return None
    factor, unit = scale_of([float(table["end"].max() or 0)], "s")  # type: ignore[arg-type]
    means = {words: factor * float(table[name].mean() or 0) for name, words in _PARTS.items()}  # type: ignore[arg-type]
    bars = {"mean of all ranks": means}
    by_compute = table.sort("compute")
    if by_compute["compute"][0] < by_compute["compute"][-1]:
        for what, index in (("least computing", 0), ("most computing", -1)):
            row = by_compute.row(index, named=True)
            bars[f"{what}: rank {row['rank']}"] = {
                words: factor * row[name] for name, words in _PARTS.items()
            }
    return Stacks("Time of ranks", f"time in {unit}", bars)


def ranks(parent: Parent, evidence: Evidence) -> None:
    """What each rank did with its time."""
    table = evidence.columns("ranks", "rank", "end", *_PARTS)
    if table is None:
        return
    section = parent.section("Time of each rank")
    step = -(-table.height // _MOST_RANKS)
    factor, unit = scale_of([float(table["end"].max() or 0)], "s")  # type: ignore[arg-type]
    bars = {
        f"rank {row['rank']}": {words: factor * row[name] for name, words in _PARTS.items()}
        for row in table.gather_every(step).iter_rows(named=True)
    }
    section.chart(
        Stacks("Ranks", f"time in {unit}", bars),
        f"Every {step}th of {table.height:,} ranks." if step > 1 else "",
    )
    units = dict.fromkeys([*_PARTS, "end"], "s")
    section.table(
        table.head(_MOST_ROWS),
        "Each rank.",
        names=_PARTS,
        units={k: v for k, v in units.items() if k in table.columns},
    )


def network(parent: Parent, evidence: Evidence) -> None:
    """The network as a picture, its links by load, and messages by latency."""
    links = evidence.columns("links", *_LINK_COLUMNS)
    picture = evidence.text("network.svg", 8 << 20)
    if links is None and picture is None:
        return
    section = parent.section("Network: topology, load and queues")
    if picture is not None:
        section.picture(picture, "Switches and links, coloured by the share of time they were busy.")
    if links is not None:
        for chart in load_charts(evidence):
            section.chart(chart)
        _links(section, links)
    latencies = latency_chart(evidence)
    if latencies is not None:
        section.chart(latencies, "Messages by latency, in buckets.")


def _links(section: Section, links: pl.DataFrame) -> None:
    from manyscale.network.result import link_name

    used = links.filter(links["bytes"] > 0).sort("busy", descending=True)
    rows = [
        (link_name(row), row["bytes"], row.get("packets"), 100 * row["busy"], row["queueing"])
        for row in used.head(_MOST_ROWS).iter_rows(named=True)
    ]
    more = f"; the busiest {_MOST_ROWS:,} of {used.height:,}" if used.height > _MOST_ROWS else ""
    section.table(
        rows,
        f"Links that carried something, the busiest first{more}.",
        columns=("link", "bytes", "packets", "busy", "queueing"),
        units={"bytes": "B", "busy": "%", "queueing": "s"},
        titles={"queueing": "time that packets waited for it, all together"},
    )


def latency_chart(evidence: Evidence) -> Lines | None:
    """Messages by latency, as a histogram."""
    latency = evidence.columns("latency", "seconds", "messages")
    if latency is None:
        return None
    rows = [
        (seconds, count)
        for seconds, count in latency.select("seconds", "messages").iter_rows()
        if seconds > 0
    ]
    if not rows:
        return None
    factor, unit = scale_of([seconds for seconds, _ in rows], "s")
    return histogram("Messages by latency", f"latency, {unit}", "messages", {"messages": rows}, factor)


def histogram(
    title: str, x: str, y: str, rows: dict[str, list[tuple[float, float]]], factor: float = 1.0
) -> Lines:
    """Counts by the lower bound of their bucket, as steps over a logarithmic axis; empty buckets fall to 0."""
    lines = {}
    for name, counts in rows.items():
        points: list[tuple[float, float]] = []
        ratio = 1.19  # a quarter of a power of two: as wide as the buckets of a histogram are
        for low, count in sorted(counts):
            if points and low > points[-1][0] * 1.0001:
                points.append((points[-1][0] * 1.0001, 0.0))
            points += [(low * factor, count), (low * ratio * factor, 0.0)]
        lines[name] = sorted(dict(points).items())
    return Lines(title, x, y, lines, log_x=True, steps=True, filled=True)


def load_charts(evidence: Evidence) -> list[HeatMap]:
    """The busiest links over time: their load, and what waited for them."""
    from manyscale.network.result import link_name

    load = evidence.columns("load", "row", "begin", "seconds", "load", "queue")
    links = evidence.columns("links", *_LINK_COLUMNS)
    if load is None or links is None:
        return []
    interval = float(load["seconds"][0])
    if interval <= 0:
        return []
    busiest = links.with_row_index("row").sort("busy", descending=True).head(_MOST_LINKS)
    indices = {row: number for number, row in enumerate(busiest["row"].to_list())}
    columns = int(float(load["begin"].max() or 0) / interval) + 1  # type: ignore[arg-type]
    group = -(-columns // _MOST_COLUMNS)
    names = [link_name(row) for row in busiest.iter_rows(named=True)]
    factor, unit = scale_of([columns * interval], "s")
    times = [column * group * interval * factor for column in range(-(-columns // group))]
    charts = []
    for value, title, scale, kind in (
        ("load", "Load of the busiest links", "share of bandwidth", "%"),
        ("queue", "Bytes that wait for the busiest links", "bytes", "B"),
    ):
        grid = [[0.0] * len(times) for _ in indices]
        for row, begin, amount in load.select("row", "begin", value).iter_rows():
            if row in indices:
                grid[indices[row]][int(begin / interval) // group] += amount / group
        if value == "load":  # levels of flows are shared out to half a percent
            grid = [[min(load, 1.0) for load in row] for row in grid]
        if any(any(row) for row in grid):
            charts.append(HeatMap(title, f"time in {unit}", "", times, names, grid, scale, unit=kind))
    return charts


def critical_path_chart(evidence: Evidence) -> Lanes | None:
    """The chain of work and messages that decided when the job ended, by rank."""
    table = evidence.columns("critical_path", "rank", "begin", "end", "kind", "peer")
    if table is None:
        return None
    rows = table.head(_MOST_ROWS)
    kinds = rows["kind"].unique(maintain_order=True).to_list()
    factor, unit = scale_of([float(rows["end"].max() or 0)], "s")  # type: ignore[arg-type]
    lanes = []
    for rank in rows["rank"].unique().sort().to_list():
        own = rows.filter(rows["rank"] == rank).sort("begin")
        begins, ends = ((own[name] * factor).to_list() for name in ("begin", "end"))
        lanes.append(
            Lane(f"rank {rank}", begins, ends, [kinds.index(kind) for kind in own["kind"].to_list()])
        )
    return Lanes("Critical path over ranks", unit, kinds, lanes, from_zero=True)


def critical_path(parent: Parent, evidence: Evidence) -> None:
    """The chain of work and messages that decided when the job ended."""
    table = evidence.columns("critical_path", "rank", "begin", "end", "kind", "peer")
    chart = critical_path_chart(evidence)
    if table is None or chart is None:
        return
    import polars as pl

    section = parent.section("Critical path")
    sums = table.group_by("kind").agg((pl.col("end") - pl.col("begin")).sum().alias("seconds"), pl.len())
    whole = float(sums["seconds"].sum()) or 1.0
    parts = [
        f"{kind}: {percent(seconds / whole)} in {count:,} steps"
        for kind, seconds, count in sums.sort("seconds", descending=True).iter_rows()
    ]
    section.words(f"The chain that decided the end: {'; '.join(parts)}.")
    section.chart(chart)
    rows = table.head(_MOST_ROWS).with_columns((pl.col("end") - pl.col("begin")).alias("took"))
    section.table(
        rows, "From its beginning.", **for_people(rows.columns, dict.fromkeys(("begin", "end", "took"), "s"))
    )
