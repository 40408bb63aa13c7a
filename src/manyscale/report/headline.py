# SPDX-License-Identifier: Apache-2.0
"""The five numbers that people look at first, by the kind of run, and those of the simulator itself."""

from __future__ import annotations

from collections.abc import Callable

from manyscale.report.evidence import Evidence
from manyscale.report.numbers import percent, share, shown, spoken
from manyscale.results.names import short

_FIVE = 5
_INTERNAL = frozenset(
    ("events", "windows", "pending_events", "partitions", "threads", "lookahead", "seed", "exit_code")
)


def headline(evidence: Evidence) -> dict[str, str]:
    """Five numbers with units; fewer where a run has fewer."""
    rules: tuple[Callable[[Evidence], dict[str, str]], ...] = (
        _cuda,
        _faults,
        _kernels,
        _cores,
        _ranks,
        _memory,
        _system,
    )
    found = next((numbers for rule in rules if (numbers := rule(evidence))), {})
    return dict(list((found | _others(evidence, found)).items())[:_FIVE])


def internals(evidence: Evidence) -> dict[str, str]:
    """What the simulator needed: events, windows, time of the host."""
    return {
        spoken(name): shown(entry["value"], entry["unit"])
        for name, entry in evidence.run.headline.items()
        if is_internal(name)
    }


def is_internal(name: str) -> bool:
    """Whether a headline number is one of the simulator's, not of what it simulates."""
    return name in _INTERNAL or name.startswith("wall_")


def _others(evidence: Evidence, found: dict[str, str]) -> dict[str, str]:
    """Further numbers of the run's own headline."""
    others = {}
    for name, entry in evidence.run.headline.items():
        if is_internal(name) or isinstance(entry["value"], bool):
            continue
        label = "simulated time" if name == "simulated_seconds" else spoken(name)
        if label in found or (name == "simulated_seconds" and "time" in found):
            continue
        others[label] = shown(entry["value"], entry["unit"])
    return others


def _kernels(evidence: Evidence) -> dict[str, str]:
    kernels = evidence.longest_kernels()
    if not kernels:
        return {}
    metrics = evidence.metrics(kernels[0])
    whole = sum(evidence.metrics(each).get("duration", 0.0) for each in kernels)
    several = len(kernels) > 1
    found = {f"time of {len(kernels)} kernels" if several else "time": shown(whole, "s")}
    if "ipc" in metrics:
        found["IPC of an SM"] = shown(metrics["ipc"])
    if "dram_utilization" in metrics:
        used = percent(metrics["dram_utilization"] / 100)
        found["DRAM throughput"] = f"{shown(metrics.get('dram_throughput'), 'B/s')}, {used} of peak"
    if "achieved_occupancy" in metrics:
        achieved, fitting = metrics["achieved_occupancy"], metrics.get("theoretical_occupancy", 0.0)
        found["achieved occupancy"] = f"{percent(achieved / 100)} of {percent(fitting / 100)}"
    rates = [
        f"{level.upper()} {percent(metrics[f'{level}_hit_rate'] / 100)}"
        for level in ("l1", "l2")
        if f"{level}_hit_rate" in metrics
    ]
    if rates:
        found["cache hit rates"] = ", ".join(rates)
    return found


def _cuda(evidence: Evidence) -> dict[str, str]:
    use = evidence.gpu_time
    if use is None or not use.whole:
        return {}
    kernels = evidence.longest_kernels()
    found = {
        "time": shown(use.whole, "s"),
        "kernels": f"{shown(use.kernels, 's')}, {percent(share(use.kernels, use.whole))}",
        "copies": f"{shown(use.copies, 's')}, {percent(share(use.copies, use.whole))}",
        "launches": shown(use.launches),
    }
    if kernels:
        found["longest kernel"] = short(evidence.titles[kernels[0]])
    return found


def _faults(evidence: Evidence) -> dict[str, str]:
    for uvm in evidence.group("uvm"):
        faults = evidence.value(uvm, "faults")
        if not faults:
            continue
        stalled = evidence.value(uvm, "stalled") / 10**15
        batches = evidence.value(uvm, "fault_batches")
        kernels = sum(evidence.metrics(each).get("duration", 0.0) for each in evidence.kernels())
        return {
            "time of kernels": shown(kernels or evidence.seconds, "s"),
            "time with a stalled access": f"{shown(stalled, 's')}, {percent(share(stalled, evidence.seconds))}",
            "page faults": f"{shown(faults)} in {shown(batches)} batch{'' if batches == 1 else 'es'}",
            "moved to the GPU": shown(evidence.value(uvm, "bytes_to_device"), "B"),
            "pages evicted": shown(evidence.value(uvm, "pages_evicted")),
        }
    return {}


def _cores(evidence: Evidence) -> dict[str, str]:
    cores = [core for core in evidence.group("core[") if evidence.has(core, "instructions")]
    instructions = evidence.total(cores, "instructions")
    if not instructions:
        return {}
    cycles = max(evidence.value(core, "cycles") for core in cores)
    found = {
        "time": shown(evidence.seconds, "s"),
        "IPC of a core": shown(share(instructions, cycles * len(cores))),
        "instructions": f"{shown(instructions)} on {len(cores):,} core{'s' if len(cores) > 1 else ''}",
    }
    if evidence.has(cores[0], "mispredicts"):
        found["branch MPKI"] = shown(1000 * evidence.total(cores, "mispredicts") / instructions)
    caches = evidence.columns("caches", "level", "mpki")
    if caches is not None:
        last = [row for row in caches.iter_rows(named=True) if row["mpki"] is not None]
        if last:
            found[f"{spoken(str(last[-1]['level']))} cache MPKI".replace("cache cache", "cache")] = shown(
                last[-1]["mpki"]
            )
    return found


def _ranks(evidence: Evidence) -> dict[str, str]:
    parts = evidence.rank_shares
    if not parts:
        return {}
    links = evidence.columns("links", "busy")
    found = {
        "time": shown(evidence.seconds, "s"),
        "ranks": f"{evidence.ranks:,}",
        "computing": percent(parts["compute"]),
        "communication": percent(1 - parts["compute"]),
    }
    if links is not None:
        found["busiest link"] = f"{percent(float(links['busy'].max() or 0))} busy"  # type: ignore[arg-type]
    return found


def _memory(evidence: Evidence) -> dict[str, str]:
    cores = [core for core in evidence.group("core[") if evidence.has(core, "l1.hits")]
    if evidence.kind != "memory" or not cores:
        return {}
    accesses = evidence.total(cores, "l1.reads", "l1.writes")
    channels = evidence.group("channel[")
    moved = evidence.total(channels, "read_bytes", "write_bytes")
    return {
        "simulated time": shown(evidence.seconds, "s"),
        "latency of an access": shown(evidence.mean_seconds(cores, "latency"), "s"),
        "accesses": shown(accesses),
        "L1 hit rate": percent(share(evidence.total(cores, "l1.hits"), accesses)),
        "DRAM bandwidth": shown(share(moved, evidence.seconds), "B/s"),
    }


def _system(evidence: Evidence) -> dict[str, str]:
    """Of a system of components: its time, and how large it is."""
    components, links = evidence.machine.get("component"), evidence.machine.get("link")
    if not isinstance(components, list):
        return {}
    kinds = {str(each.get("model")) for each in components if isinstance(each, dict)}
    return {
        "simulated time": shown(evidence.seconds, "s"),
        "components": f"{len(components):,}",
        "models": ", ".join(sorted(kinds)[:3]) + (" ..." if len(kinds) > 3 else ""),
        "links": f"{len(links) if isinstance(links, list) else 0:,}",
        "statistics": f"{len(evidence.scalars):,}",
    }
