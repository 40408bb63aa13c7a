# SPDX-License-Identifier: Apache-2.0
"""Products of matrices replayed and executed, beside the ElasticSimMATE article's Table 3 and Figure 8.

    python matrix_sizes.py [FOLDER] [--full]

Matrices of 16 and 32 on 1, 2 and 4 cores unless the full table is asked for: 16 to 256 there, and 512 on 4 cores. The
article's times include the start of Linux and of the program, about 100 ms, while here the program runs alone: so
errors compare, and times do not. With a folder, the table is left there, and errors and speeds are drawn.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import polars as pl

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.results.line_chart import line_chart

MACHINE = "elasticsimmate"
# Their Table 3: milliseconds of full-system gem5 and of a replay, by size and cores.
ARTICLE = {
    (16, 1): (115.61, 98.72),
    (16, 2): (99.36, 102.15),
    (16, 4): (105.75, 106.79),
    (32, 1): (116.83, 99.77),
    (32, 2): (100.19, 102.82),
    (32, 4): (106.25, 107.46),
    (64, 1): (126.34, 109.31),
    (64, 2): (106.84, 106.58),
    (64, 4): (110.43, 109.42),
    (128, 1): (225.39, 183.92),
    (128, 2): (159.96, 142.41),
    (128, 4): (132.67, 127.47),
}
QUICK = [case for case in ARTICLE if case[0] <= 32]
FULL = [*ARTICLE, (256, 1), (256, 2), (256, 4), (512, 4)]


def compare(size: int, cores: int, traces: Path) -> dict[str, float | None]:
    """One row: the product of so large matrices on so many cores."""
    trace = traces / "matrix.trace"
    program = cpu.Program(cpu.sample("elastic"), ["matrix", str(cores), str(size)])
    cpu.record(program, trace, machine=MACHINE, cores=cores, force=True)
    replayed = cpu.replay(trace)
    executed = cpu.run(program, machine=MACHINE, cores=cores)
    full_system, theirs = ARTICLE.get((size, cores), (None, None))
    return {
        "size": size,
        "cores": cores,
        "executed_us": 1e6 * executed.simulated_seconds,
        "replayed_us": 1e6 * replayed.simulated_seconds,
        "error": replayed.simulated_seconds / executed.simulated_seconds - 1,
        "times_as_fast": executed.wall_seconds / replayed.wall_seconds,
        "article_full_system_ms": full_system,
        "article_replayed_ms": theirs,
        "article_error": None if full_system is None or theirs is None else theirs / full_system - 1,
    }


def draw(rows: pl.DataFrame, folder: Path) -> None:
    """Errors over sizes beside the article's, and how much faster than executing it is to replay."""
    errors: scaling.Lines = {}
    speeds: scaling.Lines = {}
    for (cores,), part in rows.group_by("cores", maintain_order=True):
        on = f"{cores} core{'s' if cores != 1 else ''}"
        for label, column, lines, factor in (
            (on, "error", errors, 100.0),
            (f"{on}, the article", "article_error", errors, 100.0),
            (on, "times_as_fast", speeds, 1.0),
        ):
            known = part.drop_nulls(column)
            points = known.select(pl.col("size").cast(float), factor * pl.col(column).abs()).rows()
            if points:
                lines[label] = points
    for name, unit, drawn in (("error", "% of the time", errors), ("speed", "times as fast", speeds)):
        chart = line_chart("Products of matrices, replayed", "size", unit, drawn)
        (folder / f"matrix_{name}.svg").write_text(chart, encoding="utf-8")


def main() -> None:
    """Records, replays, executes, and prints the results."""
    arguments = argparse.ArgumentParser(description="Products of matrices, replayed and executed.")
    arguments.add_argument("folder", nargs="?", type=Path, help="where the table and the charts go")
    arguments.add_argument("--full", action="store_true", help="all sizes of the article, 256 and 512")
    arguments.add_argument("--quick", action="store_true", help="16 and 32 only; as without --full")
    given = arguments.parse_args()
    rows = []
    print("size cores   executed   replayed  error (the article)  times as fast")
    with tempfile.TemporaryDirectory() as traces:
        for size, cores in FULL if given.full and not given.quick else QUICK:
            row = compare(size, cores, Path(traces))
            theirs = "" if row["article_error"] is None else f"({row['article_error']:+.1%})"
            print(
                f"{size:4} {cores:5} {row['executed_us']:7.1f} us {row['replayed_us']:7.1f} us {row['error']:+6.1%} "
                f"{theirs:13} {row['times_as_fast']:14.1f}",
                flush=True,
            )
            rows.append(row)
    table = pl.DataFrame(rows)
    largest = table["error"].abs().max()
    print(
        f"no product is off by more than 8%: {'yes' if isinstance(largest, float) and largest <= 0.08 else 'no'}"
    )
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        table.write_csv(given.folder / "matrix_sizes.csv")
        draw(table, given.folder)


if __name__ == "__main__":
    main()
