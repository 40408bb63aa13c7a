# SPDX-License-Identifier: Apache-2.0
"""The JEDEC rules of a memory channel, checked on a log of commands, independently of the model that made it.

A rule is "from one of these commands to one of those, in the same bank, group or rank, at least so many cycles". The
data bus is checked by the beats themselves, not by distances of commands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ["ACT", "PRE", "PREA", "RD", "RDA", "WR", "WRA", "REF", "REFSB"]
ACT, PRE, PREA, RD, RDA, WR, WRA, REF, REFSB = range(9)
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
    channel = _Channel(log, p)
    channel.check_distances()
    channel.check_precharges_by_themselves()
    channel.check_windows()
    channel.check_data_bus()
    channel.check_command_bus()
    channel.check_rows()
    channel.check_refreshes_of_open_banks()
    return channel.broken


class _Channel:
    """The columns of a log, with the scope of each command, and the rules that were found broken."""

    def __init__(self, log: Numbers, p: dict[str, Any]) -> None:
        self.p = p
        self.cycle, self.command, self.rank, group, bank, self.row = (
            np.ascontiguousarray(log[:, i]) for i in range(6)
        )
        self.in_group = self.rank * p["bank_groups"] + group
        self.in_bank = self.in_group * p["banks"] + bank
        self.columns = np.isin(self.command, (*READS, *WRITES))
        self.closing = np.isin(self.command, (RDA, WRA, PRE, PREA))
        self.broken: dict[str, int] = {}

    def _note(self, rule: str, wrong: Any) -> None:
        count = int(np.count_nonzero(wrong))
        if count:
            self.broken[rule] = self.broken.get(rule, 0) + count

    def _gate(
        self, rule: str, earlier: tuple[int, ...], later: tuple[int, ...], scope: Numbers, distance: int
    ) -> None:
        since = self.cycle - _last_before(self.cycle, np.isin(self.command, earlier), scope)
        self._note(rule, np.isin(self.command, later) & (since < distance))

    def check_distances(self) -> None:
        """Rules on two commands of a bank, group or rank."""
        gate, p = self._gate, self.p
        rank, in_group, in_bank = self.rank, self.in_group, self.in_bank
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
        gate("tRFCSB", (REFSB,), (ACT, REFSB), in_bank, p["trfc"])
        gate("tRC before refresh", (ACT,), (REFSB,), in_bank, p["trc"])
        gate("tRP before refresh", (PRE,), (REFSB,), in_bank, p["trp"])
        gate("tRTP + tRP", (RDA,), (REFSB,), in_bank, p["trtp"] + p["trp"])
        gate("tWR + tRP", (WRA,), (REFSB,), in_bank, write_end + p["twr"] + p["trp"])

    def check_precharges_by_themselves(self) -> None:
        """A bank that closes by itself does so tRAS after its activate at the earliest."""
        cycle, command, in_bank = self.cycle, self.command, self.in_bank
        closed = np.maximum(
            _last_before(cycle, command == PRE, in_bank), _last_before(cycle, command == PREA, self.rank)
        )
        alone = (command == ACT) & (_last_before(cycle, np.isin(command, (RDA, WRA)), in_bank) > closed)
        since_activate = cycle - _last_before(cycle, command == ACT, in_bank)
        self._note("tRAS + tRP", alone & (since_activate < self.p["tras"] + self.p["trp"]))

    def check_windows(self) -> None:
        """Four activates of a rank, and its refreshes."""
        cycle, command, p = self.cycle, self.command, self.p
        for one in range(p["ranks"]):
            activates = cycle[(command == ACT) & (self.rank == one)]
            self._note("tFAW", activates[4:] - activates[:-4] < p["tfaw"])
            if not p["trefi"] or len(cycle) == 0:
                continue
            for refreshed in self._refreshed_together(one):
                refreshes = cycle[refreshed]
                ends = np.concatenate(([0], refreshes, [cycle[-1]]))
                self._note("tREFI", np.diff(ends) > 9 * p["trefi"])  # at most eight may be postponed
                self._note("tREFI in the mean", len(refreshes) < cycle[-1] // p["trefi"] - 8)

    def _refreshed_together(self, rank: int) -> list[NDArray[np.bool_]]:
        """Commands that refresh the rank, or each of its banks."""
        if not self.p.get("refresh_by_bank"):
            return [(self.command == REF) & (self.rank == rank)]
        banks = self.p["bank_groups"] * self.p["banks"]
        return [(self.command == REFSB) & (self.in_bank == rank * banks + bank) for bank in range(banks)]

    def check_data_bus(self) -> None:
        """The data bus, by its beats."""
        p = self.p
        writes, ranks = np.isin(self.command[self.columns], WRITES), self.rank[self.columns]
        begin = self.cycle[self.columns] + np.where(writes, p["tcwl"], p["tcl"])
        gap = begin[1:] - begin[:-1] - p["burst_cycles"]
        to_write = ~writes[:-1] & writes[1:]
        self._note("data bus", gap < 0)
        self._note("turnaround", (gap < p["turnaround"]) & to_write & (ranks[:-1] == ranks[1:]))
        self._note("tRTRS", (gap < p["trtrs"]) & (ranks[:-1] != ranks[1:]))

    def check_command_bus(self) -> None:
        """One command a cycle, in order."""
        self._note("order", np.diff(self.cycle) < 0)
        columns = self.columns
        buses = [columns, ~columns] if self.p["separate_row_bus"] else [np.ones_like(columns)]
        for bus in buses:
            self._note("command bus", np.diff(self.cycle[bus]) == 0)

    def check_rows(self) -> None:
        """What is read is open, what is opened was closed."""
        command, columns = self.command, self.columns
        index = np.arange(len(self.cycle))
        opened = _last_before(index, command == ACT, self.in_bank)
        closed = np.maximum(
            _last_before(index, self.closing & (command != PREA), self.in_bank),
            _last_before(index, command == PREA, self.rank),
        )
        is_open = opened > closed
        self._note("column of a closed bank", columns & ~is_open)
        self._note("column of another row", columns & is_open & (self.row[opened.clip(0)] != self.row))
        self._note("activate of an open bank", (command == ACT) & is_open)
        self._note("precharge of a closed bank", (command == PRE) & ~is_open)

    def check_refreshes_of_open_banks(self) -> None:
        """What is refreshed was closed."""
        command = self.command
        for one in np.unique(self.in_bank[command == ACT]):
            mine = self.in_bank == one
            same_rank = self.rank == self.rank[mine][0]
            refresh = np.flatnonzero(((command == REF) & same_rank) | ((command == REFSB) & mine))
            for_all = np.flatnonzero((command == PREA) & same_rank)
            opens = np.flatnonzero(mine & (command == ACT))
            closes = np.union1d(np.flatnonzero(mine & self.closing), for_all)
            last_open = np.searchsorted(opens, refresh) - 1
            last_close = np.searchsorted(closes, refresh) - 1
            open_at = np.where(last_open >= 0, opens[last_open.clip(0)], -1)
            close_at = np.where(last_close >= 0, closes[last_close.clip(0)] if len(closes) else -1, -1)
            self._note("refresh of an open bank", open_at > close_at)
