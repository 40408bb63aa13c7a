# SPDX-License-Identifier: Apache-2.0
"""A kernel as an architect looks at it: speed of light, stall reasons, roofline, occupancy, memory accesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyscale.report.charts import Lines, Stacks
from manyscale.report.evidence import Evidence
from manyscale.report.numbers import percent, scale_of, shown
from manyscale.report.sections.general import Parent

_MOST_BARS = 40
_MOST_DOTS = 12
_MOST_OVER_TIME = 4  # kernels whose states are shown over time
_FEWEST_INTERVALS = 4
_UNSEEN = 0.05  # per cent of the cycles of warps
_COMPUTE = ("issue_slots_busy", "pipe_alu", "pipe_fma", "pipe_fp64", "pipe_xu", "pipe_tensor")
_L1 = ("pipe_lsu", "address_units", "shared_utilization")
_UNITS = ("Compute (SM)", "L1 and shared memory", "L2", "DRAM")


def speed_of_light(metrics: Mapping[str, float]) -> dict[str, float]:
    """How much of its peak each part of the GPU reached over the whole duration, in per cent, never over 100.

    Compute and L1 are counted while an SM has a CTA; they are scaled to the duration.
    """
    cycles = metrics.get("cycles", 0.0)
    active = min(metrics.get("sm_active_cycles", cycles) / cycles, 1.0) if cycles else 1.0
    parts = (
        active * max((metrics.get(name, 0.0) for name in _COMPUTE), default=0.0),
        active * max((metrics.get(name, 0.0) for name in _L1), default=0.0),
        metrics.get("l2_utilization", 0.0),
        metrics.get("dram_utilization", 0.0),
    )
    return {name: min(max(value, 0.0), 100.0) for name, value in zip(_UNITS, parts, strict=True)}


def speed_of_light_chart(evidence: Evidence) -> Stacks | None:
    """The longest kernel's bars."""
    kernels = evidence.longest_kernels()
    if not kernels:
        return None
    light = speed_of_light(evidence.metrics(kernels[0]))
    if not any(light.values()):
        return None
    title = "Speed of light" + (f": {evidence.titles[kernels[0]]}" if len(kernels) > 1 else "")
    bars = {name: {"of peak": value} for name, value in light.items()}
    return Stacks(title, "% of peak over the kernel's duration", bars, most=100, labelled=True)


def stalls_chart(evidence: Evidence) -> Stacks | None:
    """Where the cycles of warps went, of each kernel; the longest first."""
    from manyscale.gpu.metrics import STALLS

    bars = {
        evidence.titles[kernel]: {
            stall.label: evidence.metrics(kernel).get(f"stall_{stall.name}", 0.0) for stall in STALLS
        }
        for kernel in evidence.longest_kernels()[:_MOST_BARS]
    }
    if not any(any(bar.values()) for bar in bars.values()):
        return None
    return Stacks("Warp states", "% of the cycles of all warps on SMs", bars, most=100)


def states_chart(evidence: Evidence, kernel: str | None = None) -> Lines | None:
    """How many warps of an SM are in each state over the time of a kernel, the longest if none is named."""
    from manyscale.gpu.metrics import STALLS

    if kernel is None:
        return next(
            (chart for each in evidence.longest_kernels() if (chart := states_chart(evidence, each))), None
        )
    names = [stall.name for stall in STALLS]
    table = evidence.columns("warp_states", "scope", "begin", "seconds", *names)
    if table is None:
        return None
    table = table.filter(table["scope"] == kernel)
    if table.height < _FEWEST_INTERVALS:
        return None
    end = float(table["begin"][-1]) + float(table["seconds"][-1])
    factor, unit = scale_of([end], "s")
    times = [*(table["begin"] * factor).to_list(), end * factor]
    lines = {
        stall.label: list(zip(times, [*table[stall.name].to_list(), 0.0], strict=True))
        for stall in STALLS
        if evidence.metrics(kernel).get(f"stall_{stall.name}", 0.0) > _UNSEEN
    }
    title = "Warp states over time"
    if len(evidence.kernels()) > 1:
        title += f": {evidence.titles[kernel]}"
    return Lines(title, f"time in {unit}", "warps of an SM", lines, steps=True, stacked=True)


def roofline_chart(evidence: Evidence) -> Lines | None:
    """Kernels below the roofs of compute, DRAM and L2: each memory's roof over the bytes that it moved."""
    dots: dict[str, list[tuple[float, float]]] = {}
    kin: dict[str, str] = {}
    peaks: dict[str, float] = {}
    compute = 0.0
    several = len(evidence.kernels()) > 1
    for kernel in evidence.longest_kernels()[:_MOST_DOTS]:
        profile = evidence.profiles.get(kernel, {})
        line, most = profile.get("roofline"), profile.get("peaks")
        if not isinstance(line, dict) or not isinstance(most, dict) or not line.get("flops"):
            continue
        rate = _number(line.get("flops_per_second"))
        compute = max(compute, _number(line.get("peak")) or 0.0)
        for level in ("dram", "l2"):
            intensity, bandwidth = (
                _number(line.get(f"arithmetic_intensity_{level}")),
                _number(most.get(f"{level}_bytes")),
            )
            if rate and intensity and bandwidth:
                roof = f"{level.upper()} {shown(bandwidth, 'B/s')}"
                name = (
                    f"{evidence.titles[kernel]}, {level.upper()} bytes"
                    if several
                    else f"over {level.upper()} bytes"
                )
                dots[name] = [(intensity, rate / 1e9)]
                kin[name], peaks[roof] = roof, bandwidth
    if not dots or not compute:
        return None
    return Lines(
        "Roofline",
        "arithmetic intensity, flop per byte of that memory",
        "Gflop/s",
        dots=dots,
        roofs=_roofs(peaks, compute, [dot[0][0] for dot in dots.values()]),
        log_x=True,
        log_y=True,
        kin=kin,
    )


def _roofs(
    peaks: Mapping[str, float], compute: float, intensities: list[float]
) -> dict[str, list[tuple[float, float]]]:
    """A sloping line for each memory, up to the peak of the arithmetic units."""
    ridges = [compute / rate for rate in peaks.values()]
    low = min([*intensities, *ridges]) / 4
    high = max([*intensities, *ridges]) * 8
    roofs = {
        name: [(x, x * rate / 1e9) for x in (low, compute / rate)]
        for name, rate in peaks.items()
        if compute / rate > low
    }
    roofs[f"compute {shown(compute, 'flop/s')}"] = [(min(ridges), compute / 1e9), (high, compute / 1e9)]
    return roofs


_OVER_TIME = (
    "Means of intervals from the launch on, and of SMs that had a CTA; all states together are an SM's warps."
)


def stalls(parent: Parent, evidence: Evidence) -> None:
    """Where the cycles of warps went, of each kernel."""
    chart = stalls_chart(evidence)
    if chart is None:
        return
    from manyscale.gpu.metrics import STALLS

    kernels = evidence.longest_kernels()
    section = parent.section("Warp states and stall reasons")
    section.chart(
        chart,
        "Selected, or the reason why a warp stalled, by Nsight Compute's names."
        + (f" The {_MOST_BARS} longest of {len(kernels):,} kernels." if len(kernels) > _MOST_BARS else ""),
    )
    over_time = [drawn for each in kernels[:_MOST_OVER_TIME] if (drawn := states_chart(evidence, each))]
    for number, drawn in enumerate(over_time):
        section.chart(drawn, _OVER_TIME if number == 0 else "")
    longest = evidence.metrics(kernels[0])
    rows = [
        (stall.label, longest.get(f"stall_{stall.name}", 0.0), stall.meaning)
        for stall in STALLS
        if any(bar[stall.label] for bar in chart.bars.values())
    ]
    section.table(
        sorted(rows, key=lambda row: -row[1]),
        f"Of {evidence.titles[kernels[0]]}." if len(kernels) > 1 else "",
        columns=("stall reason", "cycles of warps", "warps"),
        units={"cycles of warps": "%"},
    )


def roofline(parent: Parent, evidence: Evidence) -> None:
    """Kernels in the roofline model."""
    chart = roofline_chart(evidence)
    if chart is not None:
        parent.section("Roofline").chart(
            chart,
            "A kernel has a point for each memory, at the bytes that went over it; a memory's roof has the colour of "
            "its points. Near the sloping roof it is bound by that memory, near the flat one by arithmetic.",
        )


def occupancy(parent: Parent, evidence: Evidence) -> None:
    """Warps on SMs, and what limits them."""
    rows = []
    for kernel in evidence.longest_kernels():
        metrics, profile = evidence.metrics(kernel), evidence.profiles.get(kernel, {})
        if "theoretical_occupancy" not in metrics:
            continue
        rows.append(
            (
                evidence.titles[kernel],
                _shape(profile.get("grid")),
                _shape(profile.get("block")),
                metrics.get("theoretical_occupancy"),
                metrics.get("achieved_occupancy"),
                _limit(metrics["theoretical_occupancy"], profile.get("occupancy_limit")),
                metrics.get("registers"),
                metrics.get("waves_per_sm"),
                metrics.get("sms_used"),
            )
        )
    if not rows:
        return
    section = parent.section("Occupancy")
    bars = {row[0]: {"theoretical": row[3] or 0.0, "achieved": row[4] or 0.0} for row in rows[:_MOST_BARS]}
    section.chart(Stacks("Occupancy", "% of the warps that an SM holds", bars, stacked=False, most=100))
    names = (
        "kernel",
        "grid",
        "block",
        "theoretical",
        "achieved",
        "limited by",
        "registers",
        "waves",
        "SMs used",
    )
    section.table(
        rows,
        "Theoretical: what fits on an SM; achieved: the mean while an SM has a CTA.",
        columns=names,
        units={"theoretical": "%", "achieved": "%"},
        titles={"registers": "of a thread", "waves": "how often the CTAs of the grid fill all SMs"},
    )


def _limit(occupancy: float, resource: object) -> str:
    """What keeps further CTAs off an SM; nothing where it is full."""
    return "nothing" if occupancy >= 100 else str(resource or "not recorded")


def memory_access(parent: Parent, evidence: Evidence) -> None:
    """Coalescing, bank conflicts, hit rates and throughput of each kernel."""
    rows = []
    for kernel in evidence.longest_kernels():
        metrics = evidence.metrics(kernel)
        if "sectors_per_request" not in metrics and "shared_wavefronts_per_request" not in metrics:
            continue
        rows.append((evidence.titles[kernel], *(_bounded(metrics.get(name), name) for name in _ACCESS)))
    if not rows:
        return
    section = parent.section("Memory accesses")
    section.list(_access_words(evidence))
    section.table(
        rows,
        "Coalescing, bank conflicts, and what each level served.",
        columns=("kernel", *(words for words, _, _ in _ACCESS.values())),
        units={words: unit for words, unit, _ in _ACCESS.values()},
        titles={words: doc for words, _, doc in _ACCESS.values()},
    )


_ACCESS = {
    "sectors_per_request": (
        "sectors per request",
        "1",
        "4 where 32 threads access 32 neighbouring words of 4 B",
    ),
    "sector_bytes_used": (
        "sector efficiency",
        "%",
        "bytes that threads asked for, of the sectors touched; 100 where threads share them",
    ),
    "shared_wavefronts_per_request": ("wavefronts per shared request", "1", "1 without bank conflicts"),
    "shared_conflicts": ("bank conflicts", "1", "wavefronts that bank conflicts add"),
    "l1_hit_rate": ("L1 hits", "%", "sectors of loads found in L1"),
    "l2_hit_rate": ("L2 hits", "%", "data between SMs and L2 that did not have to come from memory"),
    "l2_throughput": ("L2 throughput", "B/s", "between SMs and L2"),
    "dram_throughput": ("DRAM throughput", "B/s", "between L2 and memory"),
    "dram_row_hit_rate": ("DRAM row hits", "%", "bursts that found their row open"),
}


def _bounded(value: float | None, name: str) -> float | None:
    """A metric for a table; per cent of sectors that threads share are no more than all of them."""
    return value if value is None or _ACCESS[name][1] != "%" else min(value, 100.0)


def _access_words(evidence: Evidence) -> list[str]:
    kernel = evidence.longest_kernels()[0]
    metrics, found = evidence.metrics(kernel), []
    used = metrics.get("sector_bytes_used")
    if used is not None:
        found.append(
            f"Sector efficiency {percent(used / 100)}: a global request of a warp touches "
            f"{shown(metrics.get('sectors_per_request'))} sectors of 32 B."
        )
    conflicts, each = metrics.get("shared_conflicts"), metrics.get("shared_wavefronts_per_request")
    if each is not None:
        text = "no bank conflicts" if not conflicts else f"bank conflicts add {shown(conflicts)} wavefronts"
        found.append(f"Shared memory: {text}; a request takes {shown(each)} wavefronts.")
    return [f"{evidence.titles[kernel]}: {text}" for text in found] if len(evidence.kernels()) > 1 else found


def _shape(extents: Any) -> str:
    return " x ".join(str(each) for each in extents) if isinstance(extents, list) else ""


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None
