# SPDX-License-Identifier: Apache-2.0
"""The same statistics on 1, 2 and 4 threads.

PHOLD is the usual load for an event engine: jobs wander between components at random. Which of two jobs
arrives first decides which random number each gets, so a single pair of events in another order would change
everything after it. The three runs are compared to the bit.

    python phold.py [DIRECTORY]

The runs are left in the directory, or else in a temporary one that is removed.
"""

import sys
import tempfile
from pathlib import Path

from manyscale import System, compare, identical, load

COMPONENTS = 32


def make_system(seed: int) -> System:
    """Components in a circle, each linked to its next three neighbours on either side."""
    system = System("phold", seed=seed)
    nodes = [
        system.add("synthetic.phold", f"node[{i}]", jobs=16, mean_delay="2ns", remote=0.5)
        for i in range(COMPONENTS)
    ]
    for i, node in enumerate(nodes):
        for distance in (1, 2, 3):
            system.connect(node.peers, nodes[(i + distance) % COMPONENTS].peers, latency="1ns")
    return system


def main(folder: Path) -> None:
    runs = []
    for threads in (1, 2, 4):
        # A system is run once and then holds its end state, so each run gets its own.
        result = make_system(seed=7).run(until="1us", threads=threads, out=folder / f"threads-{threads}")
        received = result.stats.filter(statistic="received")["count"]
        print(
            f"threads {result.threads}: {result.events:,} events, {received.sum():,} jobs received, "
            f"busiest node {received.max():,}, idlest node {received.min():,}"
        )
        runs.append(load(folder / f"threads-{threads}"))
    same = all(identical(runs[0], other) for other in runs[1:])
    print(f"identical statistics on 1, 2 and 4 threads: {'yes' if same else 'NO'}")
    if not same:
        sys.exit(str(compare(runs[0], runs[-1])))

    # Another seed gives other numbers: what is the same above is not the same by accident.
    make_system(seed=8).run(until="1us", out=folder / "seed-8")
    changed = compare(runs[0], load(folder / "seed-8"))
    print(f"identical statistics with another seed: {'NO' if changed.height else 'yes'}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
