# SPDX-License-Identifier: Apache-2.0
"""MPI jobs: what ranks did with their time, the network as a picture, links, latencies, the critical path."""

from __future__ import annotations

from manyscale.report.charts import HeatMap, Lane, Lanes, Lines, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.page import Section
from manyscale.report.sections.general import Parent

_PARTS = {
    "compute": "computing",
    "overhead": "MPI library",
    "waiting": "waiting for others",
    "transfer": "messages on their way",
}
_MOST_RANKS = 64
_MOST_ROWS = 20_000
_MOST_LINKS = 48  # rows of a heat map


def ranks(parent: Parent, evidence: Evidence) -> None:
    """What ranks did with their time."""
    table = evidence.columns("ranks", "rank", "end", *_PARTS)
    if table is None:
        return
    section = parent.section("Time of ranks")
    step = -(-table.height // _MOST_RANKS)
    bars = {
        "mean": {words: 1e6 * float(table[name].mean() or 0) for name, words in _PARTS.items()}  # type: ignore[arg-type]
    }
    for row in table.gather_every(step).iter_rows(named=True):
        bars[f"rank {row['rank']}"] = {words: 1e6 * row[name] for name, words in _PARTS.items()}
    section.chart(
        Stacks("What ranks did", "us", bars),
        f"Every {step}th of {table.height:,} ranks." if step > 1 else "",
    )
    section.table(table.head(_MOST_ROWS), "Times in seconds.")


def network(parent: Parent, evidence: Evidence) -> None:
    """The network as a picture, its links by load, and messages by latency."""
    links = evidence.columns(
        "links", "from", "to", "from_node", "to_node", "link", "busy", "bytes", "queueing"
    )
    picture = evidence.text("network.svg", 8 << 20)
    if links is None and picture is None:
        return
    section = parent.section("Network")
    if picture is not None:
        section.picture(picture, "Switches and links, coloured by the share of time they were busy.")
    load = evidence.columns("load", "row", "begin", "seconds", "load", "queue")
    if load is not None and links is not None:
        _load(section, evidence)
    if links is not None:
        from manyscale.network.result import link_name

        used = links.filter(links["bytes"] > 0).sort("busy", descending=True)
        rows = [
            (link_name(row), row["bytes"], row.get("packets"), 100 * row["busy"], 1e6 * row["queueing"])
            for row in used.head(_MOST_ROWS).iter_rows(named=True)
        ]
        more = f"; the busiest {_MOST_ROWS:,} of {used.height:,}" if used.height > _MOST_ROWS else ""
        section.table(
            rows,
            f"Links that carried something, the busiest first{more}.",
            columns=("link", "bytes", "packets", "busy %", "waited for it us"),
        )
    latency = evidence.columns("latency", "seconds", "messages")
    if latency is not None:
        points = [
            (1e6 * seconds, count) for seconds, count in latency.select("seconds", "messages").iter_rows()
        ]
        section.chart(
            Lines(
                "Messages by latency",
                "us",
                "messages",
                {"messages": [p for p in points if p[0] > 0]},
                log_x=True,
            )
        )


def _load(section: Section, evidence: Evidence) -> None:
    """The busiest links over time."""
    from manyscale.network.result import link_name

    links, load = evidence.table("links"), evidence.table("load")
    if links is None or load is None:
        return
    busiest = links.with_row_index("row").sort("busy", descending=True).head(_MOST_LINKS)
    places = {row: number for number, row in enumerate(busiest["row"].to_list())}
    interval = float(load["seconds"][0])
    if interval <= 0:
        return
    columns = int(float(load["begin"].max() or 0) / interval) + 1  # type: ignore[arg-type]
    group = -(-columns // 400)
    grid = [[0.0] * (-(-columns // group)) for _ in places]
    for row, begin, value in load.select("row", "begin", "load").iter_rows():
        if row in places:
            grid[places[row]][int(begin / interval) // group] += value / group
    names = [link_name(row) for row in busiest.iter_rows(named=True)]
    times = [place * group * interval * 1e6 for place in range(len(grid[0]))]
    chart = HeatMap("Load of the busiest links", "time in us", "", times, names, grid, "share of bandwidth")
    section.chart(chart)


def critical_path(parent: Parent, evidence: Evidence) -> None:
    """The chain of work and messages that decided when the job ended."""
    table = evidence.columns("critical_path", "rank", "begin", "end", "kind", "peer")
    if table is None:
        return
    import polars as pl

    section = parent.section("Critical path")
    sums = table.group_by("kind").agg((pl.col("end") - pl.col("begin")).sum().alias("seconds"), pl.len())
    whole = float(sums["seconds"].sum()) or 1.0
    parts = [
        f"{kind}: {100 * seconds / whole:.0f}% in {count:,} steps"
        for kind, seconds, count in sums.sort("seconds", descending=True).iter_rows()
    ]
    section.words(f"The chain that decided the end: {'; '.join(parts)}.")
    rows = table.head(_MOST_ROWS)
    kinds = rows["kind"].unique(maintain_order=True).to_list()
    lanes = []
    for rank in rows["rank"].unique().sort().to_list()[:_MOST_RANKS]:
        own = rows.filter(rows["rank"] == rank).sort("begin")
        lanes.append(
            Lane(
                f"rank {rank}",
                (own["begin"] * 1e6).to_list(),
                (own["end"] * 1e6).to_list(),
                [kinds.index(kind) for kind in own["kind"].to_list()],
            )
        )
    section.chart(Lanes("Critical path over ranks", "us", kinds, lanes))
    section.table(rows, "From its beginning; times in seconds.")
