# SPDX-License-Identifier: Apache-2.0
"""Skeletons become programs: what each rank does is what its function said, however ranks are folded."""

import time

import numpy as np
import pytest

from manyscale.errors import InputError
from manyscale.network import (
    ANY,
    NOBODY,
    Distribution,
    Grid,
    Mpi,
    Pattern,
    Program,
    balanced,
    compile,
    vectorised,
)


def calls(program: Program, rank: int) -> list[tuple]:
    """The steps of a rank as plain tuples."""
    return [(step.kind, *step.operands.values()) for step in program.steps(rank)]


def ring(mpi: Mpi, rank, size):
    with mpi.loop(3):
        mpi.compute("5us")
        request = mpi.irecv((rank - 1) % size, "8KiB", tag=7)
        mpi.send((rank + 1) % size, "8KiB", tag=7)
        mpi.wait(request)
    mpi.allreduce("8B")


def test_one_rank_at_a_time_and_all_at_once_give_the_same_steps():
    one_by_one = compile(ring, 12)
    together = compile(vectorised(lambda mpi, rank, size: ring(mpi, rank, size)), 12)
    for rank in range(12):
        assert calls(one_by_one, rank) == calls(together, rank)
    once = [
        ("compute", 5 * 10**9),
        ("irecv", 3, 8192, 7, 0),
        ("send", 5, 8192, 7),
        ("wait", 0, 1),
    ]
    assert calls(together, 4) == [*once, *once, *once, ("allreduce", 8)]


def test_ranks_of_one_structure_share_their_operations():
    program = compile(ring, 1000)
    assert len(program.operations) == 8
    assert program.entry == 0
    assert program.memory <= 3 * 8 * 1000  # two columns of peers, and the world


def test_ranks_of_different_structure_get_segments_and_share_columns():
    def tree(mpi: Mpi, rank, size):
        if rank > 0:
            mpi.recv((rank - 1) // 2, 64)
        for child in (2 * rank + 1, 2 * rank + 2):
            if child < size:
                mpi.send(child, 64 + rank)

    program = compile(tree, 64)
    # Root, inner ranks, the one with one child, leaves.
    assert sum(operation.kind == "end" for operation in program.operations) == 4
    for rank in range(64):
        expected = [("recv", (rank - 1) // 2, 64, ANY)] if rank else []
        expected += [("send", child, 64 + rank, 0) for child in (2 * rank + 1, 2 * rank + 2) if child < 64]
        assert calls(program, rank) == expected
    assert program.memory <= 8 * 64 * 7  # entry, world and the columns of the segment that needs most


def test_masks_and_nobody_leave_operations_out():
    @vectorised
    def skeleton(mpi: Mpi, rank, size):
        with mpi.where(rank % 2 == 0):
            mpi.compute("1us")
            with mpi.loop(2), mpi.where(rank == 2):
                mpi.barrier()
        mpi.send(np.where(rank < 2, rank + 1, NOBODY), 1)

    program = compile(skeleton, 4)
    assert calls(program, 0) == [("compute", 10**9), ("send", 1, 1, 0)]
    assert calls(program, 2) == [("compute", 10**9), ("barrier", 0), ("barrier", 0), ("send", NOBODY, 1, 0)]
    assert calls(program, 3) == [("send", NOBODY, 1, 0)]


def test_an_iteration_can_be_used_in_operands():
    def exchange(mpi: Mpi, rank, size):
        with mpi.loop(size - 1) as step:
            mpi.sendrecv(to=(rank + 1 + step) % size, source=(rank - 1 - step) % size, bytes=100 + 10 * step)

    for function in (exchange, vectorised(lambda mpi, rank, size: exchange(mpi, rank, size))):
        program = compile(function, 5)
        for rank in range(5):
            assert calls(program, rank) == [
                (
                    "sendrecv",
                    (rank + 1 + step) % 5,
                    100 + 10 * step,
                    0,
                    (rank - 1 - step) % 5,
                    100 + 10 * step,
                )
                for step in range(4)
            ]


def test_a_rank_can_have_its_own_number_of_iterations():
    program = compile(vectorised(lambda mpi, rank, size: _counted(mpi, rank)), 4)
    assert [len(calls(program, rank)) for rank in range(4)] == [0, 1, 2, 3]


def _counted(mpi: Mpi, rank) -> None:
    with mpi.loop(rank):
        mpi.compute("1ns")


@pytest.mark.parametrize("together", [True, False])
def test_a_function_is_asked_for_each_rank_and_occurrence(together: bool):
    def skeleton(mpi: Mpi, rank, size):
        with mpi.loop(3):
            mpi.compute(lambda who, occurrence: 1e-6 * who + 1e-9 * occurrence)

    program = compile(vectorised(skeleton) if together else skeleton, 4)
    for rank in range(4):
        assert calls(program, rank) == [("compute", rank * 10**9 + n * 10**6) for n in range(3)]


def test_equal_distributions_are_kept_once():
    def skeleton(mpi: Mpi, rank, size):
        mpi.compute(Distribution.normal("5us", 0.1))
        mpi.compute(Pattern.of([0, 1, 1, 0], ["3us", Distribution.of(["1us", "2us"])]))

    program = compile(skeleton, 10)
    assert len(program.patterns) == 2
    assert [step.kind for step in program.steps(3)] == ["draw", "draw"]
    assert len(program.operations) == 3


def test_ranks_may_draw_from_different_distributions():
    def skeleton(mpi: Mpi, rank, size):
        mpi.compute(Distribution.of(["1us", "9us"] if rank == 0 else ["1us", "2us"]))

    program = compile(skeleton, 4)
    assert [calls(program, rank) for rank in range(4)] == [[("draw", int(rank > 0))] for rank in range(4)]


def test_split_orders_by_key_and_then_by_rank():
    seen = {}

    @vectorised
    def skeleton(mpi: Mpi, rank, size):
        half = mpi.split(rank % 2, key=-rank)
        quarter = mpi.split(np.where(rank < 8, 0, -1), communicator=half)
        seen.update(half=half, quarter=quarter)
        mpi.bcast(8, root=0, communicator=half)

    program = compile(skeleton, 12)
    assert seen["half"].rank.tolist() == [5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    assert set(seen["half"].size.tolist()) == {6}
    assert program.groups[1].members(0, 12).tolist() == [10, 8, 6, 4, 2, 0]
    # Within the halves: those below 8, still separate by half, in the order of the half.
    assert program.groups[2].members(1, 12).tolist() == [7, 5, 3, 1]
    assert seen["quarter"].size.tolist() == [4] * 8 + [0] * 4


def test_split_one_rank_at_a_time_takes_functions():
    found = {}

    def skeleton(mpi: Mpi, rank, size):
        row = mpi.split(lambda r: r // 4)
        found[rank] = (row.rank, row.size)
        mpi.barrier(row)

    compile(skeleton, 8)
    assert found == {rank: (rank % 4, 4) for rank in range(8)}
    with pytest.raises(InputError, match="give a function"):
        compile(lambda mpi, rank, size: mpi.split(rank % 2), 4)


def test_amounts_by_pair_and_collectives_that_go_on():
    amounts = np.arange(16).reshape(4, 4)
    together = compile(vectorised(lambda mpi, rank, size: mpi.alltoallv(amounts)), 4)
    one_by_one = compile(lambda mpi, rank, size: mpi.alltoallv(amounts[rank]), 4)
    for program in (together, one_by_one):
        assert program.operations[0].operands["bytes"].values.tolist() == amounts.tolist()
        assert calls(program, 1) == [("alltoallv", 4 + 5 + 6 + 7)]
    with pytest.raises(InputError, match="4 x 4, not an array of 1 x 3"):
        compile(vectorised(lambda mpi, rank, size: mpi.alltoallv([1, 2, 3])), 4)

    def overlapped(mpi: Mpi, rank, size):
        request = mpi.icollective("allreduce", "8KiB")
        mpi.compute("1us")
        mpi.wait(request)

    assert calls(compile(overlapped, 2), 0) == [("allreduce", 8192, 0), ("compute", 10**9), ("wait", 0, 1)]
    with pytest.raises(
        InputError, match="there is no collective 'alreduce' to begin; did you mean 'allreduce'"
    ):
        compile(lambda mpi, rank, size: mpi.icollective("alreduce"), 2)


def test_what_is_drawn_can_be_scaled_by_rank():
    @vectorised
    def skeleton(mpi: Mpi, rank, size):
        mpi.compute(Distribution.of(["1us"]), scale=1 + 0.5 * rank)

    assert [calls(compile(skeleton, 3), rank) for rank in range(3)] == [
        [("draw", 0, 10**6 + 500_000 * rank)] for rank in range(3)
    ]
    with pytest.raises(InputError, match="only what is drawn"):
        compile(lambda mpi, rank, size: mpi.compute("1us", scale=2), 1)


def test_requests_reuse_slots_after_their_wait_unless_kept():
    def skeleton(mpi: Mpi, rank, size):
        kept = mpi.request()
        first = mpi.irecv(0, 1)
        mpi.wait(first)
        second = mpi.irecv(0, 1)
        persistent = mpi.send_init(0, 1)
        mpi.start(persistent)
        mpi.waitall(second, persistent)
        third = mpi.isend(0, 1, request=kept)
        assert [kept.slot, first.slot, second.slot, persistent.slot, third.slot] == [0, 1, 1, 2, 0]
        assert mpi.irecv(0, 1).slot == 1

    assert compile(skeleton, 1).requests == 3


def test_wrong_calls_are_refused_in_words():
    for call, message in [
        (
            lambda mpi, rank, size: mpi.send(9, 1),
            r"the peer of a send is 9, but the communicator has 4 ranks",
        ),
        (lambda mpi, rank, size: mpi.send(ANY, 1), r"only a receive or a probe"),
        (lambda mpi, rank, size: mpi.send(0, -1), r"the bytes of a send is -1; it must be at least 0"),
        (lambda mpi, rank, size: mpi.send(0, "1ms"), r"is no unit of an amount of bytes"),
        (lambda mpi, rank, size: mpi.send(0, 1, tag=-5), r"the tag of a send is -5"),
        (lambda mpi, rank, size: mpi.compute("-1us"), r"it is negative"),
        (lambda mpi, rank, size: mpi.compute("5B"), r"is no unit of a time"),
        (lambda mpi, rank, size: mpi.bcast(1, root=-1), r"the root of a bcast is -1"),
        (lambda mpi, rank, size: mpi.send(np.arange(4), 1), r"one rank at a time"),
        (lambda mpi, rank, size: mpi.recv(0.5, 1), r"must be a whole number"),
    ]:
        with pytest.raises(InputError, match=message):
            compile(call, 4)
    with pytest.raises(InputError, match=r"must have one value for each of 4 ranks"):
        compile(vectorised(lambda mpi, rank, size: mpi.send(np.arange(3), 1)), 4)
    with pytest.raises(InputError, match=r"from 1 to .* ranks, not 0"):
        compile(ring, 0)


def test_a_hundred_thousand_ranks_are_recorded_in_seconds():
    begin = time.process_time()
    together = compile(vectorised(lambda mpi, rank, size: ring(mpi, rank, size)), 100_000)
    assert time.process_time() - begin < 2
    assert together.memory < 100 * 100_000


def test_distributions():
    samples = np.random.default_rng(1).gamma(4.0, 1e-6, 10_000)
    measured = Distribution.from_samples(samples)
    assert len(measured.low) <= 100
    assert measured.mean == pytest.approx(samples.mean() * 1e15, rel=0.01)
    assert measured.low[0] == pytest.approx(samples.min() * 1e15, abs=1)
    assert measured.high[-1] == pytest.approx(samples.max() * 1e15, abs=1)
    normal = Distribution.normal("10us", 0.2)
    assert normal.mean == pytest.approx(10**10, rel=1e-9)
    spread = np.sqrt((normal.low - normal.mean) ** 2 @ normal.weights) / normal.mean
    assert spread == pytest.approx(0.2, rel=0.02)
    for wrong in (
        lambda: Distribution.of([]),
        lambda: Distribution.of(["1us"] * 101),
        lambda: Distribution.of(["1us"], [-1.0]),
        lambda: Distribution.from_samples([]),
        lambda: Distribution.from_samples([-1.0]),
        lambda: Distribution.from_samples([float("nan")]),
        lambda: Distribution.normal("1us", 2),
        lambda: Pattern.of([1], ["1us"]),
        lambda: Pattern.of([], ["1us"]),
    ):
        with pytest.raises(InputError):
            wrong()


def test_grids():
    grid = Grid.of((3, 4), periodic=(True, False))
    everyone = np.arange(12)
    assert [grid.rank(grid.coordinates(rank)) for rank in range(12)] == list(range(12))
    assert grid.neighbour(everyone, (1, 0)).tolist() == [(rank + 4) % 12 for rank in range(12)]
    assert grid.neighbour(3, (0, 1)) == NOBODY
    assert grid.neighbour(3, (0, -1)) == 2
    assert balanced(512, 3) == (8, 8, 8)
    assert balanced(12, 2) == (4, 3)
    assert balanced(24, 3, [0, 2, 0]) == (4, 2, 3)
    assert balanced(7, 2) == (7, 1)
    assert balanced(65536, 2) == (256, 256)
    with pytest.raises(InputError, match=r"12 ranks do not fill a grid of 5 x \?"):
        balanced(12, 2, [5, 0])
    with pytest.raises(InputError, match=r"which has 6"):
        balanced(12, 2, [3, 2])
