# SPDX-License-Identifier: Apache-2.0
"""Regions of OpenMP programs, found from libgomp's entry points: exact counts, and times that add up."""

import polars as pl
import pytest
from mpi_fixture import program

from manyscale import InputError, cpu
from manyscale.cpu.openmp import construct_of, region_title, watch_points

pytestmark = pytest.mark.core


def expected_visits(threads):
    """How often all threads together enter each kind of region in mpi_programs/regions.c.

    By part of the program: worksharing (3 times), combined, tasks, recursion, locks_and_copies, nested, marks.
    """
    return {
        "parallel": 3 * threads + 3 * threads + threads + threads + threads + 6,
        "loop": 3 * threads + 2 * threads,
        "sections": 3 * threads + threads,
        "single": 3 + 1 + 1 + 1,
        "critical": 3 * 12 + 3 * threads + threads + 4,
        "critical_wait": 3 * 12 + 3 * threads + threads + 4,
        "ordered": 10,
        "ordered_wait": 10,
        # Of worksharing: after the loop, the single and the sections, two spelt out, and the end. Of
        # locks_and_copies: those that have waited for the copy, the one that gives it, one after it, and the end.
        "barrier": 3 * 6 * threads + 3 * threads + threads + threads + 3 * threads + 6,
        "task": 8 + 8 + 5 + 4 + 15 + 15,
        "task_create": 8 + 8 + 5 + 1 + 15 + 15,
        "taskwait": 1 + 2 + 15,
        "taskgroup": 2,  # the one spelt out, and the loop's
        "lock": 5 * threads,
        "wait": threads,  # for the copy: all come there, but one goes on at once
        "user": 1 + 4 + 1,
    }


def visits_by_kind(regions):
    inside = regions.filter(pl.col("kind") != "")
    return dict(inside.group_by("kind").agg(pl.col("visits").sum()).iter_rows())


@pytest.mark.parametrize("threads", [1, 2, 4, 7])
def test_counts_are_exact(threads):
    result = cpu.run_functional(program("regions", str(threads)), cores=8, regions=True)
    assert result.stdout == f"total {412 + 15 * threads}\n"
    assert visits_by_kind(result.regions) == expected_visits(threads)
    assert result.regions["instructions"].sum() == result.instructions


@pytest.fixture(scope="module")
def timed():
    return {
        (cores, host): cpu.run(program("regions", "3"), machine="broadwell", cores=cores, threads=host)
        for cores, host in [(4, 1), (4, 2), (2, 1)]
    }


def test_counts_are_exact_with_time(timed):
    for result in timed.values():
        assert result.stdout == "total 457\n"
        assert visits_by_kind(result.regions) == expected_visits(3)


def test_times_add_up(timed):
    """Exclusive times and cycles of a thread's regions add up to its own, and those of all to the cores'."""
    for result in timed.values():
        regions = result.regions
        assert regions["instructions"].sum() == result.instructions
        stacks = regions.select(result.causes).sum().row(0)
        by_cause = result.cpi_stack.group_by("cause").agg(pl.col("cycles").sum())
        of_cores = dict(by_cause.iter_rows())
        for cause, cycles in zip(result.causes, stacks, strict=True):
            assert cycles == (0 if cause == "idle" else of_cores[cause]), cause
        for thread in regions["thread"].unique():
            mine = regions.filter(pl.col("thread") == thread)
            whole = mine.filter(pl.col("region") == "outside regions").row(0, named=True)
            assert mine["time"].sum() == pytest.approx(whole["inclusive_time"], rel=1e-12)
            assert mine["instructions"].sum() == whole["inclusive_instructions"]
            assert 0 < whole["inclusive_time"] + mine["away"].sum() <= result.simulated_seconds * (1 + 1e-9)
        check_away(regions)


def check_away(regions):
    """A thread is away only while others have its core: never where it is alone, else no longer than they run."""
    threads = regions.group_by("thread", "core").agg(pl.col("time").sum(), pl.col("away").sum())
    assert threads.height == threads["thread"].n_unique()  # none changes its core
    for row in threads.iter_rows(named=True):
        others = threads.filter(pl.col("core") == row["core"], pl.col("thread") != row["thread"])
        assert row["away"] <= others["time"].sum() + 1e-15, row
    # With more threads than cores some core is shared.
    assert threads["away"].sum() > 0 or threads.height <= threads["core"].n_unique()


def test_regions_do_not_depend_on_host_threads(timed):
    assert timed[4, 1].regions.equals(timed[4, 2].regions)
    assert timed[4, 1].cycles == timed[4, 2].cycles


def test_waiting_is_told_from_working(timed):
    """A loop whose threads have all done little waits at its barrier; a critical section is held for a moment only."""
    regions = timed[4, 1].regions
    held = regions.filter(kind="critical")["time"].sum()
    waited = regions.filter(kind="critical_wait")["time"].sum()
    assert 0 < held < waited
    lasted = regions.filter(pl.col("visits") > 0, pl.col("shortest").is_not_null())
    assert (lasted["shortest"] <= lasted["longest"]).all()
    assert (lasted["time"] <= lasted["inclusive_time"] + 1e-18).all()


def test_named_functions_are_regions():
    """Also one that is left by longjmp, which ends when its caller goes on."""
    names = ["watched_function", "jumps_out"]
    result = cpu.run_functional(program("regions", "2"), functions=names)
    inside = result.regions.filter(pl.col("kind") == "user", pl.col("source") != "")
    assert inside["visits"].to_list() == [5, 1]
    called = inside["instructions"].to_list()
    assert inside["inclusive_instructions"].to_list() == called  # none is taken to be within the other
    with pytest.raises(InputError, match="watched_functio"):
        cpu.run_functional(program("regions"), functions=["watched_functio"])


def test_tasks_and_their_dependences():
    """8 that write a cell each, and its reader after it; a chain of 5; 4 of a loop; 30 of the recursion."""
    tasks = cpu.run_functional(program("regions", "2"), regions=True).tasks
    assert tasks.height == 55
    depends = [
        [(int(text.split()[1], 16), text.split()[0]) for text in found] for found in tasks["dependences"]
    ]
    cells = [found[0][0] for found in depends[:16:2]]
    assert [cell - cells[0] for cell in cells] == [4 * index for index in range(8)]
    assert depends[:16] == [[(cell, kind)] for cell in cells for kind in ("out", "in")]
    chain = depends[16][0][0]
    assert depends[16:21] == [[(chain, "out")]] * 5
    assert depends[21:] == [[]] * 34
    made_by_tasks = tasks["parent"].is_not_null().sum()
    assert made_by_tasks == 28  # all of the recursion but the two that the implicit task makes


def test_entry_points_of_libgomp():
    assert construct_of("GOMP_parallel_loop_nonmonotonic_dynamic") == "parallel_loop"
    assert construct_of("GOMP_parallel_loop_maybe_nonmonotonic_runtime") == "parallel_loop"
    assert construct_of("GOMP_parallel_loop_dynamic_start") is None
    assert construct_of("GOMP_loop_ull_guided_start") == "loop_start"
    assert construct_of("GOMP_loop_start") == "loop_start"
    assert construct_of("GOMP_loop_end_nowait") == "loop_end_nowait"
    assert construct_of("gomp_loop_dynamic_start") is None
    assert construct_of("main") is None
    functions = {"GOMP_barrier": 0x20, "gomp_malloc": 0x10, "main": 0x30, "solve": 0x40}
    assert watch_points(functions, ["solve"]) == [(0x20, "barrier"), (0x40, "function")]
    assert (0x10, "task_memory") in watch_points(functions | {"GOMP_task": 0x50})
    assert region_title("taskwait", "", "a.c:3") == "wait for tasks at a.c:3"
