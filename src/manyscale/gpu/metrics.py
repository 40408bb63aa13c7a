# SPDX-License-Identifier: Apache-2.0
"""The numbers people know a kernel by, each defined once: value, unit, meaning, and its name in Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .kernel_counts import LANES, PRECISIONS, SECTOR_BYTES, UNITS, KernelCounts

Value = int | float | None


@dataclass(frozen=True)
class Metric:
    """A number about a kernel; None where there was nothing to count, such as the hit rate of no loads."""

    name: str
    value: Value
    unit: str
    doc: str
    nsight: str  # "" where Nsight Compute has none

    def __str__(self) -> str:
        return shown(self.value, self.unit)


def shown(value: Value, unit: str) -> str:
    """A number with its unit, for people."""
    from manyscale.units import BANDWIDTH, BYTES, TIME, humanize

    if value is None:
        return "-"
    if unit == "%":
        return f"{value:.1f}%"
    if unit == "s":
        return humanize(round(value * 10**15), TIME)
    if unit == "B":
        return humanize(round(value), BYTES)
    if unit == "B/s":
        return humanize(round(value), BANDWIDTH)
    if unit == "flop/s":
        return f"{value / 1e9:,.1f} Gflop/s"
    text = (
        f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    )
    return text if unit in ("1", "cycle") else f"{text} {unit}"


def ratio(part: float, whole: float, times: float = 1.0) -> float | None:
    return times * part / whole if whole else None


def percent(part: float, whole: float) -> float | None:
    return ratio(part, whole, 100.0)


@dataclass(frozen=True)
class Roofline:
    """Where a kernel stands under the roofs of its machine: those of its units, of the L2 and of memory."""

    flops: int
    flops_per_second: float
    intensity_dram: float | None  # flop for each byte that moved; None: no byte did
    intensity_l2: float | None
    peak: float  # flop/s at which the units would do the kernel's mix of precisions
    roof: float | None  # flop/s that the lowest roof over the kernel allows
    roof_name: str  # "DRAM", "L2" or "compute"

    @property
    def percent(self) -> float | None:
        """What of its roof the kernel reaches."""
        return None if self.roof is None else percent(self.flops_per_second, self.roof)


def roofline(counts: KernelCounts) -> Roofline:
    """Of the whole duration of a kernel, its launch included."""
    peaks, flops = counts.peaks, sum(counts.flops.values())
    seconds_at_peak = sum(counts.flops[precision] / peaks.flops[precision] for precision in PRECISIONS)
    peak = flops / seconds_at_peak if flops else peaks.flops["fp32"]
    dram, l2 = ratio(flops, counts.dram_bytes), ratio(flops, counts.l2_bytes)
    roofs = {"compute": peak}
    if dram is not None:
        roofs["DRAM"] = dram * peaks.dram_bytes
    if l2 is not None:
        roofs["L2"] = l2 * peaks.l2_bytes
    name = min(roofs, key=roofs.__getitem__)
    rate = flops / counts.seconds if counts.seconds else 0.0
    return Roofline(flops, rate, dram, l2, peak, roofs[name] if flops else None, name)


@dataclass(frozen=True)
class Stall:
    """A state of warps: issuing, or waiting for something."""

    name: str
    statistic: str  # of an SM
    label: str
    doc: str
    nsight: str


STALLS = (
    Stall("issued", "machine_instructions", "issuing", "issue an instruction", "selected"),
    Stall(
        "memory",
        "stall_memory",
        "global memory",
        "wait for global, local or constant memory",
        "long_scoreboard",
    ),
    Stall("queue", "stall_queue", "memory queue", "wait for room in the memory queue", "lg_throttle"),
    Stall(
        "shared",
        "stall_shared",
        "shared memory",
        "wait for shared memory or a shuffle",
        "short_scoreboard",
    ),
    Stall("barrier", "stall_barrier", "barrier", "wait at a barrier", "barrier"),
    Stall(
        "dependency",
        "stall_dependency",
        "results",
        "wait for a result of fixed latency",
        "wait",
    ),
    Stall("unit", "stall_unit", "busy unit", "wait for a unit that is busy", "math_pipe_throttle"),
    Stall("fetch", "stall_fetch", "instructions", "wait for instructions to arrive", "no_instruction"),
    Stall(
        "not_selected", "stall_not_selected", "its turn", "could issue, but another warp does", "not_selected"
    ),
    Stall("drain", "stall_drain", "last stores", "wait for their stores before they end", "drain"),
    Stall("fault", "stall_fault", "pages", "wait for a page of managed memory to come", ""),
)

Definition = tuple[str, str, str, str, Callable[[KernelCounts], Value]]

_BUSY_DOCS = {
    "integer": "integer and logic units",
    "fp32": "single and half precision units",
    "fp64": "double precision units",
    "special": "special function units",
    "tensor": "tensor cores",
    "memory": "ways into memory",
    "branch": "branch units",
    "other": "other units",
}
_PIPES = {
    "integer": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
    "fp32": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "fp64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "special": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "memory": "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
}


def _slots(counts: KernelCounts) -> int:
    """Cycles of sub-cores on SMs that had a CTA."""
    return counts.sm["active_cycles"] * counts.peaks.sub_cores


def _busy(unit: str) -> Definition:
    return (
        f"unit_{unit}",
        "%",
        f"time in which {_BUSY_DOCS[unit]} took no other instruction, while their SM had a CTA",
        _PIPES.get(unit, ""),
        lambda counts: percent(counts.sm[f"busy_{unit}"], _slots(counts)),
    )


def _stalled(stall: Stall) -> Definition:
    return (
        f"stall_{stall.name}",
        "%",
        f"of all cycles of warps: {stall.doc}",
        f"smsp__average_warps_issue_stalled_{stall.nsight}_per_issue_active.ratio" if stall.nsight else "",
        lambda counts: percent(counts.sm[stall.statistic], counts.sm["warp_cycles"]),
    )


def _flops(precision: str) -> Definition:
    where = "of tensor cores" if precision == "tensor" else f"in {precision}"
    return (
        f"flops_{precision}",
        "flop",
        f"floating-point operations {where}; a fused product and sum are two",
        "",
        lambda counts: counts.flops[precision],
    )


DEFINITIONS: tuple[Definition, ...] = (
    ("cycles", "cycle", "from the kernel's turn to its end", "gpc__cycles_elapsed.max", lambda c: c.cycles),
    ("duration", "s", "from the kernel's turn to its end", "gpu__time_duration.sum", lambda c: c.seconds),
    (
        "launch_overhead",
        "%",
        "of the duration: before the first CTA and after the last",
        "",
        lambda c: percent(c.seconds - c.execution_seconds, c.seconds),
    ),
    (
        "sm_active_cycles",
        "cycle",
        "cycles with a CTA, mean of all SMs of the machine",
        "sm__cycles_active.avg",
        lambda c: c.sm["active_cycles"] / c.peaks.sms,
    ),
    ("sms_used", "1", "SMs that had a CTA", "", lambda c: c.sms),
    (
        "warp_instructions",
        "1",
        "instructions that warps executed, of the ISA that the kernel runs as: PTX, or SASS",
        "",
        lambda c: c.sm["warp_instructions"],
    ),
    ("thread_instructions", "1", "PTX instructions of threads", "", lambda c: c.sm["thread_instructions"]),
    (
        "machine_instructions",
        "1",
        "machine instructions issued",
        "sm__inst_executed.sum",
        lambda c: c.sm["machine_instructions"],
    ),
    (
        "ipc",
        "inst/cycle",
        "machine instructions that an SM with a CTA issues in a cycle",
        "sm__inst_executed.avg.per_cycle_active",
        lambda c: ratio(c.sm["machine_instructions"], c.sm["active_cycles"]),
    ),
    (
        "issue_slots_busy",
        "%",
        "cycles in which a sub-core issued, while its SM had a CTA",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        lambda c: percent(c.sm["machine_instructions"], _slots(c)),
    ),
    (
        "theoretical_occupancy",
        "%",
        "warps that fit on an SM, of those it holds",
        "sm__maximum_warps_per_active_cycle_pct",
        lambda c: percent(c.ctas_per_sm * c.warps_per_cta, c.peaks.warps),
    ),
    (
        "achieved_occupancy",
        "%",
        "warps on an SM with a CTA, of those it holds",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        lambda c: percent(c.sm["warp_cycles"], c.sm["active_cycles"] * c.peaks.warps),
    ),
    ("registers", "1", "32-bit registers of a thread", "launch__registers_per_thread", lambda c: c.registers),
    (
        "waves_per_sm",
        "1",
        "how often the CTAs of the grid fill all SMs",
        "launch__waves_per_multiprocessor",
        lambda c: ratio(c.ctas, c.ctas_per_sm * c.peaks.sms),
    ),
    *map(_busy, UNITS),
    (
        "address_units",
        "%",
        "time in which address units took no other instruction, while their SM had a CTA",
        "",
        lambda c: percent(
            (c.sm["global_requests"] + c.sm["shared_requests"]) * c.peaks.address_interval, _slots(c)
        ),
    ),
    (
        "threads_per_instruction",
        "1",
        f"threads of {LANES} that take part in an instruction",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        lambda c: ratio(c.sm["thread_instructions"], c.sm["warp_instructions"]),
    ),
    (
        "warp_execution_efficiency",
        "%",
        "threads that take part in an instruction, of those of a full warp",
        "",
        lambda c: percent(c.sm["thread_instructions"], c.sm["warp_instructions"] * LANES),
    ),
    (
        "sectors_per_request",
        "1",
        "sectors of 32 B that a global or local memory instruction touches",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        lambda c: ratio(c.sm["global_sectors"], c.sm["global_requests"]),
    ),
    (
        "sector_bytes_used",
        "%",
        "bytes that threads asked for, of the sectors touched; over 100 where threads share them",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
        lambda c: percent(c.global_bytes_used, c.sm["global_sectors"] * SECTOR_BYTES),
    ),
    (
        "l1_hit_rate",
        "%",
        "sectors of loads found in L1",
        "l1tex__t_sector_hit_rate.pct",
        lambda c: percent(c.sm["l1_hits"], c.sm["l1_hits"] + c.sm["l1_misses"]),
    ),
    (
        "l1_miss_latency",
        "cycle",
        "of a load or atomic operation that waits for the L2, mean",
        "",
        lambda c: ratio(c.sm["missed_load_cycles"], c.sm["missed_loads"]),
    ),
    (
        "tlb_hit_rate",
        "%",
        "lines of managed memory whose page the SM's TLB knew",
        "",
        lambda c: percent(c.sm["tlb_hits"], c.sm["tlb_hits"] + c.sm["tlb_misses"]),
    ),
    (
        "faulted_translations",
        "1",
        "translations of SMs that waited for a page of managed memory to come; SMs that wait for one page count each",
        "",
        lambda c: c.sm["faulted_translations"],
    ),
    (
        "l2_hit_rate",
        "%",
        "requests that the L2 served by itself",
        "lts__t_sector_hit_rate.pct",
        lambda c: percent(c.l2["hits"], c.l2["reads"] + c.l2["writes"]),
    ),
    ("l2_bytes", "B", "data between SMs and L2", "lts__t_bytes.sum", lambda c: c.l2_bytes),
    (
        "l2_throughput",
        "B/s",
        "data between SMs and L2, over the duration",
        "lts__t_bytes.sum.per_second",
        lambda c: ratio(c.l2_bytes, c.seconds),
    ),
    (
        "l2_utilization",
        "%",
        "of the rate at which the slices can move data",
        "lts__t_bytes.sum.pct_of_peak_sustained_elapsed",
        lambda c: percent(c.l2_bytes, c.seconds * c.peaks.l2_bytes),
    ),
    ("dram_read_bytes", "B", "read from memory", "dram__bytes_read.sum", lambda c: c.dram["read_bytes"]),
    (
        "dram_write_bytes",
        "B",
        "written to memory: dirty lines that its accesses made leave the L2, whoever wrote them",
        "dram__bytes_write.sum",
        lambda c: c.dram["write_bytes"],
    ),
    (
        "dram_throughput",
        "B/s",
        "data between L2 and memory, over the duration",
        "dram__bytes.sum.per_second",
        lambda c: ratio(c.dram_bytes, c.seconds),
    ),
    (
        "dram_utilization",
        "%",
        "of the rate at which the memory's buses can move data",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        lambda c: percent(c.dram_bytes, c.seconds * c.peaks.dram_bytes),
    ),
    (
        "dram_row_hit_rate",
        "%",
        "bursts that found their row open",
        "",
        lambda c: percent(
            c.dram["row_hits"], c.dram["row_hits"] + c.dram["row_misses"] + c.dram["row_conflicts"]
        ),
    ),
    (
        "shared_wavefronts_per_request",
        "1",
        "passes over the banks of shared memory that an instruction takes",
        "",
        lambda c: ratio(c.sm["shared_wavefronts"], c.sm["shared_requests"]),
    ),
    (
        "shared_conflicts",
        "1",
        "passes over the banks of shared memory that conflicts add",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        lambda c: c.sm["shared_conflicts"],
    ),
    (
        "shared_utilization",
        "%",
        "cycles in which shared memory makes a pass, while its SM had a CTA",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_active",
        lambda c: percent(c.sm["shared_wavefronts"], c.sm["active_cycles"]),
    ),
    *map(_flops, PRECISIONS),
    (
        "flop_rate",
        "flop/s",
        "floating-point operations of all precisions, over the duration",
        "",
        lambda c: roofline(c).flops_per_second,
    ),
    (
        "intensity_dram",
        "flop/B",
        "floating-point operations for each byte between L2 and memory",
        "",
        lambda c: roofline(c).intensity_dram,
    ),
    (
        "intensity_l2",
        "flop/B",
        "floating-point operations for each byte between SMs and L2",
        "",
        lambda c: roofline(c).intensity_l2,
    ),
    (
        "roofline",
        "%",
        "of the lowest roof over the kernel: its units, the L2 or memory",
        "",
        lambda c: roofline(c).percent,
    ),
    *map(_stalled, STALLS),
)


def metrics_of(counts: KernelCounts) -> dict[str, Metric]:
    """All metrics of a kernel, by name."""
    return {
        name: Metric(name, value(counts), unit, doc, nsight) for name, unit, doc, nsight, value in DEFINITIONS
    }
