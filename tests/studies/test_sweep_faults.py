# SPDX-License-Identifier: Apache-2.0
"""Sweeps when things go wrong: workers and controllers that are killed, points that fail, torn files."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from manyscale.errors import RunError
from manyscale.results.integrity import checksum, sealed
from manyscale.studies.sweep import Begun, LocalExecutor, Study, load_sweep
from manyscale.studies.sweep.result_log import ResultLog, read_log

POINTS = 1000
KILLS = 20
MACHINE_CHECKS = 2

# Each call leaves a line, so that one can count how often a point was run to its end.
WORK = """
import os, signal, time

def square(n, log=None, milliseconds=0, seed=0):
    time.sleep(milliseconds / 1000)
    if log is not None:
        with open(log, "a") as file:
            file.write(f"{n}\\n")
    return {"square": n * n, "seeded": seed}

def fails_at(n, bad):
    if n == bad:
        raise ValueError(f"{n} is bad")
    return n

def dies_at(n, bad):
    if n == bad:
        os.kill(os.getpid(), signal.SIGSEGV)
    return n

def slow_at(n, bad):
    if n == bad:
        time.sleep(60)
    return n
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with functions to sweep."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "sweep_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(folder)
    return "sweep_work"


def squares(work: str, count: int, **workload: object) -> Study:
    return Study(
        {"kind": "python", "function": f"{work}:square", **workload},
        axes={"workload.n": {"from": 0, "to": count - 1, "step": 1}},
        name="squares",
    )


def check_squares(table: object, count: int) -> None:
    rows = sorted(table.select("workload.n", "square").iter_rows())  # type: ignore[attr-defined]
    assert rows == [(n, n * n) for n in range(count)]  # each once, none missing


def test_a_thousand_points_survive_the_death_of_workers(work: str, tmp_path: Path) -> None:
    """20 workers are killed and 2 get the signal of a machine check; 1,000 results, none twice, none lost."""
    draw = random.Random(1)
    moments = sorted(draw.sample(range(50, POINTS - 50), KILLS + MACHINE_CHECKS))
    checks = set(draw.sample(moments, MACHINE_CHECKS))
    killed: list[int] = []
    arrived = 0
    with LocalExecutor(2) as executor:

        def kill_now_and_then(news: object) -> None:
            nonlocal arrived
            if isinstance(news, Begun):
                return
            arrived += 1
            if arrived in moments and executor.processes:
                victim = draw.choice(executor.processes)
                os.kill(victim, signal.SIGBUS if arrived in checks else signal.SIGKILL)
                killed.append(victim)

        sweep = squares(work, POINTS, milliseconds=1).run(
            tmp_path / "sweep", on=executor, notice=kill_now_and_then
        )
    assert len(killed) == KILLS + MACHINE_CHECKS
    assert len(set(killed)) > KILLS  # they were replaced
    check_squares(sweep.table, POINTS)
    assert set(sweep.table["status"]) == {"done"}
    lines = (tmp_path / "sweep" / "results.log").read_text().splitlines()
    keys = [json.loads(line.split(" ", 1)[1])["key"] for line in lines]
    assert len(keys) == len(set(keys)) == POINTS


def start_controller(study: Path, out: Path, modules: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "manyscale.cli.app", "sweep", str(study), "--out", str(out), "--quiet"]
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(modules), environment.get("PYTHONPATH", "")])
    return subprocess.Popen(command, env=environment)


def wait_for_lines(path: Path, number: int) -> None:
    end = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < number:
        assert time.monotonic() < end, "the sweep does not get on"
        time.sleep(0.01)


def test_a_killed_controller_resumes_where_it_was(work: str, tmp_path: Path) -> None:
    """kill -9 in the middle: what was done stays, what was not is run, and no worker is left behind."""
    log = tmp_path / "calls"
    study = tmp_path / "study.toml"
    study.write_text(
        f"""
        name = "squares"
        [workload]
        kind = "python"
        function = "{work}:square"
        milliseconds = 5
        log = "{log}"
        [axes]
        "workload.n" = {{from = 0, to = 199, step = 1}}
        """
    )
    out = tmp_path / "sweep"
    controller = start_controller(study, out, tmp_path / "modules")
    wait_for_lines(out / "results.log", 40)
    controller.kill()
    controller.wait()
    partial = load_sweep(out)
    assert partial.status == "interrupted"
    assert 40 <= partial.table.height < 200
    before = partial.table.height
    again = start_controller(study, out, tmp_path / "modules")
    assert again.wait() == 0
    whole = load_sweep(out)
    assert whole.status == "done"
    check_squares(whole.table, 200)
    called = [int(line) for line in log.read_text().split()]
    # What was running when the controller was killed was run again, and nothing else.
    assert set(called) == set(range(200))
    assert len(called) <= 200 + 2
    kept = partial.table.select("workload.n").to_series().to_list()
    assert all(called.count(n) == 1 for n in kept)
    assert before == len(kept)


def test_a_second_controller_is_refused(work: str, tmp_path: Path) -> None:
    def start_another(news: object) -> None:
        with pytest.raises(RunError, match="another process is running the sweep"):
            squares(work, 2).run(tmp_path / "sweep")

    squares(work, 1).run(tmp_path / "sweep", workers=1, notice=start_another)


def test_a_failed_point_is_reported_and_the_rest_goes_on(work: str, tmp_path: Path) -> None:
    study = Study(
        {"kind": "python", "function": f"{work}:fails_at", "bad": 3},
        axes={"workload.n": [1, 2, 3, 4]},
    )
    sweep = study.run(tmp_path / "sweep", workers=2)
    assert sweep.info["counts"] == {"points": 4, "distinct": 4, "done": 3, "failed": 1}
    assert sweep.failed["error"].to_list() == ["ValueError: 3 is bad"]
    assert sweep.failed["workload.n"].to_list() == [3]
    seen: list[object] = []
    study.run(tmp_path / "sweep", workers=1, notice=seen.append)
    assert [type(news).__name__ for news in seen] == ["Begun"]  # it stays failed …
    seen.clear()
    study.run(tmp_path / "sweep", workers=1, notice=seen.append, retry=True)
    assert [type(news).__name__ for news in seen] == ["Begun", "Notice"]  # … until somebody asks


def test_a_point_that_kills_its_workers_is_given_up(work: str, tmp_path: Path) -> None:
    study = Study(
        {"kind": "python", "function": f"{work}:dies_at", "bad": 1}, axes={"workload.n": [0, 1, 2, 3]}
    )
    sweep = study.run(tmp_path / "sweep", workers=2)
    assert sweep.failed["workload.n"].to_list() == [1]
    assert sweep.failed["attempts"].to_list() == [3]
    assert "3 workers died of it: its process was killed by SIGSEGV" in sweep.failed["error"][0]
    assert sweep.info["counts"]["done"] == 3


def test_a_point_that_takes_too_long_is_ended(work: str, tmp_path: Path) -> None:
    study = Study(
        {"kind": "python", "function": f"{work}:slow_at", "bad": 1},
        axes={"workload.n": [0, 1, 2]},
        timeout="500ms",
    )
    sweep = study.run(tmp_path / "sweep", workers=1)
    assert sweep.failed["error"].to_list() == ["it took longer than 0.5 s, and was ended"]
    assert sweep.info["counts"]["done"] == 2


def test_the_death_of_the_fork_server_is_survived(work: str, tmp_path: Path) -> None:
    done = 0
    with LocalExecutor(2) as executor:

        def end_fork_server(news: object) -> None:
            nonlocal done
            done += 1
            if done == 5:
                assert executor._process is not None
                executor._process.kill()

        sweep = squares(work, 20, milliseconds=2).run(tmp_path / "sweep", on=executor, notice=end_fork_server)
    check_squares(sweep.table, 20)


def test_equal_points_are_run_once(work: str, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    study = Study(
        {"kind": "python", "function": f"{work}:square", "log": str(log)},
        axes={"workload.n": [2, 3, 2, 2.0]},
        repetitions=2,
    )
    sweep = study.run(tmp_path / "sweep", workers=2)
    assert sweep.table.height == 8
    assert sweep.info["counts"]["distinct"] == 4
    assert len(log.read_text().split()) == 4
    assert sweep.table["seeded"].to_list() == [0, 1] * 4
    # A changed study keeps what it has of the old one.
    Study(
        {"kind": "python", "function": f"{work}:square", "log": str(log)},
        axes={"workload.n": [3, 4]},
        repetitions=2,
    ).run(tmp_path / "sweep", workers=1)
    assert len(log.read_text().split()) == 6


def test_new_metrics_run_points_again_only_if_they_were_not_kept(work: str, tmp_path: Path) -> None:
    def count(metrics: list[str]) -> tuple[int, int]:
        log = tmp_path / "calls"
        log.write_text("")
        study = Study(
            {"kind": "python", "function": f"{work}:square", "log": str(log)},
            axes={"workload.n": [1, 2]},
            metrics=metrics,
        )
        sweep = study.run(tmp_path / "sweep", workers=1)
        return len(log.read_text().split()), sweep.info["counts"]["failed"]

    assert count(["square"]) == (2, 0)
    assert count(["square", "seeded"]) == (0, 0)  # it was returned, so it was kept
    assert count(["squares"]) == (2, 2)  # a slip: the points fail and say so
    assert count(["square"]) == (2, 0)


def test_a_torn_log_loses_only_its_last_line(work: str, tmp_path: Path) -> None:
    squares(work, 5).run(tmp_path / "sweep", workers=1)
    path = tmp_path / "sweep" / "results.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:30])
    log = ResultLog(path)
    log.close()
    assert len(log.records) == 4
    assert path.read_bytes() == b"".join(lines[:4])
    damaged = bytearray(b"".join(lines[:4]))
    damaged[len(lines[0]) + 40] ^= 1
    path.write_bytes(damaged)
    again: list[object] = []
    sweep = squares(work, 5).run(tmp_path / "sweep", workers=1, notice=again.append)
    assert isinstance(again[0], Begun)
    assert (again[0].known, again[0].damaged) == (3, 1)
    check_squares(sweep.table, 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"attempts": "3"},
        {"wall_seconds": None},
        {"values": {"n": "many"}},
        {"values": {"n": 10**400}},
        {"error": 1},
    ],
)
def test_a_record_of_other_types_counts_as_damaged(tmp_path: Path, changes: dict[str, object]) -> None:
    record = {"key": "a", "status": "done", "values": {"n": 1}, "units": {"n": "1"}}
    record |= {"error": None, "wall_seconds": 0.5, "attempts": 1}
    log = ResultLog(tmp_path / "results.log")
    log.append(record)  # type: ignore[arg-type]
    log.append(record | {"key": "b"} | changes)  # type: ignore[arg-type]
    log.close()
    records, damaged = read_log(tmp_path / "results.log")
    assert (list(records), damaged) == (["a"], 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("status"), "its column 'status' is missing instead of String"),
        (
            lambda table: table.drop("workload.n"),
            "it has no column 'workload.n', which is an axis of the sweep",
        ),
        (
            lambda table: table.with_columns(pl.lit(None, pl.Int64).alias("workload.n")),
            "its column 'workload.n' has rows without a value",
        ),
        (
            lambda table: table.with_columns(pl.lit(b"x").alias("workload.n")),
            "its column 'workload.n' is Binary, which no axis is",
        ),
    ],
)
def test_another_table_is_not_taken_for_that_of_the_sweep(work, tmp_path, change, message) -> None:
    squares(work, 2).run(tmp_path / "sweep", workers=1)
    path = tmp_path / "sweep" / "results.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    info = json.loads((tmp_path / "sweep" / "sweep.json").read_bytes())
    info["files"]["results.parquet"] = checksum(path)
    (tmp_path / "sweep" / "sweep.json").write_bytes(sealed(info))
    with pytest.raises(RunError, match=message):
        load_sweep(tmp_path / "sweep")


def test_two_axes_of_one_name_are_refused(work: str, tmp_path: Path) -> None:
    squares(work, 3).run(tmp_path / "sweep", workers=1)
    path = tmp_path / "sweep" / "sweep.json"
    info = json.loads(path.read_text())
    info["axes"] *= 2
    path.write_bytes(sealed(info))
    with pytest.raises(RunError, match=r"two of its axes are workload\.n"):
        load_sweep(tmp_path / "sweep")


def test_a_folder_that_is_no_sweep_is_refused(work: str, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(RunError, match="is not empty and holds no sweep"):
        squares(work, 1).run(tmp_path / "mine")


def test_a_function_of_a_script_is_sent_along(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle", reason="functions without a module need cloudpickle")
    factor = 3
    study = Study(lambda n: n * factor, axes={"workload.n": [1, 2]})
    assert study.run(tmp_path / "sweep", workers=1).table["result"].to_list() == [3, 6]
