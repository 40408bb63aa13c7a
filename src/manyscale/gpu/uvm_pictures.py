# SPDX-License-Identifier: Apache-2.0
"""Plots of unified memory: the location of pages over time, and the activity of driver and link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyscale.errors import InputError
from manyscale.gpu.managed import PAGE
from manyscale.gpu.stream import ActivityKind
from manyscale.results.additions import add_file
from manyscale.results.heat_map import Extent, heat_map
from manyscale.results.lane_chart import lane_chart

if TYPE_CHECKING:
    import polars as pl

    from manyscale.gpu.timed_device import TimedDevice

PAGES_FILE = "pages.svg"
TRANSFERS_FILE = "transfers.svg"
LOG_FILE = "pages.parquet"

_LONG = 10e-3  # seconds from which on milliseconds are easier to read
_ROWS, _COLUMNS = 128, 200  # of the heat map
_MIB = 1 << 20
_PART = 64 << 10
_ARRIVALS = ("to_device", "populate")
_DEPARTURES = ("to_host", "drop")


def save_pictures(device: TimedDevice, directory: str | Path, title: str = "Unified memory") -> list[Path]:
    """Writes `pages.svg`, `transfers.svg` and the log they are drawn from, `pages.parquet`, into a folder.

    The device must have been made with `page_log=`, and a kernel must have used managed memory.
    """
    log = _logged(device)
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    pictures = {PAGES_FILE: page_map(device, title), TRANSFERS_FILE: transfer_lanes(device, title)}
    for name, picture in pictures.items():
        content = picture.encode()
        add_file(target, name, lambda file, content=content: file.write(content))  # type: ignore[misc]
    add_file(target, LOG_FILE, log.write_parquet)
    return [target / name for name in (PAGES_FILE, TRANSFERS_FILE, LOG_FILE)]


def page_map(device: TimedDevice, title: str) -> str:
    """Pages over time as SVG: dark where they are on the device, with faults and evictions as points."""
    log = _logged(device)
    index = _PageIndex(log)
    begin, end = float(log["begin"].min() or 0), float(log["end"].max() or 0)  # type: ignore[arg-type]
    length = (end - begin) or 1e-9
    unit, factor = _unit(length)
    rows = min(_ROWS, index.pages)
    pages_on_device = np.zeros((rows, _COLUMNS + 1))
    for kinds, sign in ((_ARRIVALS, 1), (_DEPARTURES, -1)):
        for moment, address, count in _moves(log, kinds):
            column = min(_COLUMNS, int((moment - begin) / length * _COLUMNS))
            first = index.of(address)
            bins = (np.arange(first, first + count) * rows) // index.pages
            np.add.at(pages_on_device[:, column], bins, sign)
    capacity = np.bincount((np.arange(index.pages) * rows) // index.pages, minlength=rows)
    share = np.cumsum(pages_on_device, axis=1)[:, :_COLUMNS] / capacity[:, None]

    def points(kind: str, cause: str | None = None) -> list[tuple[float, float]]:
        chosen = log.filter(kind=kind) if cause is None else log.filter(kind=kind, cause=cause)
        return [
            ((moment - begin) * factor, (index.of(address) + count / 2) * PAGE / _MIB)
            for moment, address, count in chosen.select("begin", "address", "pages").iter_rows()
        ]

    return heat_map(
        title,
        Extent(f"time in {unit}", 0, length * factor),
        Extent("managed memory in MiB", 0, index.pages * PAGE / _MIB),
        np.clip(share, 0, 1).tolist(),
        scale="on the device",
        highest=1,
        marks={
            "page fault": points("fault"),
            "eviction": points("to_host", "eviction") + points("drop", "eviction"),
        },
    )


def transfer_lanes(device: TimedDevice, title: str) -> str:
    """Activity over time as SVG: kernels, the driver, and the link in both directions."""
    log = _logged(device)
    first, last = float(log["begin"].min() or 0), float(log["end"].max() or 0)  # type: ignore[arg-type]
    unit, factor = _unit(last - first)

    def lane(*kinds: str) -> list[tuple[float, float]]:
        chosen = log.filter(log["kind"].is_in(list(kinds))).select("begin", "end")
        return [((begin - first) * factor, (end - first) * factor) for begin, end in chosen.iter_rows()]

    kernels = [
        ((activity.begin - first) * factor, (activity.end - first) * factor)
        for activity in device.timeline()
        if activity.kind is ActivityKind.KERNEL
    ]
    lanes = {
        "kernels": kernels,
        "driver": lane("batch"),
        "to the device": lane("to_device"),
        "to the host": lane("to_host"),
    }
    return lane_chart(title, f"time in {unit}", {name: bars for name, bars in lanes.items() if bars})


class _PageIndex:
    """Pages numbered without gaps: only those of 64 KiB chunks in the log."""

    def __init__(self, log: pl.DataFrame) -> None:
        rows = log.filter(log["kind"] != "batch")
        first = rows["address"].to_numpy() // _PART
        last = (rows["address"].to_numpy() + (rows["pages"].to_numpy() * PAGE) - 1) // _PART
        ranges = {(int(begin), int(end)) for begin, end in zip(first, last, strict=True)}
        self._parts = np.array(sorted({part for begin, end in ranges for part in range(begin, end + 1)}))
        self.pages = len(self._parts) * (_PART // PAGE)

    def of(self, address: int) -> int:
        part = int(np.searchsorted(self._parts, address // _PART))
        return part * (_PART // PAGE) + address % _PART // PAGE


def _unit(length: float) -> tuple[str, float]:
    """The unit of a time axis, and how many of it are a second."""
    return ("ms", 1e3) if length >= _LONG else ("us", 1e6)


def _logged(device: TimedDevice) -> pl.DataFrame:
    log = device.uvm.log()
    if log.is_empty():
        raise InputError(
            "there is nothing to draw: make the device with page_log=100_000 (or as many rows as you want to keep), "
            "and launch a kernel that uses managed memory"
        )
    return log


def _moves(log: pl.DataFrame, kinds: tuple[str, ...]) -> list[tuple[float, int, int]]:
    """Ends of migrations: time, address and number of pages."""
    chosen = log.filter(log["kind"].is_in(list(kinds))).select("end", "address", "pages")
    return list(chosen.iter_rows())
