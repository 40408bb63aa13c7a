# SPDX-License-Identifier: Apache-2.0
"""Unified memory: page faults, migrations, and the location of pages over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale.report.charts import HeatMap, Lane, Lanes
from manyscale.report.evidence import Evidence
from manyscale.report.numbers import for_people, percent, scale_of, share, shown
from manyscale.report.sections.general import Parent

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 20_000
_MOST_MARKS = 4_000
_PAGE, _CHUNK, _MIB = 4096, 64 << 10, 1 << 20
_ROWS, _COLUMNS = 96, 240  # of the heat map
_LOG = ("begin", "end", "address", "pages", "kind", "cause")
_FIRST = {
    "faults": ("page faults", "1"),
    "fault_batches": ("fault batches", "1"),
    "pages_faulted_in": ("pages migrated by faults", "1"),
    "pages_prefetched": ("prefetched pages", "1"),
    "prefetched_used": ("prefetched pages used", "1"),
    "pages_evicted": ("pages evicted", "1"),
    "thrashed_pages": ("thrashed pages", "1"),
    "bytes_to_device": ("moved to the GPU", "B"),
    "bytes_to_host": ("moved to the host", "B"),
    "stalled": ("time with a stalled access", "fs"),
    "driver_busy": ("time the UVM driver was busy", "fs"),
}


def page_map(evidence: Evidence) -> HeatMap | None:
    """Managed memory over time: the share of pages on the GPU, and where pages faulted, were prefetched or evicted."""
    log = evidence.columns("pages", *_LOG)
    if log is None:
        return None
    import numpy as np

    moves = log.filter(log["kind"] != "batch")
    chunks = sorted({chunk for begin, end in _chunks(moves) for chunk in range(begin, end + 1)})
    if not chunks:
        return None
    index = {chunk: number for number, chunk in enumerate(chunks)}
    pages = len(chunks) * (_CHUNK // _PAGE)
    rows = min(_ROWS, pages)
    begin, end = float(log["begin"].min() or 0), float(log["end"].max() or 0)  # type: ignore[arg-type]
    length = (end - begin) or 1e-9
    factor, unit = scale_of([length], "s")

    def page(address: int) -> int:
        return index[address // _CHUNK] * (_CHUNK // _PAGE) + address % _CHUNK // _PAGE

    change = np.zeros((rows, _COLUMNS + 1))
    for kind, moment, address, count in moves.select("kind", "end", "address", "pages").iter_rows():
        sign = {"to_device": 1, "populate": 1, "to_host": -1, "drop": -1}.get(kind, 0)
        if sign:
            column = min(_COLUMNS, int((moment - begin) / length * _COLUMNS))
            first = page(address)
            np.add.at(
                change[:, column], (np.arange(first, first + count) * rows // pages).clip(max=rows - 1), sign
            )
    capacity = np.bincount(np.arange(pages) * rows // pages, minlength=rows)
    on_device = np.clip(np.cumsum(change, axis=1)[:, :_COLUMNS] / capacity[:, None], 0, 1)

    def marks(kinds: tuple[str, ...], cause: str) -> list[tuple[float, float]]:
        chosen = moves.filter(moves["kind"].is_in(list(kinds)) & (moves["cause"] == cause)).head(_MOST_MARKS)
        return [
            ((moment - begin) * factor, (page(address) + count / 2) * _PAGE / _MIB)
            for moment, address, count in chosen.select("begin", "address", "pages").iter_rows()
        ]

    found = {
        "faulted": marks(("fault",), "fault"),
        "prefetched": marks(("to_device",), "prefetch"),
        "evicted": marks(("to_host", "drop"), "eviction"),
    }
    return HeatMap(
        "Pages of managed memory over time",
        f"time in {unit}",
        "managed memory in MiB",
        [(column + 0.5) * length * factor / _COLUMNS for column in range(_COLUMNS)],
        [(row + 0.5) * pages * _PAGE / _MIB / rows for row in range(rows)],
        on_device.tolist(),
        "on the GPU",
        {name: points for name, points in found.items() if points},
        unit="%",
    )


def _chunks(moves: pl.DataFrame) -> set[tuple[int, int]]:
    """The first and the last chunk that each row of the log is about."""
    first = moves["address"].to_numpy() // _CHUNK
    last = (moves["address"].to_numpy() + moves["pages"].to_numpy() * _PAGE - 1) // _CHUNK
    return {(int(begin), int(end)) for begin, end in zip(first, last, strict=True)}


def transfers_chart(evidence: Evidence) -> Lanes | None:
    """Activity of kernels, the UVM driver, and the link in both directions."""
    log = evidence.columns("pages", *_LOG)
    if log is None:
        return None
    factor, unit = scale_of([float(log["end"].max() or 0)], "s")  # type: ignore[arg-type]
    lanes = []
    kernels = [
        (evidence.titles.get(name, name), profile["begin_seconds"], profile["end_seconds"])
        for name, profile in evidence.profiles.items()
        if "begin_seconds" in profile and "end_seconds" in profile
    ]
    names = [
        "fault batch",
        "by faults",
        "prefetched",
        "evicted",
        "of the host",
        *dict.fromkeys(k[0] for k in kernels),
    ]
    if kernels:
        spans = sorted((begin * factor, end * factor, names.index(name)) for name, begin, end in kernels)
        lanes.append(Lane("kernels", *map(list, zip(*spans, strict=True))))  # type: ignore[arg-type]
    causes = {"fault": 1, "prefetch": 2, "eviction": 3}
    for title, kind in (("UVM driver", "batch"), ("to the GPU", "to_device"), ("to the host", "to_host")):
        own = log.filter(log["kind"] == kind).sort("begin")
        if own.height:
            what = [0 if kind == "batch" else causes.get(cause, 4) for cause in own["cause"].to_list()]
            begins, ends = ((own[name] * factor).to_list() for name in ("begin", "end"))
            lanes.append(Lane(title, begins, ends, what))
    return Lanes("Kernels, driver and link", unit, names, lanes, from_zero=True) if lanes else None


def unified_memory(parent: Parent, evidence: Evidence) -> None:
    """Faults, transfers, and pages over time."""
    for uvm in evidence.group("uvm"):
        if not any(evidence.value(uvm, name) for name in _FIRST):
            continue
        section = parent.section("Unified memory" if uvm == "uvm" else f"Unified memory: {uvm}")
        section.numbers(
            {words: shown(evidence.value(uvm, name), unit) for name, (words, unit) in _FIRST.items()}
        )
        came = evidence.value(uvm, "pages_prefetched")
        if came:
            used = share(evidence.value(uvm, "prefetched_used"), came)
            section.words(f"{percent(used)} of the prefetched pages were used before they left.")
        pages, transfers = page_map(evidence), transfers_chart(evidence)
        if pages is not None:
            section.chart(
                pages,
                "Dark where pages are on the GPU; points are pages that faulted, were prefetched or evicted.",
            )
        if transfers is not None:
            section.chart(transfers, "Activity of kernels, the UVM driver, and the link in both directions.")
        log = evidence.table("pages")
        if log is not None:
            units = dict.fromkeys(("begin", "end"), "s")
            section.table(log.head(_MOST_ROWS), "The page log.", **for_people(log.columns, units))
