# SPDX-License-Identifier: Apache-2.0
"""Estimates of the time of a changed kernel, from the counters of the launch.

Two bounds hold at any time. A part of the machine cannot be busy for longer than the kernel runs; and warps cannot be
on the SMs for longer than they issue and wait. So a change that takes demand from the busiest part shortens the kernel
by what that part, or the next one, is less busy; and one that takes stalls from warps shortens it in proportion, but
not to less than the busiest part needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from manyscale.gpu.kernel_counts import PIPES, SECTOR_BYTES, KernelCounts
from manyscale.gpu.metrics import metrics_of

LINE_BYTES = 128
SECTORS_OF_LINE = LINE_BYTES // SECTOR_BYTES
HEADER_BYTES = 8  # of each message on the crossbar
OPERATION_CYCLES = ("issued", "stall_memory", "stall_shared", "stall_execution", "stall_other", "stall_fault")
"""Columns of the table of operations: cycles of warps that issued an operation or waited to."""

_LATENCY = ("wait", "long_scoreboard", "short_scoreboard", "barrier", "drain")


class Execution:
    """The counts of a kernel, and what follows from them for the time in which its CTAs run."""

    def __init__(self, counts: KernelCounts) -> None:
        self.counts = counts
        self.sm = counts.sm
        self.peaks = counts.peaks
        self.seconds = counts.execution_seconds
        self.cycles = self.seconds * counts.peaks.clock
        self.warp_cycles = max(counts.sm["warp_cycles"], 1)
        self.sms = max(counts.sms, 1)

    @cached_property
    def values(self) -> dict[str, float]:
        """The metrics by name; 0 where there was nothing to count."""
        return {name: metric.value or 0.0 for name, metric in metrics_of(self.counts).items()}

    @cached_property
    def active(self) -> float:
        """Cycles in which an SM had a CTA, mean of those that had one at all."""
        return self.sm["active_cycles"] / self.sms

    @cached_property
    def demands(self) -> dict[str, float]:
        """Cycles for which each part of the machine is busy with the kernel, if SMs have equal shares of it."""
        sm, peaks = self.sm, self.peaks
        sub_cores = self.sms * peaks.sub_cores
        pipes = {f"pipe_{pipe}": sm[f"busy_{pipe}"] / sub_cores for pipe in PIPES}
        return {
            **pipes,
            "issue_slots": sm["issued_instructions"] / sub_cores,
            "address_units": (
                self.memory_instructions * peaks.address_interval
                + sm["global_requests"] * (peaks.global_interval - peaks.address_interval)
            )
            / sub_cores,
            "data_stage": sm["data_cycles"] / self.sms,
            "tag_stage": (sm["global_lines"] + (peaks.tags - 1) * sm["global_requests"])
            / peaks.tags
            / self.sms,
            "texture_units": sm["texture_cycles"] / self.sms,
            "requests": sm["l2_requests"] * peaks.request_interval / self.sms,
            "crossbar": self.crossbar(sm["l1_misses"], sm["store_sectors"] + sm["local_store_sectors"]),
            "l2": self.counts.l2_bytes / peaks.l2_bytes * peaks.clock,
            "dram": self.counts.dram_bytes / peaks.dram_bytes * peaks.clock,
            "atomics": sm["atomic_rounds_busiest"] * peaks.atomic_cycles,
        }

    def crossbar(self, read: float, written: float) -> float:
        """Cycles for which the busiest port of the crossbar gives out flits, for so many sectors to and from SMs."""
        flits = (SECTOR_BYTES + HEADER_BYTES) / self.peaks.flit  # of a sector, with the header of its message
        to_sm = flits * read / self.sms
        to_slice = (flits * written + read / SECTORS_OF_LINE) / self.peaks.slices
        return max(to_sm, to_slice) / self.peaks.flits

    @cached_property
    def memory_instructions(self) -> int:
        sm = self.sm
        return (
            sm["global_requests"] + sm["shared_requests"] + sm["constant_requests"] + sm["texture_requests"]
        )

    def share(self, cycles: float) -> float:
        """What part of all cycles of warps these are."""
        return cycles / self.warp_cycles

    def busiest(self, changed: Mapping[str, float] | None = None) -> float:
        """Cycles of the busiest part of the machine, with some demands changed."""
        return max({**self.demands, **(changed or {})}.values())

    def saved(self, *, stalls: float = 0.0, demands: Mapping[str, float] | None = None) -> float:
        """Seconds saved if warps did not stall for so many cycles, and parts of the machine had these demands."""
        after = self.busiest(demands)
        by_demand = self.busiest() - after
        by_stalls = self.active * self.share(stalls)
        return self._seconds(min(max(by_demand, by_stalls), self.cycles - after))

    def saved_by_fewer(self, left: float, demands: Mapping[str, float]) -> float:
        """Seconds saved if this part of the warps did all the work, with these demands."""
        return self._seconds(min(self.active * (1 - left), self.cycles - self.busiest(demands)))

    @cached_property
    def latency(self) -> float:
        """Cycles of warps that are no contention with other warps: for results, memory and barriers."""
        return float(sum(self.sm[f"stall_{name}"] for name in _LATENCY))

    def saved_by_warps(self, factor: float) -> float:
        """Seconds saved if so many times as many warps hid each other's latency."""
        hidden = self.active * self.share(self.latency) * (1 - 1 / factor)
        return self._seconds(min(hidden, self.cycles - self.busiest()))

    def _seconds(self, cycles: float) -> float:
        return max(cycles, 0.0) / self.peaks.clock
