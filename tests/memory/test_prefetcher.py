# SPDX-License-Identifier: Apache-2.0
"""Prefetchers in front of a cache without end: what is fetched stays, so all that counts is what they foresee."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale import _core

pytestmark = pytest.mark.core

KINDS = ["next_line", "stride", "stream"]
LINE, PAGE = 64, 4096


class Outcome:
    """Share of the demanded lines that were foreseen, and of the fetched lines that were demanded."""

    def __init__(self, accesses: Iterable[tuple[int, int]], **parameters: object) -> None:
        self.prefetcher = _core.Prefetcher(**parameters)
        fetched: set[int] = set()
        demanded: set[int] = set()
        covered = 0
        for address, number in accesses:
            line = address // LINE
            first = line not in demanded
            covered += first and line in fetched
            hit = not first or line in fetched
            demanded.add(line)
            if first and line in fetched:
                self.prefetcher.on_use()
            for target in self.prefetcher.observe(address, number, hit):
                if target // LINE in fetched or target // LINE in demanded:
                    self.prefetcher.on_redundant()
                fetched.add(target // LINE)
        self.fetched = len(fetched)
        self.coverage = covered / len(demanded)
        for _ in fetched - demanded:
            self.prefetcher.on_evict_unused()
        self.accuracy = self.prefetcher.accuracy


def sequence(lines: int, step: int = LINE, start: int = 1 << 30, number: int = 0) -> list[tuple[int, int]]:
    return [(start + n * step, number) for n in range(lines)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [LINE, 8])
def test_a_sequence_is_foreseen_but_for_the_first_line_of_each_page(kind: str, step: int) -> None:
    """No prefetch crosses a page, so of 64 lines at most 63 are foreseen; training costs a few lines once."""
    pages = 16
    outcome = Outcome(sequence(pages * PAGE // step, step), kind=kind)
    best = 63 / 64
    training = 3 / (64 * pages)
    assert best - training <= outcome.coverage <= best
    assert outcome.accuracy == 1


@pytest.mark.parametrize("kind", ["stride", "stream"])
def test_no_line_of_a_sequence_is_proposed_twice(kind: str) -> None:
    outcome = Outcome(sequence(1024), kind=kind, degree=4, distance=16)
    assert outcome.prefetcher.statistics["redundant"] == 0
    assert outcome.prefetcher.statistics["issued"] == outcome.fetched


@pytest.mark.parametrize("kind", ["stride", "stream"])
def test_a_descending_sequence_is_foreseen(kind: str) -> None:
    outcome = Outcome(sequence(1024, -LINE), kind=kind)
    assert outcome.coverage > 0.97
    assert outcome.accuracy > 0.99


@pytest.mark.parametrize("step", [3 * LINE, 5 * LINE + 8, -7 * LINE, 1000])
def test_strides_are_foreseen_by_stride_alone(step: int) -> None:
    """Each page costs its first line, training three; at the end the 8 strides of the distance are of no use."""
    accesses = sequence(500, step)
    pages = len({address // PAGE for address, _ in accesses})
    outcome = Outcome(accesses, kind="stride")
    assert outcome.coverage >= 1 - (pages + 3) / 500
    assert outcome.prefetcher.statistics["useless"] <= 8
    assert Outcome(accesses, kind="next_line").coverage < 0.01


def test_two_interleaved_streams_are_followed_apart() -> None:
    """By one instruction they have no stride; as two instructions, or as streams, they have."""
    up, down = sequence(1000, LINE, 1 << 30, 1), sequence(1000, -LINE, 1 << 31, 2)
    mixed = [access for pair in zip(up, down, strict=True) for access in pair]
    one_instruction = [(address, 0) for address, _ in mixed]
    assert Outcome(mixed, kind="stride").coverage > 0.97
    assert Outcome(one_instruction, kind="stride").coverage == 0
    assert Outcome(one_instruction, kind="stream").coverage > 0.97
    assert Outcome(one_instruction, kind="stream").accuracy > 0.99
    assert Outcome(one_instruction, kind="stream", entries=1).coverage == 0


@pytest.mark.parametrize("streams", [15, 16, 17])
def test_as_many_streams_as_entries(streams: int) -> None:
    """With LRU, one stream more than entries, taken in turn, and none is ever followed."""
    accesses = [(n * LINE + s * (1 << 24), 0) for n in range(200) for s in range(streams)]
    coverage = Outcome(accesses, kind="stream", entries=16).coverage
    assert coverage > 0.95 if streams <= 16 else coverage == 0


def test_random_accesses_leave_stride_and_stream_silent() -> None:
    draw = random.Random(1)
    accesses = [(draw.randrange(1 << 36), draw.randrange(4)) for _ in range(3000)]
    for kind in ("stride", "stream"):
        assert Outcome(accesses, kind=kind).fetched < 30
    assert Outcome(accesses, kind="next_line").accuracy < 0.01
    assert Outcome(accesses, kind="none").fetched == 0


@pytest.mark.parametrize(("kind", "first"), [("stride", 3), ("stream", 3)])
@pytest.mark.parametrize("extra", [0, 2])
def test_the_first_prefetch_comes_with_the_last_step_of_training(kind: str, first: int, extra: int) -> None:
    """`confidence` equal steps are confidence + 1 accesses, and not one fewer."""
    prefetcher = _core.Prefetcher(kind=kind, confidence=2 + extra, degree=1)
    proposals = [prefetcher.observe(n * LINE) for n in range(10)]
    silent = next(n for n, lines in enumerate(proposals) if lines)
    assert silent + 1 == first + extra


@pytest.mark.parametrize("kind", ["stride", "stream"])
def test_degree_and_distance_bound_how_far_it_runs_ahead(kind: str) -> None:
    prefetcher = _core.Prefetcher(kind=kind, degree=3, distance=8, page_size=1 << 20)
    counts, furthest = [], []
    for n in range(20):
        lines = [target // LINE for target in prefetcher.observe(n * LINE)]
        counts.append(len(lines))
        furthest.extend(line - n for line in lines[-1:])
    assert counts[:6] == [0, 0, 3, 3, 3, 2]  # 3 a time, until 8 ahead
    assert counts[6:] == [1] * 14
    assert max(furthest) == 8


def test_a_short_break_does_not_make_a_stride_forgotten() -> None:
    prefetcher = _core.Prefetcher(kind="stride", page_size=1 << 20)
    for n in range(10):
        prefetcher.observe(n * 3 * LINE, 5)
    assert prefetcher.observe(1 << 19, 5) == []
    assert prefetcher.observe((1 << 19) + 3 * LINE, 5) != []


def test_accuracy_counts_late_lines_as_used() -> None:
    prefetcher = _core.Prefetcher()
    assert prefetcher.accuracy == 0
    prefetcher.on_use()
    prefetcher.on_use(late=True)
    prefetcher.on_evict_unused()
    assert prefetcher.accuracy == 2 / 3
    assert prefetcher.statistics == {"issued": 0, "redundant": 0, "useful": 1, "late": 1, "useless": 1}


ADDRESSES = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2 * PAGE),
    st.integers(2**64 - 2 * PAGE, 2**64 - 1),
)
RUNS = st.lists(
    st.tuples(ADDRESSES, st.integers(-300, 300), st.integers(1, 40), st.integers(0, 3)), max_size=12
)


@pytest.mark.parametrize("kind", KINDS)
@given(
    runs=RUNS,
    degree=st.integers(1, 16),
    distance=st.integers(1, 64),
    entries=st.sampled_from([1, 2, 16, 32]),
    sizes=st.sampled_from([(64, 4096), (128, 2**21), (32, 128), (64, 64)]),
    hit=st.booleans(),
)
def test_candidates_are_other_lines_of_the_same_page(
    kind: str,
    runs: list[tuple[int, int, int, int]],
    degree: int,
    distance: int,
    entries: int,
    sizes: tuple[int, int],
    hit: bool,
) -> None:
    line_size, page_size = sizes
    prefetcher = _core.Prefetcher(
        kind=kind,
        degree=degree,
        distance=distance,
        entries=entries,
        confidence=1,
        line_size=line_size,
        page_size=page_size,
    )
    issued = 0
    for start, step, length, number in runs:
        for n in range(length):
            address = (start + n * step) % 2**64
            candidates = prefetcher.observe(address, number, hit)
            issued += len(candidates)
            assert len(candidates) <= degree
            for candidate in candidates:
                assert candidate % line_size == 0
                assert candidate // line_size != address // line_size
                assert candidate // page_size == address // page_size
    assert prefetcher.statistics["issued"] == issued


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "oracle"}, "there is no prefetcher 'oracle'; there are next_line, stream, stride"),
        ({"kind": "stride", "entries": 12}, "number of entries of a prefetcher is a power of two"),
        ({"line_size": 64, "page_size": 32}, "holds at least one line"),
        ({"degree": 17}, "'degree' is out of range"),
    ],
)
def test_a_prefetcher_that_cannot_be_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.Prefetcher(**parameters)
