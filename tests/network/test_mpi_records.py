# SPDX-License-Identifier: Apache-2.0
"""The critical path, timelines, and that nothing depends on threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_programs import NANOSECOND, Call, CoreProgram, core_program, finished, make_job

pytestmark = pytest.mark.core


def path_of(job: Any) -> list[tuple[str, int, int, int]]:
    """The critical path from its beginning: what, rank, begin, end; it must have no holes and end with the job."""
    found = job.critical_path()
    assert found["begin"][0] == 0
    assert found["end"][-1] == job.ranks()["end"].max()
    assert list(found["begin"][1:]) == list(found["end"][:-1])
    return list(zip(found["kind"], *(map(int, found[k]) for k in ("rank", "begin", "end")), strict=True))


def test_the_critical_path_goes_through_those_who_kept_others_waiting() -> None:
    """Rank 0 works for 10 us, then 1 for 20 us, then 2; rank 3 works in between and keeps nobody waiting."""
    us = 1000 * NANOSECOND
    calls: list[list[Call]] = [
        [("compute", 10 * us), ("send", 1, 0, 8)],
        [("irecv", 0, 3, 0), ("recv", 0, 0), ("compute", 20 * us), ("wait", 0), ("send", 2, 0, 8)],
        [("recv", 1, 0), ("compute", 5 * us)],
        [("compute", 15 * us), ("send", 1, 0, 8)],
    ]
    program, _ = core_program(calls)
    job = finished(make_job(program))
    pieces = path_of(job)
    assert [(kind, rank) for kind, rank, _, _ in pieces] == [
        ("run", 0),
        ("message", 1),
        ("run", 1),
        ("message", 2),
        ("run", 2),
    ]
    assert job.critical_path()["complete"]


def test_a_late_receiver_is_on_the_critical_path() -> None:
    """The sender of a large message waits for its receiver, so the receiver's work counts and not the sender's."""
    us = 1000 * NANOSECOND
    calls: list[list[Call]] = [
        [("compute", 3 * us), ("send", 1, 0, 10**6)],
        [("compute", 50 * us), ("recv", 0, 0), ("compute", us)],
    ]
    program, _ = core_program(calls)
    pieces = path_of(finished(make_job(program)))
    assert pieces[0][:2] == ("run", 1)
    assert pieces[0][3] >= 50 * us
    assert all(rank == 1 for _, rank, _, _ in pieces)


def test_a_long_run_forgets_the_beginning_of_its_path_and_says_so() -> None:
    program = CoreProgram(2)
    program.loop(20_000)
    program.add("send", mask=[1, 0], peer=1, tag=0, bytes=8)
    program.add("receive", peer=[1, 0], tag=0)
    program.add("send", mask=[0, 1], peer=0, tag=0, bytes=8)
    program.end_loop()
    found = finished(make_job(program)).critical_path()
    assert not found["complete"]
    assert len(found["rank"]) > 1000
    assert list(found["begin"][1:]) == list(found["end"][:-1])


def test_timelines_of_chosen_ranks(tmp_path: Path) -> None:
    """Each operation that took time, one after another; only of the ranks asked for."""
    calls: list[list[Call]] = [
        [("compute", 5000 * NANOSECOND), ("send", 1, 0, 8), ("barrier",)],
        [("recv", 0, 0), ("barrier",)],
        [("barrier",)],
    ]
    program, origin = core_program(calls)
    job = finished(make_job(program, timeline=np.array([1])))
    spans = job.timeline()
    assert set(spans["rank"]) == {1}
    assert [calls[1][origin[op][1]][0] for op in spans["operation"]] == ["recv", "barrier"]
    assert list(spans["begin"][1:]) == list(spans["end"][:-1])
    assert spans["end"][-1] == job.ranks()["end"][1]
    job.write_timeline(str(tmp_path / "trace"), ["call"] * len(origin))
    assert (tmp_path / "trace").stat().st_size > 0


def busy_program(ranks: int) -> CoreProgram:
    """A ring of large and small messages, drawn compute times, and collectives of several kinds."""
    program = CoreProgram(ranks)
    program.patterns.append(
        {
            "sequence": np.array([0]),
            "clusters": [{"low": np.array([0]), "high": np.array([5 * 10**9]), "weight": np.array([1.0])}],
        }
    )
    everyone = np.arange(ranks)
    program.loop(5)
    program.add("draw", bytes=0, slot=0)
    for slot, (distance, size) in enumerate(((1, 64), (3, 40_000), (7, 5000))):
        program.add("ireceive", slot=2 * slot, peer=(everyone - distance) % ranks, tag=slot)
        program.add("isend", slot=2 * slot + 1, peer=(everyone + distance) % ranks, tag=slot, bytes=size)
    program.add("waitall", slot=0, count=6)
    program.add("allreduce", bytes=8)
    program.add("alltoall", bytes=100)
    program.end_loop()
    return program


@pytest.mark.parametrize("fidelity", ["packet", "train"])
def test_nothing_depends_on_the_number_of_threads(fidelity: str) -> None:
    outcomes = []
    for threads in (1, 2, 3):
        network = {
            "topology.kind": "torus",
            "topology.shape": "3x3",
            "topology.nodes_per_switch": 2,
            "topology.nodes": 0,
        }
        job = make_job(busy_program(36), per_node=2, network=network | {"fidelity": fidelity})
        report = job.run(threads=threads)
        assert report["outcome"] == "finished"
        assert report["threads"] == threads
        path = job.critical_path()
        path["kind"] = np.array(path["kind"])
        latency = job.latency()
        outcomes.append([job.ranks(), latency, path, job.totals()])
    for other in outcomes[1:]:
        for one, same in zip(outcomes[0], other, strict=True):
            assert {key: np.asarray(value).tolist() for key, value in one.items()} == {
                key: np.asarray(value).tolist() for key, value in same.items()
            }


def test_order_holds_where_packets_take_different_ways() -> None:
    """Adaptive routing lets messages overtake each other; receives still get them in the order they were sent."""
    network = {
        "topology.kind": "fat-tree",
        "topology.shape": "4,4:4",
        "topology.nodes": 16,
        "routing.algorithm": "adaptive",
    }
    ranks, count = 16, 30
    random = np.random.default_rng(8)
    calls: list[list[Call]] = []
    for rank in range(ranks):
        sizes = random.choice([0, 100, 3000, 12_000], count)
        own: list[Call] = [("irecv", i, (rank - 5) % ranks, -2) for i in range(count)]
        own += [("isend", count + i, (rank + 5) % ranks, i % 3, int(size)) for i, size in enumerate(sizes)]
        calls.append([*own, ("waitall", 0, 2 * count)])
    program, origin = core_program(calls)
    done = finished(make_job(program, network=network, check=True)).completions()
    for operation, value in zip(done["operation"], done["value"], strict=True):
        assert origin[operation][1] == value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.add("loop_end", target=0), "no loop is open here"),
        (lambda p: p.loop(3), "its loop is never closed"),
        (lambda p: p.add("send", tag=0, bytes=8), "needs 'peer'"),
        (lambda p: p.add("branch", mask=0, target=0), "does not come later"),
        (lambda p: p.add("barrier", comm=3), "there is no communicator 3"),
        (lambda p: p.add("wait", slot=-1), "slots go from 0"),
        (lambda p: p.add("compute", bytes=("column", 99)), "there is no column 99"),
        (lambda p: p.add("compute", bytes=[1, 2, 3]), "too few for 4 ranks"),
        (lambda p: p.add("compute", bytes=("column", p.column(1, loop=0, step=1))), "is not around it"),
        (lambda p: p.add("allreduce", bytes=8, algorithm=200), "allreduce has no algorithm number 200"),
        (
            lambda p: p.communicators.append({"kind": "strided", "stride": 3, "count": 1}),
            "do not divide 4 ranks",
        ),
    ],
)
def test_wrong_programs_are_refused_before_they_run(change: Any, message: str) -> None:
    program = CoreProgram(4)
    change(program)
    with pytest.raises(ValueError, match=message):
        make_job(program)
