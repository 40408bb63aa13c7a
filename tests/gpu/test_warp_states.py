# SPDX-License-Identifier: Apache-2.0
"""States of warps over time: they add up to the stall statistics, stay bounded, and do not depend on threads."""

from pathlib import Path

import polars as pl
import pytest
from bound_kernels import BOUNDS, SMALL, Bound, words

from manyscale import gpu, load_machine, results
from manyscale.gpu.metrics import STALLS

pytestmark = pytest.mark.core

MOST_INTERVALS = 128
STATES = [stall.name for stall in STALLS]


def recorded(bound: Bound, out: Path, **options: int) -> gpu.KernelProfile:
    machine = load_machine("v100-sst", [*SMALL, *bound.changes]).machine
    on = gpu.TimedDevice(machine, isa="ptx", allow_newer=True, **options)
    kernel, data = on.load(bound.source)["k"], words(on, bound)
    with on.record(out):
        return kernel[bound.grid, bound.block](data, bound.times).profile


@pytest.mark.parametrize("name", ["barrier", "conflicts", "dram", "fetch", "fp64", "latency", "uneven"])
def test_the_states_of_all_intervals_are_the_stall_statistics(name: str, tmp_path: Path):
    """Sum over intervals of cycles of warps in a state = the statistic of that state, for each state."""
    profile = recorded(BOUNDS[name], tmp_path / "run")
    counts = profile.counts
    assert {state: sum(counts.states[state]) for state in STATES} == {
        stall.name: counts.sm[stall.statistic] for stall in STALLS
    }
    assert len({len(column) for column in counts.states.values()}) == 1
    assert 1 < len(counts.states["selected"]) <= MOST_INTERVALS


@pytest.mark.parallel
def test_the_states_do_not_depend_on_threads(tmp_path: Path):
    taken = [
        recorded(BOUNDS["dram"], tmp_path / str(threads), threads=threads).counts for threads in (1, 2, 4)
    ]
    assert taken[0].states == taken[1].states == taken[2].states
    assert len({counts.state_interval for counts in taken}) == 1


def test_the_run_directory_has_the_mean_number_of_warps_in_each_state(tmp_path: Path):
    profile = recorded(BOUNDS["dram"], tmp_path / "run")
    table = results.load(tmp_path / "run").table("warp_states.parquet")
    assert set(table["scope"]) == {"k"}
    assert table.columns == ["scope", "begin", "seconds", *STATES]
    assert table["seconds"].sum() == pytest.approx(profile["duration"], rel=0.05)
    warps = table.select(pl.sum_horizontal(STATES)).to_series()
    assert 0 < warps.max() <= profile.counts.peaks.warps
    while_active = (warps * table["seconds"]).sum() / profile.counts.peaks.warps
    resident = profile.counts.sm["warp_cycles"] / profile.counts.sms / profile.counts.peaks.warps
    assert while_active * profile.counts.peaks.clock == pytest.approx(resident, rel=1e-6)


def test_states_of_launches_that_are_not_recorded_are_not_kept(tmp_path: Path):
    bound = BOUNDS["dram"]
    on = gpu.TimedDevice(load_machine("v100-sst", list(SMALL)).machine, isa="ptx", allow_newer=True)
    kernel, data = on.load(bound.source)["k"], words(on, bound)
    with on.record(tmp_path / "run"):
        during = kernel[bound.grid, bound.block](data, bound.times)
    after = kernel[bound.grid, bound.block](data, bound.times)
    assert during.profile.warp_states is not None
    assert after.profile.warp_states is None
