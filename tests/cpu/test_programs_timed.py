# SPDX-License-Identifier: Apache-2.0
"""Programs with time: they print what they print without, and take the same time in every run, on any host threads.

`ALL_THREADS=1 pytest tests/cpu/test_programs_timed.py` runs all programs with threads on all numbers of them.
"""

import os

import pytest
from program_cases import find

from manyscale import cpu

pytestmark = pytest.mark.core

MACHINE = "broadwell"
SERIAL = [
    ("assembly_atomic",),
    ("assembly_double",),
    ("c", "formats"),
    ("c", "self_modifying"),
    ("c", "signals"),
    ("c", "queens"),
    ("c", "triad"),
    ("cpp", "exceptions"),
]
PARALLEL = [("nested", 1), ("mutex", 2), ("dependences", 4), ("constructs", 7), ("barrier", 16)]
if os.environ.get("ALL_THREADS"):
    names = [
        "mutex",
        "condition",
        "barrier",
        "read_write",
        "loops",
        "constructs",
        "tasks",
        "dependences",
        "nested",
    ]
    names += ["omp_triad", "omp_matrix", "omp_stencil", "omp_solver", "omp_compute"]
    PARALLEL = [(name, threads) for name in names for threads in (1, 2, 4, 7, 16)]


def timed(case, binaries, folder, cores, threads=1):
    """A run with time, whose output is checked."""
    result = cpu.run(case.program(binaries, folder), machine=MACHINE, cores=cores, threads=threads)
    case.check(result)
    return result


def facts(result):
    """All that must be the same in every run: the time, and every statistic of every component."""
    return result.cycles, result.instructions, result.columns


@pytest.mark.parametrize("which", SERIAL, ids="-".join)
def test_same_output_with_time(which, binaries, tmp_path):
    case = find(*which)
    result = timed(case, binaries, tmp_path, cores=1)
    functional = cpu.run_functional(case.program(binaries, tmp_path))
    assert result.instructions == functional.instructions
    assert result.cycles > 0


@pytest.mark.parallel
@pytest.mark.long
@pytest.mark.parametrize(("name", "threads"), PARALLEL)
def test_time_does_not_depend_on_the_host(name, threads, binaries, tmp_path):
    """OpenMP and pthreads programs on 1 to 16 threads: the same on 1, 2 and 4 host threads."""
    case = find("parallel", name, str(threads))
    first = facts(timed(case, binaries, tmp_path, cores=threads))
    for host_threads in (2, 4):
        assert facts(timed(case, binaries, tmp_path, cores=threads, threads=host_threads)) == first


def test_more_cores_take_less_time(binaries):
    """A loop without dependences: 4 threads on 4 cores take less than half the cycles of 4 threads on one."""
    program = cpu.Program(binaries["parallel"], ["omp_compute", "4", "4000"])
    one, four = (cpu.run(program, machine=MACHINE, cores=cores) for cores in (1, 4))
    assert one.stdout == four.stdout
    assert four.cycles < one.cycles / 2
