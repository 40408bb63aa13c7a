# SPDX-License-Identifier: Apache-2.0
"""What a sweep costs: processor time of its own for each point, and how much of two cores is left for the points.

1,000 points that compute for 20 ms each, and 1,000 that do nothing. Times are processor times, so that other work on
the machine does not count; the efficiency is the points' own time as a share of all that was used.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from support.reporting import run_benchmark

TARGETS = {
    "points_per_2_ms_of_overhead": 1,
    "efficiency_of_20_ms_points_on_2_workers": 0.9,
}

POINTS = 1000


def spin(n: int, milliseconds: float) -> dict[str, float]:
    """A point that computes for a while, and tells how long that was."""
    begin = time.process_time()
    while time.process_time() - begin < milliseconds / 1000:
        pass
    return {"n": n, "own_seconds": time.process_time() - begin}


def used() -> float:
    """Processor seconds of this process and of all its children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def sweep(milliseconds: float, points: int, folder: Path) -> dict[str, float]:
    """All points on two workers: processor seconds, those of the points, and the time it took."""
    from manyscale.studies.sweep import Study

    study = Study(
        {"kind": "python", "function": "sweep:spin", "milliseconds": milliseconds},
        axes={"workload.n": {"from": 0, "to": points - 1, "step": 1}},
        metrics=["n", "own_seconds"],
    )
    begin, began = used(), time.perf_counter()
    table = study.run(folder / f"sweep-{milliseconds}", workers=2).table
    return {
        "used": used() - begin,
        "own": float(table["own_seconds"].sum()),
        "wall": time.perf_counter() - began,
    }


def measure(rounds: int, scale: float) -> dict[str, float]:
    """The two sweeps, after all imports."""
    import polars as pl

    from manyscale.studies.sweep import Study  # noqa: F401

    pl.DataFrame({"a": [1]})
    points = max(round(POINTS * rounds * scale), 10)
    with tempfile.TemporaryDirectory() as name:
        empty, small = sweep(0.0, points, Path(name)), sweep(20.0, points, Path(name))
    overhead = (empty["used"] - empty["own"]) / points
    return {
        "overhead_ms_per_point": 1000 * overhead,
        "points_per_2_ms_of_overhead": 0.002 / overhead,
        "empty_points_per_second_of_wall": points / empty["wall"],
        "efficiency_of_20_ms_points_on_2_workers": small["own"] / small["used"],
        "wall_efficiency_of_20_ms_points": small["own"] / (2 * small["wall"]),
    }


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=1))
