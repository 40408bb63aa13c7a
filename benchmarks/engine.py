# SPDX-License-Identifier: Apache-2.0
"""How fast the event engine is, as ratios measured in one run.

Raw queue: the hold model (take the first event, put it back later) against std::priority_queue.
Whole engine: PHOLD on 1 thread against the raw queue at the same population, and on 2 threads against 1.
Every ratio is the median of several rounds in which both sides take turns, since machines are noisy.
"""

from __future__ import annotations

import statistics
import sys

from manyscale import System, _core
from support.reporting import run_benchmark

POPULATIONS = (1_000, 100_000, 1_000_000)
TARGETS = {
    "queue_1e5": 1.5,
    "queue_1e6": 2.0,
    "engine_to_queue_1e3": 0.6,
    "engine_to_queue_1e5": 0.6,
    "engine_to_queue_1e6": 0.6,
    "threads_2": 1.6,
}

COMPONENTS = 64
MEAN_DELAY_FS = 10**9  # 1 us
EVENTS_PER_WINDOW = 100  # per partition, on two threads


def phold(population: int, events: int, threads: int) -> tuple[float, int]:
    """Events per second of PHOLD through the whole engine, and how many there were."""
    # A hop takes the latency L and a mean of 1 us besides, so a window of L holds population x L / (L + 1 us)
    # events; the latency that makes it 100 for each of two partitions:
    share = 2 * EVENTS_PER_WINDOW / population
    latency_fs = round(MEAN_DELAY_FS * share / (1 - share)) if share < 0.5 else MEAN_DELAY_FS
    system = System("phold", seed=1)
    nodes = [
        system.add(
            "synthetic.phold",
            f"node[{i}]",
            jobs=population // COMPONENTS,
            mean_delay=f"{MEAN_DELAY_FS}fs",
            remote=0.5,
        )
        for i in range(COMPONENTS)
    ]
    for i, node in enumerate(nodes):
        for distance in (1, 2, 3):
            system.connect(node.peers, nodes[(i + distance) % COMPONENTS].peers, f"{latency_fs}fs")
    mean_hop = MEAN_DELAY_FS + latency_fs / 2
    system.run(until=f"{MEAN_DELAY_FS // 10}fs", threads=threads)  # start-up is not measured
    limit = system.simulation.now + round(events / population * mean_hop)
    result = system.run(until=f"{limit}fs", threads=threads)
    return result.events / result.wall_seconds, result.events


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All numbers of the benchmark, by name."""
    numbers: dict[str, float] = {}
    for population in POPULATIONS:
        name = f"1e{len(str(population)) - 1}"
        holds = int(max(2_000_000, population) * scale)
        ours, std, memory = [], [], 0.0
        for _ in range(rounds):
            std.append(_core.run_hold("std", population, holds)["holds_per_second"])
            result = _core.run_hold("radix", population, holds)
            ours.append(result["holds_per_second"])
            memory = result["bytes_per_event"]
        numbers[f"std_holds_per_second_{name}"] = statistics.median(std)
        numbers[f"queue_holds_per_second_{name}"] = statistics.median(ours)
        numbers[f"queue_{name}"] = statistics.median(a / b for a, b in zip(ours, std, strict=True))
        numbers[f"bytes_per_pending_event_{name}"] = memory
    for population in POPULATIONS:
        name = f"1e{len(str(population)) - 1}"
        ratios, rates = [], []
        events = int(max(2_000_000, population) * scale)
        for _ in range(rounds):
            raw = _core.run_hold("radix", population, events)["holds_per_second"]
            rate, _ = phold(population, events, 1)
            ratios.append(rate / raw)
            rates.append(rate)
        numbers[f"engine_events_per_second_{name}"] = statistics.median(rates)
        numbers[f"engine_to_queue_{name}"] = statistics.median(ratios)
    speedups = []
    for _ in range(rounds):
        one, _ = phold(100_000, int(4_000_000 * scale), 1)
        two, _ = phold(100_000, int(4_000_000 * scale), 2)
        speedups.append(two / one)
    numbers["threads_2"] = statistics.median(speedups)
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=5))
