# SPDX-License-Identifier: Apache-2.0
"""Memory of any machine: a table of its levels, channels, and how long accesses took."""

from __future__ import annotations

from typing import Any

from manyscale.report.charts import Lines
from manyscale.report.evidence import Evidence
from manyscale.report.numbers import percent, scale_of, share
from manyscale.report.sections.general import Parent
from manyscale.report.sections.network import histogram

_COLUMNS = (
    *("level", "parts", "reads", "writes", "hits", "hit rate", "misses", "merged"),
    *("miss latency", "lines written back", "bytes in", "bytes out"),
)
_UNITS = {"hit rate": "%", "miss latency": "ns", "bytes in": "B", "bytes out": "B"}
_CHANNEL_COLUMNS = (
    *("channel", "read", "written", "bandwidth", "bus busy", "row hits"),
    *("read latency", "queueing", "refreshes"),
)
_CHANNEL_UNITS = {
    "read": "B",
    "written": "B",
    "bandwidth": "B/s",
    "bus busy": "%",
    "row hits": "%",
    "read latency": "ns",
    "queueing": "ns",
}
_MOST_CHANNELS = 512
_FEWEST_INTERVALS = 4  # of a picture over time


def levels(parent: Parent, evidence: Evidence) -> None:
    """Each level of caches, and each channel."""
    rows = [row for row in _levels(evidence) if row is not None]
    channels = _channels(evidence)
    if not rows and not channels:
        return
    section = parent.section("Caches and DRAM")
    if rows:
        section.table(
            rows,
            "Caches; accesses to an outstanding line are neither hits nor misses.",
            columns=_COLUMNS,
            units=_UNITS,
        )
    if channels:
        section.table(channels, "DRAM channels.", columns=_CHANNEL_COLUMNS, units=_CHANNEL_UNITS)
    chart = latency_chart(evidence)
    if chart is not None:
        section.chart(chart, "Accesses by their latency, in buckets of a quarter of a power of two.")


def dram_over_time(parent: Parent, evidence: Evidence) -> None:
    """Bandwidth of DRAM over the run."""
    chart = bandwidth_chart(evidence)
    if chart is None:
        return
    section = parent.section("DRAM bandwidth over time")
    table = evidence.columns("dram_over_time", "busy")
    busiest = 0.0 if table is None else float(table["busy"].max() or 0)  # type: ignore[arg-type]
    section.chart(
        chart,
        f"Means of intervals. In the busiest one the data buses move data for {percent(busiest)} of the time.",
    )


def bandwidth_chart(evidence: Evidence) -> Lines | None:
    """What was read from DRAM and written to it over time."""
    table = evidence.columns("dram_over_time", "begin", "seconds", "read", "written", "busy")
    if table is None or table.height < _FEWEST_INTERVALS:
        return None
    per_second, rate = scale_of([float(table["read"].max() or 0), float(table["written"].max() or 0)], "B/s")  # type: ignore[arg-type]
    factor, unit = scale_of([table.height * float(table["seconds"][0])], "s")
    end = (float(table["begin"][-1]) + float(table["seconds"][-1])) * factor
    lines = {
        name: [
            *zip((table["begin"] * factor).to_list(), (table[name] * per_second).to_list(), strict=True),
            (end, 0.0),
        ]
        for name in ("read", "written")
        if table[name].max()
    }
    if not lines:
        return None
    return Lines("DRAM bandwidth", f"time in {unit}", rate, lines, steps=True, filled=True)


def latency_chart(evidence: Evidence) -> Lines | None:
    """How long accesses took."""
    rows = _latencies(evidence)
    if not rows:
        return None
    return histogram("How long accesses took", "latency, ns", "accesses", rows)


def _levels(evidence: Evidence) -> list[tuple[Any, ...] | None]:
    cores, slices, sms = evidence.group("core["), evidence.group("slice["), evidence.group("sm[")
    found = [_level(evidence, name.upper(), cores, f"{name}.") for name in ("l1i", "l1", "l2")]
    if sms:
        hits, misses = evidence.total(sms, "l1_hits"), evidence.total(sms, "l1_misses")
        requests = evidence.total(sms, "global_sectors")
        if requests:
            empty = (None,) * 5
            rate = 100 * share(hits, hits + misses)
            found.append(("L1 of SMs (sectors)", len(sms), hits + misses, None, hits, rate, misses, *empty))
    found.append(_level(evidence, "L2 slices" if sms else "shared slices", slices, ""))
    return found


def _level(evidence: Evidence, name: str, components: list[str], prefix: str) -> tuple[Any, ...] | None:
    if not components or not evidence.has(components[0], f"{prefix}hits"):
        return None
    reads, writes, hits, merged, written, inward, outward = (
        evidence.total(components, prefix + each)
        for each in ("reads", "writes", "hits", "merged", "writebacks", "bytes_in", "bytes_out")
    )
    latency = evidence.mean_seconds(components, f"{prefix}miss_latency")
    return (
        name,
        len(components),
        reads,
        writes,
        hits,
        100 * share(hits, reads + writes) if reads + writes else None,
        reads + writes - hits - merged,
        merged,
        None if latency is None else latency * 1e9,
        written,
        inward,
        outward,
    )


def _channels(evidence: Evidence) -> list[tuple[Any, ...]]:
    rows = []
    for name in evidence.group("channel[")[:_MOST_CHANNELS]:
        read, written = evidence.value(name, "read_bytes"), evidence.value(name, "write_bytes")
        hits = evidence.value(name, "row_hits")
        bursts = hits + evidence.total([name], "row_misses", "row_conflicts")
        latency, queueing = (
            evidence.mean_seconds([name], each) for each in ("read_latency", "queueing_delay")
        )
        rows.append(
            (
                name,
                read,
                written,
                share(read + written, evidence.seconds),
                100 * share(evidence.value(name, "bus_busy") / 10**15, evidence.seconds),
                100 * share(hits, bursts) if bursts else None,
                None if latency is None else latency * 1e9,
                None if queueing is None else queueing * 1e9,
                evidence.value(name, "refreshes"),
            )
        )
    return rows


def _latencies(evidence: Evidence) -> dict[str, list[tuple[float, float]]]:
    """Accesses of all cores by the lower bound of their bucket, in nanoseconds."""
    if not evidence.scalars or evidence.kind != "memory":
        return {}
    table = evidence.run.stats
    rows = table.filter(
        (table["statistic"] == "latency.bucket") & table["component"].str.starts_with("core[")
    )
    counts: dict[float, float] = {}
    for key, value in rows.select("key", "value").iter_rows():
        if key is not None and key > 0:
            counts[key / 1e6] = counts.get(key / 1e6, 0.0) + value
    return {"accesses": sorted(counts.items())} if counts else {}
