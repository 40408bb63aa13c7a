# SPDX-License-Identifier: Apache-2.0
"""Strong scaling by tasks: tasks recorded on one core are dealt to many, beside the program itself on as many threads.

    python strong_scaling.py [FOLDER [CORES]]

CORES such as 1..16 (1..4 if not stated), on the reference system of ElasticSimMATE with as many cores as needed. The
programs are a pipeline like PARSEC's ferret, and a Cholesky factorisation by blocks. With a
folder, the speed-ups are drawn there.
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
PROGRAMS = {"ferret": 6, "cholesky_tasks": 48}
SCHEDULERS = ("fifo", "work_stealing", "locality", "critical_path")


def main() -> None:
    """Records, replays with each scheduler, runs in detail, and says what came out."""
    cores = scaling.parse_counts(sys.argv[2] if len(sys.argv) > 2 else "1..4")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    lines: scaling.Lines = {}
    with tempfile.TemporaryDirectory() as traces:
        for name, size in PROGRAMS.items():
            trace = Path(traces) / f"{name}.trace"
            program = cpu.Program(cpu.sample("elastic"), [name, "1", str(size)])
            cpu.record(program, trace, machine=MACHINE, cores=1)
            detailed = [
                cpu.run(
                    cpu.Program(cpu.sample("elastic"), [name, str(count), str(size)]),
                    machine=MACHINE,
                    changes=[f"cpu.cores={max(count, 4)}"],
                    cores=count,
                ).simulated_seconds
                for count in cores
            ]
            shown = " ".join(f"{1e6 * seconds:8.1f}" for seconds in detailed)
            print(f"{name:15} {'detailed':14} {shown} us on {', '.join(map(str, cores))} cores")
            lines[f"{name}, detailed"] = [
                (float(count), detailed[0] / seconds) for count, seconds in zip(cores, detailed, strict=True)
            ]
            for scheduler in SCHEDULERS:
                study = scaling.strong(trace, cores, scheduler=scheduler)
                shown = " ".join(f"{1e6 * point.seconds:8.1f}" for point in study.points)
                print(f"{name:15} {scheduler:14} {shown} us")
                if scheduler == "fifo":
                    lines[name] = study.lines()["speedup"]["replayed"]
    speedups = [speedup for _, speedup in lines["ferret"]]
    growing = all(more > less for less, more in itertools.pairwise(speedups))
    print(f"ferret, fifo: faster on every doubling of cores: {'yes' if growing else 'no'}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("Strong scaling of tasks", "cores", "speed-up", lines)
        (folder / "strong_speedup.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
