# SPDX-License-Identifier: Apache-2.0
"""`--host-clock simulated`: a program that times itself gets simulated times."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from host_programs import FIXTURES, SPIN, compiled
from wire_client import container

from manyscale.cuda.loader import library_folder
from sanitizers import SANITIZED

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(SANITIZED, reason="a sanitizer wants to be loaded before the library of the clocks"),
]

CALL = 1000  # nanoseconds of a call of the runtime
READING = 10  # nanoseconds of reading all clocks, at most


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runtime = str(library_folder() / "libcudart.so.13")
    source = (FIXTURES / "clocks.cpp").read_text()
    folder = tmp_path_factory.mktemp("clocks")
    return compiled(folder, source, container((SPIN, 70)), "clocks", "-std=c++17", "-pthread", runtime)


def printed(program: Path, *options: str) -> dict[str, list[float]]:
    """The numbers of each line of the program, by its first word."""
    command = [sys.executable, "-m", "manyscale.cli.app", "cuda", "--isa", "ptx", "--call-time", "1us"]
    command += [*options, "--"]
    done = subprocess.run(
        [*command, str(program)], cwd=program.parent, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[0]: [float(word) for word in row[1:] if word[0].isdigit()] for row in rows}


def test_all_clocks_tell_the_time_of_the_simulated_host(program: Path) -> None:
    times = printed(program, "--host-clock", "simulated")
    (event,) = times["event"]
    assert event > 100_000  # of 100,000 rounds of a loop
    for exact in (0, 1, 3):  # CLOCK_MONOTONIC, CLOCK_REALTIME, std::chrono
        assert 3 * CALL <= times["queued"][exact] <= 3 * CALL + READING
        # Three calls, and what is left of the kernel when the host begins to wait.
        assert event <= times["kernel"][exact] <= event + 10 * CALL
    for microseconds in (2, 4):  # gettimeofday, clock
        assert abs(times["kernel"][microseconds] - times["kernel"][0]) <= 1000
    assert times["of"] == [time.gmtime().tm_year]


def test_sleeping_and_waiting_take_the_time_that_they_ask_for(program: Path) -> None:
    times = printed(program, "--host-clock", "simulated", "--functional")
    assert 3_000_000 <= times["sleep"][0] <= 3_000_000 + 2 * READING
    assert 2_000_000 <= times["wait"][0] <= 2_000_000 + 2 * READING


def test_the_times_do_not_depend_on_the_machine_that_simulates(program: Path) -> None:
    runs = [printed(program, "--host-clock", "simulated") for _ in range(2)]
    for name in ("event", "queued", "kernel", "sleep"):
        assert [runs[0][name][index] for index in range(len(runs[0][name])) if index not in (2, 4)] == [
            runs[1][name][index] for index in range(len(runs[1][name])) if index not in (2, 4)
        ]


def test_measured_time_of_the_host_counts(program: Path) -> None:
    times = printed(program, "--host-clock", "simulated", "--host-time", "measured")
    assert times["queued"][0] > 3 * CALL + READING


def test_clocks_are_real_if_nothing_else_is_asked_for(program: Path) -> None:
    times = printed(program)
    assert times["kernel"][0] > 10 * times["event"][0]  # the simulation takes its time
