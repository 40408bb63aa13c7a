# SPDX-License-Identifier: Apache-2.0
"""Weak scaling by replication: a program recorded on one core, replayed on many, each with a copy of it.

    python weak_scaling.py [FOLDER [CORES]]

CORES such as 1..128 (1..8 if not stated). The machine is the reference system of ElasticSimMATE with as many cores as
needed. Each program is replayed twice: with addresses of its own for the data of each copy, and without, as in the
article (Figures 9 and 12), where all copies touch the same data. With a folder, times and miss rates are drawn there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

PROGRAMS = {"matrix": 24, "hotspot": 24, "k_means": 128, "black_scholes": 64}


def main() -> None:
    """Records, replays and says what came out."""
    cores = scaling.parse_counts(sys.argv[2] if len(sys.argv) > 2 else "1..8")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    times: scaling.Lines = {}
    misses: scaling.Lines = {}
    with tempfile.TemporaryDirectory() as traces:
        for name, size in PROGRAMS.items():
            trace = Path(traces) / f"{name}.trace"
            cpu.record(
                cpu.Program(cpu.sample("elastic"), [name, "1", str(size)]),
                trace,
                machine="elasticsimmate",
                cores=1,
            )
            for offset in (True, False):
                study = scaling.weak(trace, cores, offset=offset)
                label = f"{name}{'' if offset else ', same data'}"
                times[label] = study.lines()["time"]["time in us"]
                misses[label] = study.lines()["miss_rate"]["shared"]
                last = study.points[-1]
                print(
                    f"{label:26} {1e6 * study.points[0].seconds:7.1f} us on {cores[0]} core, "
                    f"{1e6 * last.seconds:8.1f} us on {last.cores}: efficiency {study.efficiency(last):.2f}, "
                    f"{last.miss_rates['shared']:.0%} of L2's accesses miss"
                )
    own, same = misses["matrix"][-1][1], misses["matrix, same data"][-1][1]
    print(
        "copies with data of their own miss more in L2 than copies on the same data: "
        f"{'yes' if own > same else 'no'}"
    )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("Weak scaling by replication", "cores", "us", times, log_y=True)
        (folder / "weak_time.svg").write_text(chart, encoding="utf-8")
        chart = line_chart("Weak scaling by replication", "cores", "misses of accesses to L2", misses)
        (folder / "weak_misses.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
