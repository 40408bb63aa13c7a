# SPDX-License-Identifier: Apache-2.0
"""Speed-ups of tasks on the machine of ElasticSimMATE's Table 5, a model of the Dibona prototype (ThunderX2).

    python dibona.py [FOLDER [CORES]]

As in the article's Figures 19 and 20: tasks are recorded on one core and dealt to more, and the speed-up is compared.
There the reference is the prototype itself; here it is the program on as many threads of the same simulated machine.
The programs of the sample that have tasks stand for the article's; CORES such as 1..16 (1..4 if not stated). With a
folder, the speed-ups are drawn there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "dibona"
PROGRAMS = {"ferret": 6, "matrix_tasks": 32}


def main() -> None:
    """Records, deals, runs in detail, and says how far the speed-ups are apart."""
    cores = scaling.parse_counts(sys.argv[2] if len(sys.argv) > 2 else "1..4")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    lines: scaling.Lines = {}
    errors = []
    with tempfile.TemporaryDirectory() as traces:
        for name, size in PROGRAMS.items():
            trace = Path(traces) / f"{name}.trace"
            program = cpu.Program(cpu.sample("elastic"), [name, "1", str(size)])
            cpu.record(program, trace, machine=MACHINE, cores=1)
            study = scaling.strong(trace, cores)
            replayed = [study.points[0].seconds / point.seconds for point in study.points]
            times = [
                cpu.run(
                    cpu.Program(cpu.sample("elastic"), [name, str(count), str(size)]),
                    machine=MACHINE,
                    cores=count,
                ).simulated_seconds
                for count in cores
            ]
            detailed = [times[0] / seconds for seconds in times]
            for label, speedups in (("replayed", replayed), ("detailed", detailed)):
                shown = " ".join(f"{speedup:6.2f}" for speedup in speedups)
                print(f"{name:14} {label:9} {shown} times as fast on {', '.join(map(str, cores))} cores")
                lines[f"{name}, {label}"] = [
                    (float(count), speedup) for count, speedup in zip(cores, speedups, strict=True)
                ]
            errors += [abs(one / other - 1) for one, other in zip(replayed, detailed, strict=True)]
    print(f"speed-ups differ by {sum(errors) / len(errors):.1%} on average, {max(errors):.1%} at most")
    more = all(
        lines[f"ferret, {label}"][-1][1] > lines[f"matrix_tasks, {label}"][-1][1]
        for label in ("replayed", "detailed")
    )
    print(
        f"the pipeline gains more than the small product, replayed and in detail: {'yes' if more else 'no'}"
    )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("Tasks on a model of Dibona", "cores", "speed-up", lines)
        (folder / "dibona_speedup.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
