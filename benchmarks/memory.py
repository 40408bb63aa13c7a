# SPDX-License-Identifier: Apache-2.0
"""How fast the memory system is: simulated accesses per second of host time, and host memory per simulated cache.

Streams that hit in L1, that are served by L2, and that go to DRAM, on one core of the host; four simulated cores on
1 and 2 threads; and the STREAM triad of 1 M elements that SST needs 13 s for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import psutil  # type: ignore[import-untyped]

from manyscale import System
from support.reporting import run_benchmark

TARGETS = {"l1_stream": 15e6, "dram_stream": 2e6, "triad_accesses_per_second": round(3e6 / 1.3)}

L1 = {"size": "32KiB", "ways": 8}
L2 = {"size": "256KiB", "ways": 8, "tag_latency": 3, "data_latency": 8}
DRAM = {"backend": "simple", "latency": "60ns", "bandwidth": "25.6GB/s"}


def private(accesses: int, footprint: str, **core: Any) -> System:
    """One core with L1 and L2 in front of a channel."""
    system = System("private")
    generator = system.add(
        "memory.generator",
        "core",
        **{"clock": "2.4GHz", "accesses": accesses, "footprint": footprint, "l1": L1, "l2": L2, **core},
    )
    channel = system.add("memory.dram", "channel", **DRAM)
    system.connect(generator.memory, channel.requests, "5ns")
    return system


def shared(accesses: int, footprint: str, backend: str = "timing", cores: int = 1, **core: Any) -> System:
    """Cores with L1 and L2, a crossbar, as many slices of a shared cache, and a channel for each."""
    system = System("shared")
    crossbar = system.add("memory.crossbar", "crossbar", clock="2GHz")
    size = int(footprint.removesuffix("MiB")) * 2**20
    for i in range(cores):
        generator = system.add(
            "memory.generator",
            f"core[{i}]",
            **{
                "clock": "2.4GHz",
                "accesses": accesses // cores,
                "footprint": footprint,
                "base": f"{i * size}B",
                "l1": L1,
                "l2": L2,
                "homes": cores,
                **core,
            },
        )
        system.connect(generator.memory, crossbar.requesters, "2ns")
    for i in range(cores):
        slice_ = system.add(
            "memory.cache",
            f"slice[{i}]",
            clock="2GHz",
            slices=cores,
            cache={"size": "2MiB", "line": "64B", "ways": 16, "sectored": False},
        )
        channel = system.add("memory.dram", f"channel[{i}]", backend=backend)
        system.connect(crossbar.responders, slice_.requesters, "2ns")
        system.connect(slice_.memory, channel.requests, "5ns")
    return system


def rate(make: Callable[[], System], accesses: int, rounds: int, threads: int = 1) -> float:
    """Accesses per second of host time: the best of several rounds, for what a round loses, it loses to others."""
    return max(accesses / make().run(threads=threads).wall_seconds for _ in range(rounds))


def host_bytes_per_mib(*, classify: bool) -> float:
    """Host memory that one simulated MiB of shared cache takes."""
    process = psutil.Process()
    before = process.memory_info().rss
    system = System("large")
    system.add(
        "memory.cache",
        "cache",
        cache={"size": "256MiB", "line": "64B", "ways": 16, "classify_misses": classify},
    )
    taken = int(process.memory_info().rss) - int(before)
    del system
    return taken / 256


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All numbers of the benchmark, by name."""
    n = int(2_000_000 * scale)
    stride: dict[str, Any] = {"pattern": "stride", "stride": "64B"}
    numbers = {
        "l1_stream": rate(lambda: private(n, "16KiB", pattern="stream"), n, rounds),
        "l1_random": rate(lambda: private(n, "16KiB", pattern="random"), n, rounds),
        "l2_stream": rate(lambda: private(n, "128KiB", **stride), n, rounds),
        "dram_stream": rate(lambda: private(n, "64MiB", **stride), n, rounds),
        "shared_dram_stream": rate(lambda: shared(n // 4, "64MiB", "simple", **stride), n // 4, rounds),
        "shared_timing_dram_stream": rate(lambda: shared(n // 4, "64MiB", **stride), n // 4, rounds),
        "shared_timing_dram_random": rate(lambda: shared(n // 8, "64MiB", pattern="random"), n // 8, rounds),
    }
    triad = 3_000_000
    numbers["triad_accesses_per_second"] = rate(
        lambda: private(triad, "24MB", pattern="triad", window=16), triad, rounds
    )
    numbers["triad_seconds"] = triad / numbers["triad_accesses_per_second"]
    four = n // 4
    for threads in (1, 2):
        numbers[f"four_cores_{threads}_threads"] = rate(
            lambda: shared(four, "16MiB", cores=4, **stride), four, rounds, threads
        )
    numbers["threads_2"] = numbers["four_cores_2_threads"] / numbers["four_cores_1_threads"]
    numbers["host_bytes_per_simulated_mib"] = host_bytes_per_mib(classify=False)
    numbers["host_bytes_per_simulated_mib_with_causes"] = host_bytes_per_mib(classify=True)
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=5))
