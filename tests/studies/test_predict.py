# SPDX-License-Identifier: Apache-2.0
"""Predictions: against theory, their uncertainty, what would help, files, and the three commands."""

import json
import math
import shutil
from dataclasses import replace

import mpi_fixture
import numpy as np
import pytest
from typer.testing import CliRunner

from manyscale.cli.app import app
from manyscale.cpu.building import build
from manyscale.errors import InputError
from manyscale.machine import load_machine
from manyscale.network.durations import Distribution
from manyscale.network.job import Job, cluster
from manyscale.network.skeleton import compile
from manyscale.studies.projection.calibration import MpiCosts
from manyscale.studies.projection.measured_job import GroupTimings, MeasuredJob
from manyscale.studies.projection.predict import PARTS, Prediction, improvements, predict
from manyscale.studies.projection.recorded_job import record
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile, phase_name

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for this machine"),
]

STENCIL = "MPI_Waitall..MPI_Irecv"
NS = 10**6  # femtoseconds


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "programs"
    build(sorted(mpi_fixture.FOLDER.glob("*.c")), path, mpi=True, host=True, options=["-fopenmp"])
    return path


COSTS = MpiCosts(
    **dict.fromkeys(MpiCosts.__dataclass_fields__, 0)
    | {
        "send_overhead": 300 * NS,
        "receive_overhead": 300 * NS,
        "latency": 1000 * NS,
        "local_bandwidth": 10**10,
        "measured": {"64 B": 1e-6},
        "modelled": {"64 B": 1e-6},
    }
)


def group(samples, name=STENCIL):
    timings = TimingProfile([PhaseTiming.of(name, [samples])])
    return GroupTimings(timings, timings)


def measured(samples, ranks=4, labels=None, **changes):
    facts = {"network": "omnipath", "network_changes": [], "machine": "broadwell", "program": "heat"}
    found = MeasuredJob(labels or [0] * ranks, 1, [group(samples)], [group(samples)], COSTS, {}, facts)
    return replace(found, **changes)


@pytest.mark.parametrize(
    ("ranks", "draw", "expected"),
    [
        (16, lambda random, n: random.exponential(1e-3, n), sum(1 / i for i in range(1, 17)) * 1e-3),
        (8, lambda random, n: random.uniform(0, 1e-3, n), 8 / 9 * 1e-3),
        (2, lambda random, n: random.normal(1e-3, 1e-4, n), 1e-3 + 1e-4 / math.sqrt(math.pi)),
    ],
)
def test_the_slowest_rank_decides(ranks, draw, expected):
    """Drawn compute times and a barrier: each step takes the expected maximum, as theory has it."""
    steps = 3000
    times = Distribution.from_samples(draw(np.random.default_rng(7), 200_000))

    def step(mpi, rank, size):
        with mpi.loop(steps):
            mpi.compute(times)
            mpi.barrier()

    result = Job(compile(step, ranks), cluster("omnipath", nodes=ranks), critical_path=False).run()
    assert result.simulated_seconds / steps == pytest.approx(expected, rel=0.02)


def test_confidence_intervals():
    """Student's: 4.30 for three repetitions; the mean of many is known better."""
    few = Prediction(2, "ext-var", [1.0, 2.0, 3.0], dict.fromkeys(PARTS, 0.2))
    assert few.seconds == 2.0
    assert few.half_width == pytest.approx(4.30 / math.sqrt(3))
    assert (few.low, few.high) == pytest.approx((2 - few.half_width, 2 + few.half_width))
    assert Prediction(2, "ext-ct", [1.0], dict.fromkeys(PARTS, 0.2)).half_width == 0
    many = Prediction(2, "ext-var", [1.0, 2.0, 3.0] * 30, dict.fromkeys(PARTS, 0.2))
    assert many.half_width == pytest.approx(1.96 * np.std(many.runs, ddof=1) / math.sqrt(90))


def test_variability_takes_time(native):
    """Same mean, but half of the steps take four times the other half: partners wait for each other."""
    job = record(native, 4, ["heat"])
    random = np.random.default_rng(3)
    varied = measured(random.permutation([0.4e-3, 1.6e-3] * 500))
    constant = predict(job, varied, nodes=4, variant="ext-ct")
    variable = predict(job, varied, nodes=4, variant="ext-var", repetitions=4)
    assert len(constant.runs) == 1
    assert constant.seconds == pytest.approx(36e-3, rel=0.03)
    assert variable.low > 1.2 * constant.seconds
    assert variable.shares["waiting"] > 0.1 > constant.shares["waiting"]
    assert variable.limit == "compute"
    assert sum(variable.shares.values()) == pytest.approx(1)
    again = predict(job, varied, nodes=4, variant="ext-var", repetitions=4)
    assert again.runs == variable.runs
    assert predict(job, varied, nodes=4, variant="ext-var", repetitions=2, seed=9).runs != variable.runs[:2]


def test_what_would_help(native):
    """Nothing but messages of a few bytes: latency and overheads help, bandwidth does not."""
    job = record(native, 4, ["heat"])
    quick = measured([1e-7] * 10)
    base = predict(job, quick, nodes=4, repetitions=2)
    found = {
        one.name.split()[0] + " " + one.name.split()[-1]: one.gain for one in improvements(job, quick, base)
    }
    assert found["half interfaces"] > 0.1
    assert found["half processors"] > 0.05
    assert abs(found["twice links"]) < 0.05
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_groups_of_other_sizes():
    """A root and its followers stay what they are; ends of a line, too."""
    root = measured([1e-3], labels=[0, 1, 1, 1])
    assert root.groups(8) == [0, 1, 1, 1, 1, 1, 1, 1]
    assert root.groups(2) == [0, 1]
    line = measured([1e-3], labels=[0, 1, 1, 0])
    assert line.groups(6) == [0, 1, 1, 1, 1, 0]
    assert line.groups(4) == [0, 1, 1, 0]
    assert measured([1e-3]).groups(1) == [0]


def test_ranks_use_the_timings_of_their_group(native):
    """Rank 0 computes 10 times as long as the others, all wait for it in the end."""
    job = record(native, 2, ["heat"])
    both = measured([1e-3], labels=[0, 1], external=[group([10e-3]), group([1e-3])], alone=[])
    found = predict(job, both, nodes=2, variant="ext-ct")
    assert found.seconds == pytest.approx(36 * 10e-3, rel=0.02)
    with pytest.raises(InputError, match="node alone"):
        predict(job, both, nodes=2, variant="no ext-ct")


def test_a_node_alone_that_makes_fewer_calls():
    """One rank exchanges nothing, so its phases span what several do in the job: their sum is kept."""
    from manyscale.studies.projection.recorded_job import _phases_known

    steps = [
        ("compute", ("start", 0), ("MPI_Init", 1)),
        ("compute", ("MPI_Init", 1), ("MPI_Reduce", 2)),
        ("send", 5, 1, 8, 0),
        ("compute", ("MPI_Reduce", 2), ("MPI_Bcast", 3)),
        ("compute", ("MPI_Bcast", 3), ("MPI_Finalize", 4)),
        ("compute", ("MPI_Finalize", 4), ("end", 0)),
    ]
    whole = phase_name("MPI_Init", "MPI_Finalize", (1, 4))
    last = phase_name("MPI_Finalize", "end", (4, 0))
    alone = TimingProfile([PhaseTiming.of(name, [[1e-3]]) for name in (whole, last)])
    found = _phases_known(steps, alone)
    assert {index: used for index, _, used in found if used is not None} == {1: whole, 5: last}
    assert [index for index, _, used in found if used is None] == [
        0
    ]  # the calls between 1 and 4 are within `whole`


def test_a_phase_at_a_call_site_of_its_own_is_found():
    """Of two ranks that send at two copies of one line, each has the phase that the other has under another name."""
    from manyscale.studies.projection.recorded_job import _phases_known

    steps = [
        ("compute", ("MPI_Init", 1), ("MPI_Send", 7)),
        ("compute", ("MPI_Send", 7), ("MPI_Send", 2)),
        ("compute", ("MPI_Send", 2), ("MPI_Recv", 3)),
    ]
    known = [
        phase_name("MPI_Init", "MPI_Send", (1, 8)),
        phase_name("MPI_Send", "MPI_Send", (8, 2)),
        phase_name("MPI_Send", "MPI_Recv", (2, 3)),
    ]
    profile = TimingProfile([PhaseTiming.of(name, [[1e-3]]) for name in known])
    assert [used for _, _, used in _phases_known(steps, profile)] == known


def test_wrong_questions_are_refused(native):
    job = record(native, 2, ["heat"])
    some = measured([1e-3], ranks=2)
    with pytest.raises(InputError, match="recorded with 2 ranks"):
        predict(job, some, nodes=3)
    with pytest.raises(InputError, match="no variant"):
        predict(job, some, nodes=2, variant="best")
    with pytest.raises(InputError, match="repetition"):
        predict(job, some, nodes=2, repetitions=0)


def test_measured_jobs_can_be_kept(tmp_path):
    some = measured([1e-3, 2e-3], labels=[0, 1], external=[group([1e-3]), group([2e-3])], alone=[])
    some.save(tmp_path)
    again = MeasuredJob.load(tmp_path)
    assert again.labels == [0, 1]
    assert again.costs == some.costs
    assert again.external[1].phases[STENCIL].mean == pytest.approx(2e-3)
    path = tmp_path / "node.json"
    whole = json.loads(path.read_text())
    for change in (
        {"kind": "x"},
        {"schema": 7},
        {"labels": []},
        {"labels": [0]},
        {"costs": {}},
        {"external": "x"},
    ):
        path.write_text(json.dumps(whole | change))
        with pytest.raises(InputError, match=r"node\.json"):
            MeasuredJob.load(tmp_path)
    path.write_text("{")
    with pytest.raises(InputError, match="damaged"):
        MeasuredJob.load(tmp_path)


def test_three_commands(native, tmp_path):
    """Phases 1 to 3 of a small job, each from one command."""
    program = str(mpi_fixture.FOLDER / "fixtures" / "programs.xz")
    runner = CliRunner()

    def run(*arguments, out=tmp_path):
        result = runner.invoke(
            app, ["project", *arguments, "--out", str(out), "--json", "--", "heat", "32", "20"]
        )
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    found = run("profile", "--program", program, "--nodes", "2", "--quiet")
    assert found["source"] == "functional"
    assert len(found["groups"]) == 2
    phases = run("node", program, "--native", str(native), "--quiet")["phases"]
    assert any(row["phase"].startswith(STENCIL) for row in phases)
    stated = load_machine(tmp_path / "machine.toml").machine
    assert stated.cpu is not None
    assert stated.network is not None
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(tmp_path / "profile.json", again)
    both = ["--machine", str(tmp_path / "machine.toml"), "--network", str(tmp_path / "machine.toml")]
    repeated = run("node", program, "--native", str(native), *both, "--quiet", out=again)["phases"]
    assert repeated == phases  # the machine file states all that the runs used
    predicted = run("predict", "--nodes", "2,4", "--repetitions", "3", "--quiet")
    assert len(predicted["predictions"]) == 8
    network = load_machine(tmp_path / "network.toml").machine.network
    assert network.topology.nodes == 4
    assert network.mpi.collectives == "mpich"  # as the measured library
    assert predicted["improvements"]
    page = (tmp_path / "report.html").read_text()
    assert "What would help" in page
    assert (tmp_path / "profile.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["profile", "--nodes", "2"], "give the program"),
        (["profile", "--nodes", "2", "--groups", "0,1,1"], "names 3 ranks"),
        (["profile", "--nodes", "2", "--groups", "0,x"], "whole numbers"),
        (["node", "nothing.elf"], "how many nodes"),
        (["node", "nothing.elf", "--nodes", "2"], "--native"),
        (["predict", "--nodes", "2"], "cannot read"),
    ],
)
def test_mistakes_are_explained(arguments, message, tmp_path):
    result = CliRunner().invoke(app, ["project", *arguments, "--out", str(tmp_path / "empty")])
    assert result.exit_code != 0
    assert message in str(result.exception)
