# SPDX-License-Identifier: Apache-2.0
"""Networks under a job: the same on any number of threads, ways as they should be, and what the core refuses.

Times, throughput and routes themselves are tested in C++, in tests/core/test_network_*.cpp.
"""

from typing import Any

import numpy as np
import pytest
from mpi_programs import CoreProgram, make_job

from manyscale import _core

pytestmark = [pytest.mark.core, pytest.mark.parallel]

TOPOLOGIES = {
    "fat tree": {"topology.kind": "fat-tree", "topology.shape": "4,2:4,2:2"},
    "torus": {"topology.kind": "torus", "topology.shape": "4x4x2", "topology.links": "2"},
    "dragonfly": {
        "topology.kind": "dragonfly",
        "topology.group_switches": 4,
        "topology.global_links": 2,
        "topology.groups": 4,
        "topology.nodes_per_switch": 2,
    },
}


def exchange(ranks: int = 32) -> CoreProgram:
    """Everybody sends to four others at once, twice."""
    program = CoreProgram(ranks)
    everyone = np.arange(ranks)
    program.loop(2)
    for slot, distance in enumerate((1, 5, 11, 16)):
        program.add("ireceive", slot=2 * slot, peer=(everyone - distance) % ranks, tag=slot)
        program.add("isend", slot=2 * slot + 1, peer=(everyone + distance) % ranks, tag=slot, bytes=9000)
    program.add("waitall", slot=0, count=8)
    program.end_loop()
    return program


def job_on(name: str, **settings: Any) -> Any:
    """That exchange on one of the topologies, with all its nodes."""
    network = {"topology.nodes": 0, "switch.buffer": 4200, **TOPOLOGIES[name], **settings}
    return make_job(exchange(), network=network)


@pytest.mark.parametrize("fidelity", ["packet", "train"])
@pytest.mark.parametrize("algorithm", ["deterministic", "adaptive", "ugal"])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_threads_change_nothing(name: str, algorithm: str, fidelity: str):
    found = []
    for threads in (1, 2, 4):
        job = job_on(name, fidelity=fidelity, **{"routing.algorithm": algorithm})
        assert job.run(threads=threads)["outcome"] == "finished"
        ends = job.ranks()["end"].tolist()
        totals = job.totals()
        links = {key: np.asarray(value).tolist() for key, value in job.links().items()}
        found.append((ends, totals, links))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("name", "hops"), [("fat tree", {2, 4, 6}), ("torus", {3, 4, 5, 6, 7}), ("dragonfly", {2, 3, 4, 5})]
)
def test_ways_have_as_many_links_as_the_topology_says(name: str, hops: set[int]):
    job = job_on(name)
    assert {len(job.path(0, node)) for node in range(1, 32)} <= hops


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"topology.shape": "4,2:4,2"}, "roots"),
        ({"topology.shape": "9" * 500}, "whole numbers"),
        ({"topology.kind": "ring"}, "torus"),
        ({"switch.buffer": 100}, "must hold a packet"),
        ({"routing.algorithm": "fast"}, "ecmp"),
        ({"fidelity": "exact"}, "packet"),
    ],
)
def test_what_cannot_be_is_refused_with_words(settings: dict[str, Any], word: str):
    with pytest.raises(_core.SimulationError, match=word):
        job_on("fat tree", **settings)
