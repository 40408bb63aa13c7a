# SPDX-License-Identifier: Apache-2.0
"""`manyscale correlate`: measurements in the formats of profilers, launches that are matched, and the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from host_programs import sums_program

from manyscale.cuda import NodeOptions, Profiling, run
from manyscale.errors import InputError
from manyscale.studies import correlation
from manyscale.studies.correlation.comparison import KernelComparison
from manyscale.studies.correlation.csv_table import scale
from manyscale.studies.correlation.explanation import explain
from manyscale.studies.correlation.formats import read_measurements
from manyscale.studies.correlation.matching import Pair, match
from manyscale.studies.correlation.values import LaunchValues, base_name

SMALL = ["gpu.sm_count=4", "gpu.l2_slices=4"]
PTX = NodeOptions(isa="ptx", profiling=Profiling(cold_l2=True, warm_instructions=True))

MEASURED = Path(__file__).parent / "fixtures" / "measured"
DETAILS, RAW, NSYS, NVPROF = (
    (MEASURED / f"{name}.csv").read_text()
    for name in ("ncu_details", "ncu_raw", "nsys_trace", "nvprof_trace")
)
OWN = "program,launch,cycles,ns,l2_hit_pct\nsums,0,5000,4500,33\nsums,3,40000,,\nother,0,1,1,1\n"


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sums_program(tmp_path_factory.mktemp("correlated"))


def written(folder: Path, text: str) -> Path:
    path = folder / "measured.csv"
    path.write_text(text)
    return path


# --- Formats ---


def test_the_details_page_of_ncu_has_a_row_for_each_metric(tmp_path: Path) -> None:
    found = read_measurements(written(tmp_path, DETAILS))
    add, twice = found.launches
    assert found.profiled
    assert (add.base, add.grid, add.block) == ("add", (64, 1, 1), (256, 1, 1))
    assert add.values == pytest.approx(
        {"cycles": 5000, "seconds": 4.5e-6, "dram_bandwidth": 40e9, "l2_hit_rate": 0.333}
    )
    assert (twice.base, twice.values) == ("twice", {"cycles": 40_000})


def test_the_raw_page_of_ncu_has_a_row_for_each_launch_and_one_of_units(tmp_path: Path) -> None:
    (add,) = read_measurements(written(tmp_path, RAW)).launches
    assert add.base == "add"
    assert add.values == pytest.approx(
        {
            "cycles": 5000,
            "seconds": 4.5e-6,
            "registers": 16,
            "warp_instructions": 10_240,
            "achieved_occupancy": 0.805,
            "dram_sectors": 4196,
            "dram_bandwidth": 32 * 4196 / 4.5e-6,
        }
    )


@pytest.mark.parametrize("text", [NSYS, NVPROF])
def test_traces_of_the_gpu_have_times_and_no_profiler(tmp_path: Path, text: str) -> None:
    found = read_measurements(written(tmp_path, text))
    assert not found.profiled
    add = found.launches[0]
    assert (add.base, add.grid, add.block) == ("add", (64, 1, 1), (256, 1, 1))
    assert add.values["seconds"] == pytest.approx(4.5e-6)
    assert [launch.base for launch in found.launches] == ["add", "twice"][: len(found.launches)]


@pytest.mark.parametrize("name", ["nsys_summary", "nvprof_summary"])
def test_a_summary_has_the_mean_time_of_each_launch_of_a_kernel(name: str) -> None:
    found = read_measurements(MEASURED / f"{name}.csv")
    assert not found.profiled
    assert [launch.base for launch in found.launches] == ["add", "add", "twice"]
    assert [launch.values["seconds"] for launch in found.launches] == pytest.approx([4.5e-6, 4.5e-6, 3.5e-6])
    assert any("mean of each kernel" in note for note in found.notes)
    grids = {launch.grid for launch in found.launches}
    assert grids == ({(64, 1, 1)} if name == "nsys_summary" else {None})


def test_a_file_of_our_own_may_have_several_programs(tmp_path: Path) -> None:
    path = written(tmp_path, OWN)
    first, second = read_measurements(path, "sums").launches
    assert (first.number, second.number) == (0, 3)
    assert first.values == pytest.approx({"cycles": 5000, "seconds": 4.5e-6, "l2_hit_rate": 0.33})
    with pytest.raises(InputError, match="no program app; it has sums, other"):
        read_measurements(path, "app")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no measurements are found"),
        ("a,b\n1,2\n", "no measurements are found"),
        ("kernel,cycles\nadd,12,3\n", "line 2: 3 cells, but the header has 2"),
        ("kernel,cycles\nadd,soon\n", "line 2: cycles is 'soon', which is no number"),
        ("kernel,cycles\nadd,inf\n", "line 2: cycles is inf"),
        ("kernel,cycles\nadd,\n", "without a launch that has a time"),
        (RAW.replace("nsecond", "fortnight"), "'fortnight', which is no known unit"),
        ('kernel,cycles\n"add,5\n', "not CSV"),
        ("Total Time (ns),Instances,Avg (ns),Name\n9,1e12,9,add\n", "line 2: 1,000,000,000,000 launches"),
    ],
)
def test_broken_files_are_refused_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_measurements(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.csv: No such file"):
        read_measurements(tmp_path / "absent.csv")


def test_units_of_profilers_are_understood() -> None:
    assert [scale(unit) for unit in ("nsecond", "us", "Gbyte/second", "%", "inst", "parsec")] == [
        *(1e-9, 1e-6, 1e9, 0.01, 1, None)
    ]


def test_names_of_kernels_agree_however_tools_write_them() -> None:
    names = ("_Z3addPKfS0_Pfi", "add", "add(float const*, int)", "void ns::add<float, 4>(float*)")
    assert {base_name(name) for name in names} == {"add"}


# --- Matching ---


def launch(kernel: str, cycles: float, grid: int | None = None, number: int | None = None) -> LaunchValues:
    shape = None if grid is None else (grid, 1, 1)
    return LaunchValues(kernel, {"cycles": cycles}, shape, None, number)


def matched_cycles(simulated: list[LaunchValues], measured: list[LaunchValues]) -> list[tuple[float, float]]:
    found = match(simulated, measured)
    return [(pair.simulated.values["cycles"], pair.measured.values["cycles"]) for pair in found.pairs]


def test_launches_match_by_name_grid_and_order() -> None:
    simulated = [launch("a", 1, 8), launch("b", 2, 8), launch("a", 3, 4), launch("a", 4, 8)]
    measured = [launch("a", 30, 4), launch("a", 10, 8), launch("c", 99, 8), launch("a", 40, 8)]
    assert matched_cycles(simulated, measured) == [(1, 10), (3, 30), (4, 40)]
    found = match(simulated, measured)
    assert (found.only_simulated, found.only_measured) == (1, 1)


def test_launches_without_a_common_grid_match_by_name() -> None:
    assert matched_cycles([launch("a", 1, 8)], [launch("a", 10)]) == [(1, 10)]


def test_launches_without_names_match_by_number() -> None:
    simulated = [launch("a", 1), launch("b", 2), launch("c", 3)]
    assert matched_cycles(simulated, [launch("", 30, number=2), launch("", 10, number=0)]) == [
        (1, 10),
        (3, 30),
    ]


# --- Explanations ---


def compared(ours: dict[str, float], theirs: dict[str, float]) -> KernelComparison:
    return KernelComparison("a", [Pair(LaunchValues("a", ours), LaunchValues("a", theirs))])


def test_the_counter_that_differs_most_explains() -> None:
    theirs = {"cycles": 1000.0, "warp_instructions": 100.0, "dram_sectors": 50.0, "l2_hit_rate": 0.5}
    found = explain(compared({**theirs, "cycles": 700.0, "dram_sectors": 30.0, "l2_hit_rate": 0.6}, theirs))
    assert found.counter == "dram_sectors"
    assert "40% fewer" in found.text
    assert "all counters agree" in explain(compared({**theirs, "cycles": 700.0}, theirs)).text
    assert "times agree" in explain(compared({**theirs, "cycles": 990.0}, theirs)).text


def test_a_sensitivity_says_what_change_would_explain_the_difference() -> None:
    kernel = compared({"cycles": 800.0}, {"cycles": 1000.0})
    text = explain(kernel, {"latency": 0.1, "bandwidth": -1.0, "issue": 0.0}).text
    assert "the bandwidth of memory (power -1.00): -20%" in text  # 800 / 0.8 = 1000


# --- Programs ---


@pytest.mark.core
def test_a_run_agrees_with_itself(sums: Path, tmp_path: Path) -> None:
    own = run([str(sums), "2"], "v100-sst", changes=SMALL, node=PTX, stdout=2)
    rows = [f"{r.name},{r.cycles},{(r.end - r.begin) / 1e6},{r.dram_bytes // 32}" for r in own.kernels]
    path = written(tmp_path, "kernel,cycles,ns,dram_sectors\n" + "\n".join(rows) + "\n")
    found = correlation.correlate(
        [str(sums), "2"], path, "v100-sst", changes=SMALL, node=PTX, sensitivity=True, stdout=2
    )
    assert found.mean_error == pytest.approx(0, abs=1e-9)
    assert found.total_error == pytest.approx(0, abs=1e-9)
    assert [kernel.kernel for kernel in found.kernels] == ["twice", "add"]  # the longest first
    powers = found.sensitivities["twice"]  # a chain of 512 instructions
    assert powers["issue"] < -0.5
    assert all(abs(powers[name]) < abs(powers["issue"]) / 3 for name in ("bandwidth", "latency"))


@pytest.mark.core
def test_the_command_prints_a_table_and_leaves_a_page(sums: Path, tmp_path: Path) -> None:
    path = written(tmp_path, DETAILS)
    changes = [word for change in SMALL for word in ("--set", change)]
    command = [sys.executable, "-m", "manyscale.cli.app", "correlate", str(sums), "--truth", str(path)]
    options = ["--isa", "ptx", "-m", "v100-sst", *changes, "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, *options, "--", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 launches compared, 4 simulated ones not measured" in done.stdout
    assert "<!DOCTYPE html>" in (tmp_path / "run" / "correlation.html").read_text()
    recorded = json.loads((tmp_path / "run" / "run.json").read_text())
    assert recorded["workload"]["profiling"] == {"cold_l2": True, "warm_instructions": True}
    again = subprocess.run(
        [*command, *options, "--force", "--", "1"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr


@pytest.mark.core
def test_json_has_every_quantity_of_both_sides(sums: Path, tmp_path: Path) -> None:
    found = correlation.correlate([str(sums), "1"], written(tmp_path, RAW), "v100-sst", node=PTX, stdout=2)
    data: dict[str, Any] = correlation.data(found)
    (add,) = data["kernels"]
    assert set(add["quantities"]) == {
        *("cycles", "seconds", "warp_instructions", "achieved_occupancy"),
        *("dram_sectors", "dram_bandwidth", "registers"),
    }
    assert data["only_simulated"] == 1


@pytest.mark.core
def test_launches_that_are_not_measured_are_not_run(sums: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "launch,cycles\n0,5000\n2,5000\n")
    found = correlation.correlate([str(sums), "9"], path, "v100-sst", changes=SMALL, stdout=2)
    assert len(found.matched.pairs) == 2
    assert found.matched.only_simulated == 1  # number 1, between them


@pytest.mark.core
def test_a_program_without_a_measured_launch_is_an_error(sums: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "kernel,cycles\nother,5\n")
    with pytest.raises(InputError, match="it launched add, twice, measured are other"):
        correlation.correlate([str(sums), "1"], path, "v100-sst", changes=SMALL, node=PTX, stdout=2)
