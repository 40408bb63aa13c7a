# SPDX-License-Identifier: Apache-2.0
"""Measurements of launches from files: Nsight Compute, Nsight Systems, nvprof, and a plain CSV of our own."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from manyscale.errors import InputError

from .csv_table import Table, read_table, scale
from .values import SECTOR_BYTES, LaunchValues

_EXTENT = re.compile(r"\d+")
_MOST_LAUNCHES = 1_000_000
_MOST_DIGITS = 10  # of an extent
_CORRELATION_ID = re.compile(r"\s*\[\d+\]$")

# Names of profilers and of our own files -> the quantity. Parts are added up, a direct value comes before them.
_METRICS: dict[str, str] = {
    # Nsight Compute, raw page (also `--metrics`), the first that is there
    "gpc__cycles_elapsed.max": "cycles",
    "sm__cycles_elapsed.max": "cycles",
    "gpu__time_duration.sum": "seconds",
    "smsp__inst_executed.sum": "warp_instructions",
    "sm__inst_executed.sum": "warp_instructions",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved_occupancy",
    "l1tex__t_sector_hit_rate.pct": "l1_hit_rate",
    "lts__t_sector_hit_rate.pct": "l2_hit_rate",
    "dram__sectors.sum": "dram_sectors",
    "dram__bytes.sum.per_second": "dram_bandwidth",
    "launch__registers_per_thread": "registers",
    # Nsight Compute, details page
    "elapsed cycles": "cycles",
    "duration": "seconds",
    "executed instructions": "warp_instructions",
    "achieved occupancy": "achieved_occupancy",
    "l1/tex hit rate": "l1_hit_rate",
    "l2 hit rate": "l2_hit_rate",
    "memory throughput": "dram_bandwidth",
    "registers per thread": "registers",
    # nvprof --metrics
    "inst_executed": "warp_instructions",
    "achieved_occupancy": "achieved_occupancy",
    "global_hit_rate": "l1_hit_rate",
    "elapsed_cycles_sm": "cycles",
    # our own
    "cycles": "cycles",
    "seconds": "seconds",
    "ns": "seconds",
    "us": "seconds",
    "ms": "seconds",
    "warp_instructions": "warp_instructions",
    "achieved_occupancy_pct": "achieved_occupancy",
    "l1_hit_pct": "l1_hit_rate",
    "l2_hit_pct": "l2_hit_rate",
    "dram_sectors": "dram_sectors",
    "dram_gb_per_s": "dram_bandwidth",
    "registers": "registers",
}
_PARTS: dict[str, tuple[str, float]] = {  # added up: the quantity, and what a part is multiplied by
    "dram__sectors_read.sum": ("dram_sectors", 1),
    "dram__sectors_write.sum": ("dram_sectors", 1),
    "dram__bytes_read.sum": ("dram_sectors", 1 / SECTOR_BYTES),
    "dram__bytes_write.sum": ("dram_sectors", 1 / SECTOR_BYTES),
    "dram_read_transactions": ("dram_sectors", 1),
    "dram_write_transactions": ("dram_sectors", 1),
}
_OWN_UNITS = {"ns": "ns", "us": "us", "ms": "ms", "dram_gb_per_s": "GB/s"}
_OWN_UNITS |= dict.fromkeys(("achieved_occupancy_pct", "l1_hit_pct", "l2_hit_pct"), "%")
_SHARES = ("achieved_occupancy", "l1_hit_rate", "l2_hit_rate")


@dataclass(frozen=True)
class Measurements:
    """Launches in the order they were measured, where they come from, and whether caches were emptied before each."""

    source: str
    launches: Sequence[LaunchValues]
    profiled: bool  # launch by launch, as Nsight Compute does: with a cold L2 and warm instruction caches
    notes: Sequence[str] = ()


def read_measurements(path: str | os.PathLike[str], program: str | None = None) -> Measurements:
    """Measurements of a file; `program` chooses among those of a plain CSV with several programs."""
    for source, is_header, read, profiled in _FORMATS:
        table = read_table(path, is_header)
        if table is None:
            continue
        launches = read(table) if program is None or read is not _plain else _plain(table, program)
        launches = [launch for launch in launches if launch.values]
        if not launches:
            raise InputError(f"{path}: {source} without a launch that has a time or a counter")
        notes = [f"{table.left_out} lines of {path} are no rows and were left out"] if table.left_out else []
        if read is _summary:
            notes.append(f"{path} has the mean of each kernel: each of its launches is compared with that")
        return Measurements(source, launches, profiled, notes)
    raise InputError(
        f"{path}: no measurements are found in it. Known are `ncu --csv` (pages raw and details), `nsys stats "
        "--report cuda_gpu_trace --format csv` (or cuda_gpu_kern_sum), `nvprof --csv` (with --print-gpu-trace or "
        "--metrics, or the summary), and a CSV with a header such as "
        "kernel,grid,cycles,ns"
    )


# --- The formats ---


def _details(table: Table) -> list[LaunchValues]:
    """A row for each metric of each launch."""
    number, kernel = table.need("ID"), table.need("Kernel Name")
    grid, block = table.index("Grid Size"), table.index("Block Size")
    metric, unit, value = table.need("Metric Name"), table.need("Metric Unit"), table.need("Metric Value")
    found: dict[str, tuple[list[str], dict[str, float]]] = {}
    for line, cells in table.rows:
        _, values = found.setdefault(cells[number], (cells, {}))
        # "Memory Throughput" is a share of the peak in one section and bytes a second in another.
        if cells[metric].strip().lower() == "memory throughput" and "%" in cells[unit]:
            continue
        _keep(values, table, line, value, cells[metric], cells[value], cells[unit])
    return [
        LaunchValues(cells[kernel], _whole(values), _extent(cells, grid), _extent(cells, block))
        for cells, values in found.values()
    ]


def _wide(
    table: Table, kernel: int, grid: Sequence[int | None], block: Sequence[int | None]
) -> list[LaunchValues]:
    """A row for each launch; the first may have the units of the columns instead."""
    rows, units = table.rows, [""] * len(table.columns)
    if rows and not rows[0][1][kernel].strip():
        units, rows = rows[0][1], rows[1:]
    launches = []
    for line, cells in rows:
        values: dict[str, float] = {}
        for column, name in enumerate(table.columns):
            _keep(values, table, line, column, name, cells[column], units[column])
        launches.append(
            LaunchValues(
                _CORRELATION_ID.sub("", cells[kernel]),
                _whole(values),
                _extents(cells, grid),
                _extents(cells, block),
            )
        )
    return launches


def _raw(table: Table) -> list[LaunchValues]:
    return _wide(table, table.need("Kernel Name"), [table.index("Grid Size")], [table.index("Block Size")])


def _trace(table: Table) -> list[LaunchValues]:
    """Launches among copies, which have no grid."""
    grid = [table.index("GrdX", "Grid X"), table.index("GrdY", "Grid Y"), table.index("GrdZ", "Grid Z")]
    block = [table.index("BlkX", "Block X"), table.index("BlkY", "Block Y"), table.index("BlkZ", "Block Z")]
    table.columns = [
        {"duration (ns)": "ns", "reg/trd": "registers"}.get(name.lower(), name) for name in table.columns
    ]
    launches = _wide(table, table.need("Name"), grid, block)
    return [launch for launch in launches if launch.grid is not None]


def _summary(table: Table) -> list[LaunchValues]:
    """A row for each kernel, with the mean time of its launches: as many launches of that time."""
    rows, unit = table.rows, "ns"
    kernel, calls = table.need("Name"), table.need("Instances", "Calls")
    mean = table.need("Avg (ns)", "Average (ns)", "Average", "Avg")
    kind = table.index("Type")  # nvprof lists calls of the runtime below those of the GPU
    grid, block = table.index("GridXYZ"), table.index("BlockXYZ")
    if rows and not rows[0][1][kernel].strip():  # units of the columns
        unit, rows = rows[0][1][mean].strip(), rows[1:]
    launches: list[LaunchValues] = []
    for line, cells in rows:
        if kind is not None and cells[kind].strip() != "GPU activities":
            continue
        if cells[kernel].startswith(("[CUDA mem", "[CUDA Unified")):
            continue
        values: dict[str, float] = {}
        _keep(values, table, line, mean, "seconds", cells[mean], unit)
        count = int(table.number(line, calls, cells[calls]) or 0)
        if not 0 <= count <= _MOST_LAUNCHES:
            raise InputError(
                f"{table.path}, line {line}: {count:,} launches; at most {_MOST_LAUNCHES:,} are compared"
            )
        launch = LaunchValues(cells[kernel], values, _extent(cells, grid), _extent(cells, block))
        launches += [launch] * count
    return launches


def _nvprof_metrics(table: Table) -> list[LaunchValues]:
    return _wide(table, table.need("Kernel"), [], [])


def _plain(table: Table, program: str | None = None) -> list[LaunchValues]:
    """Our own: a row for each launch, with units in the names of columns."""
    programs, number, kernel = table.index("program"), table.index("launch"), table.index("kernel", "name")
    grid, block = table.index("grid"), table.index("block")
    rows = table.rows
    if programs is not None:
        names = list(dict.fromkeys(cells[programs].strip() for _, cells in rows))
        if program is None and len(names) > 1:
            raise InputError(f"{table.path} has several programs; say which: {', '.join(names)}")
        if program is not None and program not in names:
            raise InputError(f"{table.path} has no program {program}; it has {', '.join(names)}")
        rows = [(line, cells) for line, cells in rows if program in (None, cells[programs].strip())]
    launches = []
    for line, cells in rows:
        values: dict[str, float] = {}
        for column, name in enumerate(table.columns):
            if column not in (programs, number, kernel, grid, block):
                _keep(values, table, line, column, name, cells[column], "")
        order = None if number is None else table.number(line, number, cells[number])
        launches.append(
            LaunchValues(
                "" if kernel is None else cells[kernel].strip(),
                _whole(values),
                _extent(cells, grid),
                _extent(cells, block),
                None if order is None else int(order),
            )
        )
    return launches


# --- Cells ---


def _keep(
    values: dict[str, float], table: Table, line: int, column: int, metric: str, cell: str, unit: str
) -> None:
    """Keeps a value if its metric is one that is compared."""
    name = metric.strip().lower()
    quantity, factor = (_METRICS.get(name), 1.0) if name in _METRICS else _PARTS.get(name, (None, 1.0))
    if quantity is None:
        return
    number = table.number(line, column, cell)
    if number is None:
        return
    by = scale(unit or _OWN_UNITS.get(name, ""))
    if by is None:
        raise InputError(f"{table.path}, line {line}: {metric} is in {unit!r}, which is no known unit")
    if not math.isfinite(number * by):
        raise InputError(f"{table.path}, line {line}: {metric} is {cell.strip()} {unit}, which is too much")
    if quantity in _SHARES and not (unit or _OWN_UNITS.get(name, "")) and number > 1:
        by = 0.01  # percent without saying so
    if name in _METRICS:
        values.setdefault(quantity, number * by)
    else:
        values[f"+{quantity}"] = values.get(f"+{quantity}", 0.0) + number * by * factor


def _whole(values: dict[str, float]) -> dict[str, float]:
    """Parts become the quantity, where it was not there itself."""
    for name in [name for name in values if name.startswith("+")]:
        values.setdefault(name[1:], values.pop(name))
    values = {name: value for name, value in values.items() if not name.startswith("+")}
    if "dram_sectors" in values and values.get("seconds"):
        values.setdefault("dram_bandwidth", SECTOR_BYTES * values["dram_sectors"] / values["seconds"])
    return values


def _extent(cells: Sequence[str], column: int | None) -> tuple[int, int, int] | None:
    """Such as "(256, 1, 1)", "256x1x1" or "256"."""
    return None if column is None else _three(_EXTENT.findall(cells[column]))


def _extents(cells: Sequence[str], columns: Sequence[int | None]) -> tuple[int, int, int] | None:
    """Of one column, or of one for each axis."""
    if len(columns) == 1:
        return _extent(cells, columns[0])
    return _three([part for at in columns if at is not None for part in _EXTENT.findall(cells[at])])


def _three(found: Sequence[str]) -> tuple[int, int, int] | None:
    if not found or max(map(len, found)) > _MOST_DIGITS:
        return None
    sizes = [int(part) for part in found[:3]]
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def _has(*names: str) -> Callable[[Sequence[str]], bool]:
    wanted = {name.lower() for name in names}
    return lambda cells: wanted <= {cell.lower() for cell in cells}


def _is_plain(cells: Sequence[str]) -> bool:
    lowered = {cell.lower() for cell in cells}
    return bool(lowered & {"cycles", "seconds", "ns", "us", "ms"})


_Format = tuple[str, Callable[[Sequence[str]], bool], Callable[[Table], list[LaunchValues]], bool]
_FORMATS: tuple[_Format, ...] = (
    (
        "Nsight Compute, details page",
        _has("ID", "Kernel Name", "Metric Name", "Metric Value"),
        _details,
        True,
    ),
    ("Nsight Compute, raw page", _has("ID", "Kernel Name"), _raw, True),
    ("Nsight Systems, trace of the GPU", _has("Duration (ns)", "GrdX", "Name"), _trace, False),
    ("nvprof, trace of the GPU", _has("Duration", "Grid X", "Name"), _trace, False),
    ("Nsight Systems, summary of kernels", _has("Instances", "Total Time (ns)", "Name"), _summary, False),
    ("nvprof, summary", _has("Time(%)", "Calls", "Avg", "Name"), _summary, False),
    ("nvprof, metrics", _has("Kernel", "Correlation_ID"), _nvprof_metrics, True),
    ("CSV", _is_plain, _plain, True),
)
FORMATS: Mapping[str, bool] = {name: profiled for name, _, _, profiled in _FORMATS}
