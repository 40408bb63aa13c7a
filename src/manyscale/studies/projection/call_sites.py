# SPDX-License-Identifier: Apache-2.0
"""Compute phases by the MPI call sites of a program.

A call site is a region that the program marks around calls of MPI, such as a halo exchange with all its sends and
receives; a call outside of any region is a call site of its own, named by the call. The phase of a call site is all
that a rank does on its own since it left the one before, up to the last call of this one: the work between them, and
the packing of messages between the calls. A skeleton with the same call sites computes for so long before each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from manyscale.studies.call_log import CallOfRank

_SECOND = 10**15


def phases_by_call_site(
    calls_by_rank: Sequence[Sequence[CallOfRank]], end: int | None = None
) -> dict[str, list[list[float]]]:
    """By call site and rank: seconds that the rank computes for before each of its visits, in their order.

    Given the `end` of the run in femtoseconds, what comes after the last call is the phase "end".
    """
    ranks = len(calls_by_rank)
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(ranks)])
    for rank, calls in enumerate(calls_by_rank):
        left = 0
        visit: tuple[str, int] | None = None
        for call in calls:
            site = call.region or call.name
            here = (call.region, call.visit) if call.region else None
            if here is None or here != visit:
                found[site][rank].append(0.0)
            found[site][rank][-1] += (call.begin - left) / _SECOND
            left, visit = call.end, here
        if end is not None and calls:
            found["end"][rank].append(max(0, end - left) / _SECOND)
    return dict(found)
