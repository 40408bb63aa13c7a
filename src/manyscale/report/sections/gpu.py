# SPDX-License-Identifier: Apache-2.0
"""Programs on a GPU: verdicts of kernels, their metrics, launches, copies and calls over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.report.charts import Lane, Lanes, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.numbers import for_people, spoken
from manyscale.report.page import Section
from manyscale.report.sections.general import Parent

if TYPE_CHECKING:
    import polars as pl

    from manyscale.results.ranges import RangeSum

_MOST_BARS = 12
_MOST_ROWS = 20_000
_HEAD = (
    *("duration", "cycles", "ipc", "achieved_occupancy", "theoretical_occupancy", "registers"),
    *("l1_hit_rate", "l2_hit_rate", "dram_throughput", "dram_utilization", "flop_rate", "roofline"),
)


def verdicts(parent: Parent, evidence: Evidence) -> None:
    """Of several kernels: how long each takes, what limits it, what to do about it, and what that would gain."""
    rows = []
    for kernel in evidence.longest_kernels()[:_MOST_ROWS]:
        limit = evidence.profiles.get(kernel, {}).get("limit")
        if isinstance(limit, dict) and limit.get("kind"):
            cells = [str(limit.get(name) or "") for name in ("kind", "advice", "gain")]
            rows.append((evidence.titles[kernel], evidence.metrics(kernel).get("duration"), *cells))
    if len(rows) > 1:
        parent.section("What limits each kernel").table(
            rows,
            "The longest kernel first. What following the advice would save is estimated from counts.",
            columns=("kernel", "time", "limited by", "advice", "gain"),
            units={"time": "s"},
        )


def metrics(parent: Parent, evidence: Evidence) -> None:
    """All kernels side by side, and all metrics of each."""
    kernels = evidence.kernels()
    if not kernels:
        return
    section = parent.section("Metrics of kernels")
    found = {kernel: evidence.metrics(kernel) for kernel in kernels}
    docs, units = _described(evidence)
    heads = [name for name in _HEAD if any(name in metrics for metrics in found.values())]
    rows = []
    for kernel in kernels:
        launch = evidence.profiles.get(kernel, {})
        shape = [_shape(launch.get(name)) for name in ("grid", "block")]
        rows.append((evidence.titles[kernel], *shape, *(found[kernel].get(name) for name in heads)))
    section.table(
        rows,
        "Metrics as Nsight Compute defines them where it has them.",
        columns=("kernel", "grid", "block", *heads),
        titles=docs,
        units={name: units.get(name, "1") for name in heads},
        names={name: spoken(name) for name in heads},
    )
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    all_rows = [
        (evidence.titles[kernel], name, found[kernel][name], docs.get(name, ""))
        for kernel in kernels
        for name in names
        if name in found[kernel]
    ][:_MOST_ROWS]
    section.table(
        all_rows,
        "All metrics.",
        columns=("kernel", "metric", "value", "meaning"),
        units={"value": [units.get(row[1], "1") for row in all_rows]},
    )


def launches_chart(evidence: Evidence) -> Lanes | None:
    """Of a CUDA program: calls of the host, kernels and copies over one axis of time."""
    kernels = evidence.columns("kernels", "begin_ns", "end_ns", "name")
    copies = evidence.columns("copies", "begin_ns", "end_ns", "kind", "bytes")
    if kernels is None and copies is None:
        return None
    several = _devices(kernels, copies) > 1
    rows: list[tuple[str, str, float, float]] = []
    calls = evidence.columns("calls", "call", "begin_ns", "end_ns")
    if calls is not None:
        for name, begin, end in calls.select("call", "begin_ns", "end_ns").head(_MOST_ROWS).iter_rows():
            rows.append(("calls of the host", _call_kind(name), begin / 1e3, end / 1e3))
    if kernels is not None:
        title = _title(kernels)
        for row in kernels.sort("begin_ns").head(_MOST_ROWS).iter_rows(named=True):
            rows.append(
                (_lane("kernels", row, several), row[title], row["begin_ns"] / 1e3, row["end_ns"] / 1e3)
            )
    if copies is not None:
        for row in copies.sort("begin_ns").head(_MOST_ROWS).iter_rows(named=True):
            kind = f"copy {str(row['kind']).replace('_', ' ')}"
            rows.append((_lane("copies", row, several), kind, row["begin_ns"] / 1e3, row["end_ns"] / 1e3))
    return _lanes("Kernels, copies and calls", _range_rows(evidence) + rows)


def _range_rows(evidence: Evidence) -> list[tuple[str, str, float, float]]:
    """When the GPU worked for the NVTX ranges of a program, a lane for each depth."""
    found = evidence.ranges
    spans = found.spans()[:_MOST_ROWS] if found else []
    return [
        (f"ranges, level {span.depth + 1}", span.name, span.begin_ns / 1e3, span.end_ns / 1e3)
        for span in sorted(spans, key=lambda span: span.depth)
    ]


def operators(parent: Parent, evidence: Evidence) -> None:
    """What the NVTX ranges of a program, such as operators of PyTorch, cost on the GPU."""
    if (found := evidence.ranges) is None:
        return
    sums = found.by_name()
    section = parent.section("Operators and NVTX ranges")
    bars = {each.name: {"own time": each.own_nanoseconds / 1e3} for each in sums[:_MOST_BARS]}
    if any(bar["own time"] for bar in bars.values()):
        section.chart(Stacks("Own time of operators", "us", bars), "Without that of ranges inside them.")
    limits = {
        evidence.titles[kernel]: str(profile["limit"].get("kind") or "")
        for kernel, profile in evidence.profiles.items()
        if kernel in evidence.titles and isinstance(profile.get("limit"), dict)
    }
    section.table(
        [_range_row(each, limits) for each in sums[:_MOST_ROWS]],
        "Ranges that a program pushes around its calls. Own time is that of launches and copies in no range inside.",
        columns=(
            "range",
            "number",
            "launches",
            "copies",
            "own time",
            "each",
            "with inner ranges",
            "longest kernel",
            "limited by",
        ),
        units=dict.fromkeys(("own time", "each", "with inner ranges"), "ns"),
    )


def _range_row(found: RangeSum, limits: dict[str, str]) -> tuple[Any, ...]:
    """A range, its times, the kernel that took most of them, and what limits that."""
    number, own = len(found.instances), found.own_nanoseconds
    kernel = found.longest_kernel
    counts = (found.name, number, found.launches, found.copies)
    return (*counts, own, own / number, found.nanoseconds, kernel, limits.get(kernel, ""))


def launches(parent: Parent, evidence: Evidence) -> None:
    """Of a CUDA program: kernels and copies over time, and its calls."""
    chart = launches_chart(evidence)
    if chart is None:
        return
    section = parent.section("Kernels and copies over time")
    section.chart(chart, "The time between a launch call and its kernel is launch overhead, or a busy GPU.")
    kernels, copies = evidence.table("kernels"), evidence.table("copies")
    if kernels is not None:
        _table(section, _times_first(kernels.head(_MOST_ROWS), _title(kernels)), "Launches in their order.")
    if copies is not None:
        _table(section, _times_first(copies.head(_MOST_ROWS), "kind"), "Copies in their order.")
    calls = evidence.columns("calls", "call", "begin_ns", "end_ns")
    if calls is None:
        return
    took = (calls["end_ns"] - calls["begin_ns"]).alias("took_ns")
    sums = []
    for key, group in calls.with_columns(took).group_by("call", maintain_order=True):
        each = group["took_ns"]
        sums.append((str(key[0]), group.height, each.sum(), each.mean(), each.max()))
    section.table(
        sorted(sums, key=lambda row: -row[2]),
        "What calls of the CUDA runtime took of the program's simulated time, waiting included.",
        columns=("call", "number", "total", "mean", "longest"),
        units=dict.fromkeys(("total", "mean", "longest"), "ns"),
    )
    _table(section, calls.with_columns(took).head(_MOST_ROWS), "Calls of the CUDA runtime in their order.")


def _table(section: Section, table: pl.DataFrame, caption: str) -> None:
    section.table(table, caption, **for_people(table.columns))


def _title(kernels: pl.DataFrame) -> str:
    return "kernel" if "kernel" in kernels.columns else "name"


def _devices(*tables: pl.DataFrame | None) -> int:
    return len(
        {
            device
            for table in tables
            if table is not None and "device" in table.columns
            for device in table["device"]
        }
    )


def _call_kind(name: str) -> str:
    """Calls in a few groups, which are told apart by colour."""
    lowered = name.lower()
    for kind, words in (
        ("launch call", ("launch",)),
        ("copy call", ("copy", "memset", "set", "prefetch")),
        ("waiting call", ("synchronize", "wait")),
    ):
        if any(word in lowered for word in words):
            return kind
    return "other call"


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
    index = {name: number for number, name in enumerate(names)}
    lanes = []
    for lane in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == lane]
        lanes.append(
            Lane(lane, [row[2] for row in own], [row[3] for row in own], [index[row[1]] for row in own])
        )
    return Lanes(title, "us", names, lanes, from_zero=True)


def _described(evidence: Evidence) -> tuple[dict[str, str], dict[str, str]]:
    """What each metric means, and its unit."""
    if not evidence.run.has_stats:
        return {}, {}
    table = evidence.run.stats
    rows = table.filter(table["scope"] != "run").select("statistic", "description", "unit").unique()
    found = [(str(name), str(doc), str(unit)) for name, doc, unit in rows.iter_rows()]
    return {name: doc for name, doc, _ in found}, {name: unit for name, _, unit in found}


def _shape(extents: Any) -> str:
    return " x ".join(str(each) for each in extents) if isinstance(extents, list) else ""
