# SPDX-License-Identifier: Apache-2.0
"""Small memory hierarchies that several tests run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import manyscale as ms
from manyscale import _core
from manyscale.system.component import NativeComponent
from manyscale.system.running import Result

LOAD, STORE, ATOMIC = 0, 1, 2
NONE = {"size": "0B"}  # a level that is not there
NANOSECOND = 10**6  # in femtoseconds

L1 = {"size": "32KiB", "ways": 8, "tag_latency": 1, "data_latency": 3}
L2 = {"size": "256KiB", "ways": 8, "tag_latency": 3, "data_latency": 8}
SHARED = {"size": "2MiB", "line": "64B", "ways": 16, "sectored": False, "tag_latency": 10, "data_latency": 20}
RECORD = np.dtype([("time", "<i8"), ("address", "<u8"), ("value", "<u8"), ("kind", "<u8")])


def one_core(
    *,
    shared: dict[str, Any] | None = None,
    slices: dict[str, Any] | None = None,
    dram: dict[str, Any] | None = None,
    links: tuple[str, str] = ("1ns", "5ns"),
    **core: Any,
) -> ms.System:
    """A core at 2 GHz, 1 ns, a shared cache at 2 GHz, 5 ns, memory with 40 ns and 25.6 GB/s.

    `shared` changes the lines of the shared cache, `slices` its other parameters.
    """
    system = ms.System("one core")
    given = {"clock": "2GHz", "l1": L1, "l2": L2, **core}
    generator = system.add("memory.generator", "core", **given)
    cache = {**SHARED, **(shared or {})}
    slice_ = system.add("memory.cache", "shared", **{"clock": "2GHz", **(slices or {}), "cache": cache})
    memory = {"backend": "simple", "latency": "40ns", "bandwidth": "25.6GB/s", **(dram or {})}
    channel = system.add("memory.dram", "channel", **memory)
    system.connect(generator.memory, slice_.requesters, links[0])
    system.connect(slice_.memory, channel.requests, links[1])
    return system


def run_trace(
    addresses: Iterable[int], kinds: Iterable[int] | int = LOAD, size: int = 8, **core: Any
) -> Result:
    """What `one_core` makes of these accesses, one at a time unless a window is given."""
    return trace_system(addresses, kinds, size, **core).run()


def trace_system(
    addresses: Iterable[int], kinds: Iterable[int] | int = LOAD, size: int = 8, **core: Any
) -> ms.System:
    """`one_core` with a trace: a record is an address, then the kind of access and, in the upper half, its bytes."""
    system = one_core(**{"pattern": "trace", "window": 1, **core})
    set_trace(system.components["core"], addresses, kinds, size)
    return system


def set_trace(
    core: NativeComponent, addresses: Iterable[int], kinds: Iterable[int] | int = LOAD, size: int = 8
) -> None:
    """Gives a generator its trace."""
    where = np.asarray(addresses if isinstance(addresses, np.ndarray) else list(addresses), dtype=np.uint64)
    what = np.broadcast_to(np.asarray(kinds, dtype=np.uint64), where.shape)
    _core.set_trace(core.native, np.stack([where, what | np.uint64(size << 32)], axis=1).tobytes())


def accesses_of(system: ms.System) -> np.ndarray:
    """Runs and returns the log."""
    system.run()
    return np.frombuffer(_core.take_log(system.components["core"].native), RECORD)


def translated(**changes: Any) -> dict[str, Any]:
    """Addresses are virtual; one set of all entries, so that no two pages meet."""
    translation = {"enabled": True, "l1": {"entries": 16, "ways": 0}, "l2": {"entries": 64, "ways": 0}}
    return {"translation": {**translation, **changes}}


def numbers(result: Result, component: str) -> dict[str, int | float]:
    """A component's statistics that are one number each."""
    columns = result.columns
    rows = zip(columns["component"], columns["statistic"], columns["value"], strict=True)
    return {name: value for owner, name, value in rows if owner == component}


def misses(statistics: dict[str, int | float], prefix: str = "") -> int | float:
    """Misses of all causes."""
    return sum(
        statistics[f"{prefix}misses_{cause}"] for cause in ("cold", "capacity", "conflict", "coherence")
    )


def period(clock: int) -> int:
    """Of a clock, in whole femtoseconds."""
    return (10**15 + clock // 2) // clock


def transfer(size: int, bandwidth: int) -> int:
    """Time on a bus, in whole femtoseconds."""
    return (size * 10**15 + bandwidth // 2) // bandwidth


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
            "memory.home",
            f"home[{i}]",
            inclusive=inclusive,
            keep_values=True,
            cache={"size": "512B", "ways": 2},
        )
        channel = system.add("memory.dram", f"channel[{i}]", backend="simple", keep_values=True)
        system.connect(crossbar.responders, home.requesters, "1ns")
        system.connect(home.memory, channel.requests, "5ns")
    return system, generators
