# SPDX-License-Identifier: Apache-2.0
"""What a load costs at each level of a memory, against the sum of the latencies on its way.

One core follows a chain of addresses, each known only when the last one's data is there, over more and more memory.
"""

from manyscale import System

CYCLE = 0.5  # ns, at 2 GHz


def shortest_load(footprint: str, accesses: int) -> float:
    """The shortest load of a chase over the footprint, in ns."""
    system = System("ladder")
    core = system.add(
        "memory.generator",
        "core",
        pattern="chase",
        clock="2GHz",
        window=1,
        accesses=accesses,
        footprint=footprint,
        l1={"size": "32KiB", "ways": 8, "tag_latency": 1, "data_latency": 3},
        l2={"size": "256KiB", "ways": 8, "tag_latency": 3, "data_latency": 8},
    )
    cache = {
        "size": "2MiB",
        "line": "64B",
        "ways": 16,
        "sectored": False,
        "tag_latency": 10,
        "data_latency": 20,
    }
    shared = system.add("memory.cache", "shared", clock="2GHz", cache=cache)
    memory = system.add("memory.dram", "memory", backend="simple", latency="40ns", bandwidth="25.6GB/s")
    system.connect(core.memory, shared.requesters, latency="1ns")
    system.connect(shared.memory, memory.requests, latency="5ns")
    return system.run().value("core", "latency.min") / 1e6


lines = {"L1": 256, "L2": 2048, "shared cache": 16384}
way_to_shared = (1 + 3) * CYCLE + 2 * 1.0  # the tags of L1 and L2, and the link both ways
expected = {
    "L1": (1 + 3) * CYCLE,
    "L2": (1 + 3 + 8) * CYCLE,
    "shared cache": way_to_shared + (10 + 20) * CYCLE,
    "memory": way_to_shared + 10 * CYCLE + 2 * 5.0 + 40 + 64 / 25.6,  # and a line of 64 B at 25.6 GB/s
}
largest = 0.0
for level, nanoseconds in expected.items():
    # Once around brings the footprint into the level that holds it; the second time around finds it there. Memory is
    # what a first visit costs.
    count = lines.get(level, 100_000)
    simulated = shortest_load(f"{64 * count}B", 2 * count if level in lines else 1000)
    largest = max(largest, abs(simulated / nanoseconds - 1))
    print(f"{level:13} {simulated:6.2f} ns, expected {nanoseconds:6.2f} ns")
print(f"largest deviation: {100 * largest:.2f} %")
