# SPDX-License-Identifier: Apache-2.0
"""What holds for the profile of every launch on a device with time, and for all launches and copies together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from manyscale import _core, gpu
from manyscale.gpu.kernel_counts import KernelCounts, machine_peaks

KINDS = {"l2": "slice[", "crossbar": "crossbar", "dram": "channel["}
NOT_A_SHARE = ("sector_bytes_used",)
"""Metrics in percent that may be above 100."""
CHANNELS_OWN = {"precharges", "refreshes", "drains"}
"""What channels of memory count on nobody's behalf."""
ROUNDING = 1e-9


class WatchedCommands:
    """The commands of a device, of which it keeps all that have ended."""

    def __init__(self, native: _core.GpuCommandQueue) -> None:
        self._native = native
        self.ended: list[_core.GpuEndedCommand] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def take_ended(self) -> list[_core.GpuEndedCommand]:
        ended = self._native.take_ended()
        self.ended += ended
        return ended


def watch(device: gpu.TimedDevice) -> WatchedCommands:
    """Keeps what ends on a device from now on, for `check_sums`; before anything has run."""
    device.queue.commands = watched = WatchedCommands(device.queue.commands)  # type: ignore[assignment]
    return watched


def totals(device: gpu.TimedDevice, kind: str) -> dict[str, int]:
    """What components of a kind say that they have counted in all."""
    parts = [
        part.native for name, part in device.parts.system.components.items() if name.startswith(KINDS[kind])
    ]
    assert parts
    return _core.counter_totals(parts)


def check_sums(device: gpu.TimedDevice, watched: WatchedCommands) -> None:
    """Launches, copies and what belongs to nobody add up to what the components of the memory have counted."""
    for kind in KINDS:
        summed: Counter[str] = Counter()
        for traffic in (*(ended.traffic for ended in watched.ended), watched.other_traffic()):
            summed.update(getattr(traffic, kind))
        counted = totals(device, kind)
        unattributed = counted.keys() - summed.keys()
        assert unattributed == (CHANNELS_OWN if kind == "dram" else set())
        assert dict(summed) == {name: count for name, count in counted.items() if name in summed}

    check_rates(device, watched)


def check_rates(device: gpu.TimedDevice, watched: WatchedCommands) -> None:
    """No launch and no copy moves more than L2, crossbar and memory can in its time."""
    peaks, system = machine_peaks(device.parts), device.parts.system
    ports = system.components["crossbar"].spec.model_dump()["output_ports"]
    wires = {
        side: ports * sum(f"crossbar.{side}" in (link.a, link.b) for link in system.links)
        for side in ("responders", "requesters")
    }
    for ended in watched.ended:
        traffic, duration = ended.traffic, ended.ended - ended.begun
        seconds = (1 + ROUNDING) * duration / 10**15
        assert traffic.l2_bytes <= peaks.l2_bytes * seconds
        assert traffic.dram_bytes <= peaks.dram_bytes * seconds
        assert traffic.crossbar["requests_busy"] <= duration * wires["responders"]
        assert traffic.crossbar["responses_busy"] <= duration * wires["requesters"]


def check_traffic(traffic: Any) -> None:
    """Of a launch or a copy: parts add up, and L2, crossbar and memory agree."""
    l2, crossbar, dram = traffic.l2, traffic.crossbar, traffic.dram
    misses = sum(count for name, count in l2.items() if name.startswith("misses_"))
    assert l2["hits"] + misses + l2["merged"] == l2["reads"] + l2["writes"]
    assert crossbar["messages"] == 2 * (l2["reads"] + l2["writes"])  # each has an answer
    assert l2["bytes_in"] == dram["read_bytes"]
    assert l2["bytes_out"] == dram["write_bytes"]
    assert traffic.dram_bytes == dram["read_bytes"] + dram["write_bytes"]
    assert traffic.l2_bytes == crossbar["bytes"] - 8 * crossbar["messages"]
    assert min(*l2.values(), *crossbar.values(), *dram.values()) >= 0


def check_profile(profile: gpu.KernelProfile) -> None:
    """No share of anything is above the whole, and parts add up to it."""
    counts = profile.counts
    for metric in profile.metrics.values():
        if metric.unit == "%" and metric.name not in NOT_A_SHARE and metric.value is not None:
            assert 0 <= metric.value <= 100 + ROUNDING, f"{metric.name} is {metric.value}%"
    for what, share in shares_while_running(counts).items():
        assert share <= 1 + ROUNDING, f"{what} moves {share:.3f} of its peak while CTAs run"
    assert profile.stalls["cycles"].sum() == counts.sm["warp_cycles"]
    assert profile.operations["cycles"].sum() == counts.sm["warp_cycles"] - counts.sm["stall_drain"]
    assert profile.operations["issued"].sum() == counts.sm["issued_instructions"]
    assert profile["dram_read_bytes"] + profile["dram_write_bytes"] == counts.dram_bytes
    check_traffic(counts)


def shares_while_running(counts: KernelCounts) -> dict[str, float]:
    """What L2 and memory do for a kernel, of their peaks while its CTAs run."""
    if counts.l2_bytes == 0:
        return {}
    seconds = counts.execution_seconds
    return {
        "L2": counts.l2_bytes / (seconds * counts.peaks.l2_bytes),
        "DRAM": counts.dram_bytes / (seconds * counts.peaks.dram_bytes),
    }


def about(expected: dict[str, int], rel: float, most: int = 0) -> dict[str, Any]:
    """Counts that may differ by a part of each, or by a few."""
    return {name: pytest.approx(count, rel=rel, abs=most) for name, count in expected.items()}
