# SPDX-License-Identifier: Apache-2.0
"""How fast kernels are simulated with time on a V100: millions of warp instructions per second of one host core.

A tiled matrix product, which keeps the SMs busy; a vector sum, which waits for memory; and 84 CTAs of 256 threads that
accumulate in registers, on one and on two threads of the host. Where an assembler is there, the product and the sum run
as SASS too: the ratio is that of machine instructions per second, SASS to lowered PTX.

Rates of one thread are measured in processor time, which what others do on the machine does not change. The ratio of
two threads to one is that of the time that passes, measured in turn. It needs two idle cores, since on a busy machine
the second thread stands back. It may be above two: presumably each core has caches for its half of the SMs.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]

from manyscale import gpu
from manyscale.gpu.assembler import find_assembler
from support.reporting import run_benchmark

TARGETS = {
    "matrix_product": 1.0,
    "vector_sum": 0.4,
    "accumulation_two_threads_ratio": 1.6,
    "matrix_product_sass_ratio": 1.0,
    "vector_sum_sass_ratio": 1.0,
}

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
 .reg .pred %p; .reg .b32 %r<24>; .reg .b64 %d<12>; .reg .f32 %f<24>;
 .shared .align 4 .f32 left[256]; .shared .align 4 .f32 right[256];
 ld.param.u64 %d1,[a]; ld.param.u64 %d2,[b]; ld.param.u64 %d3,[c]; ld.param.u32 %r1,[n];
 mov.u32 %r2,%tid.x; mov.u32 %r3,%tid.y; mov.u32 %r4,%ctaid.x; mov.u32 %r5,%ctaid.y;
 shl.b32 %r6,%r5,4; add.s32 %r6,%r6,%r3; shl.b32 %r7,%r4,4; add.s32 %r7,%r7,%r2;
 mad.lo.s32 %r8,%r6,%r1,%r2; mul.wide.s32 %d4,%r8,4; add.s64 %d4,%d1,%d4;
 mad.lo.s32 %r9,%r3,%r1,%r7; mul.wide.s32 %d5,%r9,4; add.s64 %d5,%d2,%d5;
 shl.b32 %r10,%r3,4; add.s32 %r10,%r10,%r2; shl.b32 %r10,%r10,2;
 mov.u32 %r11,left; mov.u32 %r12,right; add.s32 %r13,%r11,%r10; add.s32 %r14,%r12,%r10;
 shl.b32 %r15,%r3,6; add.s32 %r15,%r11,%r15; shl.b32 %r16,%r2,2; add.s32 %r16,%r12,%r16;
 shl.b32 %r17,%r1,6; cvt.s64.s32 %d6,%r17; mov.f32 %f1,0f00000000; mov.u32 %r18,0;
AGAIN:
 ld.global.f32 %f2,[%d4]; ld.global.f32 %f3,[%d5];
 st.shared.f32 [%r13],%f2; st.shared.f32 [%r14],%f3;
 bar.sync 0;
STEPS
 bar.sync 0;
 add.s64 %d4,%d4,64; add.s64 %d5,%d5,%d6;
 add.s32 %r18,%r18,16; setp.lt.s32 %p,%r18,%r1;
 @%p bra AGAIN;
 mad.lo.s32 %r19,%r6,%r1,%r7; mul.wide.s32 %d7,%r19,4; add.s64 %d7,%d3,%d7;
 st.global.f32 [%d7],%f1;
 ret;
}
.visible .entry total(.param .u64 a, .param .u64 b, .param .u64 c)
{
 .reg .b32 %r<5>; .reg .b64 %d<8>; .reg .f32 %f<4>;
 ld.param.u64 %d1,[a]; ld.param.u64 %d2,[b]; ld.param.u64 %d3,[c];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r4,%r1,%r2,%r3;
 mul.wide.s32 %d4,%r4,4; add.s64 %d5,%d1,%d4; add.s64 %d6,%d2,%d4; add.s64 %d7,%d3,%d4;
 ld.global.f32 %f1,[%d5]; ld.global.f32 %f2,[%d6]; add.f32 %f3,%f1,%f2; st.global.f32 [%d7],%f3;
 ret;
}
.visible .entry accumulate(.param .u64 a, .param .u32 count)
{
 .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<4>;
 ld.param.u64 %d1,[a]; ld.param.u32 %r5,[count];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r4,%r1,%r2,%r3;
 mul.wide.s32 %d2,%r4,4; add.s64 %d3,%d1,%d2; ld.global.f32 %f1,[%d3]; mov.f32 %f2,%f1; mov.u32 %r6,0;
AGAIN:
 add.f32 %f2,%f2,%f1; add.s32 %r6,%r6,1; setp.lt.s32 %p,%r6,%r5;
 @%p bra AGAIN;
 st.global.f32 [%d3],%f2;
 ret;
}
""".replace(
    "STEPS",
    "\n".join(
        f" ld.shared.f32 %f4,[%r15+{4 * k}]; ld.shared.f32 %f5,[%r16+{64 * k}]; fma.rn.f32 %f1,%f4,%f5,%f1;"
        for k in range(16)
    ),
)


def sass_ratio(
    device: gpu.TimedDevice, rounds: int, kernel: str, grid: Any, block: Any, *arguments: Any
) -> float:
    """Machine instructions per second of processor time, as SASS and as lowered PTX, measured in turn."""
    kernels = {isa: device.load(PTX, isa=isa)[kernel] for isa in ("ptx", "sass")}
    best = dict.fromkeys(kernels, 0.0)
    for chosen in kernels.values():
        chosen[grid, block](*arguments)  # so that all that follow find the L2 as a launch like them leaves it
    for _ in range(rounds):
        for isa, chosen in kernels.items():
            begin = time.process_time()
            launch = chosen[grid, block](*arguments)
            seconds = time.process_time() - begin
            assert isinstance(launch, gpu.TimedLaunch)
            best[isa] = max(best[isa], launch.issued_instructions / seconds)
    return best["sass"] / best["ptx"]


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All figures, each the best of some rounds."""
    process = psutil.Process(os.getpid())
    before = process.memory_info().rss
    devices = {threads: gpu.TimedDevice("v100", threads=threads) for threads in (1, 2)}
    numbers = {"memory_of_an_idle_v100_megabytes": (process.memory_info().rss - before) / 2e6}

    def rate(kernel: str, grid: Any, block: Any, *arguments: Any) -> float:
        chosen = one.load(PTX)[kernel]
        best = 0.0
        for _ in range(rounds):
            begin = time.process_time()
            launch = chosen[grid, block](*arguments)
            best = max(best, launch.warp_instructions / (time.process_time() - begin) / 1e6)
        return best

    def two_threads_ratio(kernel: str, grid: Any, block: Any, data: Any, *arguments: Any) -> float:
        launches = {
            threads: (device.load(PTX)[kernel], device.array(data)) for threads, device in devices.items()
        }
        best = dict.fromkeys(launches, float("inf"))
        for _ in range(rounds):
            for threads, (chosen, array) in launches.items():
                begin = time.perf_counter()
                chosen[grid, block](array, *arguments)
                best[threads] = min(best[threads], time.perf_counter() - begin)
        return best[1] / best[2]

    one = devices[1]
    side = max(1, int(16 * scale)) * 16
    square = one.array(np.ones((side, side), np.float32))
    product = ("product", (side // 16, side // 16), (16, 16), square, square, one.array(square.numpy()), side)
    numbers["matrix_product"] = rate(*product)
    count = max(1, int(4096 * scale))
    vector = one.array(np.ones(256 * count, np.float32))
    total = ("total", count, 256, vector, vector, one.array(vector.numpy()))
    numbers["vector_sum"] = rate(*total)
    if find_assembler() is not None:
        for name, launch in (("matrix_product", product), ("vector_sum", total)):
            numbers[f"{name}_sass_ratio"] = sass_ratio(one, rounds, *launch)
    long = np.ones(84 * 256, np.float32)
    steps = max(1, int(2000 * scale))
    numbers["accumulation"] = rate("accumulate", 84, 256, one.array(long), steps)
    numbers["accumulation_two_threads_ratio"] = two_threads_ratio("accumulate", 84, 256, long, steps)
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=3))
