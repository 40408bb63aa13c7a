# SPDX-License-Identifier: Apache-2.0
"""What the tests of managed memory share: a small machine in round numbers, and kernels."""

from pathlib import Path

import numpy as np

from manyscale import gpu, load_machine

FIXTURES = Path(__file__).parent / "fixtures" / "sm_75"

KIB, MIB = 1024, 1024 * 1024
PAGE = 4 * KIB
CLOCK = 10**9  # of the machine: a cycle is a nanosecond
LINK = 15  # cycles between an SM and the memory management unit
WALK = 100  # cycles of a page walk
HIT = 28  # cycles of a load that the L1 holds

SMALL = [
    "gpu.clock=1GHz",
    "gpu.sm_count=4",
    "gpu.l2_slices=4",
    "gpu.memory.stacks=1",
    "gpu.memory.channels_per_stack=4",
    f"gpu.uvm.link_latency={LINK}ns",
    f"gpu.uvm.walk_latency={WALK}cycles",
]
# Faults that take a fixed time and bring one page in exactly 1 us.
PLAIN = [
    "gpu.uvm.handling=fixed",
    "gpu.uvm.fault_latency=20us",
    "gpu.uvm.prefetcher=none",
    "gpu.uvm.curve=line",
    "gpu.uvm.transfer_latency=590400ps",
    "gpu.uvm.bandwidth=10GB/s",
    "gpu.uvm.first_touch=false",
]
PAGE_TIME = 1e-6
PAGES = 8
SHOOTDOWN = 30e-9  # a TLB invalidation and its acknowledgement: twice the link latency

# One thread: a chain of loads from `next` on, timed by the clock in the last of three rounds. Each round waits for the
# loads of the one before; the clock at its end does not wait for the last load.
CHASE = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry chase(.param .u64 out, .param .u64 next)
{{
 .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %o, %n, %t<4>;
 ld.param.u64 %o,[out]; ld.param.u64 %n,[next]; mov.u32 %r2,0;
AGAIN:
 setp.eq.u64 %p,%n,0; @%p bra DONE;
 mov.u64 %t1,%clock64;
 {chain}
 mov.u64 %t2,%clock64;
 add.s32 %r2,%r2,1; setp.lt.s32 %p,%r2,3;
 @%p bra AGAIN;
DONE:
 sub.s64 %t3,%t2,%t1;
 st.global.u64 [%o],%t3; st.global.u64 [%o+8],%n;
 ret;
}}
"""

# Each thread reads (`touch`) or writes (`put`) the word at its index times `stride` bytes.
TOUCH = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 at, .param .u64 out, .param .u64 stride)
{
 .reg .b32 %r<5>; .reg .b64 %d<6>;
 ld.param.u64 %d1,[at]; ld.param.u64 %d2,[out]; ld.param.u64 %d3,[stride];
 mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mad.lo.u32 %r1,%r2,%r3,%r1;
 cvt.u64.u32 %d4,%r1; mad.lo.u64 %d5,%d4,%d3,%d1; ld.global.u32 %r4,[%d5];
 shl.b64 %d4,%d4,2; add.u64 %d5,%d2,%d4; st.global.u32 [%d5],%r4;
 ret;
}
.visible .entry put(.param .u64 at, .param .u64 stride, .param .u32 value)
{
 .reg .b32 %r<5>; .reg .b64 %d<6>;
 ld.param.u64 %d1,[at]; ld.param.u64 %d3,[stride]; ld.param.u32 %r4,[value];
 mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mad.lo.u32 %r1,%r2,%r3,%r1;
 cvt.u64.u32 %d4,%r1; mad.lo.u64 %d5,%d4,%d3,%d1; st.global.u32 [%d5],%r4;
 ret;
}
.visible .entry increase(.param .u64 at, .param .u64 stride)
{
 .reg .b32 %r<5>; .reg .b64 %d<6>;
 ld.param.u64 %d1,[at]; ld.param.u64 %d3,[stride];
 mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mad.lo.u32 %r1,%r2,%r3,%r1;
 cvt.u64.u32 %d4,%r1; mad.lo.u64 %d5,%d4,%d3,%d1; red.global.add.u32 [%d5],1; atom.global.add.u32 %r4,[%d5],1;
 ret;
}
"""


def device(*changes, **options):
    return gpu.TimedDevice(load_machine("v100", [*SMALL, *changes]).machine, allow_newer=True, **options)


def counted(on, name):
    return on.uvm.statistics()[name]


def add(on, a, b, total):
    return on.load(FIXTURES / "vector_add.ptx")["vector_add"][-(-a.size // 128), 128](a, b, total, a.size)


def pages_of(on, count=PAGES, value=1):
    array = on.managed((count, PAGE), np.uint8)
    array.set(np.full(array.shape, value))
    return array


def put(on, array, value=0x05050505):
    """A kernel writes a line of each page."""
    return on.load(TOUCH)["put"][len(array), 32](array, PAGE // 32, value)
