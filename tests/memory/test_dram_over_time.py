# SPDX-License-Identifier: Apache-2.0
"""What channels of DRAM carry over time: all of it, and never more than their buses can."""

from pathlib import Path

import numpy as np
import pytest

from manyscale import cpu, gpu
from manyscale.system.dram_over_time import dram_buses, dram_over_time
from manyscale.system.running import statistics_columns

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("backend", ["simple", "banked", "timing"])
def test_intervals_hold_all_that_a_program_moved(backend: str):
    program = cpu.Program(cpu.sample("heat"), ["2", "64", "2"])
    result = cpu.run(program, machine="broadwell", cores=2, changes=[f"memory.dram.backend={backend}"])
    table = result.dram_over_time
    assert table.height > 10
    assert ((table["read"] + table["written"]) * table["seconds"]).sum() == pytest.approx(result.dram_bytes)
    assert 0 < table["busy"].max() <= 1
    assert table["begin"].max() <= result.simulated_seconds


def test_a_saturated_bus_is_busy_all_the_time_and_not_more():
    """The buses move data for as long as the channels count, and in no interval for longer than it is."""
    device = gpu.TimedDevice("v100", allow_newer=True)
    count = 1 << 18
    x, y = device.array(np.ones(count, np.float32)), device.zeros(count)
    device.load(ROOT / "examples/gpu/kernels.ptx")["saxpy"][count // 256, 256](2.5, x, y, count)
    columns = statistics_columns(device.parts.system)
    buses = dram_buses(device.parts.system)
    table = dram_over_time(buses, columns)
    assert 0.9 < table["busy"].max() <= 1
    busy = sum(
        value
        for name, statistic, value in zip(
            columns["component"], columns["statistic"], columns["value"], strict=True
        )
        if statistic == "bus_busy" and name in buses
    )
    assert (table["busy"] * table["seconds"]).sum() * len(buses) == pytest.approx(busy / 1e15)
