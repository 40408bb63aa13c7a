# SPDX-License-Identifier: Apache-2.0
"""A run directory explains itself and never claims more than what happened."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from manyscale.errors import DeadlockError, RunError
from manyscale.results import RunWriter, default_directory, load
from manyscale.results.lock import RunLock, is_locked
from small_run import HEADLINE, columns, finished, writer


def child(path, body):
    """A process that opens a run in `path`, prints "ready" and then does `body`."""
    program = f"""
import os, sys, time
from manyscale.results import RunWriter
columns = {columns()!r}
with RunWriter({str(path)!r}, command=["x"], workload={{}}, seed=0) as run:
    run.write_machine("cores = 4")
    {body}
"""
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until_ready(process):
    assert process.stdout.readline() == b"ready\n", process.stderr.read()


def test_a_finished_run_says_everything_about_itself(tmp_path):
    run = finished(tmp_path / "run")
    assert run.status == "done"
    assert run.headline == HEADLINE
    assert run.machine_text == "cores = 4\n"
    assert run.info["command"] == ["manyscale", "run"]
    assert run.info["workload"] == {"name": "saxpy", "n": 10}
    assert run.info["workload_hash"].startswith("sha256:")
    assert run.info["machine"]["hash"].startswith("sha256:")
    assert run.info["seed"] == 3
    assert set(run.info["versions"]) == {"manyscale", "python", "platform"}
    assert run.info["created"].endswith("+00:00")
    assert run.info["created"] <= run.info["ended"]
    assert run.value("gpu", "warps") == 7
    assert sorted(path.name for path in run.path.iterdir()) == ["machine.toml", "run.json", "stats.parquet"]


def test_the_workloads_hash_does_not_depend_on_the_order_of_its_keys(tmp_path):
    hashes = set()
    for name, workload in (("a", {"n": 1, "k": 2}), ("b", {"k": 2, "n": 1})):
        with RunWriter(tmp_path / name, command=[], workload=workload, seed=0) as run:
            run.finish({})
        hashes.add(load(tmp_path / name).info["workload_hash"])
    assert len(hashes) == 1


def test_a_run_that_goes_on_reads_as_running(tmp_path):
    with writer(tmp_path / "run") as run:
        assert load(tmp_path / "run").status == "running"
        run.finish({})
    assert load(tmp_path / "run").status == "done"


def test_a_killed_run_reads_as_interrupted(tmp_path):
    process = child(tmp_path / "run", "run.partial(columns); print('ready', flush=True); time.sleep(60)")
    with process:
        wait_until_ready(process)
        assert load(tmp_path / "run").status == "running"
        process.send_signal(signal.SIGKILL)
        process.wait()
        run = load(tmp_path / "run")
        assert run.status == "interrupted"
        assert run.value("gpu", "warps") == 7
        assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "running"


def test_a_killed_run_with_a_living_forked_worker_reads_as_interrupted(tmp_path):
    body = (
        "reading, writing = os.pipe()\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os.write(writing, b'!'); time.sleep(60); os._exit(0)\n"
        "    os.read(reading, 1)\n"  # the worker runs, and has given up what it inherited
        "    print('ready', flush=True); print(pid, flush=True); time.sleep(60)"
    )
    process = child(tmp_path / "run", body)
    with process:
        wait_until_ready(process)
        worker = int(process.stdout.readline())
        try:
            process.kill()
            process.wait()
            assert load(tmp_path / "run").status == "interrupted"
        finally:
            os.kill(worker, signal.SIGKILL)


def test_ctrl_c_leaves_partial_statistics_and_reads_as_stopped(tmp_path):
    body = (
        "try: print('ready', flush=True); time.sleep(60)\n"
        "    except KeyboardInterrupt: run.partial(columns, {'ipc': {'value': 5, 'unit': '1'}}); raise"
    )
    process = child(tmp_path / "run", body)
    with process:
        wait_until_ready(process)
        process.send_signal(signal.SIGINT)
        process.wait()
        assert process.returncode == -signal.SIGINT
    run = load(tmp_path / "run")
    assert run.status == "stopped"
    assert run.info["partial"] is True
    assert run.headline["ipc"]["value"] == 5
    assert run.value("gpu", "warps") == 7


def test_a_stopped_run_that_wrote_nothing_says_so(tmp_path):
    with pytest.raises(KeyboardInterrupt), writer(tmp_path / "run"):
        raise KeyboardInterrupt
    run = load(tmp_path / "run")
    assert run.status == "stopped"
    with pytest.raises(RunError, match=r"\(stopped\) has no statistics: stats.parquet is missing"):
        _ = run.stats
    with pytest.raises(RunError, match=r"\(stopped\) has no machine.toml"):
        _ = run.machine_text


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DeadlockError("two warps wait"), "two warps wait"),
        (ZeroDivisionError("by 0"), "ZeroDivisionError: by 0"),
    ],
)
def test_an_exception_reads_as_failed_with_its_message(tmp_path, error, message):
    with pytest.raises(type(error)), writer(tmp_path / "run"):
        raise error
    run = load(tmp_path / "run")
    assert run.status == "failed"
    assert run.info["error"] == message


def test_leaving_without_finish_is_a_failure(tmp_path):
    with pytest.raises(RunError, match=r"without calling finish"), writer(tmp_path / "run"):
        pass
    assert load(tmp_path / "run").status == "failed"


def test_finish_after_partial_is_not_partial(tmp_path):
    with writer(tmp_path / "run") as run:
        run.partial(columns(1), HEADLINE)
        assert load(tmp_path / "run").info["partial"] is True
        run.write_stats(columns(2))
        run.finish({})
    read = load(tmp_path / "run")
    assert (read.status, read.info["partial"], read.value("gpu", "warps")) == ("done", False, 2)


def test_nothing_is_written_after_finish(tmp_path):
    with writer(tmp_path / "run") as run:
        run.finish({})
        for write in (
            lambda: run.write_stats(columns()),
            lambda: run.write_machine("x"),
            lambda: run.finish({}),
        ):
            with pytest.raises(
                RunError, match=r"not open for writing; write within its 'with' block, before fin"
            ):
                write()
    assert load(tmp_path / "run").status == "done"


def test_a_directory_that_holds_a_run_is_refused(tmp_path):
    finished(tmp_path / "run")
    with (
        pytest.raises(RunError, match=r"already holds a run; choose another directory, or replace"),
        writer(tmp_path / "run"),
    ):
        pass
    assert load(tmp_path / "run").status == "done"


def test_a_directory_with_other_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with (
        pytest.raises(RunError, match=r"not empty \(it holds thesis.tex\); choose a new or empty"),
        writer(tmp_path),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_directory_for_a_run(tmp_path):
    (tmp_path / "run").write_text("")
    with (
        pytest.raises(RunError, match=r"run is a file; choose a new or empty directory"),
        writer(tmp_path / "run"),
    ):
        pass
    with (
        pytest.raises(RunError, match=f"cannot write {tmp_path}/run/deeper"),
        writer(tmp_path / "run/deeper"),
    ):
        pass


def test_an_empty_directory_is_used(tmp_path):
    with writer(tmp_path) as run:
        run.finish({})
    assert load(tmp_path).status == "done"


def test_two_writers_at_once_do_not_share_a_directory(tmp_path, monkeypatch):
    with writer(tmp_path) as run:
        monkeypatch.setattr(
            Path, "iterdir", lambda path: iter(())
        )  # as the second sees it just before the first
        with pytest.raises(RunError, match=r"another run has just begun"), writer(tmp_path):
            pass
        run.finish({})
    assert load(tmp_path).status == "done"


def test_a_disk_that_is_full_does_not_hide_the_first_error(tmp_path, monkeypatch):
    def full(path, write):
        raise OSError(28, "No space left on device")

    def simulate():
        with writer(tmp_path) as run:
            monkeypatch.setattr("manyscale.results.run_directory.replace_file", full)
            with pytest.raises(RunError, match=r"cannot write .*stats.parquet: No space left on device"):
                run.write_stats(columns())
            with pytest.raises(RunError, match=r"cannot write .*run.json: No space left"):
                run.finish({})
            raise DeadlockError("stuck")

    with pytest.raises(DeadlockError, match="stuck"):
        simulate()
    assert load(tmp_path).status == "interrupted"


def test_statistics_that_do_not_fit_are_an_error_for_people(tmp_path):
    body = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); run.write_stats(columns)"
    )
    with child(tmp_path / "run", body) as process:
        assert b"stats.parquet: " in process.stderr.read()
    assert "cannot write" in load(tmp_path / "run").info["error"]
    assert not load(tmp_path / "run").has_stats


def test_wrong_statistics_fail_the_run(tmp_path):
    with pytest.raises(RunError, match=r"its unit is empty"), writer(tmp_path) as run:
        run.write_stats({**columns(), "unit": [""]})
    assert "its unit is empty" in load(tmp_path).info["error"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"value": 1}, "headline number 'ipc' has no unit"),
        (
            {"value": 1, "unit": " "},
            "headline number 'ipc' has no unit; a number without a unit has the unit '1'",
        ),
        ({"value": "fast", "unit": "1"}, "headline number 'ipc' is 'fast', which is not a number"),
    ],
)
def test_a_wrong_headline_is_refused(tmp_path, entry, message):
    with pytest.raises(RunError, match=message), writer(tmp_path) as run:
        run.finish({"ipc": entry})
    assert load(tmp_path).status == "failed"


def test_a_headline_number_that_is_not_finite_has_no_value(tmp_path):
    run = finished(tmp_path / "run", {"ipc": {"value": math.nan, "unit": "1"}})
    assert run.headline == {"ipc": {"value": None, "unit": "1"}}


def test_a_workload_that_json_cannot_hold_is_refused():
    with pytest.raises(RunError, match=r"the workload cannot be written as JSON: .*set"):
        RunWriter("unused", command=[], workload={"sizes": {1, 2}}, seed=0)


def test_default_directories_are_numbered(tmp_path):
    assert default_directory(tmp_path, "saxpy") == tmp_path / "runs/saxpy-1"
    assert default_directory(tmp_path, "saxpy") == tmp_path / "runs/saxpy-2"
    assert default_directory(tmp_path, "../up/saxpy<float>") == tmp_path / "runs/up_saxpy_float-1"
    assert default_directory(tmp_path, "..") == tmp_path / "runs/run-1"
    (tmp_path / "runs/saxpy-10").write_text("")
    assert default_directory(tmp_path, "saxpy") == tmp_path / "runs/saxpy-11"


def test_default_directories_are_never_shared(tmp_path):
    names = []
    threads = [
        threading.Thread(
            target=lambda: names.extend(default_directory(tmp_path, "x").name for _ in range(20))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == len(names) == 80


def test_a_default_directory_under_a_file_is_an_error_for_people(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*runs: File exists"):
        default_directory(tmp_path, "x")


def test_a_lock_is_seen_and_released(tmp_path):
    lock = RunLock(tmp_path / ".lock")
    assert is_locked(tmp_path / ".lock")
    lock.release()
    assert not is_locked(tmp_path / ".lock")


def test_a_run_that_ends_between_two_looks_is_done(tmp_path, monkeypatch):
    with writer(tmp_path) as run:

        def unlocked_because_just_finished(path):
            run.finish({})
            return False

        monkeypatch.setattr("manyscale.results.run.is_locked", unlocked_because_just_finished)
        assert load(tmp_path).status == "done"


def test_importing_results_does_not_import_polars():
    program = "import sys, manyscale.results; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
