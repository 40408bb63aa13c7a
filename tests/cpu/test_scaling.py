# SPDX-License-Identifier: Apache-2.0
"""Studies on a trace: copies of it or its tasks on more cores, other machines; and the programs of the sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manyscale import cpu
from manyscale.cli.app import main
from manyscale.cpu import scaling
from manyscale.cpu.line_times import transfer_time
from manyscale.errors import InputError
from manyscale.machine import load_machine

pytestmark = pytest.mark.core

MACHINE = "elasticsimmate"
EXPECTED = Path(__file__).parents[2] / "examples" / "elastic" / "programs" / "expected.json"
CASES = json.loads(EXPECTED.read_text())["cases"]


def recorded(folder: Path, *arguments: str) -> Path:
    path = folder / f"{arguments[0]}.trace"
    program = cpu.Program(cpu.sample("elastic"), arguments)
    cpu.record(program, path, machine=MACHINE, cores=int(arguments[1]))
    return path


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("matrix"), "matrix", "1", "16")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("tasks"), "ferret", "1", "4")


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case["arguments"]))
def test_a_program_prints_what_it_prints_under_qemu(case: dict[str, list[str] | str]) -> None:
    arguments = case["arguments"]
    program = cpu.Program(cpu.sample("elastic"), arguments)
    assert cpu.run_functional(program, cores=int(arguments[1])).stdout == case["output"]


def test_copies_do_the_work_of_one_each_and_take_no_less_time(matrix: Path) -> None:
    study = scaling.weak(matrix, [1, 8])
    one, eight = study.points
    assert eight.instructions == 8 * one.instructions
    assert eight.seconds >= one.seconds
    assert study.speedup(one) == 1
    assert study.efficiency(eight) == pytest.approx(one.seconds / eight.seconds)
    assert study.speedup(eight) == pytest.approx(8 * one.seconds / eight.seconds)


def test_copies_on_the_same_data_read_it_from_memory_once(matrix: Path) -> None:
    own, same = (scaling.weak(matrix, [8], offset=offset).points[0] for offset in (True, False))
    one = scaling.weak(matrix, [1]).points[0]
    assert same.dram_bytes < 1.5 * one.dram_bytes
    assert own.dram_bytes > 2 * same.dram_bytes


def test_tasks_on_more_cores_take_less_time_but_no_less_than_their_share(tasks: Path) -> None:
    study = scaling.strong(tasks, [1, 2])
    assert study.points[0].instructions == study.points[1].instructions
    assert 1 < study.speedup(study.points[1]) <= 2.05


def test_tasks_dealt_to_cores_take_about_as_long_as_the_program_on_them(tasks: Path) -> None:
    def program(threads: int) -> cpu.Program:
        return cpu.Program(cpu.sample("elastic"), ["ferret", str(threads), "4"])

    executed = scaling.detailed(program, [1, 2], machine=MACHINE)
    replayed = scaling.strong(tasks, [1, 2])
    assert [point.cores for point in executed.points] == [1, 2]
    for one, other in zip(replayed.points, executed.points, strict=True):
        assert one.seconds == pytest.approx(other.seconds, rel=0.15)


def test_what_one_thread_cannot_show(tasks: Path) -> None:
    """Threads that a replay adds have to be made, and they are in each other's way at the tasks."""
    with cpu.Trace(tasks) as trace:
        made = (trace.overheads["pool_latency"] + 3 * trace.overheads["worker_latency"]) / 1e15
    nothing = {"pool_latency": 0, "worker_latency": 0}
    all_of_it, quick_threads, quick_queue = (
        scaling.strong(tasks, [4], overheads=overheads).points[0].seconds
        for overheads in ({}, nothing, {"queue_latency": 0, "failed_dequeue_latency": 0})
    )
    assert all_of_it - quick_threads == pytest.approx(made, rel=0.1)
    assert all_of_it > quick_queue


def test_tasks_are_dealt_more_slowly_where_cores_are_further_apart() -> None:
    """A line that two cores write in turns takes longer on a machine with a slower interconnect."""
    near = load_machine(MACHINE)
    far = load_machine(MACHINE, ["memory.interconnect.link_latency=5ns"])
    assert transfer_time(far) > 1.5 * transfer_time(near) > 0
    assert transfer_time(load_machine(MACHINE, ["cpu.cores=1"])) == 0


def test_slower_memory_takes_more_time(matrix: Path) -> None:
    study = scaling.vary(matrix, {"dram.latency": ["30ns", "90ns"], "l2.size": ["256KiB", "1MiB"]})
    assert [point.label for point in study.points] == [
        f"dram.latency={latency} l2.size={size}"
        for latency in ("30ns", "90ns")
        for size in ("256KiB", "1MiB")
    ]
    times = [point.seconds for point in study.points]
    assert min(times[2:]) > max(times[:2])
    assert study.table()["replay"].to_list() == [point.label for point in study.points]


def test_short_names_are_of_what_a_machine_has() -> None:
    assert scaling.full_path(load_machine(MACHINE), "l2.size") == "memory.shared.cache.size"
    assert scaling.full_path(load_machine("broadwell"), "l2.size") == "memory.l2.size"
    assert scaling.full_path(load_machine(MACHINE), "cpu.clock") == "cpu.clock"


@pytest.mark.parametrize(
    ("text", "counts"), [("1,3,5", [1, 3, 5]), ("1..16", [1, 2, 4, 8, 16]), ("4..12", [4, 8, 12]), ("2", [2])]
)
def test_numbers_of_cores(text: str, counts: list[int]) -> None:
    assert scaling.parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", "0", "a..b", "4..1", "1,,2", "-1", "1..2..3"])
def test_what_are_no_numbers_of_cores(text: str) -> None:
    with pytest.raises(InputError, match="no numbers of cores"):
        scaling.parse_counts(text)


def test_what_cannot_be_studied_is_said(matrix: Path, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has none; record a program"):
        scaling.strong(matrix, [1, 2])
    two = recorded(tmp_path, "matrix", "2", "16")
    with pytest.raises(InputError, match="3 is no multiple"):
        scaling.weak(two, [3])
    for wrong in ("l2.size", "=1", "l2.size=", "l2.size=1MiB,,2MiB"):
        with pytest.raises(InputError, match="write NAME=VALUE"):
            scaling.parse_varied([wrong])
    with pytest.raises(InputError, match="varied twice"):
        scaling.parse_varied(["a=1", "a=2"])
    with pytest.raises(InputError, match="speed"):
        scaling.vary(matrix, {"dram.speed": ["1"]})


def test_the_command_leaves_a_table_and_charts(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    assert main(["cpu", "scale", str(matrix), "--weak", "1,2", "--out", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["cores"] for row in shown["replays"]] == [1, 2]
    names = ["efficiency.svg", "mpki.svg", "speedup.svg", "study.csv", "time.svg"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert main(["cpu", "scale", str(matrix)]) != 0
    assert "either --weak" in capsys.readouterr().err


def test_work_outside_tasks_bounds_the_speedup(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the work in a loop of one thread: told before the first replay, with the bound, and in the result."""
    fixed = scaling.FixedWork(share=0.5, longest=0.5, loops=2)
    assert fixed.bound(1, 1) == 1
    assert fixed.bound(1, 4) == pytest.approx(1.6)
    assert fixed.bound(2, 4) == pytest.approx(0.75 / 0.625)
    assert fixed.limits(1, 4)
    assert not scaling.FixedWork(0.001, 0.001, 0).limits(1, 4)
    assert "2 OpenMP loops" in fixed.text(1, 4)
    assert "at most 1.60" in fixed.text(1, 4)
    trace = tasks
    with cpu.Trace(trace) as opened:
        found = scaling.FixedWork.of(opened)
        streams = opened.columns["stream.instructions"]
        outside = streams[opened.columns["stream.is_task"] == 0].sum()
    assert found.share == pytest.approx(outside / streams.sum())
    told: list[str] = []
    study = scaling.strong(trace, [1, 4], warn=told.append)
    assert study.speedup(study.points[1]) <= found.bound(1, 4) * 1.15
    assert bool(told) == found.limits(1, 4) == bool(study.warning)
    assert main(["cpu", "scale", str(trace), "--strong", "1,4", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["replays"][1]["speedup_bound"] == pytest.approx(found.bound(1, 4))
    assert shown["replays"][1]["fixed_share"] == pytest.approx(found.share)
    assert (shown["warning"] is not None) == found.limits(1, 4)
