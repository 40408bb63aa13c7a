# SPDX-License-Identifier: Apache-2.0
"""Skeletons with measured compute phases: what they compute, when, and on which ranks."""

import pytest

from manyscale.errors import InputError
from manyscale.network import Distribution, Job, Pattern, cluster, compile, motif, vectorised

pytestmark = pytest.mark.core

SITES = {
    "hpcg": ("halo", "dot"),
    "snap": ("receive", "send", "converged"),
    "milc": ("faces", "sum"),
    "fft2d": ("transpose",),
    "dataparallel": ("gradients", "weights", "loss"),
    "gputraining": ("forward", "backward", "update"),
}
SMALL = {
    "hpcg": {"nx": 8, "ny": 8, "nz": 8, "levels": 3, "iterations": 2},
    "snap": {"nx": 20, "chunk": 10, "groups": 1},
    "milc": {"iterations": 2},
    "fft2d": {"iterations": 2},
    "dataparallel": {"layers": 2, "steps": 2},
    "gputraining": {"steps": 2},
}


def timings(name, *more):
    """A microsecond for each call site."""
    return {site: Distribution.of(["1us"]) for site in (*SITES[name], *more)}


@vectorised
def two_of_a_phase(mpi, rank, size):
    """Two calls in a loop that are occurrences of one phase."""
    pattern = Pattern.of([0, 1], ["1us", "2us"])
    with mpi.loop(3):
        mpi.compute(pattern, phase="a")
        mpi.compute(pattern, phase="a")


def test_calls_of_a_phase_go_on_with_its_pattern():
    """1, 2, 1, 2, 1, 2 us; two phases of their own would take 1, 1, 2, 2, 1, 1 us."""
    program = compile(two_of_a_phase, 1)
    assert [step.occurrence for step in program.steps(0)] == list(range(6))
    assert Job(program, cluster(nodes=1)).run().simulated_seconds == pytest.approx(9e-6, rel=1e-12)


@pytest.mark.parametrize("name", SITES)
def test_only_measured_phases_are_computed(name):
    """One rank talks to nobody, so its time is that of its phases."""
    program = compile(motif(name, **SMALL[name]).with_timings(timings(name)).emit, 1, name=name)
    kinds = [step.kind for step in program.steps(0)]
    assert kinds.count("compute") == 0
    expected = kinds.count("draw") * 1e-6
    quiet = [f"network.mpi.{part}_overhead=0s" for part in ("send", "receive")]
    found = Job(program, cluster("omnipath", quiet, nodes=1)).run().simulated_seconds
    assert expected <= found < expected + 2e-6


def test_hpcg_computes_before_each_exchange_and_each_sum():
    """With 3 levels: 5 smoothings, 2 products and 1 more in an iteration, and 3 sums."""
    skeleton = motif("hpcg", **SMALL["hpcg"])
    program = compile(skeleton.with_timings(timings("hpcg")).emit, 8)
    assert sum(step.kind == "draw" for step in program.steps(3)) == 2 * (5 + 2 + 1 + 3)
    checked = compile(skeleton.with_timings(timings("hpcg", "setup", "check halo", "check")).emit, 8)
    assert sum(step.kind == "draw" for step in checked.steps(3)) == 2 * (5 + 2 + 1 + 3) + 1 + 2 + 1


def test_some_ranks_have_timings_of_their_own():
    """Of 4 ranks the first and the last compute twice as long at one of two call sites."""
    slow = {"gradients": Distribution.of(["3us"]), "weights": Distribution.of(["1us"])}
    slow["loss"] = Distribution.of(["1us"])
    skeleton = motif("dataparallel", layers=1, steps=1)
    program = compile(skeleton.with_timings(timings("dataparallel"), {(0, -1): slow}).emit, 4)
    result = Job(program, cluster(nodes=4)).run()
    computed = [
        sum(program.patterns[step["pattern"]].mean for step in program.steps(rank) if step.kind == "draw")
        for rank in range(4)
    ]
    assert computed == [
        10e9,
        6e9,
        6e9,
        10e9,
    ]  # femtoseconds of 2 steps: the program checks itself with one more
    assert result.simulated_seconds > 10e-6


def test_calls_for_peers_that_do_not_exist_take_their_time():
    """One rank has none of its 26 neighbours: 2 x 8 exchanges of 26 sends and receives, of 3 and 4 us."""
    skeleton = motif("hpcg", **SMALL["hpcg"])
    times = [
        Job(compile(skeleton.with_timings(timings("hpcg"), nobody=cost).emit, 1), cluster(nodes=1)).run()
        for cost in ((0, 0), (3 * 10**9, 4 * 10**9))
    ]
    added = times[1].simulated_seconds - times[0].simulated_seconds
    assert added == pytest.approx(2 * 8 * 26 * 7e-6, rel=1e-9)


def test_a_call_site_without_timings_is_named():
    with pytest.raises(InputError, match="no site 'dot'"):
        compile(motif("hpcg", **SMALL["hpcg"]).with_timings({"halo": Distribution.of(["1us"])}).emit, 2)


def test_longer_transforms_take_longer():
    """Rows of 256 numbers instead of 16 have twice the levels."""
    fabric = cluster(nodes=1)
    times = []
    for points, measured in ((16 * 16, 16), (256 * 256, 16), (256 * 256, 0)):
        skeleton = motif("fft2d", points=points, measured_side=measured).with_timings(timings("fft2d"))
        times.append(Job(compile(skeleton.emit, 1), fabric).run().simulated_seconds)
    assert times[1] == pytest.approx(2 * times[0], rel=0.2)
    assert times[2] == pytest.approx(times[0], rel=0.2)
