# SPDX-License-Identifier: Apache-2.0
"""Kernels on a GPU: where the cycles of warps went, rooflines, metrics, hot instructions, copies and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.report.charts import Lane, Lanes, Lines, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.sections.general import Parent

if TYPE_CHECKING:
    import polars as pl

_MOST_BARS = 40
_MOST_ROWS = 20_000
_HEAD = (
    *("duration", "cycles", "ipc", "achieved_occupancy", "theoretical_occupancy", "registers"),
    *("l1_hit_rate", "l2_hit_rate", "dram_throughput", "dram_utilization", "flop_rate", "roofline"),
)


def stalls(parent: Parent, evidence: Evidence) -> None:
    """Where the cycles of warps went, of each kernel."""
    kernels = _longest(evidence)
    if not kernels:
        return
    from manyscale.gpu.metrics import STALLS

    bars = {
        evidence.titles[kernel]: {
            stall.label: evidence.metrics(kernel).get(f"stall_{stall.name}", 0.0) for stall in STALLS
        }
        for kernel in kernels[:_MOST_BARS]
    }
    if not any(any(bar.values()) for bar in bars.values()):
        return
    section = parent.section("Where the cycles of warps went")
    section.chart(
        Stacks("Stall stacks", "% of the cycles of all warps on SMs", bars),
        "Selected, or the reason why a warp stalled, by Nsight Compute's names. "
        + _left_out(len(kernels), _MOST_BARS, "kernels"),
    )
    section.table(
        [(stall.label, stall.meaning) for stall in STALLS if any(bar[stall.label] for bar in bars.values())],
        columns=("stall reason", "warps"),
    )


def verdicts(parent: Parent, evidence: Evidence) -> None:
    """What limits each kernel, what to do about it, and what that would gain."""
    rows = []
    for kernel in _longest(evidence)[:_MOST_ROWS]:
        limit = evidence.profiles.get(kernel, {}).get("limit")
        if isinstance(limit, dict) and limit.get("kind"):
            cells = [str(limit.get(name) or "") for name in ("kind", "evidence", "advice", "gain")]
            rows.append((evidence.titles[kernel], *cells, " ".join(map(str, limit.get("notes", ())))))
    if rows:
        parent.section("What limits each kernel").table(
            rows,
            "The longest kernel first. What following the advice would save is estimated from counts.",
            columns=("kernel", "verdict", "evidence", "advice", "gain", "also"),
        )


def roofline(parent: Parent, evidence: Evidence) -> None:
    """Kernels in the roofline model, with ceilings of DRAM, L2 and compute."""
    dots: dict[str, list[tuple[float, float]]] = {}
    roofs: dict[str, list[tuple[float, float]]] = {}
    for kernel in _longest(evidence)[:_MOST_BARS]:
        profile = evidence.profiles.get(kernel, {})
        line, peaks = profile.get("roofline"), profile.get("peaks")
        if not isinstance(line, dict) or not isinstance(peaks, dict) or not line.get("flops"):
            continue
        rate = _number(line.get("flops_per_second"))
        intensity = _number(line.get("arithmetic_intensity_dram")) or _number(
            line.get("arithmetic_intensity_l2")
        )
        if rate and intensity:
            dots[evidence.titles[kernel]] = [(intensity, rate / 1e9)]
        for name, bytes_per_second in (("DRAM", peaks.get("dram_bytes")), ("L2", peaks.get("l2_bytes"))):
            rate_of_bytes = _number(bytes_per_second)
            peak = _number(line.get("peak"))
            if rate_of_bytes and peak:
                ridge = peak / rate_of_bytes
                ends = sorted({min(0.01, ridge / 10), ridge, max(1000.0, ridge * 10, intensity or 0.0)})
                roofs[name] = [(x, min(peak, x * rate_of_bytes) / 1e9) for x in ends]
    if not dots:
        return
    section = parent.section("Roofline")
    section.chart(
        Lines(
            "Roofline",
            "arithmetic intensity, flop/B of DRAM",
            "Gflop/s",
            dots=dots,
            roofs=roofs,
            log_x=True,
            log_y=True,
        ),
        "Below the sloping part of the roofline a kernel is memory-bound, below the flat part compute-bound. The flat "
        "part is the peak for the mix of precisions of the last kernel drawn.",
    )


def metrics(parent: Parent, evidence: Evidence) -> None:
    """All kernels side by side, and all metrics of each."""
    kernels = evidence.kernels()
    if not kernels:
        return
    section = parent.section("Kernels")
    found = {kernel: evidence.metrics(kernel) for kernel in kernels}
    rows = []
    for kernel in kernels:
        launch = evidence.profiles.get(kernel, {})
        shape = [_shape(launch.get(name)) for name in ("grid", "block")]
        rows.append((evidence.titles[kernel], *shape, *(found[kernel].get(name) for name in _HEAD)))
    docs = _docs(evidence)
    section.table(
        rows,
        "Metrics as Nsight Compute defines them where it has them; s, %, B/s, flop/s.",
        columns=("kernel", "grid", "block", *_HEAD),
        titles=docs,
    )
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    section.table(
        [
            (evidence.titles[kernel], name, found[kernel][name], docs.get(name, ""))
            for kernel in kernels
            for name in names
            if name in found[kernel]
        ][:_MOST_ROWS],
        "All metrics.",
        columns=("kernel", "metric", "value", "meaning"),
    )


def hot_instructions(parent: Parent, evidence: Evidence) -> None:
    """The instructions that warps spent most cycles at."""
    table = evidence.columns("operations", "scope", "text", "ptx_line", "issued", "cycles", "percent")
    if table is None:
        return
    wanted = ["scope", "file", "source_line", "ptx_line", "text", "issued", "threads", "cycles", "percent"]
    wanted += [name for name in table.columns if name.startswith("stall_")]
    rows = table.select([name for name in wanted if name in table.columns]).sort("cycles", descending=True)
    rows = rows.with_columns(rows["scope"].replace(evidence.titles).alias("scope"))
    parent.section("Hot instructions").table(
        rows.head(_MOST_ROWS),
        "Cycles of warps that issued an instruction or waited to; percent of all of the kernel.",
    )


def launches(parent: Parent, evidence: Evidence) -> None:
    """Of a CUDA program: kernels and copies over time, and its calls."""
    kernels = evidence.columns("kernels", "begin_ns", "end_ns", "name")
    copies = evidence.columns("copies", "begin_ns", "end_ns", "kind", "bytes")
    if kernels is None and copies is None:
        return
    section = parent.section("Kernels and copies over time")
    devices = {
        device
        for table in (kernels, copies)
        if table is not None and "device" in table.columns
        for device in table["device"]
    }
    several = len(devices) > 1
    rows: list[tuple[str, str, float, float]] = []
    if kernels is not None:
        title = "kernel" if "kernel" in kernels.columns else "name"
        for row in kernels.sort("begin_ns").head(_MOST_ROWS).iter_rows(named=True):
            rows.append(
                (_lane("kernels", row, several), row[title], row["begin_ns"] / 1e3, row["end_ns"] / 1e3)
            )
    if copies is not None:
        for row in copies.sort("begin_ns").head(_MOST_ROWS).iter_rows(named=True):
            kind = str(row["kind"]).replace("_", " ")
            rows.append(
                (_lane(f"copies {kind}", row, several), kind, row["begin_ns"] / 1e3, row["end_ns"] / 1e3)
            )
    section.chart(_lanes("Kernels and copies", rows))
    if kernels is not None:
        section.table(_times_first(kernels.head(_MOST_ROWS), title), "Launches in their order.")
    if copies is not None:
        section.table(_times_first(copies.head(_MOST_ROWS), "kind"), "Copies in their order.")
    calls = evidence.columns("calls", "call", "begin_ns", "end_ns")
    if calls is not None:
        took = (calls["end_ns"] - calls["begin_ns"]).alias("took_ns")
        each = calls.with_columns(took).group_by("call", maintain_order=True)
        sums = [
            (
                str(key[0]),
                group.height,
                group["took_ns"].sum(),
                group["took_ns"].mean(),
                group["took_ns"].max(),
            )
            for key, group in each
        ]
        section.table(
            sorted(sums, key=lambda row: -row[2]),
            "What calls of the CUDA runtime took of the program's simulated time, waiting included.",
            columns=("call", "number", "total ns", "mean ns", "longest ns"),
        )
        section.table(calls.with_columns(took).head(_MOST_ROWS), "Calls of the CUDA runtime in their order.")


def _times_first(table: pl.DataFrame, title: str) -> pl.DataFrame:
    """What it is, when it began and how long it took, then all else; names of the linker last."""
    took = (table["end_ns"] - table["begin_ns"]).alias("took_ns")
    first = [title, "begin_ns", "took_ns"]
    last = ["end_ns", "wall_seconds", "name"]
    others = [name for name in table.columns if name not in (*first, *last)]
    wanted = [*first, *others, *(name for name in last if name in table.columns and name != title)]
    return table.with_columns(took).select(wanted)


def _lane(what: str, row: dict[str, Any], several_devices: bool) -> str:
    where = f"GPU {row['device']}: {what}" if several_devices else what
    return f"{where}, stream {row['stream']}" if row.get("stream") else where


def _lanes(title: str, rows: list[tuple[str, str, float, float]]) -> Lanes:
    names = list(dict.fromkeys(what for _, what, _, _ in rows))
    place = {name: number for number, name in enumerate(names)}
    lanes = []
    for lane in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == lane]
        lanes.append(
            Lane(lane, [row[2] for row in own], [row[3] for row in own], [place[row[1]] for row in own])
        )
    return Lanes(title, "us", names, lanes)


def _longest(evidence: Evidence) -> list[str]:
    return sorted(evidence.kernels(), key=lambda kernel: -evidence.metrics(kernel).get("duration", 0.0))


def _docs(evidence: Evidence) -> dict[str, str]:
    if not evidence.run.has_stats:
        return {}
    table = evidence.run.stats
    rows = table.filter(table["scope"] != "run").select("statistic", "description").unique()
    return {str(name): str(doc) for name, doc in rows.iter_rows()}


def _shape(extents: Any) -> str:
    return " x ".join(str(each) for each in extents) if isinstance(extents, list) else ""


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _left_out(count: int, most: int, what: str) -> str:
    return f"The {most} longest of {count:,} {what}." if count > most else ""
