# SPDX-License-Identifier: Apache-2.0
"""From one node in detail, and a job recorded natively, to the time on several nodes."""

import shutil

import mpi_fixture
import numpy as np
import pytest

from manyscale.cpu.building import build
from manyscale.errors import InputError, ProgramError
from manyscale.network.job import Job, cluster
from manyscale.studies.projection.calibration import EAGER_LIMIT, ENVELOPE, WINDOW, calibrated
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
    names = {"stencil": "MPI_Waitall..MPI_Irecv"}
    return TimingProfile([PhaseTiming.of(names[name], [[time]]) for name, time in seconds.items()])


def test_a_recorded_job_sends_what_was_sent(native):
    """4 ranks on a 2 x 2 grid: 2 neighbours each in 40 steps, and the messages of 4 sums and of the end."""
    job = record(native, 4, ["heat"])
    halos = 4 * 2 * 40
    result = Job(job.program(constant()), cluster("omnipath", nodes=4)).run()
    assert job.messages > halos
    assert result.messages == job.messages


def test_compute_times_add_up(native):
    """With a network that takes no time to speak of, a rank's time is that of its phases: 36 of 40 steps of 8 ms.

    Every tenth step is followed by a sum, not by the next receive.
    """
    job = record(native, 2, ["heat"])
    result = Job(job.program(constant(stencil=8e-3)), cluster("omnipath", nodes=2)).run()
    assert result.simulated_seconds == pytest.approx(36 * 8e-3, rel=0.01)


def test_receives_from_anybody_name_the_sender(native):
    job = record(native, 3, ["point_to_point"])
    result = Job(job.program(constant()), cluster("omnipath", nodes=3)).run()
    assert result.messages == job.messages


@pytest.mark.parametrize("external", [False, True])
def test_phases_of_a_node(native, external):
    """The stencil comes between waiting for the halos and the first receive of the next step."""
    nodes = 2 if external else 1
    node = simulate_node(
        mpi_fixture.program("heat", "64", "40"),
        ranks_per_node=2,
        native_program=native if external else None,
        nodes=nodes,
        recording=record(native, 2 * nodes, ["heat", "64", "40"]),
    )
    assert node.profile.facts["external"] is external
    by_name = {}
    for name, ranks in node.phases.items():
        by_name.setdefault(name.partition(" @")[0], []).append([np.array(times) for times in ranks])
    (stencil,) = by_name["MPI_Waitall..MPI_Irecv"]
    assert [len(times) for times in stencil] == [36, 36]
    between = np.concatenate([times for site in by_name["MPI_Irecv..MPI_Irecv"] for times in site])
    assert stencil[0].mean() > 20 * between.mean()
    # Each of the four receives is a call site of its own: three phases lie between them.
    assert len(by_name["MPI_Irecv..MPI_Irecv"]) == 3
    assert node.profile.known("MPI_Waitall..MPI_Irecv @00000000") is None
    # Waiting is not computing: all phases together are shorter than the run.
    assert sum(sum(times[0]) for times in node.phases.values()) < node.seconds
    assert all(sum(stack.values()) > 0.2 for stack in node.cpi)


def test_without_a_recording_phases_have_the_names_of_calls():
    node = simulate_node(mpi_fixture.program("heat", "32", "10"), ranks_per_node=1)
    assert "MPI_Waitall..MPI_Irecv" in node.phases
    assert node.profile.known("MPI_Waitall..MPI_Irecv @12345678") == "MPI_Waitall..MPI_Irecv"


def test_other_nodes_need_native_ranks():
    with pytest.raises(InputError, match="native_program"):
        simulate_node(mpi_fixture.program("heat"), ranks_per_node=1, nodes=2)


def test_a_program_that_fails_is_told(native):
    with pytest.raises(InputError, match="ended with code 2"):
        record(native, 2, ["no such program"])


def test_a_simulated_program_that_fails_is_told():
    with pytest.raises(ProgramError, match="simulated rank 0 ended with code 2"):
        simulate_node(mpi_fixture.program("no such program"), ranks_per_node=1)


def test_each_rank_has_a_profile(native):
    job = record(native, 2, ["heat"])
    with pytest.raises(InputError, match="2 ranks need a timing profile each"):
        job.program([constant()])


@pytest.fixture(scope="module")
def costs():
    return calibrated()


def test_the_model_of_mpi_is_fitted(costs):
    """Ping-pongs of most sizes are within 10% of the detailed ones, and all within 30%.

    Costs are those of a send after some computing, when its buffers are in nobody's cache; in a ping-pong of 4 KiB they
    are, so that it is dearer in the model.
    """
    errors = {name: costs.modelled[name] / time - 1 for name, time in costs.measured.items()}
    between = [abs(error) for name, error in errors.items() if "between" in name]
    assert max(map(abs, errors.values())) < 0.3
    assert np.median(between) < 0.05
    assert np.median([abs(error) for error in errors.values()]) < 0.1
    assert costs.largest_error == pytest.approx(max(map(abs, errors.values())))


def test_costs_are_kept(costs, monkeypatch):
    def never(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr("manyscale.studies.projection.calibration.measure", never)
    assert calibrated() == costs


def test_the_library_is_the_one_that_is_modelled():
    """Sizes at which the library changes how it sends, against its sources."""
    from manyscale.cpu.building import runtime_folder

    text = (runtime_folder() / "mpi" / "messages.c").read_text()
    assert f"SHORT_BYTES = {EAGER_LIMIT}, PIECE_BYTES = {8192}" in text
    ring = 1 << 15
    assert ring // (8192 + ENVELOPE) * 8192 == WINDOW
