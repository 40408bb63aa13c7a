# SPDX-License-Identifier: Apache-2.0
"""Threads on simulated cores: as many as the cores or more, and what the operating system below them takes."""

import pytest
from program_cases import find

from manyscale import cpu

pytestmark = pytest.mark.core

MACHINE = "broadwell"


def run(case, binaries, folder, cores, **options):
    """A run with time, whose output is checked."""
    result = cpu.run(case.program(binaries, folder), machine=MACHINE, cores=cores, **options)
    case.check(result)
    return result


@pytest.mark.parametrize(("name", "cores"), [("barrier", 1), ("cancellation", 2), ("tasks", 3)])
def test_more_threads_than_cores_take_turns(name, cores, binaries, tmp_path):
    case = find("parallel", name, "7")
    first = run(case, binaries, tmp_path, cores)
    again = run(case, binaries, tmp_path, cores, threads=2)
    assert first.cycles == again.cycles
    assert first.columns == again.columns


def test_threads_of_a_busy_core_change_with_the_time_slice(binaries, tmp_path):
    """Seven threads on two cores: the shorter their slices, the more often the cores change between them."""
    case = find("parallel", "loops", "7")
    short, long = (
        run(case, binaries, tmp_path, 2, changes=[f"cpu.system.time_slice={slice_}"])
        for slice_ in ("5us", "2ms")
    )
    assert short.value("program", "context_switches") > long.value("program", "context_switches")
    assert short.cycles > long.cycles


def test_wake_ups_take_their_latency(binaries, tmp_path):
    """Threads that sleep at 30 barriers are woken 30 times, one after the other: at least so much longer it takes."""
    case = find("parallel", "barrier", "4")
    short, long = (
        run(case, binaries, tmp_path, 4, changes=[f"cpu.system.wake_latency={latency}us"]).simulated_seconds
        for latency in (1, 11)
    )
    assert long - short > 30 * 10e-6
    assert long - short < 4 * 30 * 10e-6


def test_a_program_sees_the_simulated_cores():
    """An OpenMP program that is not told otherwise makes a thread for each core."""
    result = cpu.run(cpu.sample("heat"), machine=MACHINE, cores=3)
    assert result.value("program", "threads") == 3


def test_functional_runs_repeat(binaries, tmp_path):
    program = find("parallel", "mutex", "16").program(binaries, tmp_path)
    runs = [cpu.run_functional(program, cores=4) for _ in range(2)]
    assert runs[0].instructions == runs[1].instructions
    assert runs[0].stdout == runs[1].stdout
