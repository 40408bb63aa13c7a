# SPDX-License-Identifier: Apache-2.0
"""Costs of an MPI library that differ by a closed form: latency, posting, windows of long messages, local bytes."""

import pytest

from manyscale.network.job import Job, cluster
from manyscale.network.skeleton import compile

pytestmark = pytest.mark.core

US = 1e-6


def one_message(mpi, rank, size, bytes=64):
    if rank == 0:
        mpi.send(1, bytes)
    else:
        mpi.recv(0, bytes)


def seconds(program, *changes, nodes=2, ranks_per_node=1, **parameters):
    told = [f"network.mpi.{change}" for change in changes]
    fabric = cluster("omnipath", told, nodes=nodes, ranks_per_node=ranks_per_node)
    return Job(compile(program, 2, **parameters), fabric).run().simulated_seconds


def test_latency_is_added_to_every_message():
    """Once for a short one; three times for a long one: question, answer, data."""
    long = {"bytes": 1 << 20}
    added = seconds(one_message, "latency=5us") - seconds(one_message)
    assert added == pytest.approx(5 * US, rel=1e-9)
    added = seconds(one_message, "latency=5us", **long) - seconds(one_message, **long)
    assert added == pytest.approx(15 * US, rel=1e-6)


@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_a_window_asks_again_for_each_piece(pieces):
    """With a latency that hides all else, a message in n pieces takes 1 + 2 n of it."""
    bytes = 1 << 18
    window = f"window={bytes // pieces}B"
    latency = seconds(one_message, window, "latency=10ms", bytes=bytes)
    without = seconds(one_message, window, bytes=bytes)
    assert latency - without == pytest.approx((1 + 2 * pieces) * 10e-3, rel=1e-6)


def test_all_of_a_message_arrives_through_a_window():
    """As many bytes cross the network, whatever the window; a last piece may be shorter."""
    fabric = cluster("omnipath", ["network.mpi.window=30000B"], nodes=2)
    result = Job(compile(one_message, 2, bytes=100_000), fabric).run()
    assert result.messages == 1
    carried = result.links.filter(result.links["from_node"])["bytes"].sum()
    assert carried >= 100_000
    again = Job(compile(one_message, 2, bytes=100_000), cluster("omnipath", nodes=2)).run()
    assert carried == pytest.approx(again.links.filter(again.links["from_node"])["bytes"].sum(), rel=0.01)


def test_posting_a_receive_takes_time():
    def many(mpi, rank, size):
        if rank == 1:
            requests = [mpi.irecv(0, 8) for _ in range(10)]
            mpi.compute("1ms")
            mpi.waitall(requests)
        else:
            for _ in range(10):
                mpi.send(1, 8)

    added = seconds(many, "post_overhead=3us") - seconds(many)
    assert added == pytest.approx(30 * US, rel=1e-6)


def test_bytes_within_a_node_cost_more():
    """Beside what a byte of any message costs; both ends, one after the other."""
    near = {"nodes": 1, "ranks_per_node": 2, "bytes": 4000}
    own = ("local.send_overhead_per_byte=1ns", "local.receive_overhead_per_byte=2ns")
    added = seconds(one_message, *own, **near) - seconds(one_message, **near)
    assert added == pytest.approx(4000 * 3e-9, rel=1e-6)
    far = {"bytes": 4000}
    assert seconds(one_message, *own, **far) == seconds(one_message, **far)
