# SPDX-License-Identifier: Apache-2.0
"""The kernels, copies, calls and NVTX ranges of a CUDA program as a trace for chrome://tracing and Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError
from manyscale.results.ranges import RANGES_FILE, Ranges

if TYPE_CHECKING:
    import polars as pl

    from manyscale.results.run import Run

_MICROSECOND = 1e3  # in nanoseconds
_HOST, _RANGES, _FIRST_GPU = 0, 1, 2  # processes of the trace
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_COUNTS = ("cycles", "warp_instructions", "occupancy", "achieved_occupancy", "l1_hit_rate", "l2_hit_rate")


def chrome_trace(run: Run) -> bytes:
    """The trace as JSON; times in microseconds of simulated time."""
    if not run.has("kernels.parquet"):
        raise InputError(f"{run.path} is not the run of a CUDA program: it has no kernels.parquet")
    kernels, copies, calls = (_table(run, name) for name in ("kernels", "copies", "calls"))
    found = None
    if run.has(RANGES_FILE):
        found = Ranges(run.table(RANGES_FILE), kernels, copies)
    events = [*_of_gpu(kernels, copies, found), *_of_host(calls), *_of_ranges(found)]
    pids = {event["pid"] for event in events}
    names = {_HOST: "host", _RANGES: "NVTX ranges"}
    for pid in sorted(pids):
        name = names.get(pid, f"GPU {pid - _FIRST_GPU}")
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}).encode()


def _table(run: Run, name: str) -> pl.DataFrame | None:
    return run.table(f"{name}.parquet") if run.has(f"{name}.parquet") else None


def _event(category: str, name: str, where: tuple[int, int], begin: float, end: float) -> dict[str, Any]:
    pid, tid = where
    times = {"ts": begin / _MICROSECOND, "dur": (end - begin) / _MICROSECOND}
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times}


def _of_gpu(
    kernels: pl.DataFrame | None, copies: pl.DataFrame | None, found: Ranges | None
) -> Iterator[dict[str, Any]]:
    for table, category, title in ((kernels, "kernel", "kernel"), (copies, "copy", "kind")):
        for row in table.iter_rows(named=True) if table is not None else ():
            where = (_FIRST_GPU + int(row["device"]), int(row["stream"]))
            event = _event(category, str(row[title]), where, row["begin_ns"], row["end_ns"])
            arguments = {
                name: row[name] for name in (*_SHAPE, *_COUNTS, "bytes") if row.get(name) is not None
            }
            if found is not None and (path := found.path(row.get("range"))):
                arguments["range"] = " > ".join(path)
            yield event | {"args": arguments}


def _of_host(calls: pl.DataFrame | None) -> Iterator[dict[str, Any]]:
    for row in calls.iter_rows(named=True) if calls is not None else ():
        yield _event("call", str(row["call"]), (_HOST, int(row["thread"])), row["begin_ns"], row["end_ns"])


def _of_ranges(found: Ranges | None) -> Iterator[dict[str, Any]]:
    for span in found.spans() if found is not None else ():
        yield _event("range", span.name, (_RANGES, span.depth), span.begin_ns, span.end_ns)
