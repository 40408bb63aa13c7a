# SPDX-License-Identifier: Apache-2.0
"""Every command that takes long, ended by every signal: it keeps what Ctrl-C keeps, and nothing else stays.

`manyscale cuda` has tests of its own (`tests/cuda/test_lives.py`).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from leftovers import Started, started, wait_until
from manyscale.cli.app import main
from manyscale.cpu import sample
from manyscale.results import load
from manyscale.studies.projection.calibration import MpiCosts
from manyscale.studies.projection.measured_job import GroupTimings, MeasuredJob
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile
from manyscale.studies.sweep import load_sweep
from systems import make_phold

pytestmark = pytest.mark.core

CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGKILL: -9}
SPIN = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin() {
  .reg .b32 %r<2>;
again:
  add.u32 %r1, %r1, 1;
  bra again;
}
"""
SLEEPS = "import time\n\ndef sleeps(n):\n    time.sleep(0.01 if n == 0 else 60)\n    return n\n"
STUDY = """
name = "sleeps"
[workload]
kind = "python"
function = "MODULE:sleeps"
[axes]
"workload.n" = [0, 1, 2]
"""
# A program of many ranks, which share much memory, that waits for ever.
WAITS = """
#include <mpi.h>
#include <unistd.h>
int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  while (1) pause();
}
"""
HEAT = str(sample("heat"))


def in_run(folder: Path) -> bool:
    """A run directory is there, and a little more."""
    return (folder / "out" / "machine.toml").exists()


def in_sweep(folder: Path) -> bool:
    log = folder / "out" / "results.log"
    return log.exists() and log.read_bytes().count(b"\n") == 1


@dataclass(frozen=True)
class Command:
    """A command that would take very long; `begun` says when it is in the middle of its work."""

    arguments: tuple[str, ...]
    begun: Callable[[Path], bool] = in_run
    prepare: Callable[[Path], object] = lambda folder: None
    leaves_run: bool = True


def sleeping_module(folder: Path) -> str:
    return folder.name.replace("-", "_")  # another one in each test


def native_waits(folder: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("the native program is compiled by gcc")
    (folder / "waits.c").write_text(WAITS)
    assert main(["cpu", "cc", "--mpi", "--host", "-o", str(folder / "waits"), str(folder / "waits.c")]) == 0
    times = TimingProfile([PhaseTiming.of("any", [np.array([1e-3, 2e-3])])])
    numbers = dict.fromkeys(MpiCosts.__dataclass_fields__, 0)
    costs = MpiCosts(**numbers | {"measured": {"8": 1.0}, "modelled": {"8": 1.0}})  # type: ignore[arg-type]
    network = {"network": "omnipath", "network_changes": []}
    facts = {"program": "waits", "machine": "broadwell", **network}
    MeasuredJob([0] * 4, 1, [GroupTimings(times, times)], [], costs, {}, facts).save(folder / "out")


def trace(folder: Path) -> None:
    shared = folder.parent / "heat.trace"  # of all tests of this session
    if not shared.exists():
        arguments = ["cpu", "record", HEAT, "--functional", "-q", "-o", str(shared), "--", "300", "128", "1"]
        assert main(arguments) == 0
    (folder / "heat.trace").symlink_to(shared)


COMMANDS = {
    "run": Command(
        ("run", "phold.toml", "--out", "out"),
        prepare=lambda folder: make_phold().save(folder / "phold.toml"),
    ),
    "gpu run": Command(
        ("gpu", "run", "spin.ptx", "--machine", "v100", "--out", "out"),
        prepare=lambda folder: (folder / "spin.ptx").write_text(SPIN),
    ),
    "cpu run": Command(("cpu", "run", HEAT, "--out", "out", "--", "100000", "512", "1")),
    "cpu record": Command(
        ("cpu", "record", HEAT, "--out", "out", "--", "100000", "512", "1"),
        begun=lambda folder: any(path.name.strip(".").startswith("out") for path in folder.iterdir()),
        leaves_run=False,
    ),
    "cpu replay": Command(
        ("cpu", "replay", "heat.trace", "--out", "out", "--replicate", "32", "--cores", "32"), prepare=trace
    ),
    "net run": Command(
        ("net", "run", "allreduce", "--nodes", "256", "--param", "iterations=100000000", "--out", "out")
    ),
    "mem run": Command(
        ("mem", "run", "random", "--machine", "memory-small", "--accesses", "1000000000", "--out", "out")
    ),
    "project predict": Command(
        ("project", "predict", "--nodes", "4", "--native", "waits", "--out", "out"),
        begun=lambda folder: True,
        prepare=native_waits,
        leaves_run=False,
    ),
    "sweep": Command(
        ("sweep", "study.toml", "--workers", "2", "--out", "out"),
        begun=in_sweep,
        prepare=lambda folder: [
            (folder / f"{sleeping_module(folder)}.py").write_text(SLEEPS),
            (folder / "study.toml").write_text(STUDY.replace("MODULE", sleeping_module(folder))),
        ],
        leaves_run=False,
    ),
}


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_ended_keeps_what_there_is(
    name: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = COMMANDS[name]
    command.prepare(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # the results of a sweep belong to the function that was called
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with started(tmp_path, *command.arguments, environment=environment) as one:
        wait_until(lambda: command.begun(tmp_path) or one.process.poll() is not None, "the command to begin")
        if name == "project predict":
            wait_until(lambda: one.named("waits") == 4 or one.process.poll() is not None, "4 ranks")
        elif name != "sweep":
            one.let_work(0.7)
        assert one.process.poll() is None, one.stderr
        assert one.kill(number) == CODES[number], one.stderr
        one.check_nothing_left()
        check_kept(command, one, number, tmp_path / "out")


def check_kept(command: Command, one: Started, number: signal.Signals, out: Path) -> None:
    killed = number == signal.SIGKILL
    if not killed:
        word = "stopped" if number == signal.SIGINT else f"stopped by {number.name}"
        assert one.stderr.endswith(f"Error: {word}\n")
    if command.leaves_run:
        run = load(out)
        assert run.status == ("interrupted" if killed else "stopped")
        if not killed:
            assert run.info["partial"] is True
            assert run.stats.height > 0
    elif command.begun is in_sweep:
        swept = load_sweep(out)
        assert swept.status == ("interrupted" if killed else "stopped")
        assert swept.table.height == 1


def test_a_signal_that_comes_twice_does_not_end_the_writing_of_results(tmp_path: Path) -> None:
    """timeout(1) sends its signal to its child and then to the whole group."""
    with started(tmp_path, *COMMANDS["mem run"].arguments) as one:
        wait_until(lambda: in_run(tmp_path), "the command to begin")
        one.let_work(0.7)
        for _ in range(3):
            one.process.terminate()
            time.sleep(0.03)
        assert one.wait() == 143
    run = load(tmp_path / "out")
    assert run.status == "stopped"
    assert run.info["partial"] is True
    assert run.stats.height > 0


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """A command under nohup goes on after its terminal has gone."""
    command = COMMANDS["mem run"]
    with started(tmp_path, *command.arguments, nohup=True) as one:
        wait_until(lambda: in_run(tmp_path), "the command to begin")
        one.process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            one.process.wait(0.5)
        assert one.kill(signal.SIGTERM) == 143
    assert load(tmp_path / "out").status == "stopped"
