# SPDX-License-Identifier: Apache-2.0
"""What an SM does at the same time, in closed form: barriers, sub-cores, loads from the L1 by stride, stores."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import gpu, load_machine

pytestmark = pytest.mark.core

KERNEL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 stride)
{{
 .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>; .reg .f32 %f<12>;
 ld.param.u64 %d1,[x]; ld.param.u32 %r1,[stride];
 mov.u32 %r2,%tid.x; and.b32 %r3,%r2,31; mul.lo.u32 %r3,%r3,%r1; mul.wide.u32 %d2,%r3,4; add.s64 %d3,%d1,%d2;
 mul.wide.u32 %d4,%r2,4; add.s64 %d4,%d1,%d4; mov.f32 %f1,0f3F800000; mov.f32 %f2,0f3F800000;
 {body}
 st.global.f32 [%d4],%f1;
 ret;
}}
"""


def cycles(
    body: str, *, machine: str = "v100", warps: int = 1, ctas: int = 1, stride: int = 1, changes=()
) -> int:
    """Of a launch on one SM, whose instructions and data are there."""
    device = gpu.TimedDevice(load_machine(machine, ["gpu.sm_count=1", *changes]).machine, allow_newer=True)
    x = device.zeros(1 << 16, np.float32)
    kernel = device.load(KERNEL.format(body=body), isa="ptx")["k"]
    kernel[ctas, 32 * warps](x, stride)
    launch = kernel[ctas, 32 * warps](x, stride)
    return int(launch.cycles)


@pytest.mark.parametrize("warps", [1, 4, 32])
def test_a_barrier_takes_its_latency_and_a_turn_for_each_warp(warps: int) -> None:
    """n more barriers of w warps take n x (22 + 2 (w - 1)) cycles: Zhang et al., arXiv:2004.05371."""
    more = 64
    added = cycles("bar.sync 0;" * 2 * more, warps=warps) - cycles("bar.sync 0;" * more, warps=warps)
    assert added / more == pytest.approx(22 + 2 * (warps - 1), abs=6)


def test_first_warps_of_ctas_work_on_different_sub_cores() -> None:
    """The first of four warps works, of one CTA or of four: they have a sub-core each, so it takes as long."""
    work = "setp.ge.u32 %p,%r2,32; @%p bra DONE;" + "".join(
        f"fma.rn.f32 %f{3 + n % 8},%f1,%f2,%f{3 + n % 8};" for n in range(800)
    )
    alone, together = (cycles(work + "DONE:", warps=4, ctas=ctas) for ctas in (1, 4))
    assert together == pytest.approx(alone, rel=0.05)
    same = cycles(work + "DONE:", warps=1, ctas=8)
    assert same > 1.3 * alone  # two on each


A100_CYCLES = {1: 1.02, 2: 2.0, 4: 4.0, 8: 8.0, 15: 4.45, 16: 16.0, 17: 5.1, 25: 7.0, 32: 32.0, 33: 8.8}
"""RRZE-HPC gpu-benches, gpu-strides, A100: cycles of a load of 32 floats from L1, by their stride."""


@pytest.mark.parametrize("stride", A100_CYCLES)
def test_loads_from_l1_take_the_cycles_of_an_a100(stride: int) -> None:
    """The larger of 1 + (lines - 1) / 4 cycles for tags and the conflicts of 32 banks; measured within 10%."""
    loads = 32

    def body(count: int) -> str:
        return "".join(f"ld.volatile.global.f32 %f{3 + n % 8},[%d3];" for n in range(count))

    few, many = (
        cycles(body(n), machine="a100", warps=16, stride=stride, changes=("gpu.sm.scheduler=lrr",))
        for n in (loads, 3 * loads)
    )
    measured = (many - few) / (2 * loads * 16)
    assert measured == pytest.approx(A100_CYCLES[stride], rel=0.1)


def test_stores_leave_an_sm_at_32_bytes_a_cycle() -> None:
    """n more stores of 128 B take 4 n cycles, where the L2 takes as many; with two cycles for a sector 8 n."""
    count, warps = 64, 8

    def added(*changes: str) -> float:
        few, many = (
            cycles("st.global.f32 [%d4],%f1;" * n, warps=warps, changes=("gpu.l2.write_interval=1", *changes))
            for n in (count, 2 * count)
        )
        return (many - few) / (count * warps)

    assert added() == pytest.approx(4, rel=0.1)
    assert added("gpu.sm.l1.write_interval=2") == pytest.approx(8, rel=0.1)
