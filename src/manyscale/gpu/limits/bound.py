# SPDX-License-Identifier: Apache-2.0
"""What a kernel without a problem is bound by: the busiest part of the machine, or what its warps wait for."""

from __future__ import annotations

from dataclasses import dataclass

from manyscale.gpu.metrics import percent

from .cause import Cause
from .execution import Execution

_SATURATED = 60.0  # percent of its peak from which on a part limits the kernel

_PIPES = {
    "pipe_alu": "ALU pipe",
    "pipe_fma": "FMA pipe",
    "pipe_fp64": "FP64 pipe",
    "pipe_xu": "XU pipe",
    "pipe_tensor": "tensor pipe",
    "pipe_cbu": "CBU pipe",
    "issue_slots_busy": "issue slots",
}


@dataclass(frozen=True)
class _Wait:
    """What warps wait for: the verdict, its stall reasons, the evidence in words, and advice."""

    kind: str
    stalls: tuple[str, ...]
    words: str
    advice: str
    of_memory: bool = False  # the evidence includes bandwidths and the latency of a miss


_WAITING = (
    _Wait(
        "memory latency",
        ("long_scoreboard", "drain"),
        "wait for global, local or constant memory (Long Scoreboard, Drain)",
        "Have more loads in flight: unroll and load before use, prefetch into shared memory, or raise occupancy",
        of_memory=True,
    ),
    _Wait(
        "memory instructions",
        ("lg_throttle", "mio_throttle", "tex_throttle"),
        "wait for a slot of the MIO queue (LG Throttle, MIO Throttle, Tex Throttle)",
        "Use fewer and wider memory instructions",
        of_memory=True,
    ),
    _Wait(
        "shared-memory latency",
        ("short_scoreboard",),
        "wait for shared memory or a shuffle (Short Scoreboard)",
        "Load more words at once, and do independent work before they are used",
    ),
    _Wait("barriers", ("barrier",), "wait at a barrier (Barrier)", "Use fewer barriers or smaller blocks"),
    _Wait(
        "instruction latency",
        ("wait", "math_pipe_throttle"),
        "wait for results of fixed latency or for busy pipes (Wait, Math Pipe Throttle)",
        "Make chains of dependent instructions shorter, with independent work in each thread or more warps",
    ),
    _Wait(
        "instruction fetch",
        ("no_instruction",),
        "wait for instructions to arrive (No Instruction)",
        "Let the hot loop fit into the instruction cache",
    ),
    _Wait(
        "issue slots",
        ("not_selected",),
        "are eligible, but another warp issues (Not Selected)",
        "Execute fewer instructions: the SMs issue in most cycles",
    ),
    _Wait(
        "page faults",
        ("fault",),
        "wait for pages of managed memory (Page Fault)",
        "Move the pages before the launch with cudaMemPrefetchAsync",
    ),
)


def bound_of(execution: Execution) -> Cause:
    return _saturated(execution) or _waiting(execution)


def _saturated(execution: Execution) -> Cause | None:
    values, demands = execution.values, execution.demands
    parts = {
        **{name: values[name] for name in _PIPES},
        "address_units": values["address_units"],
        "shared": values["shared_utilization"],
        "l2": percent(demands["l2"], execution.cycles) or 0.0,
        "dram": percent(demands["dram"], execution.cycles) or 0.0,
    }
    busiest = max(parts, key=parts.__getitem__)
    share = parts[busiest]
    if share < _SATURATED:
        return None
    if busiest in _PIPES:
        return Cause(
            _PIPES[busiest],
            f"{share:.0f}% busy while an SM has a CTA (Math Pipe Throttle)",
            "The machine does about what it can; only fewer or cheaper operations would help",
        )
    if busiest == "dram":
        row_hits = values["dram_row_hit_rate"]
        return Cause(
            "DRAM bandwidth",
            f"{share:.0f}% of its peak while CTAs run, {row_hits:.0f}% row hits",
            "Move fewer bytes: narrower types, fused kernels, tiles used again while cached",
        )
    if busiest == "l2":
        hits = values["l2_hit_rate"]
        return Cause(
            "L2 bandwidth",
            f"{share:.0f}% of its peak while CTAs run, {hits:.0f}% of requests hit in it",
            "Use data again while it is on the SM, in registers, shared memory or L1",
        )
    if busiest == "shared":
        passes = values["shared_wavefronts_per_request"]
        return Cause(
            "shared-memory bandwidth",
            f"shared memory is {share:.0f}% busy, with {passes:.1f} wavefronts for each request",
            "Keep more in registers, so that each word from shared memory is used more often",
        )
    sm = execution.sm
    shared = percent(sm["shared_requests"], sm["shared_requests"] + sm["global_requests"]) or 0.0
    return Cause(
        "memory instructions",
        f"address generation units are {share:.0f}% busy; {shared:.0f}% of it for shared memory (LG Throttle)",
        "Use fewer and wider memory instructions",
    )


def _waiting(execution: Execution) -> Cause:
    values = execution.values

    def share(stalls: tuple[str, ...]) -> float:
        return sum(values[f"stall_{name}"] for name in stalls)

    longest = max(_WAITING, key=lambda candidate: share(candidate.stalls))
    evidence = f"{share(longest.stalls):.0f}% of warp cycles {longest.words}"
    if longest.of_memory:
        dram, l2 = (percent(execution.demands[name], execution.cycles) or 0.0 for name in ("dram", "l2"))
        evidence += f" at {dram:.0f}% of DRAM bandwidth and {l2:.0f}% of that of L2"
        if values["l1_miss_latency"]:
            evidence += f"; a load that misses in L1 takes {values['l1_miss_latency']:.0f} cycles"
    occupancy = values["theoretical_occupancy"]
    if occupancy < _SATURATED:
        evidence += f"; occupancy {occupancy:.0f}% is limited by {execution.counts.occupancy_limit_text}"
    return Cause(longest.kind, evidence, longest.advice)
