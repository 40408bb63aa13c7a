# SPDX-License-Identifier: Apache-2.0
"""The JEDEC rules of a memory channel, checked on a log of commands, independently of the model that made it.

A rule is "from one of these commands to one of those, in the same bank, group or rank, at least so many cycles". The
data bus is checked by the beats themselves, not by distances of commands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ["ACT", "PRE", "PREA", "RD", "RDA", "WR", "WRA", "REF"]
ACT, PRE, PREA, RD, RDA, WR, WRA, REF = range(8)
READS, WRITES = (RD, RDA), (WR, WRA)
_LONG_AGO = 10**12
_APART = 10**13

Numbers = NDArray[np.int64]


def unpack(packed: bytes) -> Numbers:
    """The rows (cycle, command, rank, group, bank, row, column) of a packed log."""
    return np.frombuffer(packed, dtype=np.int64).reshape(-1, 7)


def _last_before(values: Numbers, chosen: NDArray[np.bool_], scope: Numbers) -> Numbers:
    """For each row the highest value of the chosen rows before it in its scope, or long ago."""
    order = np.argsort(scope, kind="stable")
    sorted_scope = scope[order]
    first = np.concatenate(([True], sorted_scope[1:] != sorted_scope[:-1]))
    own = np.where(chosen, values, -_LONG_AGO)[order]
    before = np.concatenate(([-_LONG_AGO], own[:-1]))
    before[first] = -_LONG_AGO
    segment = np.cumsum(first) * _APART
    highest = np.maximum.accumulate(before + segment) - segment
    result = np.empty_like(highest)
    result[order] = highest
    return result


def violations(log: Numbers, p: dict[str, Any]) -> dict[str, int]:
    """How often each rule is broken; rules that hold are not named."""
    cycle, command, rank, group, bank, row = (np.ascontiguousarray(log[:, i]) for i in range(6))
    in_group = rank * p["bank_groups"] + group
    in_bank = in_group * p["banks"] + bank
    broken: dict[str, int] = {}

    def note(rule: str, wrong: Any) -> None:
        count = int(np.count_nonzero(wrong))
        if count:
            broken[rule] = broken.get(rule, 0) + count

    def gate(
        rule: str, earlier: tuple[int, ...], later: tuple[int, ...], scope: Numbers, distance: int
    ) -> None:
        since = cycle - _last_before(cycle, np.isin(command, earlier), scope)
        note(rule, np.isin(command, later) & (since < distance))

    write_end = p["tcwl"] + p["burst_cycles"]
    gate("tRCD", (ACT,), READS, in_bank, p["trcd"])
    gate("tRCD of writes", (ACT,), WRITES, in_bank, p["trcd_write"])
    gate("tRAS", (ACT,), (PRE,), in_bank, p["tras"])
    gate("tRAS", (ACT,), (PREA,), rank, p["tras"])
    gate("tRC", (ACT,), (ACT,), in_bank, p["trc"])
    gate("tRC before refresh", (ACT,), (REF,), rank, p["trc"])
    gate("tRP", (PRE,), (ACT,), in_bank, p["trp"])
    gate("tRP", (PREA,), (ACT,), rank, p["trp"])
    gate("tRP before refresh", (PRE, PREA), (REF,), rank, p["trp"])
    gate("tRTP", (RD,), (PRE,), in_bank, p["trtp"])
    gate("tRTP", READS, (PREA,), rank, p["trtp"])
    gate("tRTP + tRP", (RDA,), (ACT,), in_bank, p["trtp"] + p["trp"])
    gate("tRTP + tRP", (RDA,), (REF,), rank, p["trtp"] + p["trp"])
    gate("tWR", (WR,), (PRE,), in_bank, write_end + p["twr"])
    gate("tWR", WRITES, (PREA,), rank, write_end + p["twr"])
    gate("tWR + tRP", (WRA,), (ACT,), in_bank, write_end + p["twr"] + p["trp"])
    gate("tWR + tRP", (WRA,), (REF,), rank, write_end + p["twr"] + p["trp"])
    gate("tRRD_S", (ACT,), (ACT,), rank, p["trrd_s"])
    gate("tRRD_L", (ACT,), (ACT,), in_group, p["trrd_l"])
    for kind in (READS, WRITES):
        gate("tCCD_S", kind, kind, rank, p["tccd_s"])
        gate("tCCD_L", kind, kind, in_group, p["tccd_l"])
    gate("tWTR_S", WRITES, READS, rank, write_end + p["twtr_s"])
    gate("tWTR_L", WRITES, READS, in_group, write_end + p["twtr_l"])
    gate("tRFC", (REF,), (ACT, REF), rank, p["trfc"])
    # A bank that closes by itself does so tRAS after its activate at the earliest.
    closing = np.isin(command, (RDA, WRA, PRE, PREA))
    closed_alone = (command == ACT) & (
        _last_before(cycle, np.isin(command, (RDA, WRA)), in_bank)
        > np.maximum(_last_before(cycle, command == PRE, in_bank), _last_before(cycle, command == PREA, rank))
    )
    since_activate = cycle - _last_before(cycle, command == ACT, in_bank)
    note("tRAS + tRP", closed_alone & (since_activate < p["tras"] + p["trp"]))

    for one in range(p["ranks"]):
        activates = cycle[(command == ACT) & (rank == one)]
        note("tFAW", activates[4:] - activates[:-4] < p["tfaw"])
        refreshes = cycle[(command == REF) & (rank == one)]
        if p["trefi"] and len(cycle):
            ends = np.concatenate(([0], refreshes, [cycle[-1]]))
            note("tREFI", np.diff(ends) > 9 * p["trefi"])  # at most eight may be postponed
            note("tREFI in the mean", len(refreshes) < cycle[-1] // p["trefi"] - 8)

    # The data bus, by its beats.
    columns = np.isin(command, (*READS, *WRITES))
    writes, ranks = np.isin(command[columns], WRITES), rank[columns]
    begin = cycle[columns] + np.where(writes, p["tcwl"], p["tcl"])
    gap = begin[1:] - begin[:-1] - p["burst_cycles"]
    note("data bus", gap < 0)
    note("turnaround", (gap < p["turnaround"]) & ~writes[:-1] & writes[1:] & (ranks[:-1] == ranks[1:]))
    note("tRTRS", (gap < p["trtrs"]) & (ranks[:-1] != ranks[1:]))

    # The command bus.
    note("order", np.diff(cycle) < 0)
    buses = [columns, ~columns] if p["separate_row_bus"] else [np.ones_like(columns)]
    for bus in buses:
        note("command bus", np.diff(cycle[bus]) == 0)

    # Rows: what is read is open, what is opened or refreshed was closed.
    index = np.arange(len(cycle))
    opened = _last_before(index, command == ACT, in_bank)
    closed = np.maximum(
        _last_before(index, closing & (command != PREA), in_bank), _last_before(index, command == PREA, rank)
    )
    is_open = opened > closed
    note("column of a closed bank", columns & ~is_open)
    note("column of another row", columns & is_open & (row[opened.clip(0)] != row))
    note("activate of an open bank", (command == ACT) & is_open)
    note("precharge of a closed bank", (command == PRE) & ~is_open)
    for one in np.unique(in_bank[command == ACT]):
        mine = in_bank == one
        mine_rank = rank[mine][0]
        refresh = np.flatnonzero((command == REF) & (rank == mine_rank))
        for_all = np.flatnonzero((command == PREA) & (rank == mine_rank))
        opens = np.flatnonzero(mine & (command == ACT))
        closes = np.union1d(np.flatnonzero(mine & closing), for_all)
        last_open = np.searchsorted(opens, refresh) - 1
        last_close = np.searchsorted(closes, refresh) - 1
        open_at = np.where(last_open >= 0, opens[last_open.clip(0)], -1)
        close_at = np.where(last_close >= 0, closes[last_close.clip(0)] if len(closes) else -1, -1)
        note("refresh of an open bank", open_at > close_at)
    return broken
