# SPDX-License-Identifier: Apache-2.0
"""CUDA programs and their simulator, of which any process may be ended at any time by any signal."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
from pathlib import Path

import polars as pl
import pytest
from host_programs import lives_program

from leftovers import Started, started, wait_until
from manyscale.cli.app import main
from manyscale.cuda import NodeOptions, Program
from manyscale.cuda.loader import library_folder
from manyscale.cuda.program import HostOptions
from manyscale.machine import load_machine
from manyscale.results import Run, load

pytestmark = pytest.mark.core

TERM, HUP, KILL, INT = signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(lives_program(tmp_path_factory.mktemp("lives")))


def process_of(command: Started, word: str) -> int:
    """The process that has printed its number after a word."""

    def found() -> list[str]:
        return [line.split()[-1] for line in command.stdout.splitlines() if line.startswith(f"{word} ")]

    return int(wait_until(found, f"the program to say {word}")[0])


def guard_of(command: Started) -> int:
    for process in command.processes():
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        if words[0].endswith(b"manyscale-guard") and words[1] == b"tree":
            return process
    raise AssertionError("the program has no guard")


def kept(folder: Path) -> Run:
    """The run, of which one kernel had ended."""
    run = load(folder / "run")
    assert run.headline["launches"]["value"] == 1
    assert run.table("kernels.parquet")["name"].to_list() == ["empty"]
    return run


# Who is ended, by what, and what the command's exit code and the run's status are then. Signals that end a child of
# the program, or that the guard ignores, end nothing else; the command is then ended by SIGTERM.
ENDS = [
    ("command", TERM, 143, "stopped"),
    ("command", HUP, 129, "stopped"),
    ("command", INT, 130, "stopped"),
    ("command", KILL, -9, "interrupted"),
    ("program", TERM, 143, "failed"),
    ("program", HUP, 129, "failed"),
    ("program", KILL, 137, "failed"),
    ("child", TERM, 143, "stopped"),
    ("child", KILL, 143, "stopped"),
    ("guard", TERM, 143, "stopped"),
    ("guard", HUP, 143, "stopped"),
    ("guard", KILL, 137, "failed"),
    ("all", TERM, 143, "stopped"),
    ("all", HUP, 129, "stopped"),
]
WHILE_SIMULATING = [
    row for row in ENDS if row[0] in ("command", "program", "guard") and row[1] in (TERM, KILL)
]


@pytest.mark.parametrize(
    ("what", "who", "number", "code", "status"),
    [("pause", *row) for row in ENDS] + [("spin", *row) for row in WHILE_SIMULATING],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else str(value),
)
def test_nothing_is_left_when_a_process_is_ended(
    lives: str, tmp_path: Path, what: str, who: str, number: signal.Signals, code: int, status: str
) -> None:
    """Whether the program waits or a kernel is being simulated."""
    with started(
        tmp_path,
        "cuda",
        "--isa",
        "ptx",
        "--out",
        "run",
        "--",
        lives,
        "empty",
        "child",
        "daemon",
        "ready",
        what,
    ) as one:
        program, child = process_of(one, "ready"), process_of(one, "child")
        wait_until(lambda: (tmp_path / "run" / "journal.log").exists(), "the first kernel to be kept")
        assert load(tmp_path / "run").status == "running"
        if who == "all":
            os.killpg(one.process.pid, number)
        else:
            of = {"command": one.process.pid, "program": program, "child": child}
            os.kill(of[who] if who in of else guard_of(one), number)
        if who == "child" or (who == "guard" and number != KILL):
            assert one.process.poll() is None
            one.process.terminate()
        assert one.wait() == code, one.stderr
        one.check_nothing_left()
        run = kept(tmp_path)
        assert run.status == status
        assert run.info["partial"] is True
        if status == "failed":
            assert run.info["error"] == f"the program was ended by {signal.Signals(code - 128).name}"
        assert main(["show", str(run.path)]) == 0
        if status != "interrupted":
            assert not (tmp_path / "run" / "journal.log").exists()


def test_kernels_that_end_while_others_wait_are_kept(lives: str, tmp_path: Path) -> None:
    """A program that queues kernels and waits for all: those that had ended before a kill -9 are there."""
    with started(tmp_path, "cuda", "--isa", "ptx", "--out", "run", "--", lives, "queue") as one:
        process_of(one, "queued")
        journal = tmp_path / "run" / "journal.log"
        wait_until(journal.exists, "the first kernels to be kept")
        assert one.kill(KILL) == -9
        one.check_nothing_left()
    run = load(tmp_path / "run")
    assert run.status == "interrupted"
    ended = run.table("kernels.parquet")
    assert 0 < ended.height < 100
    assert run.headline["launches"]["value"] == ended.height
    assert main(["report", str(run.path)]) == 0


def test_looking_for_ended_kernels_does_not_change_results(lives: str) -> None:
    """Pauses at every report of the core, or never: the same kernels at the same times."""
    tables = []
    for period in (0.0, float("inf")):
        program = Program(
            [lives, "short_queue"],
            load_machine("v100").machine,
            NodeOptions(isa="ptx"),
            HostOptions(),
            lambda text: None,
        )
        program.node.monitor.period = period
        pauses = []
        program.keep = lambda pauses=pauses: pauses.append(1)
        run = program.run(stdout=subprocess.DEVNULL)
        tables.append([(record.begin, record.end, record.cycles) for record in run.kernels])
        if period == 0.0:
            assert len(pauses) > 3
    assert len(tables[0]) == 60
    assert tables[0] == tables[1]


def test_a_program_gets_an_error_when_its_simulator_is_killed(lives: str, tmp_path: Path) -> None:
    """Its next call fails with a message, and it can still clean up before it exits."""
    with started(
        tmp_path,
        "cuda",
        "--isa",
        "ptx",
        "--out",
        "run",
        "--",
        lives,
        "stubborn",
        "empty",
        "ready",
        "until_lost",
    ) as one:
        process_of(one, "ready")
        assert one.kill(KILL) == -9
        process_of(one, "lost 999")
        assert "the simulator has ended, so the simulated GPUs are gone" in one.stderr
        one.check_nothing_left()


@pytest.mark.parametrize(
    ("how", "code", "error"),
    [
        ("segv", 139, "the program was ended by SIGSEGV"),
        ("abort", 134, "the program was ended by SIGABRT"),
        ("kill", 137, "the program was ended by SIGKILL"),
        ("term", 143, "the program was ended by SIGTERM"),
        ("exit3", 3, "the program ended with exit code 3"),
        ("empty", 0, None),
    ],
)
def test_a_run_records_how_its_program_ended(
    lives: str, tmp_path: Path, how: str, code: int, error: str | None
) -> None:
    # The address sanitizer, where it is loaded, leaves the signal to the program.
    environment = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0"}
    command = ("cuda", "--functional", "--out", "run", "--", lives, "empty", how)
    with started(tmp_path, *command, environment=environment) as one:
        assert one.wait() == code
        one.check_nothing_left()
    run = load(tmp_path / "run")
    assert run.status == ("done" if code == 0 else "failed")
    assert run.info["error"] == error
    assert run.info["partial"] is (code > 128)
    assert run.headline["exit_code"]["value"] == code
    assert run.headline["launches"]["value"] == (1 if code else 2)
    if code > 128:
        assert f"Error: {error}\n" in one.stderr


def test_what_a_program_leaves_running_is_ended_and_named(lives: str, tmp_path: Path) -> None:
    with started(
        tmp_path, "cuda", "--functional", "--out", "run", "--", lives, "child", "daemon", "empty"
    ) as one:
        assert one.wait() == 0
        one.check_nothing_left()
    assert "what it left running ends too: lives (process " in one.stderr
    assert load(tmp_path / "run").status == "done"


def test_calls_are_the_same_in_every_run(lives: str, tmp_path: Path) -> None:
    """Of a program with threads, with a child and with another program after exec: numbers in order of appearance."""
    files = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with started(
            folder, "cuda", "--isa", "ptx", "--out", "run", "--", lives, "empty", "threads", "forked", "exec"
        ) as one:
            assert one.wait() == 0, one.stderr
        files.append((folder / "run" / "calls.parquet").read_bytes())
    assert files[0] == files[1]
    calls = pl.read_parquet(folder / "run" / "calls.parquet")
    who = calls.filter(pl.col("call") == "launch").select("process", "thread").rows()
    assert who == [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 1)]


def test_a_handshake_without_an_answer_is_reported(lives: str) -> None:
    """It waits for a simulator that is busy, but not in silence; when that is gone, its call fails."""
    name = f"manyscale-test-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind("\0" + name)
        silent.listen()
        variables = {"MANYSCALE_CUDA_SOCKET": f"@{name}", "LD_LIBRARY_PATH": str(library_folder())}
        with subprocess.Popen(
            [lives, "empty"],
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            peer, _ = silent.accept()
            assert program.stderr is not None
            assert "the simulator has not answered for 5 s" in program.stderr.readline()
            assert program.poll() is None
            peer.close()
            output, errors = program.communicate(timeout=20)
    assert program.returncode == 1
    assert output == "error 999\n"
    assert "the simulator has ended" in errors
