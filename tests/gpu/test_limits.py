# SPDX-License-Identifier: Apache-2.0
"""The verdict of a kernel: it names the problem, its twin has it no more, and mending it gains what was estimated."""

import functools

import pytest
from bound_kernels import BOUNDS, SMALL, words
from limit_pairs import PAIRS
from sass_support import needs_assembler

from manyscale import gpu, load_machine
from manyscale.gpu import limits

pytestmark = pytest.mark.core

# Of the estimated saving, what running the twin must save at least and at most; the same for all pairs.
LEAST, MOST = 0.6, 1.6
# ptxas takes the special functions out of the loop itself, as the twin does.
MENDED_BY_PTXAS = ("special functions",)


@functools.cache
def profiles(name, twin, isa):
    pair = PAIRS[name]
    bound = pair.twin if twin else pair.problem
    on = gpu.TimedDevice(load_machine("v100", [*SMALL, *bound.changes]).machine, isa=isa)
    kernel = on.load(bound.source)["k"][bound.grid, bound.block]
    data = words(on, bound)
    return [kernel(data, bound.times).profile for _ in range(1 if twin else pair.launches)]


def check(name, isa):
    problem, (twin,) = (profiles(name, which, isa) for which in (False, True))
    limit = problem[0].limit
    assert limit.kind == PAIRS[name].kind, str(limit)
    assert limit.advice
    assert limit.gain
    assert twin.limit.kind != limit.kind, str(twin.limit)
    estimated = sum(each.limit.saved for each in problem)
    measured = sum(each["duration"] for each in problem) - twin["duration"]
    assert LEAST <= measured / estimated <= MOST, (
        f"{name}: {1e6 * estimated:.2f} us estimated, {1e6 * measured:.2f} us measured; {limit}"
    )


@pytest.mark.parametrize("name", PAIRS)
def test_mending_the_problem_gains_what_the_verdict_says(name):
    check(name, "ptx")


@needs_assembler
@pytest.mark.parametrize("name", [name for name in PAIRS if name not in MENDED_BY_PTXAS])
def test_the_verdict_on_sass_is_the_same(name):
    check(name, "sass")


def test_every_file_of_verdicts_has_a_pair():
    """Each function that looks for a cause finds it in at least one of the problems."""
    found = set()
    for name in PAIRS:
        execution = limits.Execution(profiles(name, False, "ptx")[0].counts)
        kinds = {
            look: {cause.kind for cause in function(execution)} for look, function in limits.CAUSES.items()
        }
        found |= {look for look, own in kinds.items() if PAIRS[name].kind in own}
    # A grid too small to hide latency has the words of one that leaves SMs idle.
    assert set(limits.CAUSES) == found | {"manyscale.gpu.limits.occupancy.small_grid"}


def test_other_causes_are_notes_ordered_by_their_gain():
    for name in PAIRS:
        limit = profiles(name, False, "ptx")[0].limit
        gains = [other.saved for other in limit.others]
        assert gains == sorted(gains, reverse=True)
        assert len(limit.notes) == len(gains)
        assert all(limit.saved >= other.saved for other in limit.others if not other.outside)


@pytest.mark.parametrize("name", PAIRS)
def test_no_advice_promises_more_than_the_time_that_ctas_run(name):
    for which in (False, True):
        for profile in profiles(name, which, "ptx"):
            limit, counts = profile.limit, profile.counts
            for cause in (limit.main, *limit.others):
                whole = counts.seconds if cause.outside else counts.execution_seconds
                assert 0 <= cause.saved <= whole
                assert cause.evidence
                assert cause.advice


@pytest.mark.parametrize("name", BOUNDS)
def test_parts_of_the_machine_are_not_busier_than_the_kernel_is_long(name):
    """The demands that estimates rest on are lower bounds of the time."""
    bound = BOUNDS[name]
    on = gpu.TimedDevice(load_machine("v100", [*SMALL, *bound.changes]).machine)
    counts = on.load(bound.source)["k"][bound.grid, bound.block](words(on, bound), bound.times).profile.counts
    execution = limits.Execution(counts)
    assert execution.busiest() <= 1.02 * execution.cycles, execution.demands


def test_the_verdict_reads_the_same_as_text_and_as_data():
    limit = profiles("transposition", False, "ptx")[0].limit
    data = limit.data()
    assert data["text"] == str(limit)
    assert data["kind"] == "bank conflicts"
    assert data["saved_seconds"] == limit.saved > 0
    for part in (
        data["kind"],
        data["evidence"],
        data["advice"],
        data["gain"],
        *(other.kind for other in limit.others),
    ):
        assert part in str(limit)
    assert len(data["notes"]) == len(limit.others) > 0
    assert "tile[32][33]" in limit.advice
    assert "times as fast" in limit.gain


def test_stalls_that_belong_to_a_cause_are_part_of_all_stalls():
    for name in PAIRS:
        for profile in profiles(name, False, "ptx"):
            sm = profile.counts.sm
            stalls = sum(sm[f"stall_{kind}"] for kind in ("long_scoreboard", "short_scoreboard", "drain"))
            assert sm["stall_conflict"] <= stalls
            assert sm["stall_local"] <= sm["stall_long_scoreboard"]
            assert (
                sm["stall_atomic"]
                <= sm["stall_long_scoreboard"] + sm["stall_drain"] + sm["stall_lg_throttle"]
            )
            assert sm["atomic_rounds_busiest"] <= sm["atomic_rounds"]
            assert sm["load_sectors_needed"] <= sm["load_sectors"]
            assert sm["store_sectors_needed"] <= sm["store_sectors"]


def test_a_verdict_names_other_causes_with_their_gain_and_leaves_their_advice_to_the_page():
    main = limits.Cause("DRAM bandwidth", "77% of its peak", "Move fewer bytes")
    other = limits.Cause("launch overhead", "10% of the duration", "Fuse the kernel with others", 1e-6)
    limit = limits.Limit(main, (other,), 1e-5)
    assert str(limit) == (
        "DRAM bandwidth: 77% of its peak. Move fewer bytes. "
        "Also: launch overhead (saves about 1us of 10us, 1.11 times as fast)."
    )
    assert "Fuse the kernel with others" in limit.notes[0]
    assert str(limits.Limit(main)) == "DRAM bandwidth: 77% of its peak. Move fewer bytes."
