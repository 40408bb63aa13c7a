# SPDX-License-Identifier: Apache-2.0
"""Speed-ups of tasks on the machine of ElasticSimMATE's Table 5, a model of the Dibona prototype (ThunderX2).

    python dibona.py [FOLDER] [--full] [--cores 1..16] [--only NAME]

As in the article's Figures 19 and 20: tasks are recorded on one core and scheduled on more; speed-ups are compared.
There the reference is the prototype itself; here it is the program on as many threads of the same simulated machine.
Black-Scholes, swaptions, a pipeline like ferret's and hydrodynamics like LULESH's with a task for each chunk of a loop.
Small sizes on 1 to 4 cores unless the full study is asked for: 1 to 16 cores, some minutes. With a folder, the
speed-ups are drawn there.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "dibona"
QUICK = {"ferret": 6, "matrix_tasks": 32}
FULL = {"black_scholes_tasks": 512, "swaptions_tasks": 300, "ferret": 96, "hydrodynamics_tasks": 24}
FULL |= {"matrix_tasks": 32}


def elastic(name: str, size: int, threads: int) -> cpu.Program:
    """One of the sample's programs."""
    return cpu.Program(cpu.sample("elastic"), [name, str(threads), str(size)])


def main() -> None:
    """Records, replays, runs in detail, and prints how far the speed-ups are apart."""
    arguments = argparse.ArgumentParser(description="Speed-ups of tasks on a model of Dibona.")
    arguments.add_argument("folder", nargs="?", type=Path, help="where the chart goes")
    arguments.add_argument("--full", action="store_true", help="all programs, on up to 16 cores")
    arguments.add_argument("--quick", action="store_true", help="two small programs; as without --full")
    arguments.add_argument("--cores", help="such as 1..16 or 1,2,6")
    arguments.add_argument("--only", metavar="NAME", choices=sorted({*QUICK, *FULL}), help="one program")
    given = arguments.parse_args()
    full = given.full and not given.quick
    cores = scaling.parse_counts(given.cores or ("1..16" if full else "1..4"))
    lines: scaling.Lines = {}
    all_errors = []
    with tempfile.TemporaryDirectory() as traces:
        for name, size in (FULL if full else QUICK).items():
            if given.only not in (None, name):
                continue
            trace = Path(traces) / f"{name}.trace"
            cpu.record(elastic(name, size, 1), trace, machine=MACHINE, cores=1)
            replayed = scaling.strong(trace, cores)
            executed = scaling.detailed(partial(elastic, name, size), cores, machine=MACHINE)
            both = {"replayed": replayed, "executed": executed}
            for label, study in both.items():
                lines[f"{name}, {label}"] = study.lines()["speedup"]["replayed"]
                shown = " ".join(f"{speedup:6.2f}" for _, speedup in lines[f"{name}, {label}"])
                print(
                    f"{name:20} {label:9} {shown} times as fast on {', '.join(map(str, cores))} cores",
                    flush=True,
                )
            pairs = zip(lines[f"{name}, replayed"], lines[f"{name}, executed"], strict=True)
            errors = [abs(one / other - 1) for (_, one), (_, other) in pairs]
            print(
                f"{name:20} differ by {sum(errors) / len(errors):.1%} on average, {max(errors):.1%} at most"
            )
            all_errors += errors
    print(
        f"speed-ups differ by {sum(all_errors) / len(all_errors):.1%} on average, {max(all_errors):.1%} at most"
    )
    print(
        "the article, replays beside the prototype: below 5% on average, 15% at most; LULESH on 16 cores more"
    )
    if given.only is None:
        more = all(
            lines[f"ferret, {label}"][-1][1] > lines[f"matrix_tasks, {label}"][-1][1]
            for label in ("replayed", "executed")
        )
        print(
            f"the pipeline gains more than the small product, replayed and in detail: {'yes' if more else 'no'}"
        )
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("Tasks on a model of Dibona", "cores", "speed-up", lines)
        (given.folder / "dibona_speedup.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
