# SPDX-License-Identifier: Apache-2.0
"""The tables that `manyscale cuda` prints: kernels, copies and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.cli.console import simulated
from manyscale.results.names import readable, short

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from manyscale.cuda import CopyRecord, CudaRun, LaunchRecord
    from manyscale.gpu import KernelProfile

_SHOWN_KERNELS = 20
_SHOWN_LIMITS = 3
_WIDTH = 80
_NO_CALL = (
    "The program made no CUDA call. If it should have: did it end before, or does it load CUDA by a path of its own? "
    "`manyscale check PROGRAM` says how it is linked."
)
_NAME_WIDTH = 36
_SECOND = 10**15
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
    if run.records.ranges:
        console.print()
        console.print(_range_table(run, timed=not run.node.options.functional))
    for name, profile in _longest_profiles(run)[:_SHOWN_LIMITS]:
        console.print()
        console.print(f"{short(readable(name))}: {profile.limit}", markup=False, highlight=False)
    if run.copies:
        console.print()
        console.print(_copy_table(run.copies, timed=not run.node.options.functional))
    console.print()
    if not run.records.calls.count:
        console.print(_NO_CALL, markup=False)
    if note := run.code["note"]:
        console.print(f"{note}.", markup=False, highlight=False)
    console.print(_facts(run, directory), markup=False)


def _longest_profiles(run: CudaRun) -> list[tuple[str, KernelProfile]]:
    """Kernels with the profile of their first launch, those that took longest together first."""
    totals: dict[str, int] = {}
    for record in run.kernels:
        totals[record.name] = totals.get(record.name, 0) + record.end - record.begin
    found = {name: profile for gpu in run.node.gpus for name, profile in gpu.profiles.items()}
    return sorted(found.items(), key=lambda item: (-totals.get(item[0], 0), item[0]))


def _groups(records: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def _kernel_table(kernels: Sequence[LaunchRecord], *, timed: bool) -> Table:
    """A row for each kernel, those that took longest first."""
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
        (f"{_isas(kernels)} warp instr.", "right"),
        ("%", "right"),
    )
    for total, name, records in rows[:_SHOWN_KERNELS]:
        count = len(records)
        cells = [_shortened(readable(name)), f"{count:,}"]
        if timed:
            cycles = sum(record.cycles for record in records)
            cells += [_time(total), _time(total // count), f"{cycles // count:,}"]
        cells += [f"{sum(record.warp_instructions for record in records):,}", f"{100 * total / whole:.1f}"]
        _add_row(table, cells)
    if len(rows) > _SHOWN_KERNELS:
        _add_row(table, [f"… and {len(rows) - _SHOWN_KERNELS} more"])
    return table


def _range_table(run: CudaRun, *, timed: bool) -> Table:
    """A row for each name of NVTX ranges, those with most time of their own first."""
    from manyscale.cuda.run_directory import ranges_of

    found = ranges_of(run)
    rows = found.by_name()
    whole = (sum(row.own_nanoseconds for row in rows) + found.outside) or 1.0
    table = _table(
        ("operator or range", "left"),
        ("number", "right"),
        ("launches", "right"),
        *([("own time", "right"), ("with inner", "right"), ("own %", "right")] if timed else []),
    )
    for row in rows[:_SHOWN_KERNELS]:
        cells = [_shortened(row.name), f"{len(row.instances):,}", f"{row.launches:,}"]
        if timed:
            cells += [_time(round(ns * 10**6)) for ns in (row.own_nanoseconds, row.nanoseconds)]
            cells.append(f"{100 * row.own_nanoseconds / whole:.1f}")
        _add_row(table, cells)
    if len(rows) > _SHOWN_KERNELS:
        _add_row(table, [f"… and {len(rows) - _SHOWN_KERNELS} more"])
    return table


def _isas(kernels: Sequence[LaunchRecord]) -> str:
    """The ISA of the counted instructions: PTX, SASS, or both where kernels differ."""
    return "+".join(sorted({record.isa.upper() for record in kernels}))


def _copy_table(copies: Sequence[CopyRecord], *, timed: bool) -> Table:
    table = _table(
        ("copies", "left"),
        ("number", "right"),
        ("bytes", "right"),
        *([(name, "right") for name in ("time", "rate", "at L2", "at DRAM")] if timed else []),
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
            cells += [
                f"{sum(getattr(record, name) for record in records):,}" for name in ("l2_bytes", "dram_bytes")
            ]
        _add_row(table, cells)
    return table


def _table(*columns: tuple[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for name, justify in columns:  # only the first becomes narrow, since names can be cut and numbers cannot
        table.add_column(name, justify=justify, no_wrap=bool(table.columns))  # type: ignore[arg-type]
    return table


def _add_row(table: Table, cells: Sequence[str]) -> None:
    """Cells in one line each; the first is cut where there is no room."""
    from rich.text import Text

    table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells))


def _facts(run: CudaRun, directory: Path) -> str:
    options = run.node.options
    what = [f"exit code {run.exit_code}"]
    time = "executed" if options.functional else f"simulated {_time(run.simulated)}"
    if run.node.selection.untimed:
        what.append(f"{run.node.selection.untimed:,} launches executed without time")
    what += [simulated(time, run.wall_seconds), f"{run.records.calls.count:,} calls"]
    machine = run.node.machine.name or "the machine"
    gpus = f"{options.gpus} x {machine}" if options.gpus > 1 else machine
    if options.checks:
        what.append(f"{len(run.records.findings)} findings of {', '.join(options.checks)}")
    return f"{gpus}: {', '.join(what)}; see {directory}"


def _time(femtoseconds: int) -> str:
    from manyscale.units import TIME, humanize

    return humanize(femtoseconds, TIME)


def _shortened(name: str) -> str:
    """A name without its namespaces, if it is too long with them, and without its end, if it is still too long."""
    if len(name) > _NAME_WIDTH:
        function = name.partition("<")[0]
        name = name[function.rfind("::") + 2 if "::" in function else 0 :]
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


def report_data(run: CudaRun) -> dict[str, Any]:
    """The headline as data; scripts rely on its keys."""
    from manyscale.cuda.headline import headline
    from manyscale.results.definitions import plain

    groups = _groups(run.copies, lambda record: record.kind)
    return {
        "kernels": [
            {
                "name": record.name,
                "grid": list(record.grid),
                "block": list(record.block),
                "device": record.device,
                "stream": record.stream,
                "isa": record.isa,
                "cycles": record.cycles,
                "warp_instructions": record.warp_instructions,
                "thread_instructions": record.thread_instructions,
                "issued_instructions": record.issued_instructions,
                "occupancy": record.occupancy,
                "achieved_occupancy": record.achieved_occupancy,
                "l1_hit_rate": record.l1_hit_rate,
                "l2_hit_rate": record.l2_hit_rate,
                "registers": record.registers,
                "l2_bytes": record.l2_bytes,
                "dram_bytes": record.dram_bytes,
                "begin_seconds": record.begin / _SECOND,
                "end_seconds": record.end / _SECOND,
            }
            for record in run.kernels
        ],
        "limits": {name: profile.limit.data() for name, profile in _longest_profiles(run)},
        "copies": [
            {
                "kind": kind,
                "number": len(records),
                "bytes": sum(record.bytes for record in records),
                "seconds": sum(record.end - record.begin for record in records) / _SECOND,
                "l2_bytes": sum(record.l2_bytes for record in records),
                "dram_bytes": sum(record.dram_bytes for record in records),
            }
            for kind, records in groups.items()
        ],
        "untimed_launches": run.node.selection.untimed,
        **plain(headline(run)),
        "code": run.code,
        "notes": run.records.notes,
        "findings": run.records.findings,
    }
