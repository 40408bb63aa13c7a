# SPDX-License-Identifier: Apache-2.0
"""Programs in which threads meet: shuffles, votes, groups, atomics, locks, barriers and clusters."""

from __future__ import annotations

import numpy as np
import pytest
from programs_support import Program, close, equal, program

pytestmark = pytest.mark.core


@program("shuffle_modes")
def test_shuffle_modes(run: Program) -> None:
    values, out = run.words(32, np.int32), np.zeros((10, 32), np.int32)
    run.launch("shuffle_widths", 1, 32, values, out)
    lane = np.arange(32)

    def within(source: np.ndarray, width: int) -> np.ndarray:
        """The source, or the own lane if it lies in another group."""
        return np.where(source // width == lane // width, source, lane)

    sources = [
        np.full(32, 5),
        lane * 7 % 32,
        lane // 4 * 4 + 2,
        lane // 16 * 16 + (lane + 1) % 16,
        within(lane - 3, 32),
        within(lane - 1, 4),
        within(lane + 9, 32),
        within(lane + 5, 16),
        lane ^ 21,
        lane ^ 3,
    ]
    equal(out, values[np.stack(sources)])

    reals, out = run.floats(-9, 9, 32), np.zeros(32, np.float32)
    run.launch("shuffle_odd_lanes", 1, 32, reals, out)
    equal(out, np.where(lane % 2, reals[(32 - lane) % 32], reals + np.float32(1)))


@program("cooperative_reduction")
def test_cooperative_reduction(run: Program) -> None:
    values, sums, maxima = run.integers(-999, 999, 192), np.zeros(24, np.int32), np.zeros(24, np.int32)
    run.launch("tile_sums", 3, 64, values, sums, maxima)
    equal(sums, values.reshape(24, 8).sum(axis=1))
    equal(maxima, values.reshape(24, 8).max(axis=1))

    reals, totals = run.floats(0, 1, 192), np.zeros(6, np.float32)
    run.launch("warp_float_sums", 3, 64, reals, totals)
    close(totals, reals.reshape(6, 32).sum(axis=1))

    counter, ranks = np.zeros(1, np.int32), np.full(192, -1, np.int32)
    run.launch("count_positive", 3, 64, values, counter, ranks, 180)
    chosen = np.flatnonzero(values[:180] > 0)
    assert counter[0] == chosen.size
    equal(np.sort(ranks[chosen]), np.arange(chosen.size))
    equal(np.delete(ranks, chosen), -1)

    numbers, rotated = run.words((2, 96), np.int32), np.zeros((2, 96), np.int32)
    run.launch("block_rotate", 2, 96, numbers, rotated, shared=96 * 4)
    equal(rotated, np.roll(numbers, -1, axis=1))


@program("partitions")
def test_partitions(run: Program) -> None:
    labels, sizes, ranks = run.integers(0, 5, 128), np.zeros(128, np.int32), np.zeros(128, np.int32)
    run.launch("labelled", 2, 64, labels, sizes, ranks)
    same = labels.reshape(4, 32)[:, :, None] == labels.reshape(4, 32)[:, None, :]
    equal(sizes.reshape(4, 32), same.sum(axis=2))
    equal(ranks.reshape(4, 32), np.tril(same, -1).sum(axis=2))

    values = run.integers(-99, 99, (8, 16))
    inclusive, exclusive = np.zeros_like(values), np.zeros_like(values)
    run.launch("tile_scans", 2, 64, values, inclusive, exclusive)
    equal(inclusive, values.cumsum(axis=1))
    equal(exclusive, values.cumsum(axis=1) - values)

    values, out = run.integers(-2, 4, (32, 4)), np.zeros((32, 4), np.uint32)
    run.launch("tile_votes", 2, 64, values, out)
    ballot = ((values > 0) << np.arange(4)).sum(axis=1)
    votes = ballot + 0x100 * (values == 2).any(axis=1) + 0x200 * (values != 1).all(axis=1)
    equal(out, votes[:, None] + ((values[:, [1, 0, 3, 2]] & 255) << 16))


def masks(truth: np.ndarray) -> np.ndarray:
    """The bits of up to 32 truths, the first the lowest, in each row."""
    return (truth.astype(np.uint64) << np.arange(truth.shape[-1], dtype=np.uint64)).sum(axis=-1)


@program("warp_votes")
def test_warp_votes(run: Program) -> None:
    count = 83
    values, out = run.integers(-2, 8, count), np.zeros((8, count), np.uint32)
    values[32:64] = run.integers(0, 7, 32)
    run.launch("warp_votes", 2, 64, values, out, count)
    for first in (0, 32, 64):
        own, got = values[first : first + 32], out[:, first : first + 32]
        everyone = masks(np.ones(own.size, bool))
        equal(got[0], masks(own > 0))
        equal(got[1], (own == 3).any())
        equal(got[2], (own < 7).all())
        same = masks(own[:, None] == own[None, :])
        equal(got[3], same)
        eighth = np.array([int(value / 8) for value in own])
        agree = (eighth == eighth[0]).all()
        equal(got[4], everyone if agree else 0)
        equal(got[5], agree)
        equal(got[6], same)
        odd = own % 2 == 1
        for lane, mask in enumerate(np.where(odd, got[7], ~got[7])):
            assert int(mask) >> lane & 1
            assert int(mask) & ~int(masks(odd if odd[lane] else ~odd)) == 0


@program("warp_votes")
def test_votes_of_groups_and_blocks(run: Program) -> None:
    keys, totals, tickets = run.integers(0, 6, 128), np.zeros(6, np.uint32), np.zeros(128, np.uint32)
    run.launch("grouped_add", 2, 64, keys, totals, tickets)
    equal(totals, np.bincount(keys, minlength=6))
    for key in range(6):
        equal(np.sort(tickets[keys == key]), np.arange(totals[key]))

    values, out = run.integers(-4, 7, (3, 80)), np.zeros((3, 3), np.int32)
    values[1, 50], values[2, 79] = 7, -5
    run.launch("block_votes", 3, 80, values, out)
    equal(out, np.stack([(values > 0).sum(axis=1), [1, 1, 0], [0, 1, 0]], axis=1))


@program("warp_redux")
def test_warp_redux(run: Program) -> None:
    values, out = run.words(128, np.int32), np.zeros((9, 4, 32), np.int32)
    run.launch("warp_redux", 2, 64, values, out, 128)
    rows, words = values.reshape(4, 32), values.view(np.uint32).reshape(4, 32)
    expected = [
        rows.sum(axis=1, dtype=np.int32),
        rows.min(axis=1),
        rows.max(axis=1),
        words.min(axis=1),
        words.max(axis=1),
        np.bitwise_and.reduce(words | np.uint32(0xFF000000), axis=1),
        np.bitwise_or.reduce(words & np.uint32(0xFF00), axis=1),
        np.bitwise_xor.reduce(words, axis=1),
    ]
    for result, reference in zip(out, expected, strict=False):
        equal(result, np.repeat(reference.view(np.int32)[:, None], 32, axis=1))
    halves = rows.reshape(4, 2, 16).sum(axis=2, dtype=np.int32)
    equal(out[8], np.repeat(halves, 16, axis=1))


@program("atomics_integer")
def test_atomics_on_words(run: Program) -> None:
    count = 150
    values, old = run.words(count), np.zeros((4, count), np.uint32)
    start = np.array([7, 9, 0xFFFFFFFF, 0, 0xFFFFFFFF, 1, 0, 5, 3, 77, 123, 0], np.uint32)
    cells = start.copy()
    run.launch("atomics_u32", 3, 64, values, cells, old, count)
    total = values.sum(dtype=np.uint32)
    equal(
        cells[:7],
        [
            start[0] + total,
            np.uint32(int(start[1]) - int(total) & 0xFFFFFFFF),
            values.min(),
            values.max(),
            np.bitwise_and.reduce(values | np.uint32(0xF0F0)),
            np.bitwise_or.reduce(values & np.uint32(0x0FF0)) | 1,
            np.bitwise_xor.reduce(values),
        ],
    )
    assert cells[7] == (5 + count) % 37
    equal(np.sort(old[0]), np.sort((5 + np.arange(count)) % 37))
    assert cells[8] == (3 - count) % 23
    equal(np.sort(old[1]), np.sort((3 - np.arange(count)) % 23))
    equal(np.sort(np.append(old[2], cells[9])), np.sort(np.append(values, 77)))
    assert cells[10] == 123 ^ np.bitwise_xor.reduce(values * np.uint32(2654435761))
    equal(np.sort(old[3]), np.arange(count))


@program("atomics_integer")
def test_atomics_on_signed_and_wide_numbers(run: Program) -> None:
    count = 150
    values, wide = run.integers(-(10**6), 10**6, count), run.words(count, np.int64)
    cells, wide_cells = np.zeros(3, np.int32), np.zeros(2, np.int64)
    run.launch("atomics_signed", 3, 64, values, cells, wide, wide_cells, count)
    equal(cells, [values.sum(), values.min(), values.max()])
    equal(wide_cells, [wide.min(), wide.max()])

    words, old = run.words(count, np.uint64), np.zeros(count, np.uint64)
    cells = np.array([5, 1 << 63, 0, (1 << 64) - 1, 0, 0, 77, 0], np.uint64)
    run.launch("atomics_u64", 3, 64, words, cells, old, count)
    expected = [
        words.sum(dtype=np.uint64) + np.uint64(5),
        words.min(),
        words.max(),
        np.bitwise_and.reduce(words | np.uint64(0xFFFF0000FFFF)),
        np.bitwise_or.reduce(words & np.uint64(0xFF00FF00FF00)),
        np.bitwise_xor.reduce(words),
    ]
    equal(cells[:6], expected)
    equal(np.sort(np.append(old, cells[6])), np.sort(np.append(words, np.uint64(77))))
    assert cells[7] in words[words > 0]


@program("atomics_integer")
def test_atomics_on_shared_memory(run: Program) -> None:
    values, out = run.words((2, 90), np.int32), np.zeros((2, 10), np.int32)
    run.launch("atomics_shared", 2, 64, values, out, 90)
    for row, result in zip(values, out, strict=True):
        wide = int(row.view(np.uint32).sum(dtype=np.uint64))
        expected = [
            row.sum(dtype=np.int32),
            row.min(),
            max(row.max(), 0),
            np.bitwise_and.reduce(row | 0xFF),
            np.bitwise_or.reduce(row & 0xF00),
            np.bitwise_xor.reduce(row),
            90,
        ]
        equal(result[:7], expected)
        assert (int(result[7]) & 0xFFFFFFFF) | int(result[8]) << 32 == wide
        assert result[9] == 90 % 11


@program("atomics_float")
def test_atomics_on_floats(run: Program) -> None:
    count = 150
    values = run.integers(0, 8, count).astype(np.float32)
    cells, wide, halves = np.zeros(7, np.float32), np.zeros(2), np.zeros((8, 2), np.float16)
    run.launch("atomics_float", 3, 64, values, cells, wide, halves, count)
    equal(cells[:2], values.sum())
    equal(wide, [values.sum() / 2, values.sum()])
    equal(halves[:, 0], [values[half::8].size for half in range(8)])
    equal(halves[:, 1], [values[half::8].sum() for half in range(8)])

    reals, largest = run.floats(-5, 5, count), np.full(1, -1e30, np.float32)
    run.launch("maximum_by_exchange", 3, 64, reals, largest, count)
    assert largest[0] == reals.max()


@program("scoped_atomics")
def test_scoped_atomics(run: Program) -> None:
    turn, values = np.zeros(1, np.uint32), np.zeros((7, 32), np.uint32)
    values[0] = start = run.words(32)
    run.launch("chain", 3, 64, turn, values)
    assert turn[0] == 6
    for warp in range(6):
        start = np.roll(start, -1) + np.uint32(warp)
        equal(values[warp + 1], start)

    words, cells = run.integers(0, 65536, 100, np.uint32), np.zeros(8 + 100, np.uint32)
    run.launch("scopes", 2, 64, cells, words, 100)
    equal(cells[:3], [words.sum(), words.max(), np.bitwise_xor.reduce(words)])
    assert cells[4:6].view(np.uint64)[0] == int(words.sum()) << 20
    equal(cells[8:], 1)


@program("spin_lock")
def test_spin_locks(run: Program) -> None:
    lock, counter, order = np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(96, -1, np.int32)
    run.launch("lock_inside_loop", 2, 48, lock, counter)
    assert (lock[0], counter[0]) == (0, 96)
    counter[0] = 0
    run.launch("lock_before_work", 2, 48, lock, counter, order)
    assert (lock[0], counter[0]) == (0, 96)
    equal(np.sort(order), np.arange(96))


@program("spin_lock")
def test_two_locks_per_thread(run: Program) -> None:
    count, accounts = 100, 8
    source = run.integers(0, accounts, count)
    target = (source + run.integers(1, accounts, count)) % accounts
    amounts = run.integers(1, 100, count)
    locks, balances = np.zeros(accounts, np.int32), np.full(accounts, 1000, np.int32)
    run.launch("transfer", 2, 64, locks, balances, source, target, amounts, count)
    expected = np.full(accounts, 1000)
    np.subtract.at(expected, source, amounts)
    np.add.at(expected, target, amounts)
    equal(balances, expected)
    equal(locks, 0)


@program("ticket_lock")
def test_ticket_lock(run: Program) -> None:
    threads = 2 * 48
    value, tickets = np.zeros(1, np.uint64), np.zeros(threads, np.uint32)
    run.launch("ticket_lock", 2, 48, value, tickets)
    expected = 0
    for ticket in range(threads):
        expected = (expected * 31 + ticket) % (1 << 64)
    assert value[0] == expected
    equal(np.sort(tickets), np.arange(threads))


@program("producer_consumer")
def test_producer_and_consumer(run: Program) -> None:
    values, out = run.integers(-999, 999, (2, 5, 32)), np.zeros((2, 5, 32), np.int32)
    run.launch("named_barriers", 2, 64, values, out, 5)
    equal(out, 2 * values[:, :, ::-1] + np.arange(5)[None, :, None])

    slots, filled, emptied, out = (np.zeros(size, np.int32) for size in (4, 1, 1, 30))
    run.launch("flags_between_blocks", 2, 32, slots, filled, emptied, out, 30)
    equal(out, np.arange(30) ** 2 + 1)


@program("async_barrier", not_modelled=["sm_90"])
def test_asynchronous_copies_end_at_a_barrier(run: Program) -> None:
    """For sm_90 the compiler makes bulk copies of them."""
    values, out = run.integers(-999, 999, (2, 3, 64)), np.zeros((2, 3, 64), np.int32)
    run.launch("copy_to_barrier", 2, 64, values, out, 3, shared=64 * 4)
    equal(out, values[:, :, ::-1] + np.arange(3)[None, :, None])


@program("async_barrier")
def test_arrival_apart_from_wait(run: Program) -> None:
    out = np.zeros((3, 64), np.int32)
    run.launch("split_arrival", 1, 64, out)
    thread, phase = np.arange(64)[None, :], np.arange(3)[:, None]
    equal(out, thread * 1000 + phase + (thread + 33) % 64 * (phase + 1))


@program("grid_sync")
def test_all_blocks_wait_for_each_other(run: Program) -> None:
    ring, other = run.integers(-99, 99, 200), np.zeros(200, np.int32)
    expected = ring.copy()
    for _ in range(4):
        expected = np.roll(expected, 1) + expected + np.roll(expected, -1)
    run.launch("smooth_ring", 4, 64, ring, other, 200, 4)
    equal(ring, expected)


@program("cluster_exchange", not_modelled=["sm_90", "sm_100"])
def test_blocks_of_a_cluster_share_memory(run: Program) -> None:
    values, sums = run.integers(-999, 999, (2, 4, 64)), np.zeros(2, np.int32)
    out = np.zeros_like(values)
    run.launch("cluster_exchange", 8, 64, values, out, sums)
    equal(out, np.roll(values, -1, axis=1)[:, :, ::-1])
    equal(sums, values.sum(axis=(1, 2)))
