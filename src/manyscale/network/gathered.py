# SPDX-License-Identifier: Apache-2.0
"""The results of a job that several processes ran together: each has those of its own nodes, all are added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyscale.processes import Processes

_LINK_SUMS = ("bytes", "packets", "busy", "queueing")


class GatheredJob:
    """What a native job tells of its results, for the whole job."""

    def __init__(self, native: Any, processes: Processes) -> None:
        own = {
            "ranks": native.ranks(),
            "totals": native.totals(),
            "latency": native.latency(),
            "links": native.links(),
            "link_history": native.link_history(),
        }
        parts = processes.gather(own)
        self._ranks = _added([part["ranks"] for part in parts], but={"end": np.maximum})
        self._totals = {name: sum(part["totals"][name] for part in parts) for name in own["totals"]}
        self._latency = _histogram([part["latency"] for part in parts])
        links = [part["links"] for part in parts]
        self._links = dict(links[0]) | _added([{name: table[name] for name in _LINK_SUMS} for table in links])
        self._link_history = _history([part["link_history"] for part in parts])

    def ranks(self) -> dict[str, Any]:
        """For each rank its times."""
        return self._ranks

    def totals(self) -> dict[str, int]:
        """Messages, bytes, packets."""
        return self._totals

    def latency(self) -> dict[str, Any]:
        """How many messages took how long."""
        return self._latency

    def links(self) -> dict[str, Any]:
        """What each link carried."""
        return self._links

    def link_history(self) -> dict[str, Any]:
        """What each link carried in each interval."""
        return self._link_history

    def critical_path(self) -> dict[str, Any]:
        """Empty, and not complete: it goes through the waits of ranks in all processes."""
        none = np.array([], np.int64)
        columns = dict.fromkeys(("rank", "begin", "end", "peer", "operation"), none)
        return columns | {"kind": [], "complete": False}


def _added(tables: list[dict[str, Any]], but: dict[str, Any] | None = None) -> dict[str, Any]:
    """The sum of columns: where a process does not have a row, it has zeros."""
    how = but or {}
    whole = {}
    for name in tables[0]:
        values = np.asarray(tables[0][name])
        for table in tables[1:]:
            values = how.get(name, np.add)(values, np.asarray(table[name]))
        whole[name] = values
    return whole


def _histogram(tables: list[dict[str, Any]]) -> dict[str, Any]:
    counts: dict[int, int] = {}
    for table in tables:
        for lower, count in zip(table["lower"].tolist(), table["count"].tolist(), strict=True):
            counts[lower] = counts.get(lower, 0) + count
    lowers = sorted(counts)
    return {
        "lower": np.array(lowers, np.int64),
        "count": np.array([counts[lower] for lower in lowers], np.int64),
    }


def _history(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Intervals double as a run gets longer, in each process by its own links: the longest is that of all."""
    interval = max(table["interval"] for table in tables)
    whole: dict[str, Any] = {"interval": interval}
    for name in ("sent", "waited"):
        series = [_coarser(np.asarray(table[name]), interval, table["interval"]) for table in tables]
        width = max(values.shape[1] for values in series) if series[0].ndim == 2 else 0
        total = np.zeros((series[0].shape[0], width), np.float32)
        for values in series:
            total[:, : values.shape[1]] += values
        whole[name] = total
    return whole


def _coarser(values: Any, interval: int, own: int) -> Any:
    factor = interval // own if own else 1
    if factor <= 1:
        return values
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % factor)))
    return padded.reshape(values.shape[0], -1, factor).sum(axis=2, dtype=np.float32)
