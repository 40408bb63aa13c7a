# SPDX-License-Identifier: Apache-2.0
"""What `manyscale cuda` prints and keeps of a program: its kernels, copies and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.cli.gpu_run_directory import COMPONENT, OPERATIONS_FILE, write_profiles
from manyscale.results.names import readable

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from manyscale.cuda import CopyRecord, CudaRun, LaunchRecord, Node
    from manyscale.results import RunWriter

KERNELS_FILE = "kernels.parquet"
COPIES_FILE = "copies.parquet"
CALLS_FILE = "calls.parquet"
NOTES_FILE = "notes.txt"
PTX_FOLDER = "ptx"

_SHOWN_KERNELS = 20
_WIDTH = 80
_NAME_WIDTH = 36
_SECOND = 10**15
_NANOSECOND = 10**6
_DIRECTIONS = {
    "to_device": "host to device",
    "to_host": "device to host",
    "within": "within a device",
    "fill": "fill",
}


# --- What is printed ---


def print_report(console: Console, run: CudaRun, directory: Path) -> None:
    """Tables of the kernels and copies, and the headline, on standard error."""
    if run.kernels:
        console.print()
        console.print(_kernel_table(run.kernels, timed=not run.node.options.functional))
    if run.copies:
        console.print()
        console.print(_copy_table(run.copies, timed=not run.node.options.functional))
    console.print()
    console.print(_facts(run, directory), markup=False)


def _groups(records: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def _kernel_table(kernels: Sequence[LaunchRecord], *, timed: bool) -> Table:
    """A row for each kernel, those that took longest first."""
    from rich.text import Text

    groups = _groups(kernels, lambda record: record.name)
    weight: Callable[[Any], int] = (
        (lambda record: record.end - record.begin) if timed else (lambda record: record.warp_instructions)
    )
    rows = sorted(
        ((sum(weight(record) for record in records), name, records) for name, records in groups.items()),
        key=lambda row: (-row[0], row[1]),
    )
    whole = sum(row[0] for row in rows) or 1
    table = _table(
        ("kernel", "left"),
        ("launches", "right"),
        *([("time", "right"), ("each", "right"), ("cycles", "right")] if timed else []),
        ("warp instr.", "right"),
        ("%", "right"),
    )
    for total, name, records in rows[:_SHOWN_KERNELS]:
        count = len(records)
        cells = [_shortened(readable(name)), f"{count:,}"]
        if timed:
            cycles = sum(record.cycles for record in records)
            cells += [_time(total), _time(total // count), f"{cycles // count:,}"]
        cells += [f"{sum(record.warp_instructions for record in records):,}", f"{100 * total / whole:.1f}"]
        table.add_row(*(Text(cell) for cell in cells))
    if len(rows) > _SHOWN_KERNELS:
        table.add_row(Text(f"… and {len(rows) - _SHOWN_KERNELS} more"))
    return table


def _copy_table(copies: Sequence[CopyRecord], *, timed: bool) -> Table:
    from rich.text import Text

    table = _table(
        ("copies", "left"),
        ("number", "right"),
        ("bytes", "right"),
        *([("time", "right"), ("rate", "right")] if timed else []),
    )
    groups = _groups(copies, lambda record: (record.kind, record.pageable))
    for (kind, pageable), records in sorted(groups.items()):
        host = kind in ("to_device", "to_host")
        words = _DIRECTIONS[kind] + (", pageable" if pageable else ", pinned" if host else "")
        size = sum(record.bytes for record in records)
        cells = [words, f"{len(records):,}", f"{size:,}"]
        if timed:
            total = sum(record.end - record.begin for record in records)
            cells += [_time(total), f"{size * 10**6 / total:.2f} GB/s" if total else "-"]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _table(*columns: tuple[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    return table


def _facts(run: CudaRun, directory: Path) -> str:
    options = run.node.options
    what = [f"exit code {run.exit_code}"]
    if not options.functional:
        what.append(f"{_time(run.simulated)} simulated")
    what += [f"{run.records.calls.count:,} calls", f"took {run.wall_seconds:.3g} s"]
    machine = run.node.machine.name or "the machine"
    gpus = f"{options.gpus} x {machine}" if options.gpus > 1 else machine
    return f"{gpus}: {', '.join(what)}; see {directory}"


def _time(femtoseconds: int) -> str:
    from manyscale.units import TIME, humanize

    return humanize(femtoseconds, TIME)


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


# --- What is kept ---


def report_data(run: CudaRun) -> dict[str, Any]:
    """The headline as data; see DESIGN.md for the keys that scripts rely on."""
    groups = _groups(run.copies, lambda record: record.kind)
    return {
        "kernels": [
            {
                "name": record.name,
                "grid": list(record.grid),
                "block": list(record.block),
                "device": record.device,
                "stream": record.stream,
                "cycles": record.cycles,
                "warp_instructions": record.warp_instructions,
                "thread_instructions": record.thread_instructions,
                "occupancy": record.occupancy,
                "registers": record.registers,
                "begin_seconds": record.begin / _SECOND,
                "end_seconds": record.end / _SECOND,
            }
            for record in run.kernels
        ],
        "copies": [
            {
                "kind": kind,
                "number": len(records),
                "bytes": sum(record.bytes for record in records),
                "seconds": sum(record.end - record.begin for record in records) / _SECOND,
            }
            for kind, records in groups.items()
        ],
        "total_cycles": sum(record.cycles for record in run.kernels),
        "simulated_seconds": run.simulated / _SECOND,
        "wall_seconds": run.wall_seconds,
        "calls": run.records.calls.count,
        "exit_code": run.exit_code,
        "notes": run.records.notes,
    }


def write_run(writer: RunWriter, run: CudaRun, *, partial: bool) -> None:
    """Keeps a run: the tables of kernels, copies and calls, the statistics, and the profile of each kernel."""
    from manyscale.cuda.headline import headline

    writer.write_table(KERNELS_FILE, _kernel_frame(run.kernels))
    writer.write_table(COPIES_FILE, _copy_frame(run.copies))
    writer.write_table(CALLS_FILE, run.records.calls.frame())
    for name, text in run.records.ptx.items():
        writer.write_file(f"{PTX_FOLDER}/{name}", text)
    if run.records.notes:
        writer.write_file(NOTES_FILE, ("\n".join(run.records.notes) + "\n").encode())
    columns = _statistics(run.node)
    _write_operations(writer, run.node)
    if partial:
        writer.partial(columns, headline(run))
        return
    writer.write_stats(columns)
    writer.finish(headline(run))


def _kernel_frame(kernels: Sequence[LaunchRecord]) -> pl.DataFrame:
    import polars as pl

    whole = ("device", "stream", "shared", "cycles", "warp_instructions", "thread_instructions")
    schema: dict[str, Any] = {
        "name": pl.String,
        **dict.fromkeys((*whole, "machine_instructions", "registers"), pl.Int64),
        **dict.fromkeys(("occupancy", "wall_seconds"), pl.Float64),
    }
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in kernels] for name in schema}
    columns["kernel"] = [readable(record.name) for record in kernels]
    extents: dict[str, Any] = {}
    for axis, letter in enumerate("xyz"):
        columns[f"grid_{letter}"] = [record.grid[axis] for record in kernels]
        columns[f"block_{letter}"] = [record.block[axis] for record in kernels]
        extents |= {f"grid_{letter}": pl.Int64, f"block_{letter}": pl.Int64}
    schema |= {"kernel": pl.String, **extents, **_time_columns()}
    return pl.DataFrame(columns | _times(kernels), schema=schema)


def _copy_frame(copies: Sequence[CopyRecord]) -> pl.DataFrame:
    import polars as pl

    schema: dict[str, Any] = {
        "kind": pl.String,
        **dict.fromkeys(("device", "stream", "bytes"), pl.Int64),
        "pageable": pl.Boolean,
    }
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in copies] for name in schema}
    return pl.DataFrame(columns | _times(copies), schema=schema | _time_columns())


def _times(records: Sequence[LaunchRecord] | Sequence[CopyRecord]) -> dict[str, list[Any]]:
    return {
        "begin_ns": [record.begin / _NANOSECOND for record in records],
        "end_ns": [record.end / _NANOSECOND for record in records],
    }


def _time_columns() -> dict[str, Any]:
    import polars as pl

    return dict.fromkeys(("begin_ns", "end_ns"), pl.Float64)


def _statistics(node: Node) -> dict[str, list[Any]]:
    """Those of the GPUs' components, then the metrics of the first launch of each kernel."""
    from manyscale.gpu import TimedDevice
    from manyscale.system.running import statistics_columns

    names = ("component", "statistic", "kind", "unit", "description", "scope", "key", "value")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    several = len(node.gpus) > 1
    for gpu in node.gpus:
        if not isinstance(gpu, TimedDevice):
            continue
        prefix = f"gpu[{gpu.number}]." if several else ""
        of_gpu = statistics_columns(gpu.parts.system)
        of_gpu["component"] = [prefix + component for component in of_gpu["component"]]
        for name in names:
            columns[name] += of_gpu[name]
        for kernel, profile in gpu.profiles.items():
            for metric in profile.metrics.values():
                if metric.value is None:
                    continue
                row = {
                    "component": prefix + COMPONENT,
                    "statistic": metric.name,
                    "kind": "counter" if isinstance(metric.value, int) else "gauge",
                    "unit": metric.unit,
                    "description": metric.doc,
                    "scope": kernel,
                    "key": None,
                    "value": metric.value,
                }
                for name, value in row.items():
                    columns[name].append(value)
    return columns


def _write_operations(writer: RunWriter, node: Node) -> None:
    import polars as pl

    tables = [
        profile.operations.select(pl.lit(kernel).alias("scope"), pl.all())
        for gpu in node.gpus
        for kernel, profile in gpu.profiles.items()
    ]
    if tables:
        writer.write_table(OPERATIONS_FILE, pl.concat(tables))
        write_profiles(
            writer, {kernel: profile for gpu in node.gpus for kernel, profile in gpu.profiles.items()}
        )
