# SPDX-License-Identifier: Apache-2.0
"""How fast kernels are executed without timing: millions of warp instructions per second of one host core.

Loops that are heavy in single precision, double precision, integers, global memory, shared memory and divergent
branches, each on one thread of the host and on two; and the time to parse a module of 100,000 lines.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from manyscale import gpu
from support.reporting import run_benchmark

TARGETS = {
    "fp32": 30.0,
    "integer": 30.0,
    "fp32_two_threads_ratio": 1.8,
    "integer_two_threads_ratio": 1.8,
    "parsed_lines_per_second": 100_000.0,
}

BODIES = {
    "fp32": "fma.rn.f32 %f1,%f1,%f2,%f3; mul.f32 %f3,%f3,%f2; add.f32 %f4,%f1,%f3; fma.rn.f32 %f2,%f4,%f3,%f1;"
    * 8,
    "fp64": "fma.rn.f64 %d1,%d1,%d2,%d3; mul.f64 %d3,%d3,%d2; add.f64 %d4,%d1,%d3; fma.rn.f64 %d2,%d4,%d3,%d1;"
    * 8,
    "integer": "mad.lo.s32 %r4,%r4,%r5,%r6; xor.b32 %r5,%r5,%r4; shl.b32 %r7,%r4,3; add.s32 %r6,%r6,%r7;" * 8,
    "global_memory": "ld.global.u32 %r10,[%a]; add.s32 %r10,%r10,1; st.global.u32 [%a],%r10;" * 8,
    "shared_memory": "ld.shared.u32 %r10,[%r9]; add.s32 %r10,%r10,1; st.shared.u32 [%r9],%r10;" * 8,
    "divergent": "@%odd bra A{0}; add.s32 %r4,%r4,1; bra B{0}; A{0}: add.s32 %r4,%r4,2; B{0}: xor.b32 %r5,%r5,%r4;",
}

KERNEL = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 count)
{{
 .reg .pred %p, %odd; .reg .b32 %r<12>; .reg .b64 %a, %o; .reg .f32 %f<5>; .reg .f64 %d<5>;
 .shared .b32 words[256];
 ld.param.u64 %a,[out]; ld.param.u32 %r1,[count];
 mov.u32 %r2,%tid.x; mov.u32 %r3,0; mov.u32 %r4,%r2; mov.u32 %r5,17; mov.u32 %r6,3;
 mul.wide.u32 %o,%r2,4; add.s64 %a,%a,%o;
 mov.u32 %r8,words; shl.b32 %r9,%r2,2; add.s32 %r9,%r9,%r8;
 cvt.rn.f32.u32 %f1,%r2; mov.f32 %f2,0f3F000000; mov.f32 %f3,0f3F000000;
 cvt.rn.f64.u32 %d1,%r2; mov.f64 %d2,0d3FE0000000000000; mov.f64 %d3,0d3FE0000000000000;
 and.b32 %r10,%r2,1; setp.eq.s32 %odd,%r10,1;
AGAIN:
{body}
 add.s32 %r3,%r3,1; setp.lt.s32 %p,%r3,%r1;
 @%p bra AGAIN;
 st.global.u32 [%a],%r4;
 ret;
}}
"""


def rate(body: str, threads: int, count: int, rounds: int) -> float:
    """Millions of warp instructions per second, the best of some rounds."""
    device = gpu.Device(threads=threads)
    kernel = device.load(KERNEL.format(body=body))["k"]
    out = device.zeros(256, np.uint32)
    best = 0.0
    for _ in range(rounds):
        begin = time.perf_counter()
        launch = kernel[64, 256](out, count)
        best = max(best, launch.warp_instructions / (time.perf_counter() - begin) / 1e6)
    return best


def parsing_rate(rounds: int) -> float:
    """Lines of a module of 100,000 per second, the best of some rounds."""
    lines = " add.s32 %r4,%r4,%r5;\n" * 100_000
    text = KERNEL.format(body=lines)
    best = 0.0
    for _ in range(rounds):
        begin = time.perf_counter()
        gpu.parse(text)
        best = max(best, text.count("\n") / (time.perf_counter() - begin))
    return best


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All figures."""
    numbers: dict[str, float] = {}
    for name, body in BODIES.items():
        text = "".join(body.format(i) for i in range(8)) if name == "divergent" else body
        count = max(1, int(3000 * scale))
        numbers[name] = rate(text, 1, count, rounds)
        numbers[f"{name}_two_threads_ratio"] = rate(text, 2, count, rounds) / numbers[name]
    numbers["parsed_lines_per_second"] = parsing_rate(rounds)
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=3))
