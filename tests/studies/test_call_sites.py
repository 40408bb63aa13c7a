# SPDX-License-Identifier: Apache-2.0
"""Compute phases by the call sites at which a program communicates."""

import pytest

from manyscale.studies.call_log import CallOfRank
from manyscale.studies.projection.call_sites import phases_by_call_site

US = 10**9


def call(name, begin, end, region="", visit=0):
    return CallOfRank(name, begin * US, end * US, region, visit)


def test_a_phase_is_all_that_a_rank_does_on_its_own_up_to_the_last_call_of_a_site():
    rank = [
        call("MPI_Irecv", 10, 11, "halo", 1),
        call("MPI_Isend", 13, 14, "halo", 1),  # 2 us of packing before it
        call("MPI_Waitall", 14, 20, "halo", 1),
        call("MPI_Allreduce", 25, 30, "dot", 2),
        call("MPI_Irecv", 31, 32, "halo", 3),
        call("MPI_Waitall", 33, 40, "halo", 3),
        call("MPI_Barrier", 47, 48),
        call("MPI_Barrier", 50, 51),
    ]
    found = phases_by_call_site([rank, []])
    assert found.keys() == {"halo", "dot", "MPI_Barrier"}
    assert found["halo"] == [pytest.approx([12e-6, 2e-6]), []]
    assert found["dot"] == [pytest.approx([5e-6]), []]
    assert found["MPI_Barrier"] == [pytest.approx([7e-6, 2e-6]), []]


def test_what_comes_after_the_last_call_is_the_end():
    found = phases_by_call_site([[call("MPI_Finalize", 3, 5)], []], end=9 * US)
    assert found == {"MPI_Finalize": [pytest.approx([3e-6]), []], "end": [pytest.approx([4e-6]), []]}


def test_nothing_between_calls_is_lost_or_counted_twice():
    calls = [call("MPI_Send", 7 * n, 7 * n + 3, "a" if n % 3 else "", n // 2) for n in range(1, 50)]
    total = sum(sum(times) for (times,) in phases_by_call_site([calls]).values())
    outside = 7 + 48 * 4  # microseconds before the first call, and between each two
    assert total == pytest.approx(outside * 1e-6)
