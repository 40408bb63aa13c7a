# SPDX-License-Identifier: Apache-2.0
"""A prefetcher of one's own, in Python: it fetches the next lines after a miss.

The class registers itself under a name, which is then a value of `prefetcher.kind` like any other.
"""

from manyscale import System
from manyscale.plugins import register


@register("prefetcher", "after_miss", "Fetches the lines that follow a miss.")
class AfterMiss:
    """Keeps no state: the lines that follow the one that missed."""

    def __init__(self, spec):
        self.line, self.degree = spec["line_size"], spec["degree"]

    def observe(self, address, id, hit):
        return [] if hit else [address + step * self.line for step in range(1, self.degree + 1)]


def run(prefetcher: str) -> tuple[float, int]:
    """Nanoseconds for each load of a walk through memory, and how many lines were prefetched."""
    system = System("walk")
    core = system.add(
        "memory.generator",
        "core",
        pattern="stride",
        accesses=2000,
        footprint="1MiB",
        window=1,
        prefetcher={"kind": prefetcher, "degree": 2},
    )
    memory = system.add("memory.dram", "memory", backend="simple")
    system.connect(core.memory, memory.requests, latency="5ns")
    result = system.run()
    return result.now / 1e6 / 2000, int(result.value("core", "prefetcher.issued"))


for kind in ("none", "next_line", "after_miss"):
    time, lines = run(kind)
    print(f"{kind:10} {time:6.2f} ns for each load, {lines} lines prefetched")
print(f"after_miss is faster than none: {'yes' if run('after_miss')[0] < run('none')[0] else 'no'}")
