# SPDX-License-Identifier: Apache-2.0
"""The run directory of a CUDA program: its kernels, copies and calls, statistics of the GPUs, profiles of kernels."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale import units
from manyscale.gpu import TimedDevice
from manyscale.gpu.run_directory import COMPONENT, OPERATIONS_FILE, write_profiles
from manyscale.results import RunWriter, definitions
from manyscale.results.journal import Journal
from manyscale.results.names import readable
from manyscale.results.ranges import RANGES_FILE, Ranges

from . import ranges

if TYPE_CHECKING:
    import polars as pl

    from .commands import CopyRecord, LaunchRecord
    from .node import Gpu, Node
    from .program import CudaRun, Program

KERNELS_FILE = "kernels.parquet"
COPIES_FILE = "copies.parquet"
CALLS_FILE = "calls.parquet"
NOTES_FILE = "notes.txt"
PTX_FOLDER = "ptx"

_SECOND = 10**15
_NANOSECOND = 10**6


def run_recorded(
    program: Program, out: str | os.PathLike[str], *, stdout: int | None, command: Sequence[str]
) -> CudaRun:
    """Runs a program and leaves a run directory; a killed run keeps what had ended, see `Journal`."""
    with RunWriter(
        out,
        command=list(command) or sys.argv,
        workload=program.workload(),
        seed=program.node.options.seed,
    ) as writer:
        writer.write_machine(_machine_text(program))
        journal = CudaJournal(writer.directory, program.node)
        program.keep = journal.keep
        try:
            run = program.run(stdout=stdout)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one to report
                write_run(writer, program.result(), journal, partial=True)
            raise
        write_run(writer, run, journal, partial=False)
    return run


def _machine_text(program: Program) -> str:
    from manyscale.machine.completing import completed_toml

    gpu = program.node.gpus[0]
    costs = {
        "call_time": units.format(program.runtime.call_time, units.TIME),
        "pageable_bandwidth": units.format(program.runtime.pageable_bandwidth, units.BANDWIDTH),
    }
    system = gpu.parts.system if isinstance(gpu, TimedDevice) else None
    return completed_toml(program.machine, system, {"cuda": costs, "gpu": gpu.code_rules().stated()})


class CudaJournal:
    """Keeps kernels and copies as they end, for a run that is killed."""

    def __init__(self, directory: Path, node: Node) -> None:
        self._journal = Journal(directory)
        self._node = node
        self._kept: dict[Gpu, tuple[int, int]] = {}  # how many launches and copies
        self._totals: Counter[str] = Counter()
        self._isas: set[str] = set()
        self._last = 0

    def keep(self) -> None:
        """Keeps what has ended since the last call."""
        kernels: list[LaunchRecord] = []
        copies: list[CopyRecord] = []
        for gpu in (*self._node.retired, *self._node.gpus):
            launched, copied = self._kept.get(gpu, (0, 0))
            kernels += gpu.launches_ended[launched:]
            copies += gpu.copies_ended[copied:]
            self._kept[gpu] = len(gpu.launches_ended), len(gpu.copies_ended)
        if not kernels and not copies:
            return
        ends = [record.end for record in kernels] + [record.end for record in copies]
        self._last = max(self._last, *ends)
        self._totals.update(
            total_cycles=sum(record.cycles for record in kernels),
            launches=len(kernels),
            warp_instructions=sum(record.warp_instructions for record in kernels),
            copy_count=len(copies),
            copied_bytes=sum(record.bytes for record in copies),
        )
        tables = {"kernels": _kernel_columns(kernels), "copies": _copy_columns(copies)}
        self._isas.update(record.isa for record in kernels)
        self._journal.append(tables, self._headline())

    def remove(self) -> None:
        """The tables are written."""
        self._journal.remove()

    def _headline(self) -> definitions.Headline:
        from manyscale.gpu.headline import instruction_units

        numbers = {"simulated_seconds": self._last / _SECOND, **self._totals}
        return definitions.headline(instruction_units(self._isas), **numbers)


def write_run(writer: RunWriter, run: CudaRun, journal: CudaJournal, *, partial: bool) -> None:
    """Keeps a run: the tables of kernels, copies and calls, the statistics, and the profile of each kernel."""
    from .headline import headline

    writer.write_table(KERNELS_FILE, _kernel_frame(run.kernels))
    writer.write_table(COPIES_FILE, _copy_frame(run.copies))
    writer.write_table(CALLS_FILE, run.records.calls.frame())
    if run.records.ranges:
        writer.write_table(RANGES_FILE, ranges.frame(run.records.ranges))
    for name, text in run.records.ptx.items():
        writer.write_file(f"{PTX_FOLDER}/{name}", text)
    writer.describe_code(run.code)
    if notes := [*run.records.notes, *run.records.findings]:
        writer.write_file(NOTES_FILE, ("\n".join(notes) + "\n").encode())
    columns = _statistics(run.node)
    _write_operations(writer, run.node)
    if partial:
        writer.partial(columns, headline(run))
        journal.remove()
        return
    writer.write_stats(columns)
    journal.remove()
    writer.finish(headline(run), error=run.failure, partial=run.limit_reached or run.killed_by is not None)


def ranges_of(run: CudaRun) -> Ranges:
    """The NVTX ranges of a run, with what was launched in them."""
    return Ranges(ranges.frame(run.records.ranges), _kernel_frame(run.kernels), _copy_frame(run.copies))


_KERNEL_NUMBERS = (
    "device",
    "stream",
    "shared",
    "cycles",
    "warp_instructions",
    "thread_instructions",
    "issued_instructions",
    "registers",
    "l2_bytes",
    "dram_bytes",
)
_KERNEL_RATIOS = ("occupancy", "achieved_occupancy", "l1_hit_rate", "l2_hit_rate")
_EXTENTS = tuple(f"{what}_{letter}" for letter in "xyz" for what in ("grid", "block"))


def _kernel_columns(kernels: Sequence[LaunchRecord]) -> dict[str, list[Any]]:
    names = ("name", "isa", *_KERNEL_NUMBERS, *_KERNEL_RATIOS, "wall_seconds")
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in kernels] for name in names}
    columns["kernel"] = [readable(record.name) for record in kernels]
    columns["range"] = _range_numbers(kernels)
    for axis, letter in enumerate("xyz"):
        columns[f"grid_{letter}"] = [record.grid[axis] for record in kernels]
        columns[f"block_{letter}"] = [record.block[axis] for record in kernels]
    return columns | _times(kernels)


def _kernel_frame(kernels: Sequence[LaunchRecord]) -> pl.DataFrame:
    import polars as pl

    schema: dict[str, Any] = {
        "name": pl.String,
        "isa": pl.String,
        **dict.fromkeys(_KERNEL_NUMBERS, pl.Int64),
        **dict.fromkeys((*_KERNEL_RATIOS, "wall_seconds"), pl.Float64),
        "kernel": pl.String,
        "range": pl.Int64,
        **dict.fromkeys(_EXTENTS, pl.Int64),
    }
    return pl.DataFrame(_kernel_columns(kernels), schema=schema | _time_columns())


def _copy_columns(copies: Sequence[CopyRecord]) -> dict[str, list[Any]]:
    names = ("kind", "device", "stream", "bytes", "l2_bytes", "dram_bytes", "pageable")
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in copies] for name in names}
    columns["range"] = _range_numbers(copies)
    return columns | _times(copies)


def _copy_frame(copies: Sequence[CopyRecord]) -> pl.DataFrame:
    import polars as pl

    schema: dict[str, Any] = {
        "kind": pl.String,
        **dict.fromkeys(("device", "stream", "bytes", "l2_bytes", "dram_bytes"), pl.Int64),
        "pageable": pl.Boolean,
        "range": pl.Int64,
    }
    return pl.DataFrame(_copy_columns(copies), schema=schema | _time_columns())


def _range_numbers(records: Sequence[LaunchRecord] | Sequence[CopyRecord]) -> list[int | None]:
    """The innermost NVTX range of each, as in the table of ranges."""
    return [record.range.number if record.range else None for record in records]


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
