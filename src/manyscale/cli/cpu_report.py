# SPDX-License-Identifier: Apache-2.0
"""What commands on processors print: a run in short, its CPI stack, caches, regions and hot lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.cli.console import simulated, tables
from manyscale.cli.listing import print_table
from manyscale.units import BANDWIDTH, COUNT, FREQUENCY, TIME, humanize

if TYPE_CHECKING:
    from manyscale.cpu import CpuResult, FunctionalResult

_FEMTOSECONDS = 10**15
_MOST_ROWS = 20
_MOST_REGIONS = 10
_LEAST_SHARE = 0.0005  # of a cause that is worth a line


def print_result(result: CpuResult, directory: Path) -> None:
    """The run in short, where the cycles of the cores went, and the caches."""
    wall = result.wall_seconds
    speed = humanize(round(result.instructions / wall), COUNT) if wall else "?"
    seconds = result.simulated_seconds
    moved = humanize(round(result.dram_bytes / seconds), BANDWIDTH) if seconds else "-"
    _print_facts(
        {
            "simulated": simulated(_time(seconds), wall, result.threads, f"{speed} instructions/s"),
            "cycles": f"{result.cycles:,} at {humanize(result.clock, FREQUENCY)}",
            "instructions": f"{result.instructions:,} on {_cores(result.cores)}, IPC {result.ipc:.2f}",
            "memory": f"{moved} between caches and DRAM",
            "exit code": str(result.exit_code),
            "directory": str(directory),
        }
    )
    _print_stack(result)
    print_table(
        "Caches",
        (
            "level",
            "caches",
            "accesses",
            "hit rate",
            "misses",
            "per 1000 instructions",
            "miss latency",
            "written back",
        ),
        [
            (
                row["level"],
                str(row["caches"]),
                f"{row['accesses']:,}",
                "-" if row["hit_rate"] is None else f"{row['hit_rate']:.2%}",
                f"{row['misses']:,}",
                "-" if row["mpki"] is None else f"{row['mpki']:.2f}",
                _time(row["miss_latency"]),
                f"{row['writebacks']:,}",
            )
            for row in result.caches.iter_rows(named=True)
        ],
    )


def print_functional(result: FunctionalResult, regions: bool) -> None:
    """A run without time in short."""
    wall = result.wall_seconds
    speed = humanize(round(result.instructions / wall), COUNT) if wall else "?"
    _print_facts(
        {
            "instructions": f"{result.instructions:,}",
            "exit code": str(result.exit_code),
            "executed": simulated("all", wall, None, f"{speed} instructions/s"),
        }
    )
    if regions:
        rows = result.regions.iter_rows(named=True)
        print_table(
            "Regions",
            ("region", "kind", "source", "thread", "visits", "instructions", "with inner"),
            [
                (
                    row["region"],
                    row["kind"],
                    row["source"],
                    str(row["thread"]),
                    f"{row['visits']:,}",
                    f"{row['instructions']:,}",
                    f"{row['inclusive_instructions']:,}",
                )
                for row in rows
            ],
        )


def print_regions(result: CpuResult, *, everything: bool = False) -> None:
    """Where the time of all threads went, by region; with `everything`, of each thread. Nothing if there are none."""
    import polars as pl

    if not (result.regions["kind"] != "").any():
        return
    keys = ["region", "kind", "source", *(["thread"] if everything else [])]
    sums = ("visits", "time", "inclusive_time", "instructions", *result.causes)
    table = (
        result.regions.with_columns(threads=pl.col("thread"))
        .group_by(keys, maintain_order=True)
        .agg(pl.col("threads").n_unique(), *(pl.col(name).sum() for name in sums))
        .sort(["time", "region"], descending=[True, False])
    )
    total = max(sum(table["time"]), 1e-30)
    who = "thread" if everything else "threads"
    shown = table if everything else table.head(_MOST_REGIONS)
    print_table(
        "Regions of each thread" if everything else "Regions, over all threads",
        ("region", "kind", "source", who, "visits", "time", "share", "with inner", "IPC", "most of it"),
        [
            (
                row["region"],
                row["kind"],
                row["source"],
                str(row[who]),
                f"{row['visits']:,}",
                _time(row["time"]),
                f"{row['time'] / total:.1%}",
                _time(row["inclusive_time"]),
                _ipc(row["instructions"], row, result.causes),
                _most(row, result.causes),
            )
            for row in shown.iter_rows(named=True)
        ],
    )


def print_hot_lines(result: CpuResult) -> None:
    """The lines of source that took the most cycles."""
    table = result.hot_lines
    total = max(sum(table["cycles"]), 1)
    print_table(
        "Hot lines",
        ("line", "function", "cycles", "share", "instructions", "most of it"),
        [
            (
                f"{Path(row['file']).name}:{row['line']}" if row["line"] else "-",
                row["function"] or "-",
                f"{row['cycles']:,}",
                f"{row['cycles'] / total:.1%}",
                f"{row['instructions']:,}",
                _most(row, [cause for cause in result.causes if cause in row]),
            )
            for row in table.head(_MOST_ROWS).iter_rows(named=True)
        ],
    )


def _print_stack(result: CpuResult) -> None:
    shown = {cause: share for cause, share in result.shares.items() if share >= _LEAST_SHARE}
    instructions = max(result.instructions, 1)
    cycles = sum(result.cpi_stack["cycles"])
    print_table(
        f"Where the cycles of {_cores(result.cores)} went",
        ("cause", "cycles per instruction", "share"),
        [
            (cause, f"{share * cycles / instructions:.3f}", f"{share:.1%}")
            for cause, share in sorted(shown.items(), key=lambda item: -item[1])
        ],
    )


def _print_facts(facts: dict[str, str]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        grid.add_row(name, Text(fact, overflow="fold"))
    tables().print(grid)


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else humanize(round(seconds * _FEMTOSECONDS), TIME)


def _ipc(instructions: int, row: dict[str, Any], causes: list[str]) -> str:
    cycles = sum(row[cause] for cause in causes)
    return f"{instructions / cycles:.2f}" if cycles else "-"


def _most(row: dict[str, Any], causes: list[str]) -> str:
    """The cause that took the most cycles, with its share."""
    cycles = sum(row[cause] for cause in causes)
    if not cycles:
        return "-"
    cause = max(causes, key=lambda name: row[name])
    return f"{cause} {row[cause] / cycles:.0%}"
