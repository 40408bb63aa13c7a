# SPDX-License-Identifier: Apache-2.0
"""The MPI calls that the ranks of a simulated node made, one by one, with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyscale import _core
from manyscale.errors import InputError
from manyscale.machine.cpu_system import CpuSystem

MOST_ENTRIES = 4_000_000  # beginnings and ends of regions that each core keeps


@dataclass(frozen=True)
class CallOfRank:
    """One call: its name, when it began and ended in femtoseconds, and where it was made."""

    name: str
    begin: int
    end: int
    region: str = ""  # the innermost region that the program marked, or nothing
    visit: int = 0  # counts the times that the rank has entered marked regions


def calls_of_ranks(parts: CpuSystem, ranks: int) -> list[list[CallOfRank]]:
    """The calls of each rank of a node that was built with `region_log=MOST_ENTRIES` and has run.

    Calls that the library makes within a call are not among them.
    """
    details: dict[str, Any] = _core.cpu_details(parts.program.native, [core.native for core in parts.cores])
    regions: Sequence[dict[str, Any]] = details["regions"]
    events: list[list[tuple[int, int, bool]]] = [[] for _ in range(ranks)]
    for core in parts.cores:
        log: dict[str, Any] = _core.cpu_region_log(core.native)
        if log["dropped"]:
            raise InputError(f"the node made more than {MOST_ENTRIES // 2:,} calls; simulate a shorter run")
        for time, thread, region, enters in zip(
            log["time"], log["thread"], log["region"], log["enters"], strict=True
        ):
            # The first thread of a process has its rank's number; only it communicates.
            if thread < ranks:
                events[thread].append((time, region, enters))
    return [_calls(sorted(of_rank, key=lambda event: event[0]), regions) for of_rank in events]


def _calls(events: Sequence[tuple[int, int, bool]], regions: Sequence[dict[str, Any]]) -> list[CallOfRank]:
    found: list[CallOfRank] = []
    marked: list[str] = []
    depth = began = visits = 0
    for time, region, enters in events:
        if regions[region]["kind"] != "mpi":
            if depth == 0 and regions[region]["kind"] == "user":
                if enters:
                    marked.append(regions[region]["name"])
                    visits += 1
                elif marked:
                    marked.pop()
            continue
        if enters:
            if depth == 0:
                began = time
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                where = marked[-1] if marked else ""
                found.append(CallOfRank(regions[region]["name"], began, time, where, visits))
    return found
