# SPDX-License-Identifier: Apache-2.0
"""What page faults cost the host: nothing while everybody waits for pages.

A vector is scaled with unified memory and no prefetching, a driver that takes 45 us for each page, and one that takes
450 us: ten times the simulated time, and the same work for the host. The cost of a fault is an upper bound: all of the
launch's, its instructions too. With ordinary memory the launch costs more, as its accesses crowd the memory's model, so
there is no difference to take. Times are those of the processor.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from manyscale import gpu
from manyscale.machine import load_machine
from support.reporting import run_benchmark

# Of the processor's time for the quick driver to that for the slow one; and faults of a launch by its seconds.
TARGETS = {"ratio_of_45_us_to_450_us": 0.8, "faults_per_second": 1500.0}

PTX = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry scale(.param .u64 x)
{
 .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .f32 %f<3>;
 ld.param.u64 %d1,[x];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r4,%r1,%r2,%r3;
 mul.wide.s32 %d2,%r4,4; add.s64 %d3,%d1,%d2;
 ld.global.f32 %f1,[%d3]; add.f32 %f2,%f1,%f1; st.global.f32 [%d3],%f2;
 ret;
}
"""


def launch(count: int, *settings: str, managed: bool = True) -> tuple[float, float, int]:
    """Seconds of the processor, simulated seconds and page faults of one launch."""
    machine = load_machine(
        "gtx1080ti", ["gpu.uvm.prefetcher=none", "gpu.uvm.handling=fixed", *settings]
    ).machine
    device = gpu.TimedDevice(machine)
    x = device.managed(count) if managed else device.empty(count)
    x.set(np.ones(count, np.float32))
    scale = device.load(PTX)["scale"]
    begin = time.process_time()
    result = scale[count // 256, 256](x)
    seconds = time.process_time() - begin
    assert isinstance(result, gpu.TimedLaunch)
    return seconds, result.seconds, device.uvm.statistics()["faults"]


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All figures, each the best of some rounds."""
    count = max(1, int(4096 * scale)) * 256
    quick, slow = (
        [launch(count, f"gpu.uvm.fault_latency={latency}") for _ in range(rounds)]
        for latency in ("45us", "450us")
    )
    best = min(seconds for seconds, _, _ in quick)
    ordinary = min(launch(count, managed=False)[0] for _ in range(rounds))
    _, simulated, faults = quick[0]
    return {
        "page_faults": float(faults),
        "simulated_milliseconds_at_45_us": 1e3 * simulated,
        "simulated_milliseconds_at_450_us": 1e3 * slow[0][1],
        "processor_seconds_at_45_us": best,
        "ratio_of_45_us_to_450_us": best / min(seconds for seconds, _, _ in slow),
        "processor_seconds_with_ordinary_memory": ordinary,
        "microseconds_per_fault_at_most": 1e6 * best / faults,
        "faults_per_second": faults / best,
    }


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=3))
