# SPDX-License-Identifier: Apache-2.0
"""Programs that deadlock are diagnosed: who waits, in which call, for whom and which tag."""

from __future__ import annotations

import pytest
from mpi_programs import ANY, Call, core_program, finished, make_job

pytestmark = pytest.mark.core


def diagnosis(calls: list[list[Call]], **options: int) -> str:
    program, _ = core_program(calls)
    job = make_job(program, **options)
    assert job.run()["outcome"] == "deadlock"
    return str(job.explain_deadlock())


def test_two_ranks_that_receive_first() -> None:
    text = diagnosis([[("recv", 1, 5), ("send", 1, 6, 8)], [("recv", 0, 6), ("send", 0, 5, 8)]])
    assert "2 of 2 ranks wait for ever" in text
    assert "rank 0 in receive (operation 0) for a message from rank 1 with tag 5" in text
    assert "rank 1 in receive (operation 3) for a message from rank 0 with tag 6" in text
    assert "in a circle: rank 0 waits for rank 1, which waits for rank 0" in text


def test_large_sends_in_a_circle_wait_where_small_ones_do_not() -> None:
    """All send to the right and then receive from the left: MPI's classic, safe only below the eager limit."""

    def ring(size: int) -> list[list[Call]]:
        return [[("send", (r + 1) % 4, 0, size), ("recv", (r + 3) % 4, 0)] for r in range(4)]

    program, _ = core_program(ring(1000))
    finished(make_job(program))
    text = diagnosis(ring(1_000_000))
    assert "rank 2 in send" in text
    assert "an answer to its message to rank 3 with tag 0" in text
    assert (
        "rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3, which waits for rank 0"
        in text
    )


def test_a_wrong_tag_and_a_partner_that_has_ended() -> None:
    text = diagnosis([[("irecv", 0, 1, 3), ("irecv", 1, 1, 4), ("waitall", 0, 2)], [("send", 0, 3, 8)]])
    assert "1 of 2 ranks" in text
    assert "rank 0 in waitall (operation 2) for a message from rank 1 with tag 4" in text
    assert "tag 3" not in text
    assert "have ended" in text


def test_wildcards_and_probes_are_named() -> None:
    text = diagnosis([[("recv", ANY, ANY)], [("probe", 0, 8)]])
    assert "rank 0 in receive (operation 0) for a message from any rank with any tag" in text
    assert "rank 1 in probe" in text
    assert "from rank 0 with tag 8" in text


def test_a_collective_that_one_rank_leaves_out() -> None:
    calls: list[list[Call]] = [[("allreduce", {"bytes": 8})] for _ in range(4)]
    calls[3] = []
    text = diagnosis(calls)
    assert "3 of 4 ranks" in text
    assert "allreduce" in text
    assert "from rank 3 in collective 0" in text


def test_only_the_first_of_many_are_named() -> None:
    text = diagnosis([[("recv", ANY, 0)] for _ in range(100)], per_node=10)
    assert "100 of 100 ranks" in text
    assert "and 84 more" in text
