# SPDX-License-Identifier: Apache-2.0
"""What PTX is lowered to: the instructions that NVIDIA's assembler emits for sm_70, registers, spills, loops."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from manyscale import _core, gpu

pytestmark = pytest.mark.core

ROOT = Path(__file__).parents[2]
HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
PARAMETERS = "(.param .u64 x, .param .u64 y, .param .u32 n)"
# Two loads of 64 bits and three of 32 at an address of each thread; an assembler removes what is not used.
PROLOGUE = """
 .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<20>; .reg .f64 %g<20>; .reg .pred %p<9>;
 ld.param.u64 %d18,[x]; ld.param.u64 %d19,[y]; ld.param.u32 %r30,[n]; mov.u32 %r19,%tid.x;
 mul.wide.u32 %d17,%r19,64; add.s64 %d16,%d18,%d17; add.s64 %d15,%d19,%d17;
 ld.global.u32 %r1,[%d16]; ld.global.u32 %r2,[%d16+4]; ld.global.u32 %r3,[%d16+8];
 ld.global.u64 %d1,[%d16+16]; ld.global.u64 %d2,[%d16+24];
"""


def lower(text: str, name: str = "k") -> _core.LoweredKernel:
    """The kernel of a text, lowered."""
    device = _core.GpuDevice()
    kernel = device.load(_core.parse_ptx(text.encode(), "test.ptx")).kernel(name)
    assert kernel is not None
    return _core.lower_kernel(kernel)


def kinds(lowered: _core.LoweredKernel) -> Counter[str]:
    """Machine instructions by kind; whether an integer instruction is an IMAD, the assembler chooses freely."""
    plain = {"logic": "integer", "multiply_add": "integer"}
    return Counter(plain.get(row[0], row[0]) for operation in lowered.operations for row in operation[3])


def kernel(body: str, head: str = "") -> str:
    """A kernel whose body follows the prologue."""
    return f"{HEAD}.visible .entry k{PARAMETERS} {head}\n{{{PROLOGUE}{body}\nret;\n}}\n"


# What ptxas of CUDA 12.9 emits for the whole kernel, with the two instructions at the start of each and EXIT.
EMITTED = [
    (
        "cvt.s64.s32 %d3,%r1; shl.b64 %d4,%d3,2; add.s64 %d5,%d18,%d4; ld.global.u32 %r5,[%d5]; "
        "st.global.u32 [%d15],%r5;",
        "exit integer:5 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "cvt.s64.s32 %d3,%r1; shl.b64 %d4,%d3,2; add.s64 %d5,%d1,%d4; ld.global.u32 %r5,[%d5]; "
        "st.global.u32 [%d15],%r5;",
        "exit integer:5 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "cvt.u64.u32 %d3,%r1; shl.b64 %d4,%d3,2; add.s64 %d5,%d18,%d4; ld.global.u32 %r5,[%d5]; "
        "st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "cvt.s64.s32 %d3,%r1; add.s64 %d4,%d3,%d1; st.global.u64 [%d15],%d4;",
        "exit integer:4 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "cvt.s64.s32 %d3,%r1; mul.lo.s64 %d4,%d3,24; add.s64 %d5,%d18,%d4; "
        "ld.global.u32 %r5,[%d5]; st.global.u32 [%d15],%r5;",
        "exit integer:7 load_global:2 move_special multiply_wide:3 shuffle store_global",
    ),
    (
        "add.s64 %d3,%d1,%d2; add.s64 %d4,%d3,%d18; st.global.u64 [%d15],%d4;",
        "exit integer:4 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "xor.b32 %r4,%r1,%r2; xor.b32 %r5,%r4,%r3; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "and.b32 %r4,%r1,255; or.b32 %r5,%r4,%r3; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "and.b32 %r4,%r1,255; or.b32 %r5,%r4,256; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "shr.u32 %r4,%r1,8; and.b32 %r5,%r4,255; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "shl.b32 %r4,%r1,8; or.b32 %r5,%r4,%r2; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "add.s32 %r4,%r1,%r2; add.s32 %r5,%r4,%r3; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "add.s32 %r4,%r1,5; add.s32 %r5,%r4,%r3; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "add.s32 %r4,%r1,5; add.s32 %r5,%r4,%r30; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "shl.b32 %r4,%r1,5; add.s32 %r5,%r4,%r3; shl.b32 %r6,%r5,3; "
        "add.s32 %r7,%r6,%r2;st.global.u32 [%d15],%r7;",
        "exit integer:4 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "add.s32 %r4,%r1,%r2; shl.b32 %r5,%r4,2; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "mul.lo.s32 %r4,%r1,%r2; sub.s32 %r5,%r3,%r4; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "mul.lo.s32 %r4,%r1,%r2; sub.s32 %r5,%r4,%r3; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "mad.lo.s32 %r4,%r1,10,%r2; add.s32 %r5,%r4,%r3; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "setp.lt.s64 %p1,%d1,5; selp.b64 %d5,%d1,%d2,%p1; st.global.u64 [%d15],%d5;",
        "exit integer:6 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "setp.lt.s32 %p1,%r1,%r2; setp.lt.s32 %p2,%r2,%r3; and.pred %p3,%p1,%p2; "
        "selp.b32 %r5,%r2,%r3,%p3; st.global.u32 [%d15],%r5;",
        "exit integer:5 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "setp.lt.s32 %p1,%r1,%r2; selp.b32 %r5,1,2,%p1; st.global.u32 [%d15],%r5;",
        "exit integer:5 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "setp.lt.s32 %p1,%r1,%r2; selp.u32 %r5,1,0,%p1; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    ("st.global.u32 [%d15],5;", "exit integer:3 move_special multiply_wide shuffle store_global"),
    (
        "mov.u32 %r5,0; st.global.u32 [%d15],%r5;",
        "exit integer:2 move_special multiply_wide shuffle store_global",
    ),
    ("st.global.u32 [%d15],%r30;", "exit integer:3 move_special multiply_wide shuffle store_global"),
    (
        "neg.s32 %r4,%r1; add.s32 %r5,%r4,%r2; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "not.b32 %r4,%r1; and.b32 %r5,%r4,%r2; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "sub.s32 %r4,%r1,%r2; sub.s32 %r5,%r3,%r4; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global:3 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "mul.wide.s32 %d3,%r1,4; add.s64 %d4,%d1,%d3; add.s64 %d5,%d2,%d3; "
        "ld.global.u32 %r5,[%d4]; st.global.u32 [%d5],%r5;",
        "exit integer:2 load_global:4 move_special multiply_wide:3 shuffle store_global",
    ),
    (
        "mul.wide.s32 %d3,%r1,4; add.s64 %d4,%d1,%d3; "
        "ld.global.u32 %r5,[%d4+8];add.s64 %d5,%d2,%d3;  st.global.u32 [%d3],%r5; "
        "st.global.u32 [%d5],%r5;",
        "exit integer:6 load_global:4 move_special multiply_wide:2 shuffle store_global:2",
    ),
    (
        "mul.wide.s32 %d3,%r1,4; add.s64 %d4,%d1,%d3; add.s64 %d5,%d4,%d2; "
        "ld.global.u32 %r5,[%d5]; st.global.u32 [%d15],%r5;",
        "exit integer:4 load_global:4 move_special multiply_wide:3 shuffle store_global",
    ),
    (
        "ld.param.f32 %f1,[n]; mul.f32 %f2,%f1,%f1; add.f32 %f3,%f1,0f40400000; "
        "add.f32 %f4,%f2,%f3; st.global.f32 [%d15],%f4;",
        "exit fp32:2 integer:3 move_special multiply_wide shuffle store_global",
    ),
    (
        "ld.global.u8 %h1,[%d16]; cvt.u32.u16 %r4,%h1; and.b32 %r5,%r4,15; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "ld.global.s8 %h1,[%d16]; cvt.s32.s8 %r5,%h1; st.global.u32 [%d15],%r5;",
        "exit integer:2 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "cvt.u16.u32 %h1,%r1; st.global.u8 [%d15],%h1;",
        "exit integer:2 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "cvt.rn.f32.s32 %f1,%r1; neg.f32 %f2,%f1; add.f32 %f3,%f2,0f3F800000; st.global.f32 [%d15],%f3;",
        "convert exit fp32 integer:2 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "ld.global.f32 %f1,[%d16+32]; ld.global.f32 %f2,[%d16+36]; mul.f32 %f3,%f1,%f2; "
        "add.f32 %f4,%f3,%f1; st.global.f32 [%d15],%f4;",
        "exit fp32 integer:2 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "ld.global.f32 %f1,[%d16+32]; ld.global.f32 %f2,[%d16+36]; mul.f32 %f3,%f1,%f2; "
        "add.f32 %f4,%f3,%f1; add.f32 %f5,%f3,%f2; st.global.f32 [%d15],%f4; "
        "st.global.f32 [%d15+4],%f5;",
        "exit fp32:2 integer:2 load_global:2 move_special multiply_wide:2 shuffle store_global:2",
    ),
    (
        "mul.hi.u32 %r4,%r1,-858993459; shr.u32 %r5,%r4,3; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global move_special multiply_wide:3 shuffle store_global",
    ),
    (
        "mul.wide.u32 %d3,%r1,-858993459; shr.u64 %d4,%d3,35; cvt.u32.u64 %r5,%d4; st.global.u32 [%d15],%r5;",
        "exit integer:3 load_global move_special multiply_wide:3 shuffle store_global",
    ),
    (
        "mov.b64 %d3,{%r1,%r2}; st.global.u64 [%d15],%d3;",
        "exit integer:2 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "mov.b64 {%r4,%r5},%d1; st.global.u32 [%d15],%r5;",
        "exit integer:2 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "max.s32 %r4,%r1,0; st.global.u32 [%d15],%r4;",
        "exit integer:4 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "setp.lt.s32 %p1,%r1,%r2; vote.sync.ballot.b32 %r4,%p1,-1; st.global.u32 [%d15],%r4;",
        "exit integer:3 load_global:2 move_special multiply_wide:2 shuffle store_global vote",
    ),
    (
        "activemask.b32 %r4; st.global.u32 [%d15],%r4;",
        "exit integer:2 move_special multiply_wide shuffle store_global vote",
    ),
    (
        "shfl.sync.down.b32 %r4|%p1,%r1,1,31,-1; st.global.u32 [%d15],%r4;",
        "exit integer:2 load_global move_special multiply_wide:2 shuffle:2 store_global",
    ),
    (
        "atom.global.add.u32 %r4,[%d16],%r1; st.global.u32 [%d15],%r4;",
        "atomic_global exit integer:2 load_global move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "atom.global.add.u32 %r4,[%d16],%r1;",
        "exit integer:2 load_global move_special multiply_wide reduce_global shuffle",
    ),
    (
        "atom.global.cas.b32 %r4,[%d16],%r1,%r2; st.global.u32 [%d15],%r4;",
        "atomic_global exit integer:2 load_global:2 move_special multiply_wide:2 shuffle store_global",
    ),
    (
        "membar.gl; st.global.u32 [%d15],%r1;",
        "exit fence integer:2 load_global move_special multiply_wide:2 other:2 shuffle store_global",
    ),
    (
        "bar.sync 0; st.global.u32 [%d15],%r1;",
        "barrier exit integer:2 load_global move_special multiply_wide:2 other shuffle store_global",
    ),
    (
        "bar.warp.sync -1; st.global.u32 [%d15],%r1;",
        "exit integer:2 load_global move_special multiply_wide:2 other shuffle store_global",
    ),
]


@pytest.mark.parametrize(("body", "expected"), EMITTED)
def test_what_the_assembler_emits(body: str, expected: str) -> None:
    wanted = Counter({part.split(":")[0]: int((part + ":1").split(":")[1]) for part in expected.split()})
    assert kinds(lower(kernel(body))) == wanted


def test_short_body_is_predicated_and_long_one_jumped_over() -> None:
    short = "setp.lt.s32 %p1,%r1,5; @%p1 bra L; add.s32 %r2,%r2,7; L: st.global.u32 [%d15],%r2;"
    assert kinds(lower(kernel(short)))["branch"] == 0
    long = " ".join(f"add.s32 %r2,%r2,%r3; xor.b32 %r2,%r2,{i};" for i in range(9))
    lowered = lower(kernel(f"setp.lt.s32 %p1,%r1,5; @%p1 bra L; {long} L: st.global.u32 [%d15],%r2;"))
    # BMOV and BSSY ahead of the branch, and BSYNC where the lanes meet.
    assert kinds(lowered)["branch"] == 4


def test_branch_that_all_lanes_take_alike_needs_no_convergence_barrier() -> None:
    body = " ".join(f"add.s32 %r2,%r2,%r3; xor.b32 %r2,%r2,{i};" for i in range(9))
    lowered = lower(kernel(f"setp.lt.s32 %p1,%r30,5; @%p1 bra L; {body} L: st.global.u32 [%d15],%r2;"))
    assert kinds(lowered)["branch"] == 1


def test_neighbouring_loads_of_shared_memory_are_one() -> None:
    body = (
        ".shared .align 16 .b8 tile[4096]; mov.u32 %r5,tile; shl.b32 %r6,%r19,4; add.s32 %r7,%r5,%r6;"
        "ld.shared.f32 %f1,[%r7]; ld.shared.f32 %f2,[%r7+4]; ld.shared.f32 %f3,[%r7+8]; ld.shared.f32 %f4,[%r7+12];"
        "add.f32 %f5,%f1,%f2; add.f32 %f6,%f3,%f4; add.f32 %f7,%f5,%f6; st.global.f32 [%d15],%f7;"
    )
    assert kinds(lower(kernel(body)))["load_shared"] == 1
    unaligned = body.replace("shl.b32 %r6,%r19,4", "shl.b32 %r6,%r19,2")
    assert kinds(lower(kernel(unaligned)))["load_shared"] == 4


def values_at_once(count: int, head: str = "") -> str:
    """A kernel that needs `count` values at the same time."""
    loads = "".join(f"ld.global.f32 %v{i},[%d16+{4 * i}];" for i in range(count))
    uses = "".join(f"st.global.f32 [%d15+{4 * i}],%v{count - 1 - i};" for i in range(count))
    return kernel(f".reg .f32 %v<{count}>; {loads} bar.sync 0; {uses}", head)


def test_registers_are_those_of_the_values_that_live_together() -> None:
    few, many = lower(values_at_once(10)), lower(values_at_once(100))
    assert many.registers - few.registers == 90
    assert many.spilled == 0
    assert kinds(many)["load_local"] == 0


@pytest.mark.parametrize("head", [".maxnreg 64", ".maxntid 512, 1, 1 .minnctapersm 2", ".reqntid 1024, 1, 1"])
def test_values_beyond_the_registers_are_spilled(head: str) -> None:
    lowered = lower(values_at_once(100, head))
    assert lowered.registers <= 64
    assert lowered.spilled >= 100 - 64
    counts = kinds(lowered)
    assert counts["store_local"] >= lowered.spilled
    assert counts["load_local"] >= lowered.spilled


def test_loads_go_ahead_as_far_as_registers_cost_nothing() -> None:
    steps = "".join(
        f"ld.global.nc.f32 %v{i},[%d16+{4 * i}]; fma.rn.f32 %s{i + 1},%v{i},%v{i},%s{i};" for i in range(64)
    )
    lowered = lower(
        kernel(
            f".reg .f32 %v<64>; .reg .f32 %s<65>; mov.f32 %s0,0f00000000; {steps} st.global.f32 [%d15],%s64;"
        )
    )
    order = "".join(
        "l" if row[0] == "load_global" else "f"
        for op in lowered.operations
        for row in op[3]
        if row[0] in ("load_global", "fp32")
    )
    ahead = len(order) - len(order.lstrip("l"))
    assert 12 <= ahead <= 28
    assert lowered.registers <= 40


LOOP = """
.visible .entry k(.param .u64 out, .param .u32 start, .param .u32 bound)
{{
 .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
 ld.param.u64 %d1,[out]; ld.param.u32 %r1,[start]; ld.param.u32 %r2,[bound]; mov.u32 %r3,0; mov.u32 %r4,1;
 setp.{not_entered} %p2,%r1,%r2; @%p2 bra DONE;
LOOP:
 ld.global.u32 %r6,[%d1+8];
 mul.lo.s32 %r7,%r1,%r4; add.s32 %r3,%r3,%r7; xor.b32 %r4,%r4,%r6; shl.b32 %r8,%r1,2; add.s32 %r3,%r3,%r8;
 add.s32 %r1,%r1,{step};
 setp.{again} %p1,%r1,%r2; @%p1 bra LOOP;
DONE:
 st.global.u32 [%d1],%r3; st.global.u32 [%d1+4],%r1; ret;
}}
"""


def run_loop(text: str, start: int, bound: int, unrolled: bool) -> tuple[list[int], int]:
    """What the loop leaves in memory, and the warp instructions it took."""
    device = _core.GpuDevice()
    module = (
        _core.load_unrolled(device, text.encode(), "loop.ptx")
        if unrolled
        else device.load(_core.parse_ptx(text.encode(), "loop.ptx"))
    )
    address = device.allocate(12, "out")
    device.write(address, np.array([0, 0, 5], np.uint32))
    loop = module.kernel("k")
    assert loop is not None
    parameters = (
        address.to_bytes(8, "little")
        + (start % 2**32).to_bytes(4, "little")
        + (bound % 2**32).to_bytes(4, "little")
    )
    result = device.launch(loop, [1, 1, 1], [1, 1, 1], 0, parameters, 1, False, 100_000)
    values = np.zeros(3, np.uint32)
    device.read(address, values)
    return values.tolist(), result.warp_instructions


@pytest.mark.parametrize(
    ("again", "not_entered", "step"),
    [
        ("lt.s32", "ge.s32", 1),
        ("lt.s32", "ge.s32", 3),
        ("lt.u32", "ge.u32", 2),
        ("gt.s32", "le.s32", -2),
        ("ne.s32", "eq.s32", 1),
    ],
)
def test_unrolled_loops_compute_the_same(again: str, not_entered: str, step: int) -> None:
    text = HEAD + LOOP.format(again=again, not_entered=not_entered, step=step)
    lowest, highest = (-(2**31), 2**31 - 1) if "s32" in again else (0, 2**32 - 1)
    starts = [start for start in (0, 5, -4, 2**31 - 40, lowest, 2**32 - 20) if lowest <= start <= highest]
    for trips in [*range(12), 31]:
        for start in starts:
            bound = min(max(start + trips * step, lowest), highest)
            if bound != start + trips * step:
                continue  # such a loop does not end
            plain, many = run_loop(text, start, bound, unrolled=False)
            unrolled, few = run_loop(text, start, bound, unrolled=True)
            assert unrolled == plain, (start, bound)
            if trips == 31 and start == 5:
                assert few < many


def test_loops_stay_where_the_text_forbids_or_the_body_branches() -> None:
    text = HEAD + LOOP.format(again="lt.s32", not_entered="ge.s32", step=1)
    _, plain = run_loop(text, 0, 31, unrolled=False)
    assert run_loop(text.replace("LOOP:\n", 'LOOP:\n.pragma "nounroll";\n'), 0, 31, unrolled=True)[1] == plain
    jumps = text.replace("shl.b32 %r8,%r1,2;", "shl.b32 %r8,%r1,2; @%p2 bra SKIP; SKIP:")
    assert run_loop(jumps, 0, 31, unrolled=True) == run_loop(jumps, 0, 31, unrolled=False)


def test_lowering_takes_time_in_proportion_to_the_kernel() -> None:
    def seconds(lines: int) -> float:
        body = "".join(
            f"ld.global.f32 %v{i},[%d16+{4 * i}];"
            if i % 5 == 0
            else f"fma.rn.f32 %v{i},%v{i - 1},%v{i - 2 if i > 1 else 0},%v{i // 5 * 5};"
            for i in range(lines)
        )
        text = kernel(f".reg .f32 %v<{lines}>; {body} st.global.f32 [%d15],%v{lines - 1};")
        began = time.process_time()
        lower(text)
        return time.process_time() - began

    assert seconds(100_000) < 30 * max(seconds(10_000), 0.02)


def assembler_tool(tmp_path: Path) -> ModuleType:
    """The comparison tool, if there is an assembler for sm_70; else the test is skipped."""
    spec = importlib.util.spec_from_file_location(
        "compare_with_ptxas", ROOT / "tools" / "compare_with_ptxas.py"
    )
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    ptxas = tool.find_assembler()
    if ptxas is None:
        pytest.skip("needs ptxas")
    empty = tmp_path / "empty.ptx"
    empty.write_text(".version 7.0\n.target sm_70\n.address_size 64\n")
    command = [ptxas, "-arch=sm_70", "-o", str(tmp_path / "empty.cubin"), str(empty)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this ptxas does not support sm_70")
    return tool


def test_beside_the_assembler(tmp_path: Path) -> None:
    tool = assembler_tool(tmp_path)
    kernels = ROOT / "src" / "manyscale" / "validation" / "kernels"
    fixtures = ROOT / "tests" / "gpu" / "fixtures" / "sm_60"
    files = [
        *kernels.glob("*.ptx"),
        *(fixtures / f"{name}.ptx" for name in ("saxpy", "transpose", "gemm_tiled", "nbody")),
    ]
    comparisons = [
        c for path in files if path.exists() for c in tool.compare(path, str(tool.find_assembler()))
    ]
    assert len(comparisons) >= 4
    assert tool.mean_error(comparisons, "instructions") < 0.08
    assert tool.mean_error(comparisons, "registers") < 0.2


def test_unrolled_modules_run_on_a_timed_device() -> None:
    device = gpu.TimedDevice("v100")
    text = HEAD + LOOP.format(again="lt.s32", not_entered="ge.s32", step=1)
    out = device.array(np.array([0, 0, 5], np.uint32))
    device.load(text)["k"][1, 32](out, 0, 31)
    assert out.numpy()[:2].tolist() == run_loop(text, 0, 31, unrolled=True)[0][:2]
