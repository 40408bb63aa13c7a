# SPDX-License-Identifier: Apache-2.0
"""Kernels that are each bound by one thing, to see whether a profile says so."""

from dataclasses import dataclass, field

import numpy as np

SMALL = ("gpu.sm_count=4", "gpu.l2_slices=4")
HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"

# The index of the thread is in %i, the address of its word of `data` in %a; what it computes goes to memory if %r is 1.
FRAME = (
    HEAD
    + """
.visible .entry k(.param .u64 data, .param .u32 times)
{{
 .reg .pred %p, %q; .reg .b32 %i, %t, %n, %m, %times, %x<8>; .reg .b64 %data, %a, %o, %e; .reg .f32 %f<9>;
 .reg .f64 %d<9>;
 .shared .align 16 .b32 words[{shared}];
 ld.param.u64 %data,[data]; ld.param.u32 %times,[times];
 mov.u32 %t,%tid.x; mov.u32 %n,%ntid.x; mov.u32 %m,%ctaid.x; mad.lo.s32 %i,%m,%n,%t;
 mul.wide.u32 %o,%i,4; add.s64 %a,%data,%o;
 {begin}
 mov.u32 %m,0;
AGAIN:
 {body}
 add.u32 %m,%m,1; setp.lt.u32 %p,%m,%times;
 @%p bra AGAIN;
 {end}
 ret;
}}
"""
)


def source(body, begin="", end="", shared=1):
    return FRAME.format(body=body, begin=begin, end=end, shared=shared)


@dataclass(frozen=True)
class Bound:
    """A kernel with its launch on four SMs, and what limits it."""

    kind: str
    source: str
    grid: int = 16
    block: int = 256
    times: int = 8
    words: int = 1 << 16
    changes: tuple[str, ...] = field(default=())
    managed: bool = False  # its words are managed memory that the host wrote last
    prefetched: bool = False  # and were moved to the GPU before


def words(device, bound):
    """What the kernel works on."""
    if not bound.managed:
        return device.zeros(bound.words, np.uint32)
    data = device.managed(bound.words, np.uint32)
    data.set(np.zeros(bound.words, np.uint32))
    if bound.prefetched:
        data.prefetch()
    return data


FLOATS = "".join(f"cvt.rn.f32.u32 %f{n},%i;" for n in range(1, 9))
_DOUBLES = "".join(f"cvt.rn.f64.u32 %d{n},%i;" for n in range(1, 9))
SUM = "add.f32 %f1,%f1,%f2; add.f32 %f3,%f3,%f4; add.f32 %f1,%f1,%f3; st.global.f32 [%a],%f1;"

BOUNDS = {
    "fp32": Bound(
        "FMA pipe",
        source("".join(f"fma.rn.f32 %f{n},%f{n},%f{n},%f{n};" for n in range(1, 5)) * 16, FLOATS, SUM),
    ),
    "fp64": Bound(
        "FP64 pipe",
        source(
            "".join(f"fma.rn.f64 %d{n},%d{n},%d{n},%d{n};" for n in range(1, 5)) * 8,
            _DOUBLES,
            "add.f64 %d1,%d1,%d2; add.f64 %d3,%d3,%d4; add.f64 %d1,%d1,%d3; cvt.rn.f32.f64 %f1,%d1;"
            "st.global.f32 [%a],%f1;",
        ),
    ),
    # Each load needs the one before; shared memory lets four CTAs of two warps on an SM.
    "latency": Bound(
        "memory latency",
        source(
            "ld.global.u32 %x1,[%a]; mad.lo.u32 %i,%x1,7,%i; add.u32 %i,%i,4133; and.b32 %i,%i,65535;"
            "mul.wide.u32 %o,%i,4; add.s64 %a,%data,%o;",
            "st.shared.u32 [words],%t;",
            "st.global.u32 [%a],%i;",
            shared=5120,
        ),
        block=64,
        times=32,
    ),
    # Each thread reads words that no other does.
    "dram": Bound(
        "DRAM bandwidth",
        source(
            "ld.global.v4.f32 {%f1,%f2,%f3,%f4},[%e]; add.f32 %f1,%f1,%f2; add.f32 %f3,%f3,%f4;"
            "add.f32 %f5,%f5,%f1; add.f32 %f6,%f6,%f3; add.s64 %e,%e,524288;",
            "mul.wide.u32 %e,%i,16; add.s64 %e,%data,%e; mov.f32 %f5,0f00000000; mov.f32 %f6,%f5;",
            "add.f32 %f5,%f5,%f6; st.global.f32 [%a],%f5;",
        ),
        grid=128,
        times=4,
        words=1 << 19,
        changes=("gpu.memory.clock=100MHz",),
    ),
    # All CTAs read the same half megabyte, which the L2 holds and the L1s do not.
    "l2": Bound(
        "L2 bandwidth",
        source(
            "ld.global.v4.f32 {%f1,%f2,%f3,%f4},[%e]; add.f32 %f1,%f1,%f2; add.f32 %f3,%f3,%f4;"
            "add.f32 %f5,%f5,%f1; add.f32 %f6,%f6,%f3;"
            "add.u32 %i,%i,4099; and.b32 %i,%i,32767; mul.wide.u32 %e,%i,16; add.s64 %e,%data,%e;",
            "and.b32 %i,%i,32767; mul.wide.u32 %e,%i,16; add.s64 %e,%data,%e; mov.f32 %f5,0f00000000; mov.f32 %f6,%f5;",
            "add.f32 %f5,%f5,%f6; st.global.f32 [%a],%f5;",
        ),
        grid=64,
        times=32,
        words=1 << 17,
        changes=("gpu.sm_count=8",),
    ),
    # All lanes want different words of one bank.
    "conflicts": Bound(
        "bank conflicts",
        source(
            "ld.shared.u32 %x2,[%x1]; add.u32 %x3,%x3,%x2;",
            "mov.u32 %x1,words; and.b32 %x2,%t,31; shl.b32 %x2,%x2,7; add.u32 %x1,%x1,%x2; mov.u32 %x3,0;"
            "st.shared.u32 [%x1],%t; bar.sync 0;",
            "st.global.u32 [%a],%x3;",
            shared=1024,
        ),
        times=16,
    ),
    # Between barriers the first warp works, and the others wait for it.
    "barrier": Bound(
        "barriers",
        source(
            "setp.ge.u32 %q,%t,32; @%q bra WAIT;" + "add.f32 %f1,%f1,%f2;" * 40 + "WAIT: bar.sync 0;",
            FLOATS,
            "st.global.f32 [%a],%f1;",
        ),
        block=1024,
        grid=8,
        times=16,
    ),
    # Four paths of a quarter of the lanes each.
    "divergence": Bound(
        "branch divergence",
        source(
            "and.b32 %x1,%t,3; setp.eq.u32 %q,%x1,1; @%q bra ONE; setp.eq.u32 %q,%x1,2; @%q bra TWO;"
            "setp.eq.u32 %q,%x1,3; @%q bra THREE;"
            + "fma.rn.f32 %f1,%f1,%f1,%f1; fma.rn.f32 %f2,%f2,%f2,%f2;" * 24
            + "bra JOIN; ONE:"
            + "fma.rn.f32 %f1,%f1,%f1,%f2; fma.rn.f32 %f2,%f2,%f2,%f1;" * 24
            + "bra JOIN; TWO:"
            + "fma.rn.f32 %f1,%f1,%f2,%f1; fma.rn.f32 %f2,%f2,%f1,%f2;" * 24
            + "bra JOIN; THREE:"
            + "fma.rn.f32 %f1,%f2,%f1,%f1; fma.rn.f32 %f2,%f1,%f2,%f2;" * 24
            + "JOIN:",
            FLOATS,
            SUM,
        ),
        times=4,
    ),
    # Straight code that no instruction cache holds, and no stream buffer fetches ahead.
    "fetch": Bound(
        "instruction fetch",
        source("".join(f"add.f32 %f{n},%f{n},%f8;" for n in range(1, 8)) * 100, FLOATS, SUM),
        block=128,
        grid=4,
        times=8,
        changes=(
            "gpu.sm.l0_instructions=1KiB",
            "gpu.sm.l1_instructions=1KiB",
            "gpu.sm.prefetched_lines=0",
        ),
    ),
    "few CTAs": Bound(
        "too few CTAs",
        source("".join(f"fma.rn.f32 %f{n},%f{n},%f{n},%f{n};" for n in range(1, 5)) * 16, FLOATS, SUM),
        grid=1,
        times=32,
    ),
    # A CTA takes most of an SM's shared memory: four run at once, then the fifth alone.
    "last wave": Bound(
        "tail effect",
        source(
            "".join(f"fma.rn.f32 %f{n},%f{n},%f{n},%f{n};" for n in range(1, 5)) * 16,
            FLOATS + "st.shared.u32 [words],%t;",
            SUM,
            shared=20000,
        ),
        grid=5,
        times=32,
    ),
    # The first CTA works for as long as all others together.
    "uneven": Bound(
        "uneven CTAs",
        source(
            "".join(f"fma.rn.f32 %f{n},%f{n},%f{n},%f{n};" for n in range(1, 5)) * 16,
            FLOATS + "mov.u32 %x1,%ctaid.x; setp.eq.u32 %q,%x1,0; @%q mul.lo.u32 %times,%times,64;",
            SUM,
        ),
        grid=64,
        times=2,
    ),
    "short blocks": Bound(
        "partly filled warps",
        source("".join(f"fma.rn.f32 %f{n},%f{n},%f{n},%f{n};" for n in range(1, 5)) * 16, FLOATS, SUM),
        grid=128,
        block=8,
    ),
    # A hundred loads are outstanding at once, and each needs a register; nothing is added before the last is there.
    "registers": Bound(
        "low occupancy: registers",
        source(
            ".reg .f32 %v<100>;"
            + "".join(f"ld.global.f32 %v{n},[%a+{1024 * n}];" for n in range(100))
            + "bar.sync 0;"
            + "".join(f"add.f32 %f1,%f1,%v{n};" for n in range(100)),
            FLOATS,
            "st.global.f32 [%a],%f1;",
        ),
        times=4,
        changes=("gpu.memory.link_latency=1us",),
    ),
    "launch": Bound("launch overhead", source("add.u32 %i,%i,1;", end="st.global.u32 [%a],%i;"), times=1),
}
