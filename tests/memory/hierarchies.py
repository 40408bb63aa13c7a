# SPDX-License-Identifier: Apache-2.0
"""Small memory hierarchies that several tests run."""

from __future__ import annotations

from typing import Any

import manyscale as ms
from manyscale.system.component import NativeComponent

L1 = {"size": "32KiB", "ways": 8, "tag_latency": 1, "data_latency": 3}
L2 = {"size": "256KiB", "ways": 8, "tag_latency": 3, "data_latency": 8}
SHARED = {"size": "2MiB", "line": "64B", "ways": 16, "sectored": False, "tag_latency": 10, "data_latency": 20}


def one_core(*, shared: dict[str, Any] | None = None, dram: dict[str, Any] | None = None, **core: Any) -> ms.System:
    """A core at 2 GHz, 1 ns, a shared cache at 2 GHz, 5 ns, memory with 40 ns and 25.6 GB/s."""
    system = ms.System("one core")
    given = {"clock": "2GHz", "l1": L1, "l2": L2, **core}
    generator = system.add("memory.generator", "core", **given)
    slice_ = system.add("memory.cache", "shared", clock="2GHz", cache={**SHARED, **(shared or {})})
    memory = {"backend": "simple", "latency": "40ns", "bandwidth": "25.6GB/s", **(dram or {})}
    channel = system.add("memory.dram", "channel", **memory)
    system.connect(generator.memory, slice_.requesters, "1ns")
    system.connect(slice_.memory, channel.requests, "5ns")
    return system


def coherent_cores(
    *,
    cores: int = 8,
    homes: int = 2,
    accesses: int = 2000,
    lines: int = 24,
    inclusive: bool = True,
    jitter: str = "0fs",
    reorder: bool = False,
    l2: str = "0B",
    seed: int = 3,
    **core: Any,
) -> tuple[ms.System, list[NativeComponent]]:
    """Cores with tiny caches that fight for a few lines: loads, stores and atomic additions, logged."""
    system = ms.System("coherent", seed=seed)
    given = {
        "pattern": "random",
        "footprint": f"{64 * lines}B",
        "window": 4,
        "writes": 0.3,
        "atomics": 0.1,
        "l1": {"size": "512B", "ways": 2, "outstanding_misses": 4},
        "l2": {"size": l2, "ways": 4, "outstanding_misses": 4},
        "writeback_buffer": 2,
        **core,
    }
    generators = [
        system.add(
            "memory.generator", f"core[{i}]", accesses=accesses, coherent=True, log=True, homes=homes, **given
        )
        for i in range(cores)
    ]
    crossbar = system.add("memory.crossbar", "crossbar", jitter=jitter, reorder=reorder)
    for generator in generators:
        system.connect(generator.memory, crossbar.requesters, "1ns")
    for i in range(homes):
        home = system.add(
            "memory.home", f"home[{i}]", inclusive=inclusive, keep_values=True, cache={"size": "512B", "ways": 2}
        )
        channel = system.add("memory.dram", f"channel[{i}]", backend="simple", keep_values=True)
        system.connect(crossbar.responders, home.requesters, "1ns")
        system.connect(home.memory, channel.requests, "5ns")
    return system, generators
