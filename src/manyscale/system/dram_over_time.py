# SPDX-License-Identifier: Apache-2.0
"""What the channels of DRAM carried over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manyscale import _core

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    from manyscale.system.system import System

DRAM_FILE = "dram_over_time.parquet"
_SECOND = 10**15
_CHANNEL = re.compile(r"(?:^|\.)channel\[\d+\]$")
_KINDS = {"reads": "read_bytes", "writes": "write_bytes"}


def dram_buses(system: System) -> dict[str, dict[str, Any]]:
    """How long each channel's bus moved data in each interval."""
    return {
        name: _core.dram_bus_over_time(component.native)
        for name, component in system.components.items()
        if _CHANNEL.search(name)
    }


def dram_over_time(
    buses: Mapping[str, Mapping[str, Any]], columns: Mapping[str, Sequence[Any]]
) -> pl.DataFrame:
    """For each interval of a run: when it begins and its length in seconds, bytes a second that were read and written,
    and the share of the time in which the buses moved data. `columns` are the run's statistics."""
    import polars as pl

    totals = {
        (component, statistic): value
        for component, statistic, value in zip(
            columns["component"], columns["statistic"], columns["value"], strict=True
        )
        if statistic in _KINDS.values()
    }
    interval = max((bus["interval"] for bus in buses.values()), default=1)
    count = max((len(_widened(bus, kind, interval)) for bus in buses.values() for kind in _KINDS), default=0)
    carried = {kind: np.zeros(count) for kind in _KINDS}
    busy = np.zeros(count)
    for name, bus in buses.items():
        for kind, statistic in _KINDS.items():
            moving = _widened(bus, kind, interval)
            busy[: len(moving)] += moving
            if whole := moving.sum():
                carried[kind][: len(moving)] += moving / whole * totals.get((name, statistic), 0)
    seconds = interval / _SECOND
    return pl.DataFrame(
        {
            "begin": np.arange(count) * seconds,
            "seconds": np.full(count, seconds),
            "read": carried["reads"] / seconds,
            "written": carried["writes"] / seconds,
            "busy": busy / (interval * max(len(buses), 1)),
        }
    )


def _widened(bus: Mapping[str, Any], kind: str, interval: int) -> npt.NDArray[np.float64]:
    """Sums of longer intervals, which are a power of two of the bus's."""
    sums = np.asarray(bus[kind], float)
    each = interval // int(bus["interval"])
    return np.add.reduceat(sums, np.arange(0, len(sums), each)) if len(sums) else sums
