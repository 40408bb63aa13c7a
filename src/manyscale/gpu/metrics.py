# SPDX-License-Identifier: Apache-2.0
"""The metrics of a kernel, each defined once: value, unit, meaning, and its name in Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .kernel_counts import LANES, PIPES, PRECISIONS, SECTOR_BYTES, KernelCounts

Value = int | float | None


@dataclass(frozen=True)
class Metric:
    """A metric of a kernel; its value is None where nothing was counted, such as the hit rate without loads."""

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
    """A kernel in the roofline model of its machine, with ceilings of compute, L2 and DRAM."""

    flops: int
    flops_per_second: float
    arithmetic_intensity_dram: float | None  # flop/B; None: no byte moved
    arithmetic_intensity_l2: float | None
    peak: float  # flop/s of the compute ceiling, for the kernel's mix of precisions
    bound: float | None  # flop/s that the lowest ceiling allows
    bound_by: str  # the lowest ceiling: "DRAM", "L2" or "compute"

    @property
    def percent(self) -> float | None:
        """The fraction of the roofline bound that the kernel reaches."""
        return None if self.bound is None else percent(self.flops_per_second, self.bound)


def roofline(counts: KernelCounts) -> Roofline:
    """Of the whole duration of a kernel, its launch included."""
    peaks, flops = counts.peaks, sum(counts.flops.values())
    seconds_at_peak = sum(counts.flops[precision] / peaks.flops[precision] for precision in PRECISIONS)
    peak = flops / seconds_at_peak if flops else peaks.flops["fp32"]
    dram, l2 = ratio(flops, counts.dram_bytes), ratio(flops, counts.l2_bytes)
    ceilings = {"compute": peak}
    if dram is not None:
        ceilings["DRAM"] = dram * peaks.dram_bytes
    if l2 is not None:
        ceilings["L2"] = l2 * peaks.l2_bytes
    name = min(ceilings, key=ceilings.__getitem__)
    rate = flops / counts.seconds if counts.seconds else 0.0
    return Roofline(flops, rate, dram, l2, peak, ceilings[name] if flops else None, name)


@dataclass(frozen=True)
class Stall:
    """A state of warps: selected to issue, or stalled for a reason."""

    name: str
    statistic: str  # of an SM
    label: str
    doc: str
    nsight: str
    also: str = ""  # what it holds besides, by other names in Nsight Compute

    @property
    def meaning(self) -> str:
        return f"{self.doc}; here also {self.also}" if self.also else self.doc


STALLS = (
    Stall("selected", "issued_instructions", "Selected", "issue an instruction", "selected"),
    Stall(
        "long_scoreboard",
        "stall_long_scoreboard",
        "Long Scoreboard",
        "wait for global or local memory or textures",
        "long_scoreboard",
        "for constants (IMC Miss) and fences (Membar)",
    ),
    Stall(
        "lg_throttle",
        "stall_lg_throttle",
        "LG Throttle",
        "wait for a slot of the MIO queue or an MSHR, for global or local memory",
        "lg_throttle",
    ),
    Stall(
        "mio_throttle",
        "stall_mio_throttle",
        "MIO Throttle",
        "wait for a slot of the MIO queue, for shared memory, constants, shuffles or special functions",
        "mio_throttle",
    ),
    Stall(
        "tex_throttle",
        "stall_tex_throttle",
        "Tex Throttle",
        "wait for a slot of the MIO queue or an MSHR, for textures",
        "tex_throttle",
    ),
    Stall(
        "short_scoreboard",
        "stall_short_scoreboard",
        "Short Scoreboard",
        "wait for shared memory or a shuffle",
        "short_scoreboard",
    ),
    Stall("barrier", "stall_barrier", "Barrier", "wait for other warps of their CTA at a barrier", "barrier"),
    Stall(
        "wait",
        "stall_wait",
        "Wait",
        "wait for a result of fixed latency",
        "wait",
        "for results of MUFU and conversions (Short Scoreboard) and for branches (Branch Resolving)",
    ),
    Stall(
        "math_pipe_throttle",
        "stall_math_pipe_throttle",
        "Math Pipe Throttle",
        "wait for a pipe that is busy",
        "math_pipe_throttle",
    ),
    Stall(
        "no_instruction",
        "stall_no_instruction",
        "No Instruction",
        "wait for a line of instructions that is not in the cache",
        "no_instruction",
    ),
    Stall(
        "not_selected",
        "stall_not_selected",
        "Not Selected",
        "are eligible, but another warp issues",
        "not_selected",
    ),
    Stall("drain", "stall_drain", "Drain", "wait for their stores after EXIT", "drain"),
    Stall("fault", "stall_fault", "Page Fault", "wait for a page of managed memory", ""),
)
"""Stall reasons by their names in Nsight Compute, which has none for page faults."""

Definition = tuple[str, str, str, str, Callable[[KernelCounts], Value]]

_PIPE_DOCS = {
    "alu": "the ALU pipe (integer and logic)",
    "fma": "the FMA pipe (single and half precision, integer products)",
    "fp64": "the FP64 pipe",
    "xu": "the XU pipe (special functions and conversions)",
    "tensor": "the tensor pipe",
    "lsu": "the LSU pipe (memory and shuffles)",
    "cbu": "the CBU pipe (branches, barriers, fences and exits)",
    "other": "the other pipes",
}
_NSIGHT_PIPES = {
    "alu": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "fp64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "xu": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "lsu": "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
}


def _slots(counts: KernelCounts) -> int:
    """Cycles of sub-cores on SMs that had a CTA."""
    return counts.sm["active_cycles"] * counts.peaks.sub_cores


def _busy(pipe: str) -> Definition:
    return (
        f"pipe_{pipe}",
        "%",
        f"time in which {_PIPE_DOCS[pipe]} took no other instruction, while its SM had a CTA",
        _NSIGHT_PIPES.get(pipe, ""),
        lambda counts: percent(counts.sm[f"busy_{pipe}"], _slots(counts)),
    )


def _stalled(stall: Stall) -> Definition:
    return (
        f"stall_{stall.name}",
        "%",
        f"of all cycles of warps: {stall.meaning}",
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
    (
        "cycles",
        "cycle",
        "of its launch and execution, as if alone",
        "gpc__cycles_elapsed.max",
        lambda c: c.cycles,
    ),
    (
        "duration",
        "s",
        "of its launch and execution, as if alone",
        "gpu__time_duration.sum",
        lambda c: c.seconds,
    ),
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
        "issued_instructions",
        "1",
        "SASS instructions that SMs issued, or those that PTX is lowered to",
        "sm__inst_executed.sum",
        lambda c: c.sm["issued_instructions"],
    ),
    (
        "ipc",
        "inst/cycle",
        "SASS instructions that an SM with a CTA issues in a cycle",
        "sm__inst_executed.avg.per_cycle_active",
        lambda c: ratio(c.sm["issued_instructions"], c.sm["active_cycles"]),
    ),
    (
        "issue_slots_busy",
        "%",
        "cycles in which a sub-core issued, while its SM had a CTA",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        lambda c: percent(c.sm["issued_instructions"], _slots(c)),
    ),
    (
        "theoretical_occupancy",
        "%",
        "warps that fit on an SM at once, of the most it can hold",
        "sm__maximum_warps_per_active_cycle_pct",
        lambda c: percent(c.ctas_per_sm * c.warps_per_cta, c.peaks.warps),
    ),
    (
        "achieved_occupancy",
        "%",
        "warps on an SM with a CTA in the mean, of the most it can hold",
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
    *map(_busy, PIPES),
    (
        "address_units",
        "%",
        "time in which address generation units took no other instruction, while their SM had a CTA",
        "",
        lambda c: percent(
            c.sm["global_requests"] * c.peaks.global_interval
            + c.sm["shared_requests"] * c.peaks.address_interval,
            _slots(c),
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
        "data between SMs and L2 that did not have to come from memory, writes included",
        "lts__t_sector_hit_rate.pct",
        lambda c: percent(max(0, c.l2_bytes - c.l2["bytes_in"]), c.l2_bytes),
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
        "wavefronts of shared memory that an instruction takes",
        "",
        lambda c: ratio(c.sm["shared_wavefronts"], c.sm["shared_requests"]),
    ),
    (
        "shared_conflicts",
        "1",
        "wavefronts of shared memory that bank conflicts add",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        lambda c: c.sm["shared_conflicts"],
    ),
    (
        "shared_utilization",
        "%",
        "cycles in which shared memory processes a wavefront, while its SM had a CTA",
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
        "arithmetic_intensity_dram",
        "flop/B",
        "arithmetic intensity: floating-point operations per byte between L2 and memory",
        "",
        lambda c: roofline(c).arithmetic_intensity_dram,
    ),
    (
        "arithmetic_intensity_l2",
        "flop/B",
        "arithmetic intensity: floating-point operations per byte between SMs and L2",
        "",
        lambda c: roofline(c).arithmetic_intensity_l2,
    ),
    (
        "roofline",
        "%",
        "of the roofline bound: the least of peak compute, and arithmetic intensity times L2 and DRAM bandwidth",
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
