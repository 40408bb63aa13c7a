# SPDX-License-Identifier: Apache-2.0
"""The run directory that a device with time leaves, from Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from manyscale import gpu, results
from manyscale.errors import InputError, KernelError
from manyscale.machine import Machine, load_machine

pytestmark = pytest.mark.core

KERNELS = Path(__file__).parents[2] / "examples" / "gpu" / "kernels.ptx"
SMALL = ("gpu.sm_count=2", "gpu.l2_slices=2", "gpu.memory.stacks=1", "gpu.memory.channels_per_stack=2")
COUNT = 512


def small(**options: object) -> gpu.TimedDevice:
    return gpu.TimedDevice("v100", changes=SMALL, echo=False, allow_newer=True, **options)


def saxpy(device: gpu.TimedDevice, *stream: object) -> gpu.TimedLaunch:
    x, y = device.array(np.ones(COUNT, np.float32)), device.zeros(COUNT)
    return device.load(KERNELS)["saxpy"][(COUNT // 128, 128, 0, *stream)](2.5, x, y, COUNT)


def test_all_launches_within_the_block_are_in_the_directory(tmp_path: Path):
    device = small(seed=3)
    saxpy(device)  # before the block
    with device.record(tmp_path / "run", workload={"kind": "gpu-kernel", "elements": COUNT}) as launches:
        first = saxpy(device)
        queued = saxpy(device, device.stream())  # ends at the end of the block
        assert launches == [first]
    assert launches == [first, queued.result]
    run = results.load(tmp_path / "run")
    assert (run.status, run.info["seed"]) == ("done", 3)
    assert run.info["workload"] == {"kind": "gpu-kernel", "elements": COUNT}
    assert run.headline["launches"]["value"] == 2
    assert run.headline["total_cycles"]["value"] == first.cycles + queued.result.cycles
    assert set(run.stats.filter(component="gpu")["scope"]) == {"saxpy", "saxpy#2"}
    assert run.stats.filter(pl.col("component") != "gpu").height == device.result.stats.height
    assert set(json.loads((run.path / "profiles.json").read_text())) == {"saxpy", "saxpy#2"}
    assert not (run.path / "timeline.pftrace").exists()
    saxpy(device)  # after the block: no longer recorded
    assert len(launches) == 2


def test_a_timeline_is_written_on_request(tmp_path: Path):
    device = small()
    with device.record(tmp_path / "run", timeline=True):
        saxpy(device)
    assert (tmp_path / "run" / "timeline.pftrace").stat().st_size > 0
    assert results.load(tmp_path / "run").info["workload"]["kind"] == "gpu-program"


def test_moves_of_managed_memory_are_in_the_headline(tmp_path: Path):
    device = gpu.TimedDevice("gtx1080ti", changes=["gpu.sm_count=2"], allow_newer=True)
    with device.record(tmp_path / "run"):
        x, y = device.managed(COUNT), device.managed(COUNT)
        x.set(np.ones(COUNT, np.float32))
        y.set(np.ones(COUNT, np.float32))
        device.load(KERNELS)["saxpy"][COUNT // 128, 128](2.5, x, y, COUNT)
    assert results.load(tmp_path / "run").headline["page_faults"]["value"] > 0


def test_an_interrupted_run_keeps_the_launches_that_have_ended(tmp_path: Path):
    device = small()

    def interrupted() -> None:
        with device.record(tmp_path / "run"):
            saxpy(device)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    run = results.load(tmp_path / "run")
    assert (run.status, run.info["partial"]) == ("stopped", True)
    assert run.headline["launches"]["value"] == 1
    assert run.stats.filter(component="gpu").height > 0


def test_a_kernel_that_fails_is_the_error_of_the_run(tmp_path: Path):
    device = small()
    x = device.array(np.ones(4, np.float32))
    with pytest.raises(KernelError, match="invalid address"), device.record(tmp_path / "run"):
        device.load(KERNELS)["saxpy"][64, 1024](2.5, x, x, 64 * 1024)
    run = results.load(tmp_path / "run")
    assert run.status == "failed"
    assert "invalid address" in run.info["error"]


def test_one_record_at_a_time(tmp_path: Path):
    device = small()
    with device.record(tmp_path / "run"):
        with pytest.raises(InputError, match="recorded already"), device.record(tmp_path / "other"):
            pass
        saxpy(device)
    with device.record(tmp_path / "next"):
        saxpy(device)
    assert results.load(tmp_path / "next").status == "done"


def test_a_device_takes_a_machine_in_each_of_its_forms(tmp_path: Path):
    resolved = load_machine("v100", SMALL)
    cycles = saxpy(gpu.TimedDevice(resolved, echo=False, allow_newer=True)).cycles
    described: Machine = resolved.machine
    assert saxpy(gpu.TimedDevice(described, echo=False, allow_newer=True)).cycles == cycles
    assert saxpy(small()).cycles == cycles
    with pytest.raises(InputError, match="give its name or file"):
        gpu.TimedDevice(described, changes=["gpu.clock=1GHz"])


def test_a_device_refuses_changes_that_no_model_reads():
    with pytest.raises(InputError, match=r"cpu\.clock: nothing in a run of GPU kernels reads this parameter"):
        gpu.TimedDevice("v100", changes=["cpu.clock=1MHz"])
