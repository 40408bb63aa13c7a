# SPDX-License-Identifier: Apache-2.0
"""Values that would run for hours or not fit say so before the run; those that no number can hold are refused."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyscale.cli import forecast
from manyscale.network.job import program_for

PTX = str(Path(__file__).resolve().parents[2] / "examples/gpu/kernels.ptx")
SAXPY = ("--arg", "2", "--arg", "f32[4]", "--arg", "f32[4]", "--arg", "4")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["net", "run", "hpcg", "--nodes", "4", "-p", "iterations=2147483648"], "MPI operations will take"),
        (["mem", "run", "random", "-m", "memory-small", "--accesses", "99999999999"], "accesses will take"),
        (
            ["gpu", "run", PTX, "-k", "saxpy", "--grid", "2147483647", "--block", "256", *SAXPY],
            "warps will take",
        ),
    ],
)
def test_what_takes_hours_says_so_first(arguments: list[str], words: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "manyscale.cli.start", *arguments],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    begin = time.monotonic()
    try:
        first = process.stderr.readline()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert first.startswith("Warning: "), first
    assert words in first
    assert "reduce --" in first
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["net", "run", "hpcg", "--nodes", "4", "-p", "iterations=99999999999999999999"], "beyond the range"),
        (["net", "run", "allreduce", "--nodes", "10000000"], "from 1 to 4,194,304 ranks"),
        (["net", "run", "allreduce", "--nodes", "9" * 30], ""),
        (["mem", "run", "random", "-m", "memory-small", "--cores", "100000"], "from 1 to 65536"),
        (["mem", "run", "random", "-m", "memory-small", "--accesses", "9" * 30], ""),
        (["gpu", "run", PTX, "-k", "saxpy", "--grid", "9" * 30], ""),
    ],
)
def test_what_no_run_can_have_is_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "manyscale.cli.start", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert words in done.stderr


def test_operations_of_a_program_are_counted_with_their_loops() -> None:
    for iterations in (1, 3):
        program = program_for("hpcg", 8, {"iterations": iterations, "nx": 8, "ny": 8, "nz": 8})
        exact = sum(1 for rank in range(8) for step in program.steps(rank) if step.kind != "compute")
        assert exact <= program.executed() <= 4 * exact
    assert program_for("hpcg", 8, {"iterations": 2**31}).executed() > 2**31


def test_a_forecast_is_silent_for_short_runs(capsys: pytest.CaptureFixture[str]) -> None:
    forecast.warn_if_long(1e6, "things", 1e6, "--things")
    assert capsys.readouterr().err == ""
    forecast.warn_if_long(1e12, "things", 1e6, "--things")
    assert "12 days" in capsys.readouterr().err


FEW_CORES_FIT = """
from manyscale import host_memory
from manyscale.errors import OutOfMemoryError
from manyscale.machine import load_machine
from manyscale.machine.cpu_system import build_cpu

host_memory.physical_left = lambda: 2**20
try:
    build_cpu(load_machine("boom", ["cpu.cores=256"]).machine, 256)
except OutOfMemoryError as error:
    print(error)
"""


def test_cores_that_cannot_fit_are_refused_while_they_are_built() -> None:
    """As on a machine with little memory left: after a few cores it is known what all of them need.

    In a process of its own, in which no memory that was freed before takes them.
    """
    done = subprocess.run(
        [sys.executable, "-c", FEW_CORES_FIT], capture_output=True, text=True, check=True, timeout=60
    )
    assert re.search(r"a system of 256 cores needs about .* is left on this machine", done.stdout), done
