# SPDX-License-Identifier: Apache-2.0
"""Traces of programs that make their threads themselves, and of what OpenMP's compiler divides on its own."""

import random

import numpy as np
import pytest
import trace_samples
from program_cases import find
from test_trace_replay import replays_or_refuses, rewritten

from manyscale import InputError, _core, cpu
from manyscale.cpu.openmp import construct_of

pytestmark = pytest.mark.core

MACHINE = "elasticsimmate"
SYSTEM = 16  # kind of the nodes at which threads meet


def recorded(binaries, folder, *arguments, cores=4, binary="parallel", **options):
    """The path of a trace of a stored program, and what was recorded."""
    program = find(binary, *arguments).program(binaries, folder)
    path = folder / f"{arguments[0]}.trace"
    return path, cpu.record(program, path, machine=MACHINE, cores=cores, **options)


def sync_counts(path):
    """How many nodes of each kind there are at which threads meet."""
    with cpu.Trace(path) as trace:
        return {row.kind: row.nodes for row in trace.sync_costs if row.nodes}


@pytest.mark.parametrize("functional", [False, True])
def test_threads_at_a_barrier(binaries, tmp_path, functional):
    """Four threads meet thirty times at one barrier and thirty times at another, and their maker waits for each end."""
    path, made = recorded(binaries, tmp_path, "barrier", "4", functional=functional)
    assert made.threads == 5
    found = sync_counts(path)
    assert found["thread_begin"] == 4
    assert found["await"] == 2 * 30 * 4 + 4
    assert found["post"] == found["await"] + 4  # of the creation of each
    assert cpu.replay(path).value("trace", "awaits") == found["await"]


def test_replays_take_about_the_time_of_the_program(binaries, tmp_path):
    for name in ("barrier", "cancellation"):
        path, _ = recorded(binaries, tmp_path, name, "4")
        with cpu.Trace(path) as trace:
            assert cpu.replay(path).simulated_seconds == pytest.approx(trace.run.seconds, rel=0.1), name


def test_all_instructions_of_all_threads_are_there(binaries, tmp_path):
    """What is left out is waiting; the little that follows a sync node in the last moments of a thread counts too."""
    path, made = recorded(binaries, tmp_path, "cancellation", "4")
    with cpu.Trace(path) as trace:
        executed = trace.run.instructions
    assert executed <= made.instructions + made.left_out <= 1.01 * executed
    assert made.left_out < 0.05 * executed


@pytest.mark.parametrize(
    ("binary", "arguments", "kinds"),
    [
        ("parallel", ("mutex", "4"), {"acquire", "release"}),
        ("parallel", ("condition", "4"), {"post", "await", "acquire", "release"}),
        ("parallel", ("read_write", "4"), {"post", "await", "release"}),
        ("parallel", ("constructs", "4"), {"barrier", "acquire"}),
        ("cpp", ("threads", "1"), {"thread_begin", "await"}),
    ],
)
def test_programs_with_threads_can_be_replayed(binaries, tmp_path, binary, arguments, kinds):
    for cores in (1, 4):
        path, _ = recorded(binaries, tmp_path, *arguments, binary=binary, cores=cores, force=True)
        assert kinds <= set(sync_counts(path))
        assert cpu.replay(path).simulated_seconds > 0


def test_threads_that_nobody_saw_made_are_refused(binaries, tmp_path):
    """Not silently left out: a program whose functions have lost their names."""
    nameless = tmp_path / "nameless"
    nameless.write_bytes(binaries["parallel"].read_bytes().replace(b"pthread_create", b"qthread_create"))
    nameless.chmod(0o755)
    path = tmp_path / "a.trace"
    with pytest.raises(InputError, match=r"2 of its threads cannot be recorded.*symbols"):
        cpu.record(cpu.Program(nameless, ["mutex", "2"]), path, machine=MACHINE, cores=2)
    assert not path.exists()


def test_copies_wait_for_their_own_threads(binaries, tmp_path):
    path, _ = recorded(binaries, tmp_path, "barrier", "4")
    one = cpu.replay(path)
    two = cpu.replay(path, replicate=2, changes=["cpu.cores=8"])
    assert two.value("trace", "awaits") == 2 * one.value("trace", "awaits")
    assert two.simulated_seconds < 1.2 * one.simulated_seconds


def test_hostile_events(binaries, tmp_path):
    """Threads that wait for what never happens, or begin twice: a replay ends, or says why not."""
    path, _ = recorded(binaries, tmp_path, "barrier", "4")
    source = random.Random(10)

    def damage(content):
        columns = cpu.trace.columns_of(_core.cpu_decode_block(content))
        columns = {name: column.copy() for name, column in columns.items()}
        for at in np.flatnonzero(columns["kind"] == SYSTEM):
            if source.random() < 0.02:
                columns["size"][at] = source.randrange(len(_core.cpu_sync_kinds()))
            if source.random() < 0.01:
                columns["address"][at] = source.choice([0, 1, 0xFFFF, 2**40 + 5, 2**64 - 1])
        return trace_samples.block(columns)

    ends = [replays_or_refuses(rewritten(path, tmp_path / "a.trace", damage)) for _ in range(8)]
    assert not all(ends)


def test_loops_with_a_static_schedule_are_loops():
    """The product of matrices has three: two that fill them, in one function, and the product itself."""
    program = cpu.Program(cpu.sample("elastic"), ["matrix", "3", "16"])
    result = cpu.run_functional(program, cores=3, regions=True)
    loops = result.regions.filter(kind="loop")
    assert loops["visits"].sum() == 3 * 3
    assert loops["region"].n_unique() == 2
    assert loops["inclusive_instructions"].sum() > 4 * 16**3, "the work is in them, and not around them"


@pytest.mark.parametrize(
    ("function", "construct"),
    [
        ("pthread_create", "thread_create"),
        ("pthread_mutex_timedlock", "try_lock"),
        ("pthread_cond_clockwait", "condition_wait"),
        ("sem_trywait", "semaphore_wait"),
        ("omp_test_lock", "test_lock"),
        ("omp_get_thread_num", "thread_number"),
        ("pthread_self", None),
        ("pthread_rwlock_rdlock", None),
    ],
)
def test_functions_that_are_watched(function, construct):
    assert construct_of(function) == construct
