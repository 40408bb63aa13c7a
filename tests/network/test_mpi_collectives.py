# SPDX-License-Identifier: Apache-2.0
"""Collectives: results, numbers of messages and bytes, and times, against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi_programs import ALGORITHMS, NANOSECOND, CoreProgram, finished, make_job

pytestmark = pytest.mark.core

ROOTED = ("broadcast", "reduce", "gather", "scatter")
PAIRS = [(collective, name) for collective, names in ALGORITHMS.items() for name in names]
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17]


def run_collective(
    collective: str, algorithm: str, ranks: int, size: Any, *, root: int = 0, times: int = 1, **options: Any
) -> Any:
    program = CoreProgram(ranks)
    operands: dict[str, Any] = {} if collective == "barrier" else {"bytes": size}
    if collective in ROOTED:
        operands["peer"] = root
    for _ in range(times):
        number = ALGORITHMS[collective][algorithm] if algorithm else 0
        program.add(collective, algorithm=number, **operands)
    return finished(make_job(program, **options))


def log2(ranks: int) -> int:
    """Rounds in which the number of informed ranks doubles."""
    return math.ceil(math.log2(ranks))


def folded(ranks: int) -> tuple[int, int]:
    """The power of two below, and how many ranks are too many for it."""
    power = 1 << (ranks.bit_length() - 1)
    return power, ranks - power


def doubling(ranks: int) -> int:
    power, extra = folded(ranks)
    return power * log2(power) + 2 * extra


def prefix(ranks: int) -> int:
    """Messages of a prefix sum by recursive doubling: partners beyond the end are left out."""
    return sum((rank ^ 1 << bit) < ranks for bit in range(20) for rank in range(ranks) if 1 << bit < ranks)


def bruck_blocks(ranks: int) -> int:
    """Blocks that a rank sends in Bruck's all-to-all: one for each set bit of each distance."""
    return sum(distance.bit_count() for distance in range(ranks))


def is_power(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def subtrees(ranks: int) -> int:
    """The members of all binomial subtrees below the root, added up: blocks that a gather or scatter moves."""
    return sum(min(rank & -rank, ranks - rank) for rank in range(1, ranks))


MESSAGES: dict[tuple[str, str], Callable[[int], int]] = {
    ("barrier", "linear"): lambda n: 2 * (n - 1),
    ("barrier", "double-ring"): lambda n: 2 * n * (n > 1),
    ("barrier", "recursive-doubling"): doubling,
    ("barrier", "dissemination"): lambda n: n * log2(n),
    ("barrier", "tree"): lambda n: 2 * (n - 1),
    ("broadcast", "scatter-allgather"): lambda n: n - 1 + (n * log2(n) if is_power(n) else n * (n - 1)),
    ("broadcast", "scatter-ring"): lambda n: n - 1 + n * (n - 1),
    ("reduce", "rabenseifner"): lambda n: n - 1 + folded(n)[0] * log2(folded(n)[0]),
    ("allreduce", "linear"): lambda n: 2 * (n - 1),
    ("allreduce", "reduce-broadcast"): lambda n: 2 * (n - 1),
    ("allreduce", "recursive-doubling"): doubling,
    ("allreduce", "ring"): lambda n: 2 * n * (n - 1),
    ("allreduce", "segmented-ring"): lambda n: 2 * n * (n - 1),
    ("allreduce", "rabenseifner"): lambda n: 2 * doubling(n) - 2 * folded(n)[1],
    ("allgather", "linear"): lambda n: 2 * (n - 1),
    ("allgather", "bruck"): lambda n: n * log2(n),
    ("allgather", "recursive-doubling"): lambda n: n * log2(n),
    ("allgather", "ring"): lambda n: n * (n - 1),
    ("allgather", "neighbor-exchange"): lambda n: n * (n // 2) if n % 2 == 0 else n * (n - 1),
    ("alltoall", "bruck"): lambda n: n * log2(n),
    ("reduce_scatter", "linear"): lambda n: 2 * (n - 1),
    ("reduce_scatter", "recursive-halving"): doubling,
    ("scan", "recursive-doubling"): prefix,
    ("exscan", "recursive-doubling"): prefix,
}
DEFAULT_MESSAGES: dict[str, Callable[[int], int]] = {
    "alltoall": lambda n: n * (n - 1),
    "alltoallv": lambda n: n * (n - 1),
    "reduce_scatter": lambda n: n * (n - 1),
}

# Bytes of all messages when each rank's part (or the whole, of broadcasts and reductions) has `b`, a multiple of n.
BYTES: dict[tuple[str, str], Callable[[int, int], int]] = {
    ("broadcast", "binomial"): lambda n, b: (n - 1) * b,
    ("broadcast", "scatter-ring"): lambda n, b: subtrees(n) * b // n + (n - 1) * b,
    ("reduce", "binomial"): lambda n, b: (n - 1) * b,
    ("allreduce", "recursive-doubling"): lambda n, b: doubling(n) * b,
    ("allreduce", "ring"): lambda n, b: 2 * (n - 1) * b,
    ("allreduce", "rabenseifner"): lambda n, b: 2 * (folded(n)[0] - 1 + folded(n)[1]) * b,
    ("gather", "linear"): lambda n, b: (n - 1) * b,
    ("gather", "binomial"): lambda n, b: subtrees(n) * b,
    ("scatter", "binomial"): lambda n, b: subtrees(n) * b,
    ("allgather", "ring"): lambda n, b: n * (n - 1) * b,
    ("allgather", "bruck"): lambda n, b: n * (n - 1) * b,
    ("allgather", "recursive-doubling"): lambda n, b: n * (n - 1) * b,
    ("allgather", "neighbor-exchange"): lambda n, b: n * (n - 1) * b,
    ("alltoall", "pairwise"): lambda n, b: n * (n - 1) * b,
    ("alltoall", "scattered"): lambda n, b: n * (n - 1) * b,
    ("alltoall", "bruck"): lambda n, b: n * bruck_blocks(n) * b,
    ("reduce_scatter", "ring"): lambda n, b: n * (n - 1) * b,
    ("reduce_scatter", "pairwise"): lambda n, b: n * (n - 1) * b,
}


@pytest.mark.parametrize(("collective", "algorithm"), PAIRS)
def test_results_are_those_of_mpi(collective: str, algorithm: str) -> None:
    """Everybody comes to the end, also the second time, and reductions and broadcasts have the right value."""
    for ranks in SIZES:
        for root in sorted({0, ranks // 2, ranks - 1}) if collective in ROOTED else [0]:
            for per_node in (1, 3) if algorithm == "hierarchical" else (1,):
                job = run_collective(
                    collective,
                    algorithm,
                    ranks,
                    24 * ranks,
                    root=root,
                    times=2,
                    per_node=per_node,
                    check=True,
                )
                done = job.completions()
                own = np.arange(ranks) + 1
                expected = {
                    "allreduce": np.full(ranks, own.sum()),
                    "reduce_scatter": np.full(ranks, own.sum()),
                    "reduce": np.full(ranks, own.sum()),
                    "broadcast": np.full(ranks, root + 1),
                    "scan": np.cumsum(own),
                    "exscan": np.cumsum(own) - own,
                }.get(collective)
                for rank, value in zip(done["rank"], done["value"], strict=True):
                    if expected is not None and (collective != "reduce" or rank == root):
                        assert value == expected[rank], (ranks, root, rank)


@pytest.mark.parametrize(("collective", "algorithm"), [p for p in PAIRS if p[1] != "hierarchical"])
def test_numbers_of_messages(collective: str, algorithm: str) -> None:
    """As the algorithm's formula says; where none is given, one message for each rank but the root."""
    expected = MESSAGES.get((collective, algorithm)) or DEFAULT_MESSAGES.get(collective) or (lambda n: n - 1)
    for ranks in SIZES:
        totals = run_collective(collective, algorithm, ranks, 8 * ranks).totals()
        assert totals["messages"] == expected(ranks), ranks
        if (collective, algorithm) in BYTES:
            assert totals["bytes"] == BYTES[collective, algorithm](ranks, 8 * ranks), ranks


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [p for p in PAIRS if p[0] in ("barrier", "allreduce", "allgather", "alltoall", "alltoallv")],
)
def test_nobody_ends_before_all_have_begun(collective: str, algorithm: str) -> None:
    """One rank comes late; what everybody gets depends on it."""
    late = 50_000 * NANOSECOND
    for ranks in (2, 5, 8, 12):
        for slow in {0, ranks // 2, ranks - 1}:
            program = CoreProgram(ranks)
            program.add("compute", bytes=[late * (rank == slow) for rank in range(ranks)])
            operands = {} if collective == "barrier" else {"bytes": 64}
            program.add(collective, algorithm=ALGORITHMS[collective][algorithm], **operands)
            end = finished(make_job(program, per_node=2)).ranks()["end"]
            assert end.min() > late, (ranks, slow)


# One small message over the switch: two links, the switch, and 32 bytes of header and 8 of data at 12.5 GB/s.
OVERHEAD = 200 * NANOSECOND
WIRE = (2 * 90 + 100) * NANOSECOND + 40 * 80_000
STEP = 2 * OVERHEAD + WIRE


@pytest.mark.parametrize(
    ("collective", "algorithm", "steps"),
    [
        ("allreduce", "recursive-doubling", log2),
        ("allreduce", "ring", lambda n: 2 * (n - 1)),
        ("allgather", "recursive-doubling", log2),
        ("allgather", "ring", lambda n: n - 1),
        ("allgather", "neighbor-exchange", lambda n: n // 2),
        ("alltoall", "pairwise", lambda n: n - 1),
        ("reduce_scatter", "ring", lambda n: n - 1),
        ("scan", "recursive-doubling", log2),
    ],
)
@pytest.mark.parametrize("ranks", [2, 8, 16])
def test_times_of_exchanges(collective: str, algorithm: str, steps: Callable[[int], int], ranks: int) -> None:
    """In each step everybody sends and receives once: a step takes L + 2 o, and there are so many steps.

    Blocks of other sizes than 8 bytes change the wire time; so the bandwidth is made nearly infinite.
    """
    fast = {"link.bandwidth": 10**15}
    job = run_collective(collective, algorithm, ranks, 8, network=fast)
    step = 2 * OVERHEAD + (2 * 90 + 100) * NANOSECOND
    assert job.ranks()["end"].max() == pytest.approx(steps(ranks) * step, abs=10 * NANOSECOND)


@pytest.mark.parametrize("ranks", [2, 3, 8, 13, 32, 100])
def test_time_of_a_dissemination_barrier(ranks: int) -> None:
    """ceil(log2 n) exchanges of messages without data."""
    end = run_collective("barrier", "dissemination", ranks, 0).ranks()["end"]
    assert set(end) == {log2(ranks) * (STEP - 8 * 80_000)}


@pytest.mark.parametrize("ranks", [2, 5, 16, 33])
def test_time_of_a_binomial_broadcast(ranks: int) -> None:
    """Each parent sends to its children one after another, largest subtree first, each taking o."""

    def informed(rank: int) -> int:
        if rank == 0:
            return 0
        parent = rank & (rank - 1)
        bits = max(ranks - 1, 1).bit_length() if parent == 0 else (parent & -parent).bit_length() - 1
        own = (rank - parent).bit_length() - 1
        before = sum(parent + (1 << bit) < ranks for bit in range(own + 1, bits))
        return informed(parent) + before * OVERHEAD + STEP

    end = run_collective("broadcast", "binomial", ranks, 8).ranks()["end"]
    leaves = [rank for rank in range(ranks) if rank % 2 == 1 or rank == ranks - 1]
    for rank in leaves:
        assert end[rank] == informed(rank), rank


def test_a_pipelined_broadcast_hides_its_length() -> None:
    """Along a chain, segments follow each other: chain steps and segments add up where they would multiply."""
    ranks, segments, size = 16, 64, 64 * 4096
    mpi = {"segment": 4096, "eager_limit": 10**6}
    whole = (
        run_collective("broadcast", "pipeline", ranks, size, mpi={"eager_limit": 10**6}).ranks()["end"].max()
    )
    cut = run_collective("broadcast", "pipeline", ranks, size, mpi=mpi)
    assert cut.totals()["messages"] == segments * (ranks - 1)
    assert whole / cut.ranks()["end"].max() > 5


def test_reductions_take_the_time_to_combine() -> None:
    """A reduction of 1 MB at 1 GB/s combines for 1 ms per step of the tree."""
    slow = (
        run_collective("reduce", "binomial", 8, 10**6, mpi={"reduction_bandwidth": 10**9})
        .ranks()["end"]
        .max()
    )
    free = run_collective("reduce", "binomial", 8, 10**6).ranks()["end"].max()
    assert slow - free == pytest.approx(3 * 10**12, rel=1e-6)


def test_sizes_may_differ_from_rank_to_rank() -> None:
    """gatherv, allgatherv, alltoallv and reduce_scatter with a per-rank size; the bytes moved say so."""
    ranks = 6
    sizes = np.array([100, 0, 7, 3000, 12, 40])
    for collective, algorithm, expected in (
        ("gather", "linear", sizes.sum() - sizes[2]),
        ("scatter", "linear", sizes.sum() - sizes[2]),
        ("allgather", "ring", (ranks - 1) * sizes.sum()),
        ("allgather", "bruck", (ranks - 1) * sizes.sum()),
        ("allgather", "neighbor-exchange", (ranks - 1) * sizes.sum()),
        ("allgather", "", (ranks - 1) * sizes.sum()),
        ("reduce_scatter", "ring", (ranks - 1) * sizes.sum()),
    ):
        totals = run_collective(collective, algorithm, ranks, sizes, root=2).totals()
        assert totals["bytes"] == expected, (collective, algorithm)


@pytest.mark.parametrize("algorithm", ["linear", "scattered", "pairwise"])
def test_alltoallv_takes_a_size_for_each_pair(algorithm: str) -> None:
    ranks = 5
    table = np.arange(ranks * ranks).reshape(ranks, ranks) * 10
    program = CoreProgram(ranks)
    program.arrays.append(table.reshape(-1).astype(np.int64))
    program.columns.append((0, 0, 0, 0, ranks, 1, ranks, 0, -3))
    program.add("alltoallv", algorithm=ALGORITHMS["alltoallv"][algorithm], bytes=("column", 0))
    totals = finished(make_job(program)).totals()
    assert totals["bytes"] == table.sum() - np.trace(table)


def test_collectives_can_go_on_beside_computing() -> None:
    """With offloading or not, a non-blocking allreduce ends in its wait; a barrier on another communicator between."""
    ranks = 8
    program = CoreProgram(ranks)
    program.communicators.append({"kind": "strided", "stride": 2, "count": 4})
    program.add("allreduce", bytes=8, slot=0)
    program.add("compute", bytes=30_000 * NANOSECOND)
    program.add("barrier", comm=1)
    program.add("wait", slot=0)
    job = finished(make_job(program, check=True))
    done = job.completions()
    values = {
        (rank, op): value
        for rank, op, value in zip(done["rank"], done["operation"], done["value"], strict=True)
    }
    assert all(values[rank, 0] == 36 for rank in range(ranks))
    blocking = CoreProgram(ranks)
    blocking.add("allreduce", bytes=8)
    blocking.add("compute", bytes=30_000 * NANOSECOND)
    assert job.ranks()["end"].max() < finished(make_job(blocking)).ranks()["end"].max() + 4 * STEP


# What the libraries document: collective, ranks, bytes and the algorithm they take.
CHOICES = [
    # open-mpi/ompi, coll_tuned_decision_fixed.c
    ("openmpi", "allreduce", 12, 4096, "recursive-doubling"),
    ("openmpi", "allreduce", 12, 65536, "rabenseifner"),
    ("openmpi", "broadcast", 12, 100_000, "linear"),
    ("openmpi", "alltoall", 20, 100, "bruck"),
    ("openmpi", "allgather", 40, 100, "recursive-doubling"),
    ("openmpi", "allgather", 40, 10_000, "neighbor-exchange"),
    ("openmpi", "barrier", 40, 0, "recursive-doubling"),
    ("openmpi", "barrier", 100, 0, "dissemination"),
    ("openmpi", "gather", 40, 64, "binomial"),
    # pmodels/mpich, cvars.txt
    ("mpich", "allreduce", 16, 2048, "recursive-doubling"),
    ("mpich", "allreduce", 16, 2056, "rabenseifner"),
    ("mpich", "broadcast", 16, 12288, "binomial"),
    ("mpich", "broadcast", 16, 12289, "scatter-allgather"),
    ("mpich", "broadcast", 16, 524289, "scatter-ring"),
    ("mpich", "broadcast", 12, 12289, "scatter-ring"),
    ("mpich", "allgather", 12, 1000, "bruck"),
    ("mpich", "allgather", 12, 10_000, "ring"),
    ("mpich", "alltoall", 16, 256, "bruck"),
    ("mpich", "alltoall", 16, 40_000, "pairwise"),
    ("mpich", "reduce", 16, 4096, "rabenseifner"),
    ("mpich", "barrier", 40, 0, "dissemination"),
]


@pytest.mark.parametrize(("library", "collective", "ranks", "size", "algorithm"), CHOICES)
def test_algorithms_are_chosen_as_the_libraries_do(
    library: str, collective: str, ranks: int, size: int, algorithm: str
) -> None:
    """The same messages and the same time to the femtosecond as with the algorithm asked for by name."""
    mpi = {"collectives": library}
    chosen = run_collective(collective, "", ranks, size, mpi=mpi)
    named = run_collective(collective, algorithm, ranks, size, mpi=mpi)
    assert chosen.totals() == named.totals()
    assert list(chosen.ranks()["end"]) == list(named.ranks()["end"])
