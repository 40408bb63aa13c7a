# SPDX-License-Identifier: Apache-2.0
"""GOAL schedules: read, written, run as LogGOPSim would; broken files are refused with their line."""

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyscale.errors import DeadlockError, InputError
from manyscale.network import MOTIFS, Distribution, compile, motif, run
from manyscale.network.goal import GoalSchedule, goal_text, parse_goal, read_goal, write_goal
from manyscale.network.goal_export import schedule_of
from manyscale.network.goal_program import program_of
from manyscale.network.program import COLLECTIVES

pytestmark = pytest.mark.core

EXAMPLE = """\
num_ranks 3 // a comment

rank 0 {
  l1: calc 100
  l2: send 10b to 1 tag 5 cpu 0 nic 0
  l2 requires l1 /* one
  that goes on */ }
rank 1 {
  first: recv 10b from -1 tag -1
  send 4 b to 2
  l3: recv 7b from 0 tag 6 cpu 1
  l3 irequires first
}
"""


def parsed(text: str) -> GoalSchedule:
    return parse_goal(text.splitlines(keepends=True))


def text_of(schedule: GoalSchedule) -> str:
    file = io.StringIO()
    goal_text(schedule, file)
    return file.getvalue()


def test_a_schedule_is_read():
    schedule = parsed(EXAMPLE)
    assert schedule.ranks == 3
    first, second = schedule.by_rank[0], schedule.by_rank[1]
    assert (first.kinds, first.amounts, first.peers, first.tags) == (
        ["calc", "send"],
        [100, 10],
        [-1, 1],
        [0, 5],
    )
    assert first.requires == [(1, 0)]
    assert (second.kinds, second.amounts) == (["recv", "send", "recv"], [10, 4, 7])
    assert (second.peers, second.tags) == ([-1, 2, 0], [-1, 0, 6])
    assert (second.requires, second.follows) == ([], [(2, 0)])
    assert schedule.messages == 2


def test_a_written_schedule_reads_back(tmp_path: Path):
    schedule = parsed(EXAMPLE)
    write_goal(schedule, tmp_path / "x.goal")
    again = read_goal(tmp_path / "x.goal")
    for rank in range(3):
        assert again.rank(rank) == schedule.rank(rank)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it does not say num_ranks"),
        ("rank 0 {\n}", "line 1: num_ranks must come before"),
        ("num_ranks 0", "line 1: a schedule has at least 1 rank"),
        ("num_ranks 99999999999999999999999", "line 1: the number of ranks is 99999999999999999999"),
        ("num_ranks 2\nnum_ranks 2", "line 2: num_ranks is said twice"),
        ("num_ranks 2\nrank 2 {\n}", "line 2: there is no rank 2; num_ranks is 2"),
        ("num_ranks 2\nrank 1 {\n}\nrank 1 {\n}", "line 4: rank 1 is described twice"),
        ("num_ranks 2\nrank 1 {\ncalc 5\n", "line 2: the braces of rank 1 are never closed"),
        ("num_ranks 1\nrank 0 {\ncalc five\n}", r"line 3: expected .* got 'calc five'"),
        ("num_ranks 1\nrank 0 {\ncalc 9000000000001\n}", r"line 3: the time is 9000000000001"),
        ("num_ranks 1\nrank 0 {\ncalc 5 5\n}", r"line 3: expected"),
        ("num_ranks 2\nrank 0 {\nsend 5b from 1\n}", r"line 3: expected 'send … to'"),
        ("num_ranks 2\nrank 0 {\nsend 5b to -1\n}", r"line 3: there is no rank -1"),
        ("num_ranks 2\nrank 0 {\nsend 5b to 7\n}", r"line 3: there is no rank 7"),
        ("num_ranks 2\nrank 0 {\nsend 5b to 1 tag -1\n}", r"line 3: the tag is -1; only a recv"),
        ("num_ranks 2\nrank 0 {\nsend 5b to 1 tag 3000000000\n}", r"line 3: the tag is 3000000000"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", r"line 4: the label 'a' is used twice"),
        ("num_ranks 1\nrank 0 {\na: calc 1\nb requires a\n}", r"line 4: there is no label 'b'"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}", r"line 4: 'a' requires itself"),
        ("num_ranks 1\nrank 0 {\n" + "x" * 2000, r"line 3: it has 2000 letters"),
        ("num_ranks 1\nhello", r"line 2: expected 'num_ranks N' or 'rank N {', got 'hello'"),
    ],
)
def test_mistakes_name_their_line(text: str, message: str):
    with pytest.raises(InputError, match=message):
        parsed(text)


def test_files_that_are_no_text(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"num_ranks 1\nrank 0 {\n\xff\xfe")
    with pytest.raises(InputError, match="is not text"):
        read_goal(tmp_path / "x")
    with pytest.raises(InputError, match="cannot read"):
        read_goal(tmp_path / "missing")
    with pytest.raises(InputError, match="cannot read"):
        read_goal(tmp_path)


_KNOWN = (
    "num_ranks rank { } calc send recv to from tag cpu nic requires irequires l1 l2 : b 0 1 2 -1 10 // /* */"
)
WORDS = st.sampled_from([*_KNOWN.split(" "), "\n", " ", "é", "9" * 30])


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=60), st.booleans())
def test_no_text_breaks_the_reader(words: list[str], begun: bool):
    text = ("num_ranks 3\nrank 0 {\n" if begun else "") + " ".join(words)
    try:
        schedule = parsed(text)
    except InputError:
        return
    assert text_of(parsed(text_of(schedule))) == text_of(schedule)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_damage_to_a_schedule_breaks_the_reader(damage: bytes, offset: int):
    text = EXAMPLE[:offset] + damage.decode("latin-1") + EXAMPLE[offset + len(damage) :]
    with contextlib.suppress(InputError):
        program_of(parsed(text))


@st.composite
def schedules(draw: st.DrawFn) -> GoalSchedule:
    """Messages among a few ranks that can be delivered: sends and receives are added in a global order.

    Those that could be taken for each other follow one another at both ends, so that each is received where meant.
    """
    ranks = draw(st.integers(2, 5))
    schedule = GoalSchedule(ranks)
    latest: dict[tuple[str, int, int, int], int] = {}
    for _ in range(draw(st.integers(1, 25))):
        source = draw(st.integers(0, ranks - 1))
        target = draw(st.integers(0, ranks - 1).filter(lambda rank: rank != source))  # noqa: B023
        tag = draw(st.integers(0, 2))
        for rank, kind, peer in ((source, "send", target), (target, "recv", source)):
            part = schedule.rank(rank)
            number = part.add(kind, draw(st.integers(0, 100)), peer, tag)
            like = (kind, rank, peer, tag)
            if like in latest:
                part.follows.append((number, latest[like]))
            latest[like] = number
            if number:
                for earlier in draw(st.lists(st.integers(0, number - 1), max_size=3, unique=True)):
                    draw(st.sampled_from([part.requires, part.follows])).append((number, earlier))
    return schedule


def ended(schedule: GoalSchedule, **options: Any) -> list[float]:
    """When each rank is done, in nanoseconds, in LogGP: L 540, o 200, g 200, G 0.08 for each byte."""
    return (run(schedule, machine="loggp", **options).ranks["end"] * 1e9).to_list()


@settings(max_examples=60, deadline=None)
@given(schedules())
def test_every_message_of_a_schedule_is_delivered(schedule: GoalSchedule):
    result = run(schedule, machine="loggp")
    assert result.messages == schedule.messages
    assert result.totals["bytes"] == sum(
        amount
        for part in schedule.by_rank.values()
        for kind, amount in zip(part.kinds, part.amounts, strict=True)
        if kind == "send"
    )


def test_a_rank_goes_on_with_what_does_not_depend_on_the_message_it_waits_for():
    """Rank 2 sends to 1, which sends on to 0, and to 0: its second message comes first, and 0 works on it meanwhile."""
    text = """num_ranks 3
rank 0 {
relayed: recv 8b from 1 tag 1
direct: recv 8b from 2 tag 2
after_relayed: calc 1000
after_direct: calc 5000
after_relayed requires relayed
after_direct requires direct
}
rank 1 {
in: recv 8b from 2 tag 1
out: send 8b to 0 tag 1
out requires in
}
rank 2 {
first: send 8b to 1 tag 1
second: send 8b to 0 tag 2
second requires first
}
"""
    wire = 540 + 8 * 0.08
    direct = 200 + 8 * 0.08 + 200 + wire  # o, G, then g until the second leaves; L and G
    relayed = 200 + wire + 200 + 200 + wire
    assert direct + 200 < relayed < direct + 200 + 5000
    busy = direct + 200 + 5000  # the processor sees to the relayed message when it is free
    assert ended(parsed(text)) == pytest.approx([busy + 200 + 1000, 200 + wire + 400, 400], abs=0.01)


def test_independent_operations_of_a_rank_share_its_processor():
    """A long calc that requires nothing runs while messages are in flight; o of a message waits for the processor."""
    text = """num_ranks 2
rank 0 {
work: calc 3000
out: send 8b to 1 tag 1
back: recv 8b from 1 tag 2
last: calc 100
work irequires out
last requires back
}
rank 1 {
in: recv 8b from 0 tag 1
out: send 8b to 0 tag 2
out requires in
}
"""
    wire = 540 + 8 * 0.08
    answered = 200 + wire + 200 + 200
    assert answered + wire < 200 + 3000  # there long before the work is done, which began after the send
    assert ended(parsed(text)) == pytest.approx([200 + 3000 + 200 + 100, answered], abs=0.01)


def test_a_schedule_runs_the_same_on_two_threads():
    def skeleton(mpi, rank, size):
        with mpi.loop(3):
            mpi.alltoall(2000)
            mpi.allreduce(8)

    schedule = schedule_of(compile(skeleton, 24))
    options = {"nodes": 24, "topology": "torus", "fidelity": "packet"}
    ends = [run(schedule, threads=threads, **options).ranks["end"].to_list() for threads in (1, 2)]
    assert ends[0] == ends[1]


def test_circles_are_refused():
    text = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nb requires c\nc requires b\n}"
    with pytest.raises(
        InputError, match=r"rank 0: operations require each other in a circle, among them number 2"
    ):
        program_of(parsed(text))


def test_a_message_that_never_comes_is_named_with_its_receive():
    text = "num_ranks 2\nrank 0 {\na: calc 5\nb: recv 1b from 1 tag 9\nc: calc 5\nc requires b\n}"
    with pytest.raises(
        DeadlockError, match=r"rank 0 in receive \(operation 1\) for a message from rank 1 with tag 9"
    ):
        run(parsed(text), machine="loggp")


@settings(max_examples=40, deadline=None)
@given(schedules())
def test_a_schedule_is_written_again_from_its_program(schedule: GoalSchedule):
    again = schedule_of(program_of(schedule))
    for rank, part in schedule.by_rank.items():
        assert again.by_rank[rank] == part


@pytest.mark.parametrize("name", sorted(set(MOTIFS) - {"training"}))
@pytest.mark.parametrize("ranks", [4, 6])
def test_motifs_are_written_and_run_again(name: str, ranks: int):
    small = {"hpcg": {"iterations": 1, "nx": 8, "ny": 8, "nz": 8}, "caffe": {"layers": 2}}.get(name, {})
    if name in ("snap", "milc"):
        small = {"iterations": 1}
    if name == "snap":
        small |= {"groups": 1, "chunk": 500}
    schedule = schedule_of(compile(motif(name, **small).emit, ranks, name=name))
    again = parsed(text_of(schedule))
    assert again.by_rank == schedule.by_rank
    assert run(again, machine="loggp").messages == schedule.messages > 0


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize(
    "collective",
    sorted(set(COLLECTIVES) - {"alltoallv"}),
)
def test_collectives_become_messages_that_meet(collective: str, ranks: int):
    def skeleton(mpi, rank, size):
        arguments = {} if collective == "barrier" else {"bytes": 100}
        if collective in ("bcast", "reduce", "gather", "scatter"):
            arguments["root"] = size // 2
        getattr(mpi, collective)(**arguments)

    schedule = schedule_of(compile(skeleton, ranks))
    assert run(schedule, machine="loggp").messages == schedule.messages
    moved = sum(
        sum(part.amounts[n] for n, kind in enumerate(part.kinds) if kind == "send")
        for part in schedule.by_rank.values()
    )
    power = 1 << (ranks.bit_length() - 1)
    expected = {
        "bcast": ranks - 1,
        "reduce": ranks - 1,
        "allgather": ranks * (ranks - 1),
        "alltoall": ranks * (ranks - 1),
        "allreduce": power * (power.bit_length() - 1) + 2 * (ranks - power),
        "scan": ranks - 1,
    }
    if collective in expected:
        assert moved == 100 * expected[collective]


def test_drawn_phases_are_written_with_their_mean():
    def skeleton(mpi, rank, size):
        mpi.compute(Distribution.of(["1us", "3us"]))

    assert schedule_of(compile(skeleton, 1)).by_rank[0].amounts == [2000]
