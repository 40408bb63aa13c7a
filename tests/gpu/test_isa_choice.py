# SPDX-License-Identifier: Apache-2.0
"""What kernels run as: SASS where it can be had, else PTX, which says that its time is less accurate; a run can be
repeated with the same choice, or says why it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from manyscale import gpu, results
from manyscale.cli.app import main
from manyscale.errors import InputError
from manyscale.gpu import assembler
from manyscale.gpu.isa import IsaChoice
from manyscale.machine import load_machine

DEMO = Path(__file__).parents[2] / "examples" / "gpu" / "kernels.ptx"
ONE_SM = ("gpu.sm_count=1",)

needs_assembler = pytest.mark.skipif(assembler.find_assembler() is None, reason="there is no ptxas")


@pytest.fixture
def without_assembler(monkeypatch):
    """As on a platform that has no ptxas."""
    monkeypatch.setattr(assembler, "_packaged_assembler", lambda: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert assembler.find_assembler() is None


def launched(device, out=None):
    kernel = device.load(DEMO)["saxpy"]
    x, y = device.array(np.ones(256, np.float32)), device.zeros(256)
    if out is None:
        return kernel[1, 256](2.0, x, y, 256)
    with device.record(out):
        return kernel[1, 256](2.0, x, y, 256)


def on(machine="v100", *changes, **options):
    return gpu.TimedDevice(load_machine(machine, [*ONE_SM, *changes]), echo=False, **options)


@needs_assembler
def test_a_run_with_time_is_of_sass():
    device = on()
    module = device.load(DEMO)
    assert (module.isa, module.isa_choice) == ("sass", IsaChoice.ASSEMBLED)
    assert module.isa_reason == f"assembled for sm_70 by ptxas {assembler.assembler_version()}"
    assert launched(device).isa == "sass"


def test_ptx_is_executed_where_no_machine_says_whose_sass_it_would_be():
    module = gpu.Device().load(DEMO)
    assert (module.isa, module.isa_choice) == ("ptx", IsaChoice.UNTIMED)


def test_checks_are_of_ptx():
    module = on(check=True).load(DEMO)
    assert (module.isa, module.isa_choice) == ("ptx", IsaChoice.CHECKED)


@needs_assembler
def test_a_gpu_whose_sass_is_not_read_runs_ptx():
    module = on("p100", allow_newer=True).load(DEMO)
    assert (module.isa, module.isa_choice) == ("ptx", IsaChoice.FALLBACK)
    assert "SASS of this GPU cannot be read" in module.isa_reason


def test_without_an_assembler_the_same_results_come_from_ptx(without_assembler):
    device = on()
    module = device.load(DEMO)
    assert (module.isa, module.isa_choice) == ("ptx", IsaChoice.FALLBACK)
    assert "needs an assembler" in module.isa_reason
    x, y = device.array(np.arange(256, dtype=np.float32)), device.zeros(256)
    module["saxpy"][1, 256](2.0, x, y, 256)
    assert np.array_equal(y.numpy(), 2 * np.arange(256, dtype=np.float32))
    with pytest.raises(InputError, match="needs an assembler"):
        on(isa="sass").load(DEMO)


def test_without_an_assembler_output_json_and_report_say_that_time_is_less_accurate(
    without_assembler, tmp_path, capsys
):
    command = ["gpu", "run", str(DEMO), "--kernel", "saxpy", "--machine", "v100", "--set", ONE_SM[0]]
    command += ["--block", "32", "--arg", "2.5", "--arg", "f32[32]", "--arg", "f32[32]", "--arg", "32"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "the less accurate form" in " ".join(out.split())
    assert main([*command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["isa"] == "ptx"
    assert data["code"]["assembler"] is None
    assert "less accurate" in data["code"]["note"]
    assert data["code"]["modules"]["kernels.ptx"]["choice"] == "fallback"
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "page.html")]) == 0
    assert "less accurate form" in (tmp_path / "page.html").read_text()


@needs_assembler
def test_a_run_records_its_form_and_its_assembler(tmp_path):
    launched(on(), tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    version = assembler.assembler_version()
    assert info["code"]["isa"] == "sass"
    assert info["code"]["assembler"] == f"ptxas {version}"
    assert info["code"]["note"] is None
    machine = load_machine(tmp_path / "run" / "machine.toml").machine
    assert (machine.gpu.isa, machine.gpu.assembler) == ("auto", version)


@needs_assembler
@pytest.mark.parametrize("isa", [None, "ptx", "sass"])
def test_the_machine_of_a_run_gives_the_same_form_and_numbers(isa, tmp_path):
    first = launched(on(isa=isa), tmp_path / "first")
    again = gpu.TimedDevice(tmp_path / "first" / "machine.toml", echo=False)
    second = launched(again, tmp_path / "second")
    assert (second.isa, second.cycles) == (first.isa, first.cycles)
    assert results.identical(results.load(tmp_path / "first"), results.load(tmp_path / "second"))


def test_the_machine_of_a_run_without_an_assembler_gives_the_same_numbers_with_one(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(assembler, "_packaged_assembler", lambda: None)
        patch.setenv("PATH", "/nonexistent")
        first = launched(on(), tmp_path / "first")
    again = gpu.TimedDevice(tmp_path / "first" / "machine.toml", echo=False)
    second = launched(again)
    assert (first.isa, second.isa) == ("ptx", "ptx")
    assert second.cycles == first.cycles


def test_a_run_of_another_assembler_is_refused_with_the_reason():
    with pytest.raises(
        InputError, match=r"states ptxas 11\.0\.1 .*nvidia-cuda-nvcc-cu12==11\.0\.1.*gpu.assembler=any"
    ):
        on("v100", "gpu.assembler=11.0.1").load(DEMO)
    assert on("v100", "gpu.assembler=11.0.1", isa="ptx").load(DEMO).isa == "ptx"


@needs_assembler
def test_the_machine_says_what_a_run_does_not():
    assert on("v100", "gpu.isa=ptx").load(DEMO).isa == "ptx"
    assert on("v100", "gpu.isa=ptx", isa="auto").load(DEMO).isa == "sass"
    assert on("v100", "gpu.assembler=none").load(DEMO).isa == "ptx"
    assert on("v100", "gpu.assembler=any").load(DEMO).isa == "sass"
    with pytest.raises(InputError, match=r"gpu\.isa"):
        load_machine("v100", ["gpu.isa=cubin"])


@needs_assembler
def test_the_version_is_what_the_assembler_says_of_itself():
    import subprocess

    said = subprocess.run(
        [str(assembler.find_assembler()), "--version"], capture_output=True, text=True
    ).stdout
    assert f"V{assembler.assembler_version()}" in said


def test_an_assembler_on_the_path_is_asked_for_its_version(tmp_path, monkeypatch):
    program = tmp_path / "ptxas"
    program.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.4, V12.4.131'\n")
    program.chmod(0o755)
    monkeypatch.setattr(assembler, "_packaged_assembler", lambda: None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert assembler.assembler_version() == "12.4.131"
