# SPDX-License-Identifier: Apache-2.0
"""What limits a kernel, by rules: its launch, SMs without work, a busy part of the machine, or what its warps wait for.

Shares of peaks are those of the time in which CTAs run, so that the launch of a short kernel does not hide them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .kernel_counts import LANES, KernelCounts
from .metrics import metrics_of, percent

SATURATED = 60.0  # percent of its peak from which on a part limits the kernel
MOSTLY_LAUNCH = 50.0  # percent of the duration
FEW_WAVES = 0.25  # the grid fills a quarter of the SMs' room for it
BUSY_SMS = 70.0  # percent of the time in which CTAs run that SMs have one
LAST_WAVE = 75.0  # percent of the rounds that the grid fills
DIVERGENT = 60.0  # percent of a warp's threads that take part in an instruction
CONFLICTING = 33.0  # percent of the passes over shared memory that conflicts add

_UNITS = {
    "unit_integer": "integer units",
    "unit_fp32": "fp32 units",
    "unit_fp64": "fp64 units",
    "unit_special": "special-function units",
    "unit_tensor": "tensor cores",
    "unit_branch": "branch units",
    "issue_slots_busy": "issue slots",
}
# What warps wait for: what that makes the limit, and the stalls that belong to it.
_WAITING = (
    ("memory latency", ("memory", "drain"), "wait for global, local or constant memory"),
    ("memory instructions", ("queue",), "wait for room in the memory queue"),
    ("shared-memory latency", ("shared",), "wait for shared memory or a shuffle"),
    ("barriers", ("barrier",), "wait at a barrier"),
    ("instruction latency", ("dependency", "unit"), "wait for results of fixed latency or for busy units"),
    ("instruction fetch", ("fetch",), "wait for instructions to arrive"),
    ("issue slots", ("not_selected",), "could issue, but another warp does"),
    ("page faults", ("fault",), "wait for pages of managed memory to come"),
)


@dataclass(frozen=True)
class Limit:
    """What limits a kernel: its kind, the evidence for it, and what else stands out."""

    kind: str
    evidence: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((f"{self.kind}: {self.evidence}", *self.notes))


def limit_of(counts: KernelCounts) -> Limit:
    """The first rule that holds."""
    return _Rules(counts).limit()


class _Rules:
    """The rules with the numbers that they look at."""

    def __init__(self, counts: KernelCounts) -> None:
        self.counts = counts
        self.values = {name: metric.value or 0.0 for name, metric in metrics_of(counts).items()}
        seconds = counts.execution_seconds
        peaks = counts.peaks
        self.dram = percent(counts.dram_bytes, seconds * peaks.dram_bytes) or 0.0
        self.l2 = percent(counts.l2_bytes, seconds * peaks.l2_bytes) or 0.0
        self.sms_busy = percent(counts.sm["active_cycles"], seconds * peaks.clock * peaks.sms) or 0.0
        self.conflicts = percent(counts.shared_conflicts, counts.sm["shared_wavefronts"]) or 0.0
        self.lanes = self.values["threads_per_instruction"]
        self.lanes_of_block = counts.threads_per_cta / counts.warps_per_cta

    def limit(self) -> Limit:
        if self.values["launch_overhead"] >= MOSTLY_LAUNCH:
            share = self.values["launch_overhead"]
            return Limit(
                "launch latency", f"{share:.0f}% of the duration is before the first CTA or after the last"
            )
        return self._idle_sms() or self._saturated() or self._waiting()

    def _idle_sms(self) -> Limit | None:
        if self.sms_busy >= BUSY_SMS:
            return None
        counts, peaks = self.counts, self.counts.peaks
        idle = f"SMs have a CTA {self.sms_busy:.0f}% of the time"
        if counts.ctas < peaks.sms * counts.ctas_per_sm:
            used = f"a grid of {counts.ctas} gives work to {counts.sms} of {peaks.sms} SMs"
            return Limit("too few CTAs", f"{used}; {idle}")
        waves = self.values["waves_per_sm"]
        rounds = math.ceil(waves)
        if 100 * waves / rounds < LAST_WAVE:
            return Limit("last wave", f"{waves:.2f} waves of CTAs take {rounds} rounds; {idle}")
        return Limit("uneven CTAs", f"{idle}, since some CTAs run much longer than others")

    def _saturated(self) -> Limit | None:
        parts = {
            **{name: self.values[name] for name in _UNITS},
            "address_units": self.values["address_units"],
            "shared": self.values["shared_utilization"],
            "l2": self.l2,
            "dram": self.dram,
        }
        busiest = max(parts, key=parts.__getitem__)
        share = parts[busiest]
        if share < SATURATED:
            return None
        if busiest in _UNITS:
            return self._lost_lanes(f"{_UNITS[busiest]} are {share:.0f}% busy") or Limit(
                _UNITS[busiest], f"they are {share:.0f}% busy while an SM has a CTA", self._notes()
            )
        if busiest == "dram":
            row_hits = self.values["dram_row_hit_rate"]
            evidence = (
                f"{share:.0f}% of its peak while CTAs run, {row_hits:.0f}% of bursts find their row open"
            )
            return Limit("DRAM bandwidth", evidence, self._notes())
        if busiest == "l2":
            hits = self.values["l2_hit_rate"]
            evidence = f"{share:.0f}% of its peak while CTAs run, {hits:.0f}% of requests hit in it"
            return Limit("L2 bandwidth", evidence, self._notes())
        if busiest == "shared":
            passes = self.values["shared_wavefronts_per_request"]
            evidence = f"shared memory is {share:.0f}% busy, with {passes:.1f} passes for each request"
            if self.conflicts >= CONFLICTING:
                evidence += f", {self.conflicts:.0f}% of them due to conflicts of banks"
                return Limit("shared-memory conflicts", evidence, self._notes())
            return Limit("shared-memory bandwidth", evidence, self._notes())
        sm = self.counts.sm
        shared = percent(sm["shared_requests"], sm["shared_requests"] + sm["global_requests"]) or 0.0
        evidence = f"address units are {share:.0f}% busy; {shared:.0f}% of what they do is for shared memory"
        return Limit("memory instructions", evidence, self._notes())

    def _waiting(self) -> Limit:
        def share(stalls: tuple[str, ...]) -> float:
            return sum(self.values[f"stall_{name}"] for name in stalls)

        kind, stalls, words = max(_WAITING, key=lambda candidate: share(candidate[1]))
        waiting = f"{share(stalls):.0f}% of warp cycles {words}"
        counts = self.counts
        if kind == "instruction fetch":
            size, cache = counts.code_bytes / 1024, counts.peaks.instruction_cache / 1024
            code = f"the program has {size:.0f} KiB of instructions, a sub-core's cache {cache:.0f} KiB"
            return Limit(kind, f"{waiting}; {code}", self._notes())
        if kind == "page faults":
            return Limit(
                kind,
                f"{waiting}: {counts.sm['faulted_translations']:,} translations of SMs faulted",
                self._notes(),
            )
        if self.values["waves_per_sm"] < FEW_WAVES:
            filled = 100 * self.values["waves_per_sm"]
            few = f"a grid of {counts.ctas} fills {filled:.0f}% of the room that SMs have for its CTAs"
            return Limit("too few CTAs", f"{few}, and {waiting}")
        if kind in ("instruction latency", "issue slots"):
            lost = self._lost_lanes(waiting)
            if lost is not None:
                return lost
        if kind == "shared-memory latency" and self.conflicts >= CONFLICTING:
            return Limit(
                "shared-memory conflicts",
                f"{waiting}, and {self.conflicts:.0f}% of its passes are due to conflicts of banks",
                self._notes(),
            )
        if kind.startswith("memory"):
            waiting += f" at {self.dram:.0f}% of DRAM bandwidth and {self.l2:.0f}% of that of L2"
        return Limit(kind, waiting, (*self._occupancy(), *self._notes()))

    def _lost_lanes(self, while_: str) -> Limit | None:
        """Instructions that few threads take part in: because they diverge, or because blocks do not fill warps."""
        if self.lanes >= LANES * DIVERGENT / 100:
            return None
        part = f"{self.lanes:.1f} of {LANES} threads take part in an instruction"
        if self.lanes >= self.lanes_of_block * DIVERGENT / 100:
            block = f"blocks of {self.counts.threads_per_cta} threads do not fill their warps"
            return Limit("partly filled warps", f"{part}, since {block}; {while_}", self._notes())
        return Limit("divergence", f"{part}; {while_}", self._notes())

    def _occupancy(self) -> tuple[str, ...]:
        achieved, possible = self.values["achieved_occupancy"], self.values["theoretical_occupancy"]
        if possible < SATURATED:
            return (f"occupancy {possible:.0f}% is limited by {self.counts.occupancy_limit}",)
        if achieved < possible / 2:
            return (f"occupancy is {achieved:.0f}% of a possible {possible:.0f}%",)
        return ()

    def _notes(self) -> tuple[str, ...]:
        notes = []
        used = self.values["sector_bytes_used"]
        if 0 < used <= 50 and self.counts.sm["global_sectors"] > 0:
            each = self.values["sectors_per_request"]
            notes.append(f"{used:.0f}% of the bytes in the {each:.1f} sectors of a request are used")
        if self.values["launch_overhead"] >= 10:
            notes.append(f"the launch takes {self.values['launch_overhead']:.0f}% of the duration")
        return tuple(notes)
