# SPDX-License-Identifier: Apache-2.0
"""Small systems that several tests run, made for each run."""

from __future__ import annotations

from manyscale import System


def make_phold(
    *, components: int = 12, jobs: int = 20, latency: str = "300ps", seed: int = 1, cut_latency: str = "0fs"
) -> System:
    """PHOLD on a ring with chords."""
    system = System("phold", seed=seed, cut_latency=cut_latency)
    nodes = [
        system.add("synthetic.phold", f"node[{i}]", jobs=jobs, mean_delay="1ns") for i in range(components)
    ]
    for i in range(components):
        for distance in (1, 3):
            system.connect(nodes[i].peers, nodes[(i + distance) % components].peers, latency)
    return system


def make_ring(
    *,
    stages: int = 4,
    tokens: int = 1,
    slots: int = 4,
    hops: int = 20,
    latency: str = "2ns",
    clock: str = "1GHz",
) -> System:
    """Relays in a ring; `tokens` start at each."""
    system = System("ring")
    relays = [
        system.add("synthetic.relay", f"stage[{i}]", tokens=tokens, slots=slots, hops=hops, clock=clock)
        for i in range(stages)
    ]
    for i in range(stages):
        system.connect(relays[i].output, relays[(i + 1) % stages].input, latency)
    return system
