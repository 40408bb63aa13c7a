# SPDX-License-Identifier: Apache-2.0
"""MPI programs on simulated processors: the same output as under MPICH, and a region for each call."""

import re
from pathlib import Path

import polars as pl
import pytest
from mpi_fixture import output_under_mpich, program

from manyscale import cpu

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("name", ["point_to_point", "collectives", "groups_and_types", "heat", "hybrid"])
def test_same_output_as_under_mpich(name, ranks):
    result = cpu.run_functional(program(name, ranks=ranks), cores=4)
    assert result.exit_code == 0
    assert result.processes[0].stdout.decode() == output_under_mpich(name, ranks)
    assert all(not process.stdout for process in result.processes[1:])


def test_halo_exchange_with_time():
    """Each rank makes as many calls as the program says, and its regions add up to its time."""
    steps, ranks = 10, 4
    result = cpu.run(program("heat", "16", str(steps), ranks=ranks), machine="broadwell", cores=ranks)
    assert result.exit_code == 0
    assert result.processes[0].stdout.decode().startswith(f"step {steps} heat ")
    regions = result.regions
    for rank in range(ranks):
        mine = regions.filter(pl.col("thread") == rank)
        visits = dict(mine.select("region", "visits").iter_rows())
        calls = {"MPI_Init": 1, "MPI_Irecv": 4, "MPI_Isend": 4, "MPI_Waitall": 1, "stencil": 1}
        expected = {name: count * (1 if name == "MPI_Init" else steps) for name, count in calls.items()}
        assert {name: visits[name] for name in expected} == expected
        assert visits["MPI_Allreduce"] == steps // 10
        whole = mine.filter(pl.col("region") == "outside regions")["inclusive_time"].item()
        assert mine["time"].sum() == pytest.approx(whole, rel=1e-12)
    assert regions["instructions"].sum() == result.instructions


def test_more_ranks_than_cores():
    """Ranks that share a core take turns; waiting puts them to sleep, so that the others go on."""
    result = cpu.run(program("hybrid", "1", ranks=3), machine="boom", cores=2)
    assert result.processes[0].stdout.decode() == output_under_mpich("hybrid", 3)


def test_abort_ends_all_ranks():
    result = cpu.run_functional(program("abort", ranks=4), cores=2)
    assert [process.exit_code for process in result.processes] == [7] * 4
    assert result.stderr == "rank 3 called MPI_Abort with code 7\n"


def test_mistake_is_named():
    result = cpu.run_functional(program("mistake", ranks=2))
    assert result.stderr == "rank 0: MPI_Send: invalid rank: rank 2 is not one of 0 to 1\n"
    assert [process.exit_code for process in result.processes] == [6, 6]


def test_calls_have_the_same_numbers_in_library_and_core():
    """The library tells numbers of calls, of which the core knows the names."""
    core = (ROOT / "core/cpu/mpi/mpi_calls.hpp").read_text(encoding="utf-8")
    library = (ROOT / "runtime/mpi/calls.h").read_text(encoding="utf-8")
    names = re.findall(r'"MPI_(\w+)"', core)
    numbers = {name: int(number) for name, number in re.findall(r"CALL_(\w+) = (\d+)", library)}
    assert numbers == {name: number for number, name in enumerate(names)}
    declared = re.findall(
        r"^(?:int|double) MPI_(\w+)\(", (ROOT / "runtime/mpi/mpi.h").read_text("utf-8"), re.M
    )
    assert sorted(declared) == sorted(names)
