# SPDX-License-Identifier: Apache-2.0
"""What came out of a run of a machine's memory: totals, levels of caches, channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.results import definitions
from manyscale.results.totals import Totals

if TYPE_CHECKING:
    from manyscale.system import Result, System

_FEMTOSECONDS = 10**15  # of a second


def headline(facts: dict[str, Any], result: Result) -> definitions.Headline:
    """The numbers that people look at first, of a `summary`."""
    per_second = facts["accesses"] / result.wall_seconds if result.wall_seconds else None
    return result.headline | definitions.headline(
        simulated_seconds=facts["simulated_seconds"],
        accesses=facts["accesses"],
        latency_seconds=facts["latency_seconds"],
        bandwidth_bytes_per_second=facts["bandwidth_bytes_per_second"],
        wall_accesses_per_second=per_second,
    )


def summary(system: System, result: Result) -> dict[str, Any]:
    """What came out, as --json shows it: totals, levels from the cores outwards, channels."""
    values = Totals(result.columns)
    names = list(system.components)
    cores, slices, channels = (
        [name for name in names if name.startswith(kind)] for kind in ("core[", "slice[", "channel[")
    )
    # Hits need no event each, so the last access may be complete after the last event.
    seconds = max(values.most(cores, "finished"), 0.0) / _FEMTOSECONDS
    levels = [_level(values, "l1", cores, "l1.", seconds)]
    if ("core[0]", "l2.hits") in values:
        levels.append(_level(values, "l2", cores, "l2.", seconds))
    if slices:
        levels.append(_level(values, "shared", slices, "", seconds))
    moved = values.total(cores, "bytes")
    network = ["interconnect"] if "interconnect" in names else []
    return {
        "simulated_seconds": seconds,
        "wall_seconds": result.wall_seconds,
        "accesses": values.total(cores, "completed"),
        "latency_seconds": values.seconds(cores, "latency"),
        "bandwidth_bytes_per_second": moved / seconds if seconds else 0.0,
        "levels": levels,
        "interconnect": _network(values, network, seconds) if network else None,
        "channels": [_channel(values, name, seconds) for name in channels],
    }


def _level(values: Totals, level: str, components: list[str], prefix: str, seconds: float) -> dict[str, Any]:
    def total(name: str) -> int:
        return values.total(components, prefix + name)

    accesses = total("reads") + total("writes")
    moved = total("bytes_in") + total("bytes_out")
    return {
        "level": level,
        "components": len(components),
        "accesses": accesses,
        "hit_rate": total("hits") / accesses if accesses else None,
        "misses": {
            cause: total(f"misses_{cause}") for cause in ("cold", "capacity", "conflict", "coherence")
        },
        "merged": total("merged"),
        "writebacks": total("writebacks"),
        "miss_latency_seconds": values.seconds(components, f"{prefix}miss_latency"),
        "outstanding_mean": (
            total("line_time") / _FEMTOSECONDS / seconds / len(components) if seconds else 0.0
        ),
        "outstanding_max": values.most(components, f"{prefix}outstanding.max"),
        "bandwidth_bytes_per_second": moved / seconds if seconds else 0.0,
        "queueing_seconds": values.seconds(components, f"{prefix}queueing", of=accesses),
    }


def _network(values: Totals, components: list[str], seconds: float) -> dict[str, Any]:
    return {
        "messages": values.total(components, "messages"),
        "bandwidth_bytes_per_second": values.total(components, "bytes") / seconds if seconds else 0.0,
        "latency_seconds": values.seconds(components, "latency"),
        "queueing_seconds": values.seconds(components, "queueing"),
    }


def _channel(values: Totals, name: str, seconds: float) -> dict[str, Any]:
    def total(statistic: str) -> int:
        return values.total([name], statistic)

    moved = total("read_bytes") + total("write_bytes")
    return {
        "channel": name,
        "reads": total("reads"),
        "writes": total("writes"),
        "bytes": moved,
        "row_hits": total("row_hits"),
        "row_misses": total("row_misses"),
        "row_conflicts": total("row_conflicts"),
        "read_latency_seconds": values.seconds([name], "read_latency"),
        "queueing_seconds": values.seconds([name], "queueing_delay"),
        "bandwidth_bytes_per_second": moved / seconds if seconds else 0.0,
    }
