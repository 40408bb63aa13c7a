# SPDX-License-Identifier: Apache-2.0
"""Weak scaling by replication: a program recorded on one core, replayed on many, each with a copy of it.

    python weak_scaling.py [FOLDER] [--full] [--cores 1..128] [--only NAME]

As in the ElasticSimMATE article's section 4.3.2 (Figures 9, 10 and 12), on its reference system with as many cores as
needed. Each program is replayed twice: with addresses of its own for the data of each copy, and without, as in the
article, where all copies touch the same data. Small sizes on 1 to 8 cores unless the full study is asked for, which
has the article's sizes and takes most of an hour: products of matrices of 16 to 512, hotspot, k-means and Black-Scholes
on up to 128 cores, the largest on fewer (`FULL` below). With a folder, all replays are left there as a table, and
times, efficiencies, misses and what each replay took to simulate are drawn.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "elasticsimmate"
SLOWER = 1.5  # times the time of one core: from there on a shared part is taken to be the limit


@dataclass(frozen=True)
class Case:
    """A program to be replicated."""

    name: str
    size: int
    cores: str
    group: str = ""  # the charts that it is drawn in
    functional: bool = False  # recorded without time, which is quicker

    @property
    def label(self) -> str:
        """What its lines are called."""
        return f"{self.name} {self.size}"


QUICK = [Case(name, size, "1..8") for name, size in (("matrix", 24), ("hotspot", 24), ("k_means", 128))]
QUICK += [Case("black_scholes", 64, "1..8")]
FULL = [Case("matrix", size, "1..128", "_small_matrices") for size in (16, 32, 64)]
FULL += [Case("hotspot", 48, "1..128", "_programs"), Case("k_means", 512, "1..128", "_programs")]
FULL += [Case("black_scholes", 512, "1..128", "_programs")]
FULL += [Case("matrix", 128, "1..128", "_large_matrices"), Case("matrix", 256, "1..16", "_large_matrices")]
FULL += [Case("matrix", 512, "1..2", "_large_matrices", functional=True)]


def replay(case: Case, cores: list[int], traces: Path) -> pl.DataFrame:
    """A row for each number of cores, with data of their own for copies and without."""
    trace = traces / f"{case.name}.{case.size}.trace"
    program = cpu.Program(cpu.sample("elastic"), [case.name, "1", str(case.size)])
    cpu.record(program, trace, machine=MACHINE, cores=1, functional=case.functional)
    tables = []
    for data in ("own", "same"):
        study = scaling.weak(trace, cores, offset=data == "own")
        first, last = study.points[0], study.points[-1]
        limit = next((point.cores for point in study.points if point.seconds > SLOWER * first.seconds), None)
        held_up = "never by half" if limit is None else f"by half from {limit} cores on"
        print(
            f"{case.label:18} {data:4} data {1e6 * first.seconds:9.1f} us on {first.cores} core, "
            f"{1e6 * last.seconds:9.1f} us on {last.cores:3}: efficiency {study.efficiency(last):.2f}, "
            f"{last.miss_rates['shared']:4.0%} misses in L2, memory gives "
            f"{last.dram_bytes / last.seconds / 1e9:4.1f} GB/s; slower {held_up}; {last.wall_seconds:.1f} s to replay",
            flush=True,
        )
        named = study.table().with_columns(
            program=pl.lit(case.label), group=pl.lit(case.group), data=pl.lit(data)
        )
        tables.append(named)
    return pl.concat(tables)


def draw(rows: pl.DataFrame, folder: Path) -> None:
    """A chart of each quantity for each group of programs."""
    quantities = {
        "time": ("us", pl.col("time") * 1e6, True),
        "efficiency": ("efficiency", pl.col("efficiency"), False),
        "misses": ("misses of accesses to L2", pl.col("shared_miss_rate"), False),
        "simulation": ("s to replay", pl.col("wall_seconds"), True),
    }
    for (group,), part in rows.group_by("group", maintain_order=True):
        for quantity, (unit, value, log_y) in quantities.items():
            lines: scaling.Lines = {}
            for (program, data), line in part.group_by("program", "data", maintain_order=True):
                points = line.select(pl.col("cores").cast(float), value.alias("value")).rows()
                lines[f"{program}, {data} data"] = points
            chart = line_chart("Weak scaling by replication", "cores", unit, lines, log_y=log_y)
            (folder / f"weak_{quantity}{group}.svg").write_text(chart, encoding="utf-8")


def main() -> None:
    """Records, replays and prints the results."""
    arguments = argparse.ArgumentParser(description="Weak scaling by replication.")
    arguments.add_argument("folder", nargs="?", type=Path, help="where the table and the charts go")
    arguments.add_argument("--full", action="store_true", help="the article's sizes, on up to 128 cores")
    arguments.add_argument("--quick", action="store_true", help="small sizes; as without --full")
    arguments.add_argument("--cores", help="such as 1..128 or 1,2,6, for all programs")
    arguments.add_argument("--only", metavar="NAME", help="one program, such as hotspot, or 'matrix 64'")
    given = arguments.parse_args()
    cases = FULL if given.full and not given.quick else QUICK
    cases = [case for case in cases if given.only in (None, case.name, case.label)]
    if not cases:
        arguments.error(f"there is no program {given.only}")
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    tables: list[pl.DataFrame] = []
    with tempfile.TemporaryDirectory() as traces:
        for case in cases:
            tables.append(replay(case, scaling.parse_counts(given.cores or case.cores), Path(traces)))
            if given.folder is not None:
                rows = pl.concat(tables, how="diagonal")
                rows.write_csv(given.folder / "weak_scaling.csv")
                draw(rows, given.folder)
    last = tables[0].filter(pl.col("cores") == pl.col("cores").max())
    own, same = (last.filter(data=data)["shared_miss_rate"][0] for data in ("own", "same"))
    print(
        "copies with data of their own miss more in L2 than copies on the same data: "
        f"{'yes' if own > same else 'no'}"
    )


if __name__ == "__main__":
    main()
