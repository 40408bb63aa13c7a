# SPDX-License-Identifier: Apache-2.0
"""MPI programs on several nodes, all simulated in detail."""

import re
from pathlib import Path

import mpi_fixture
import pytest

from manyscale.errors import InputError
from manyscale.network.job import cluster
from manyscale.studies.detailed_cluster import run_detailed

pytestmark = pytest.mark.core

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "nodes", "ranks_per_node"), [("heat", 2, 2), ("heat", 4, 1), ("collectives", 2, 1)]
)
def test_same_results_as_mpich(name, nodes, ranks_per_node):
    """Short messages, long ones in pieces, collectives: what crosses the network is what was sent."""
    result = run_detailed(mpi_fixture.program(name), nodes=nodes, ranks_per_node=ranks_per_node)
    assert result.stdout == mpi_fixture.output_under_mpich(name, nodes * ranks_per_node)
    assert result.traffic["messages"] > 0


def test_time_does_not_depend_on_the_host():
    results = [
        run_detailed(mpi_fixture.program("heat"), nodes=3, ranks_per_node=2, threads=threads)
        for threads in (1, 2)
    ]
    assert results[0].run.now == results[1].run.now
    assert results[0].run.stats.equals(results[1].run.stats)


def test_a_slower_network_takes_longer():
    """Each exchange of the heat program waits for its neighbour: a microsecond more on each of 2 links shows."""
    times = []
    for latency in ("100ns", "2100ns"):
        fabric = cluster("omnipath", [f"network.link.latency={latency}"], nodes=2)
        times.append(
            run_detailed(mpi_fixture.program("heat"), nodes=2, ranks_per_node=1, network=fabric).seconds
        )
    assert times[1] - times[0] > 20 * 2e-6


def test_exit_codes_are_those_of_the_ranks():
    result = run_detailed(mpi_fixture.program("no such program"), nodes=2, ranks_per_node=1)
    assert [process.exit_code for process in result.processes] == [2, 2]


def test_one_node_is_refused():
    with pytest.raises(InputError, match=r"cpu\.run"):
        run_detailed(mpi_fixture.program("heat"), nodes=1, ranks_per_node=2)


def test_the_layout_is_that_of_the_library():
    """What the core believes of the MPI library's shared memory, against the library's own sources."""
    library = (ROOT / "runtime/mpi/internal.h").read_text() + (ROOT / "runtime/mpi/segment.c").read_text()
    core = (ROOT / "core/cpu/mpi/rank_rings.hpp").read_text()
    ring_bits = re.search(r"RING_BYTES = 1 << (\d+), LINE_BYTES = (\d+)", library)
    assert ring_bits is not None
    assert f"ring_bytes = 1 << {ring_bits[1]}" in core
    assert f"line_bytes = {ring_bits[2]}" in core
    order = ["written;", "sender_waits;", "taken;", "bytes[RING_BYTES]"]
    ring = library[library.index("struct ring {") :]
    assert [ring.index(field) for field in order] == sorted(ring.index(field) for field in order)
    mailbox = library[library.index("struct mailbox {") :]
    assert mailbox.index("bell;") < mailbox.index("sleeps;")
