# SPDX-License-Identifier: Apache-2.0
"""One recording, many machines: times and misses over sizes of the L2 cache, replayed and in detail.

    python cache_sizes.py [FOLDER] [--full]

As in the ElasticSimMATE article (Figures 13 and 14), with a program that computes and one that waits for memory: two
sizes on 4 cores, or with --full four sizes on 1, 2 and 4. With a folder, times and misses are drawn there.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "elasticsimmate"
PROGRAMS = {"k_means": 1024, "canneal": 4096}
QUICK = ((4,), (64, 1024))  # cores, KiB
FULL = ((1, 2, 4), (64, 256, 1024, 4096))


def ordered_alike(replayed: list[float], executed: list[float]) -> bool:
    """Whether of two sizes the replays and the detailed runs prefer the same, where it matters by a percent."""
    for (one, its), (other, others) in itertools.combinations(zip(replayed, executed, strict=True), 2):
        if abs(its - others) > 0.01 * its and (one < other) != (its < others):
            return False
    return True


def main() -> None:
    """Records once, replays with each size, runs in detail, and prints the results."""
    arguments = argparse.ArgumentParser(description="Times over sizes of the L2 cache.")
    arguments.add_argument("folder", nargs="?", type=Path, help="where the charts go")
    arguments.add_argument("--full", action="store_true", help="more sizes, on 1, 2 and 4 cores")
    arguments.add_argument("--quick", action="store_true", help="two sizes on 4 cores; as without --full")
    given = arguments.parse_args()
    counts, sizes = FULL if given.full and not given.quick else QUICK
    times: scaling.Lines = {}
    misses: scaling.Lines = {}
    alike = True
    with tempfile.TemporaryDirectory() as traces:
        for (name, size), cores in itertools.product(PROGRAMS.items(), counts):
            program = cpu.Program(cpu.sample("elastic"), [name, str(cores), str(size)])
            trace = Path(traces) / f"{name}.trace"
            cpu.record(program, trace, machine=MACHINE, cores=cores)
            study = scaling.vary(trace, {"l2.size": [f"{kibibytes}KiB" for kibibytes in sizes]})
            replayed = [(point.seconds, point.miss_rates["shared"]) for point in study.points]
            executed = []
            for kibibytes in sizes:
                change = f"memory.shared.cache.size={kibibytes}KiB"
                run = cpu.run(program, machine=MACHINE, changes=[change], cores=cores)
                executed.append((run.simulated_seconds, 1 - run.caches.filter(level="shared")["hit_rate"][0]))
            for kibibytes, (ours, our_misses), (theirs, their_misses) in zip(
                sizes, replayed, executed, strict=True
            ):
                print(
                    f"{name:8} {cores} cores, L2 of {kibibytes:4} KiB: replayed {1e6 * ours:7.1f} us, "
                    f"{our_misses:6.1%} misses; in detail {1e6 * theirs:7.1f} us, {their_misses:6.1%}",
                    flush=True,
                )
            alike &= ordered_alike([seconds for seconds, _ in replayed], [seconds for seconds, _ in executed])
            for label, points in (("replayed", replayed), ("detailed", executed)):
                line = f"{name}, {cores} cores, {label}"
                times[line] = [
                    (float(x), 1e6 * seconds) for x, (seconds, _) in zip(sizes, points, strict=True)
                ]
                misses[line] = [(float(x), rate) for x, (_, rate) in zip(sizes, points, strict=True)]
    print(f"the replays order the sizes as the detailed runs do: {'yes' if alike else 'no'}")
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("Time over the size of L2", "KiB", "us", times)
        (given.folder / "cache_sizes.svg").write_text(chart, encoding="utf-8")
        chart = line_chart("Misses over the size of L2", "KiB", "misses of accesses to L2", misses)
        (given.folder / "cache_misses.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
