# SPDX-License-Identifier: Apache-2.0
"""What false sharing costs: four cores add to counters of their own, in one line or in four.

The caches are coherent (MESI): a core must own a line to write it, so a shared line travels between the cores.
"""

from manyscale import System


def run(bytes_apart: int) -> tuple[float, int]:
    """Nanoseconds for each addition, and how often a core missed because another had taken its line."""
    system = System("counters")
    crossbar = system.add("memory.crossbar", "crossbar", clock="2GHz")
    for i in range(4):
        core = system.add(
            "memory.generator",
            f"core[{i}]",
            pattern="random",
            atomics=1.0,
            accesses=2000,
            footprint="32B",
            size="32B",
            base=f"{i * bytes_apart // 64 * 64}B",
            window=1,
            coherent=True,
        )
        system.connect(core.memory, crossbar.requesters, latency="1ns")
    home = system.add("memory.home", "home")
    memory = system.add("memory.dram", "memory", backend="simple")
    system.connect(crossbar.responders, home.requesters, latency="1ns")
    system.connect(home.memory, memory.requests, latency="5ns")
    result = system.run(threads=2)
    taken = sum(result.value(f"core[{i}]", "l1.misses_coherence") for i in range(4))
    return result.now / 1e6 / 2000, int(taken)


together, taken_together = run(bytes_apart=8)
apart, taken_apart = run(bytes_apart=64)
print(f"in one line:   {together:6.2f} ns for each addition, {taken_together} times the line was gone")
print(f"in four lines: {apart:6.2f} ns for each addition, {taken_apart} times the line was gone")
print(f"false sharing makes it {together / apart:.0f} times slower")
