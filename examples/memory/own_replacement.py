# SPDX-License-Identifier: Apache-2.0
"""A replacement policy of one's own, in Python: the most recently used line leaves, which suits cyclic accesses.

A loop over slightly more memory than the cache holds misses always under LRU, since each line leaves just before it
is used again.
"""

from manyscale import System
from manyscale.plugins import register


@register("replacement policy", "mru", "The most recently used line leaves.")
class Mru:
    """Keeps the way that was used last of each set."""

    def __init__(self, sets, ways):
        self.last = [0] * sets

    def used(self, set, way):
        self.last[set] = way

    def filled(self, set, way):
        self.last[set] = way

    def victim(self, set, movable):
        return self.last[set] if self.last[set] in movable else movable[0]


def hit_share(policy: str) -> float:
    """The share of loads that hit in a cache of 32 KiB, in a loop over 40 KiB."""
    system = System("loop")
    core = system.add(
        "memory.generator",
        "core",
        pattern="stride",
        accesses=20_000,
        footprint="40KiB",
        l1={"size": "32KiB", "replacement": policy},
    )
    memory = system.add("memory.dram", "memory", backend="simple")
    system.connect(core.memory, memory.requests, latency="5ns")
    result = system.run()
    return result.value("core", "l1.hits") / 20_000


shares = {policy: hit_share(policy) for policy in ("lru", "srrip", "mru")}
for policy, share in shares.items():
    print(f"{policy:6} {share:6.1%} of the loads hit")
print(f"mru hits most often: {'yes' if max(shares, key=lambda policy: shares[policy]) == 'mru' else 'no'}")
