# SPDX-License-Identifier: Apache-2.0
"""One recording, many machines: times and misses over sizes of the second-level cache, replayed and in detail.

    python cache_sizes.py [FOLDER]

As in the ElasticSimMATE article (Figures 13 and 14), with a program that computes and one that waits for memory, on 4
cores. With a folder, both are drawn there.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "elasticsimmate"
PROGRAMS = {"k_means": 1024, "canneal": 4096}
KIBIBYTES = (64, 1024)


def ordered_alike(lines: scaling.Lines) -> bool:
    """Whether of two sizes the replays and the detailed runs prefer the same, where it matters by a percent."""
    for name in PROGRAMS:
        both = [
            (replayed, detailed)
            for (_, replayed), (_, detailed) in zip(
                lines[f"{name}, replayed"], lines[f"{name}, detailed"], strict=True
            )
        ]
        for one, other in itertools.combinations(both, 2):
            if abs(one[1] - other[1]) > 0.01 * one[1] and (one[0] < other[0]) != (one[1] < other[1]):
                return False
    return True


def main() -> None:
    """Records once, replays with each size, runs in detail, and says what came out."""
    lines: scaling.Lines = {}
    with tempfile.TemporaryDirectory() as traces:
        for name, size in PROGRAMS.items():
            program = cpu.Program(cpu.sample("elastic"), [name, "4", str(size)])
            trace = Path(traces) / f"{name}.trace"
            cpu.record(program, trace, machine=MACHINE, cores=4)
            study = scaling.vary(trace, {"l2.size": [f"{kibibytes}KiB" for kibibytes in KIBIBYTES]})
            lines[f"{name}, replayed"], lines[f"{name}, detailed"] = [], []
            for kibibytes, point in zip(KIBIBYTES, study.points, strict=True):
                change = f"memory.shared.cache.size={kibibytes}KiB"
                run = cpu.run(program, machine=MACHINE, changes=[change], cores=4)
                print(
                    f"{name:8} L2 of {kibibytes:4} KiB: replayed {1e6 * point.seconds:7.1f} us, "
                    f"{point.miss_rates['shared']:6.1%} misses; in detail {1e6 * run.simulated_seconds:7.1f} us, "
                    f"{1 - run.caches.filter(level='shared')['hit_rate'][0]:6.1%}"
                )
                lines[f"{name}, replayed"].append((float(kibibytes), 1e6 * point.seconds))
                lines[f"{name}, detailed"].append((float(kibibytes), 1e6 * run.simulated_seconds))
    print(f"the replays order the sizes as the detailed runs do: {'yes' if ordered_alike(lines) else 'no'}")
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("Time over the size of L2, 4 cores", "KiB", "us", lines)
        (folder / "cache_sizes.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
