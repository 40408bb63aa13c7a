# SPDX-License-Identifier: Apache-2.0
"""From one node in detail, and a job recorded natively, to the time on several nodes."""

import shutil

import mpi_fixture
import numpy as np
import pytest

from manyscale.cpu.building import build
from manyscale.errors import InputError
from manyscale.network.job import Job, cluster
from manyscale.studies.projection.node import simulate_node
from manyscale.studies.projection.recorded_job import record
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for this machine"),
]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "programs"
    build(sorted(mpi_fixture.FOLDER.glob("*.c")), path, mpi=True, host=True, options=["-fopenmp"])
    return path


def constant(**seconds):
    return TimingProfile([PhaseTiming.of(name, [[time]]) for name, time in seconds.items()])


def test_a_recorded_job_sends_what_was_sent(native):
    """4 ranks on a 2 x 2 grid: 2 neighbours each in 40 steps, and the messages of 4 sums and of the end."""
    job = record(native, 4, ["heat"])
    halos = 4 * 2 * 40
    result = Job(job.program(constant()), cluster("omnipath", nodes=4)).run()
    assert job.messages > halos
    assert result.messages == job.messages


def test_compute_times_add_up(native):
    """With a network that takes no time to speak of, a rank's time is that of its phases: 40 steps of 8 ms."""
    job = record(native, 2, ["heat"])
    result = Job(job.program(constant(MPI_Waitall=8e-3)), cluster("omnipath", nodes=2)).run()
    assert result.simulated_seconds == pytest.approx(40 * 8e-3, rel=0.01)


def test_receives_from_anybody_name_the_sender(native):
    job = record(native, 3, ["point_to_point"])
    result = Job(job.program(constant()), cluster("omnipath", nodes=3)).run()
    assert result.messages == job.messages


@pytest.mark.parametrize("external", [False, True])
def test_phases_of_a_node(native, external):
    """The stencil comes before the first receive of the next step; the pattern of 4 receives a step shows it."""
    node = simulate_node(
        mpi_fixture.program("heat", "64", "40"),
        ranks_per_node=2,
        native_program=native if external else None,
        nodes=2 if external else 1,
    )
    assert node.profile.facts["external"] is external
    receives = [np.array(times) for times in node.phases["MPI_Irecv"]]
    assert [len(times) for times in receives] == [160, 160]
    by_place = receives[0].reshape(40, 4)[1:]
    assert by_place[:, 0].mean() > 20 * by_place[:, 1:].mean()
    assert 0 < node.overheads["MPI_Irecv"] < 1e-6
    # Waiting is not computing: all phases together are shorter than the run.
    assert sum(sum(times[0]) for times in node.phases.values()) < node.seconds


def test_other_nodes_need_native_ranks():
    with pytest.raises(InputError, match="native_program"):
        simulate_node(mpi_fixture.program("heat"), ranks_per_node=1, nodes=2)


def test_a_program_that_fails_is_told(native):
    with pytest.raises(InputError, match="ended with code 2"):
        record(native, 2, ["no such program"])
