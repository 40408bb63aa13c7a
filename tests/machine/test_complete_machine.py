# SPDX-License-Identifier: Apache-2.0
"""The machine.toml of a run states all that the run used: it gives the same numbers when all defaults have changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from changed_defaults import KINDS, SMALL_GPU

from manyscale import cpu, results
from manyscale.machine import load_machine

pytestmark = pytest.mark.core

MACHINES = {
    "gpu": ("v100", SMALL_GPU),
    "uvm": ("gtx1080ti", ("gpu.sm_count=2",)),
    "cuda": ("v100", SMALL_GPU),
    "cpu": ("broadwell", ()),
    "replay": ("elasticsimmate", ("cpu.cores=2",)),
    "net": ("omnipath", ()),
    "mem": ("memory-small", ()),
    "system": ("memory-small", ()),
}


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """What the kind of run needs besides a machine."""
    kind = request.getfixturevalue("kind")
    if kind == "cuda":
        return _cuda_program(tmp_path)
    if kind == "replay":
        program = cpu.Program(cpu.sample("elastic"), ["cholesky_tasks", "1"])
        cpu.record(program, tmp_path / "trace", machine="elasticsimmate", cores=1)
        return tmp_path / "trace"
    if kind == "system":
        from systems import make_phold

        make_phold(components=4, jobs=2).save(tmp_path / "phold.toml")
        return tmp_path / "phold.toml"
    return None


def _cuda_program(folder: Path) -> Path:
    sys.path.append(str(Path(__file__).parents[1] / "cuda"))
    from host_programs import EMPTY, compiled
    from wire_client import container

    from manyscale.cuda.loader import library_folder

    source = Path(__file__).parents[2] / "benchmarks" / "support" / "cuda_calls.cpp"
    if not source.exists():
        pytest.skip("only in a checkout")
    runtime = str(library_folder() / "libcudart.so.13")
    return compiled(folder, source.read_text(), container((EMPTY, 70)), "calls", runtime)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_can_be_repeated_when_all_defaults_have_changed(kind: str, file: Path | None, tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    KINDS[kind](load_machine(*MACHINES[kind]), before, file)
    script = Path(__file__).with_name("changed_defaults.py")
    command = [sys.executable, str(script), kind, str(before / "machine.toml"), str(after)]
    done = subprocess.run(
        [*command, *([] if file is None else [str(file)])], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    runs = results.load(before), results.load(after)
    assert results.compare(*runs).to_dicts() == []
    assert results.identical(*runs)
    simulated = [run.headline["simulated_seconds"]["value"] for run in runs]
    assert simulated[0] == simulated[1]
    # What is stated is stated again as it was.
    assert (after / "machine.toml").read_text().splitlines()[1:] != []


@pytest.mark.parametrize("kind", ["cpu", "mem"])
def test_the_defaults_that_change_would_have_shown(kind: str, tmp_path: Path):
    """The presets leave parameters open, so that the test above could fail; those of GPUs do not."""
    before = tmp_path / "before"
    resolved = load_machine(*MACHINES[kind])
    KINDS[kind](resolved, before, None)
    stated = (before / "machine.toml").read_text()
    assert stated.count("# default") > 10


def test_a_parameter_that_follows_from_another_is_left_to_it(tmp_path: Path):
    """So that a change of the clock of the GPU in a run's machine.toml is one of its SMs, too."""
    KINDS["gpu"](load_machine("v100", SMALL_GPU), tmp_path / "run", None)
    machine = load_machine(tmp_path / "run" / "machine.toml", ["gpu.clock=1GHz"])
    assert machine.machine.gpu.sm.clock is None
    from manyscale.gpu import TimedDevice

    device = TimedDevice(machine, echo=False)
    assert device.parts.sms[0].spec.clock == 10**9
