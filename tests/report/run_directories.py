# SPDX-License-Identifier: Apache-2.0
"""Run directories for tests of reports: with numbers that are known, or as large as runs get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from manyscale.results import Run, RunWriter, load


def make_run(
    path: Path,
    rows: list[tuple[str, str, str, float]],
    *,
    kind: str = "system",
    seconds: float = 1e-3,
    machine: str = 'name = "made"\n',
    tables: dict[str, pl.DataFrame] | None = None,
    files: dict[str, str] | None = None,
) -> Run:
    """A run with statistics (component, statistic, scope, value), further tables and files."""
    with RunWriter(path, command=["test"], workload={"kind": kind, "name": "made"}, seed=1) as writer:
        writer.write_machine(machine)
        names = [name for name, _, _, _ in rows]
        columns: dict[str, list[Any]] = {
            "component": names,
            "statistic": [row[1] for row in rows],
            "kind": ["gauge"] * len(rows),
            "unit": ["1"] * len(rows),
            "description": ["made for a test"] * len(rows),
            "scope": [row[2] for row in rows],
            "key": [None] * len(rows),
            "value": [float(row[3]) for row in rows],
        }
        writer.write_stats(columns)
        for name, table in (tables or {}).items():
            table.write_parquet(path / f"{name}.parquet")
        for name, text in (files or {}).items():
            (path / name).write_text(text)
        writer.finish({"simulated_seconds": {"value": seconds, "unit": "s"}})
    return load(path)


def without_checksums(path: Path) -> None:
    """Makes the run one of an older Manyscale."""
    info = json.loads((path / "run.json").read_text())
    del info["files"], info["checksum"]
    (path / "run.json").write_text(json.dumps(info | {"schema_version": 1}))


def kernel_run(path: Path, **metrics: float) -> Run:
    """A run of one kernel with its profile."""
    found = {
        "duration": 1e-3,
        "stall_long_scoreboard": 70.0,
        "stall_selected": 30.0,
        "dram_utilization": 81.0,
    } | metrics
    found |= {"dram_throughput": 7.29e11, "roofline": 81.0}
    rows = [("gpu", name, "stencil", value) for name, value in found.items()]
    rows += [(f"sm[{sm}]", "l1_hits", "run", 30) for sm in range(4)]
    rows += [(f"sm[{sm}]", "l1_misses", "run", 10) for sm in range(4)]
    rows += [(f"sm[{sm}]", "global_sectors", "run", 40) for sm in range(4)]
    profile = {
        "grid": [8, 1, 1],
        "block": [256, 1, 1],
        "limit": {"kind": "DRAM bandwidth", "evidence": "81% of its peak while CTAs run", "notes": []},
        "roofline": {
            "flops": 10,
            "flops_per_second": 1e11,
            "arithmetic_intensity_dram": 0.25,
            "peak": 1.4e13,
        },
        "peaks": {"dram_bytes": 9e11, "l2_bytes": 2e12, "flops": {"fp32": 1.4e13}},
    }
    return make_run(
        path, rows, kind="gpu-kernel", machine='name = "v100"\n[gpu]\nclock = "1312MHz"\n',
        files={"profiles.json": json.dumps({"stencil": profile})},
    )  # fmt: skip


def large_run(path: Path, statistics: int = 20_000, events: int = 1_000_000) -> Run:
    """A run with so many statistics, and a timeline of so many events."""
    rows = [(f"core[{k // 200}]", f"counter_{k % 200}", "run", k * 1.37) for k in range(statistics)]
    rows += [
        ("gpu", name, "k", value)
        for name, value in (("duration", 1e-3), ("stall_long_scoreboard", 70), ("stall_selected", 30))
    ]
    run = make_run(path, rows, kind="memory")
    (path / "timeline.pftrace").write_bytes(perfetto(events))
    return run


def perfetto(spans: int, tracks: int = 16, names: int = 5) -> bytes:
    """A trace with so many spans, as ours are written."""
    parts = [packet(b"\x68\x01" + field(60, number(1, 1) + field(3, number(1, 1) + field(6, PROCESS))))]
    for track in range(tracks):
        inner = number(1, track + 2) + number(5, 1) + field(2, f"core[{track}]".encode())
        parts.append(packet(field(60, inner)))
    for name in range(names):
        entry = number(1, name + 1) + field(2, f"work {name}".encode())
        parts.append(packet(field(12, field(2, entry))))
    rng = np.random.default_rng(3)
    begins = np.repeat(np.sort(rng.integers(0, 10**9, spans // tracks)), tracks)
    track = np.tile(np.arange(tracks), len(begins) // tracks)
    begin = moments(begins, 1, track + 2, (np.arange(len(begins)) + track) % names + 1)
    end = moments(begins + 300, 2, track + 2, None)
    together = np.empty((len(begins), begin.shape[1] + end.shape[1]), np.uint8)
    together[:, : begin.shape[1]] = begin
    together[:, begin.shape[1] :] = end
    return b"".join(parts) + together.tobytes()


def moments(times: np.ndarray, kind: int, tracks: np.ndarray, names: np.ndarray | None) -> np.ndarray:
    """Packets of equal length, a row for each: times have five bytes, the last of which may add nothing."""
    event = bytes([9 << 3, kind, 11 << 3, 0]) + (bytes([10 << 3, 0]) if names is not None else b"")
    one = packet(bytes([8 << 3, 0, 0, 0, 0, 0]) + field(11, event))
    rows = np.tile(np.frombuffer(one, np.uint8), (len(times), 1))
    for byte in range(5):
        rows[:, 3 + byte] = (times >> (7 * byte) & 0x7F) | (0x80 if byte < 4 else 0)
    first = one.index(event)
    rows[:, first + 3] = tracks
    if names is not None:
        rows[:, first + 5] = names
    return rows


PROCESS = b"manyscale (1 ns shown = 1000 fs simulated)"


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value)


def field(tag: int, content: bytes) -> bytes:
    return varint(tag << 3 | 2) + varint(len(content)) + content


def packet(content: bytes) -> bytes:
    return field(1, content)
