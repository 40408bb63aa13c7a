# SPDX-License-Identifier: Apache-2.0
"""Strong scaling by tasks: tasks recorded on one core are scheduled on many; the program runs on as many threads.

    python strong_scaling.py [FOLDER] [--full] [--cores 1..16] [--only NAME [--size SIZE]]

As in the ElasticSimMATE article's section 5.2 (Figures 16 to 18, and 15 with one core), on the article's reference
system with as many cores as needed. The programs have the tasks of the article's Table 4: Black-Scholes has four at a
time and then a taskwait, 400 in all, swaptions 16 that are independent, a pipeline like ferret's 384; and a Cholesky
factorisation by blocks. Small sizes on 1 to 4 cores unless the full study is asked for: 1 to 16 cores, some minutes.
The article's inputs are larger than that: 16384 options of Black-Scholes, 10000 simulations of each swaption.
With a folder, all times are left there as a table, and speed-ups, times and what it took to simulate are drawn.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from functools import partial
from pathlib import Path

import polars as pl

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "elasticsimmate"
QUICK = {"ferret": 6, "cholesky_tasks": 48}
FULL = {"black_scholes_tasks": 512, "swaptions_tasks": 600, "ferret": 96, "cholesky_tasks": 192}
SCHEDULERS = ("fifo", "work_stealing", "locality", "critical_path")
# The article's own results: what follows from the tasks, mean errors, and how much faster it replays.
ARTICLE = {
    "black_scholes_tasks": "no faster on more than 4 cores; replays 9 times as fast as full simulation",
    "swaptions_tasks": "faster up to 16 cores, as many as tasks; 8 times as fast",
    "ferret": "26% off on average, the tendency is right; 5 times as fast",
}


def elastic(name: str, size: int, threads: int) -> cpu.Program:
    """One of the sample's programs."""
    return cpu.Program(cpu.sample("elastic"), [name, str(threads), str(size)])


def compare(name: str, size: int, cores: list[int], traces: Path) -> pl.DataFrame:
    """A row for each number of cores and each scheduling policy, and for each run of the program itself."""
    trace = traces / f"{name}.trace"
    made = cpu.record(elastic(name, size, 1), trace, machine=MACHINE, cores=1)
    studies = {"detailed": scaling.detailed(partial(elastic, name, size), cores, machine=MACHINE)}
    for scheduler in SCHEDULERS:
        studies[scheduler] = scaling.strong(trace, cores, scheduler=scheduler)
    for label, study in studies.items():
        shown = " ".join(f"{1e6 * point.seconds:9.1f}" for point in study.points)
        print(f"{name:20} {label:14} {shown} us on {', '.join(map(str, cores))} cores", flush=True)
    both = list(zip(studies["fifo"].points, studies["detailed"].points, strict=True))
    errors = [abs(replayed.seconds / executed.seconds - 1) for replayed, executed in both]
    faster = sum(executed.wall_seconds for _, executed in both) / sum(
        replayed.wall_seconds for replayed, _ in both
    )
    print(
        f"{name:20} {made.tasks} tasks, {made.instructions / 1e6:.1f} million instructions; off by "
        f"{sum(errors) / len(errors):.1%} on average, {max(errors):.1%} at most; replays {faster:.1f} times as fast"
    )
    if name in ARTICLE:
        print(f"{'':20} the article: {ARTICLE[name]}")
    tables = [
        study.table().with_columns(program=pl.lit(name), run=pl.lit(label))
        for label, study in studies.items()
    ]
    return pl.concat(tables, how="diagonal")


def draw(rows: pl.DataFrame, folder: Path) -> None:
    """What tasks in the order of their creation came to, beside the program itself."""
    quantities = {
        "speedup": ("speed-up", pl.col("speedup"), False),
        "time": ("us", pl.col("time") * 1e6, True),
        "simulation": ("s to simulate", pl.col("wall_seconds"), True),
    }
    shown = rows.filter(pl.col("run").is_in(["fifo", "detailed"]))
    for quantity, (unit, value, log_y) in quantities.items():
        lines: scaling.Lines = {}
        for (program, label), line in shown.group_by("program", "run", maintain_order=True):
            points = line.select(pl.col("cores").cast(float), value.alias("value")).rows()
            lines[f"{program}, {'executed' if label == 'detailed' else 'replayed'}"] = points
        chart = line_chart("Strong scaling of tasks", "cores", unit, lines, log_y=log_y)
        (folder / f"strong_{quantity}.svg").write_text(chart, encoding="utf-8")


def main() -> None:
    """Records, replays with each scheduler, runs in detail, and prints the results."""
    arguments = argparse.ArgumentParser(description="Strong scaling by tasks.")
    arguments.add_argument("folder", nargs="?", type=Path, help="where the table and the charts go")
    arguments.add_argument(
        "--full", action="store_true", help="as many tasks as in the article, on up to 16 cores"
    )
    arguments.add_argument("--quick", action="store_true", help="small sizes; as without --full")
    arguments.add_argument("--cores", help="such as 1..16 or 1,2,6")
    arguments.add_argument("--only", metavar="NAME", choices=sorted({*QUICK, *FULL}), help="one program")
    arguments.add_argument("--size", type=int, help="another size of it")
    given = arguments.parse_args()
    if given.size is not None and given.only is None:
        arguments.error("--size needs --only")
    full = given.full and not given.quick
    programs = FULL if full else QUICK
    cores = scaling.parse_counts(given.cores or ("1..16" if full else "1..4"))
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    tables: list[pl.DataFrame] = []
    with tempfile.TemporaryDirectory() as traces:
        for name, size in programs.items():
            if given.only not in (None, name):
                continue
            tables.append(compare(name, given.size or size, cores, Path(traces)))
            if given.folder is not None:
                rows = pl.concat(tables, how="diagonal")
                rows.write_csv(given.folder / "strong_scaling.csv")
                draw(rows, given.folder)
    ferret = pl.concat(tables, how="diagonal").filter(program="ferret", run="fifo")["speedup"].to_list()
    if ferret:
        growing = all(more > less for less, more in itertools.pairwise(ferret))
        print(f"ferret, fifo: faster on every doubling of cores: {'yes' if growing else 'no'}")


if __name__ == "__main__":
    main()
