# SPDX-License-Identifier: Apache-2.0
"""Instructions that libraries are full of: each, as ptxas makes it, gives the same bits as its PTX."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from sass_support import needs_assembler

from manyscale import InputError, gpu
from manyscale.gpu.assembler import assemble
from manyscale.gpu.disassembly import disassemble_cubin

pytestmark = [pytest.mark.core, needs_assembler]

THREADS = 128
WORDS = 16 * THREADS  # 64 bytes for each thread
HEAD = """
.version 8.7
.target {architecture}
.address_size 64
.visible .entry tried(.param .u64 data, .param .u32 number, .param .align 16 .b8 table[64])
{{
    .reg .pred %p<9>;
    .reg .b16 %h<9>;
    .reg .b32 %r<40>;
    .reg .f32 %f<20>;
    .reg .b64 %d<20>;
    .reg .f64 %e<20>;
    .shared .align 16 .b8 tile[8192];
    ld.param.u64 %d0, [data];
    cvta.to.global.u64 %d0, %d0;
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 64, %d0;
    ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%d1];
    ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%d1+16];
"""
STORE = "st.global.v4.b32 [%d1+32], {{%r20, %r21, %r22, %r23}}; ret; }}"


@dataclass(frozen=True)
class Case:
    """A kernel's body, which leaves its results in %r20 to %r23, and an instruction that ptxas makes of it."""

    name: str
    instruction: str
    body: str
    architectures: tuple[str, ...] = ("sm_75", "sm_80", "sm_86", "sm_90")
    numbers: tuple[int, ...] = (1, 2)

    def text(self, architecture: str) -> bytes:
        zeros = "".join(f"mov.b32 %r{20 + k}, 0;" for k in range(4))
        return ((HEAD + zeros).format(architecture=architecture) + self.body + STORE.format()).encode()


def indexed(type_: str, register: str, size: int) -> str:
    """A constant at an index that is the same for the warp."""
    read = "and.b32 %r9, %r0, 63; mad.wide.u32 %d6, %r9, 64, %d5; ld.global.u32 %r20, [%d6];"
    into = read if size == 8 else "mov.b32 %r20, %r9;"
    return f"""
        ld.param.u32 %r10, [number]; and.b32 %r10, %r10, 3; mul.wide.u32 %d3, %r10, {size};
        mov.b64 %d4, table; add.u64 %d4, %d4, %d3; ld.param.{type_} {register}, [%d4+{size}]; {into}
        add.u32 %r20, %r20, %r0;"""


CASES = [
    Case("constant at a uniform index", r"ULDC UR\d+, c\[0x0\]\[UR", indexed("u32", "%r9", 4)),
    Case("double word at a uniform index", r"ULDC\.64 UR\d+, c\[0x0\]\[UR", indexed("u64", "%d5", 8)),
    Case("byte at a uniform index", r"ULDC\.U8 UR\d+, c\[0x0\]\[UR", indexed("u8", "%r9", 1)),
    Case("signed half at a uniform index", r"ULDC\.S16 UR\d+, c\[0x0\]\[UR", indexed("s16", "%r9", 2)),
    Case(
        "sum with a known upper word",
        r"LEA\.HI\.X R\d+, .*0xffffffff",
        """mov.b64 %d3, {%r1, -1}; shl.b64 %d4, %d3, 2; mov.b64 %d6, {%r2, %r3}; add.u64 %d5, %d6, %d4;
        mov.b64 {%r20, %r21}, %d5;""",
    ),
    Case(
        "branch by a uniform table",
        "BRXU",
        """ld.param.u32 %r10, [number]; and.b32 %r10, %r10, 3;
        targets: .branchtargets first, second, third, fourth;
        brx.idx %r10, targets;
        first: add.u32 %r20, %r1, %r2; bra end;
        second: bar.sync 0; xor.b32 %r20, %r1, %r2; bra end;
        third: mul.lo.u32 %r20, %r1, %r2; bra end;
        fourth: sub.u32 %r20, %r1, %r2; st.shared.u32 [tile], %r20;
        end: """,
        ("sm_80", "sm_90"),
    ),
    Case(
        "barrier and threads in one register",
        r"BAR\.SYNC\S* R\d+, R\d+",
        """shr.u32 %r9, %r0, 6; add.u32 %r9, %r9, 3; ld.param.u32 %r10, [number]; shl.b32 %r10, %r10, 6;
        shl.b32 %r11, %r0, 2; mov.u32 %r12, tile; add.u32 %r13, %r11, %r12; st.shared.u32 [%r13], %r1;
        barrier.cta.sync %r9, %r10;
        xor.b32 %r14, %r11, 252; add.u32 %r14, %r14, %r12; ld.shared.u32 %r20, [%r14];""",
        ("sm_70", "sm_75", "sm_80", "sm_90"),
        (1,),
    ),
    Case(
        "reduction at a barrier for some threads",
        r"BAR\.RED\.OR\S* 0xf, R\d+",
        """ld.param.u32 %r10, [number]; shl.b32 %r10, %r10, 6; setp.gt.u32 %p1, %r0, 63; @%p1 bra end;
        setp.eq.u32 %p2, %r0, 37; barrier.cta.red.or.pred %p3, 15, %r10, %p2; selp.u32 %r20, 5, 7, %p3;
        end: """,
        ("sm_70", "sm_75", "sm_80", "sm_90"),
        (1,),
    ),
    Case(
        "generic address of a parameter",
        r"c\[0x0\]\[0x(40|198)\]",
        """mov.b64 %d3, table; cvta.param.u64 %d4, %d3; and.b32 %r9, %r1, 15; mad.wide.u32 %d5, %r9, 4, %d4;
        ld.u32 %r20, [%d5];""",
        ("sm_70", "sm_75", "sm_80", "sm_90"),
    ),
    Case(
        "upper half as an integer",
        r"I2F\.S16 R\d+, R\d+\.H1",
        """xor.b32 %r9, %r1, %r2; mov.b32 {%h1, %h2}, %r9; cvt.rn.f32.s16 %f1, %h2; cvt.rn.f32.u16 %f2, %h1;
        mov.b32 %r20, %f1; mov.b32 %r21, %f2;""",
        ("sm_70", "sm_75", "sm_80", "sm_90"),
    ),
    Case(
        "negated matrix of doubles",
        r"DMMA\.\S+ R\d+, -R",
        """cvt.rn.f64.s32 %e1, %r1; cvt.rn.f64.s32 %e2, %r2; cvt.rn.f64.s32 %e3, %r3; cvt.rn.f64.s32 %e4, %r4;
        neg.f64 %e5, %e1;
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e6, %e7}, {%e5}, {%e2}, {%e3, %e4};
        mov.b64 {%r20, %r21}, %e6; mov.b64 {%r22, %r23}, %e7;""",
        ("sm_80", "sm_90"),
    ),
    Case(
        "swapped halves",
        r"HFMA2 R\d+, R\d+, -R\d+\.H0_NH1",
        """mov.b32 {%h1, %h2}, %r2; neg.f16 %h3, %h2; mov.b32 %r9, {%h1, %h3};
        fma.rn.f16x2 %r20, %r1, %r9, %r3;""",
        ("sm_86", "sm_90"),
    ),
    Case(
        "swapped halves without a sign",
        r"HFMA2 R\d+, R\d+, R\d+\.H0_NH1",
        """mov.b32 {%h1, %h2}, %r2; neg.f16 %h3, %h1; mov.b32 %r9, {%h3, %h2};
        fma.rn.f16x2 %r20, %r1, %r9, %r3;""",
        ("sm_86", "sm_90"),
    ),
    Case(
        "extremes of three pairs",
        r"VIMNMX3\.S16x2",
        """max.s16x2 %r9, %r1, %r2; max.s16x2 %r20, %r9, %r3; min.u16x2 %r10, %r1, %r2; min.u16x2 %r21, %r10, %r3;
        max.s16x2 %r11, %r4, %r5; max.s16x2.relu %r22, %r11, %r6;""",
        ("sm_90",),
    ),
    Case(
        "extremes of sums of pairs",
        r"VIADDMNMX\.S16x2",
        "add.s16x2 %r9, %r1, %r2; max.s16x2 %r20, %r9, %r3; add.u16x2 %r10, %r4, %r5; min.u16x2 %r21, %r10, %r6;",
        ("sm_90",),
    ),
    Case(
        "tf32",
        r"F2FP\.TF32\.F32\.PACK_B R",
        """mov.b32 %f1, %r1; cvt.rn.tf32.f32 %r20, %f1; cvt.rz.tf32.f32 %r21, %f1; cvt.rn.relu.tf32.f32 %r22, %f1;
        cvt.rz.relu.tf32.f32 %r23, %f1;""",
        ("sm_90",),
    ),
    Case(
        "space of a uniform address",
        r"QSPC\.E\.S P\d, RZ, \[.*UR",
        """ld.param.u64 %d3, [table]; isspacep.shared %p1, %d3; selp.u32 %r20, 1, 2, %p1;""",
        ("sm_80",),
    ),
    Case(
        "products of bytes as floats",
        r"QMMA\.16832\.F32\.E5M2\.E4M3",
        """mov.b32 %f1, 0f3f800000; mov.b32 %f2, 0f40000000; mov.b32 %f3, 0fc0400000; mov.b32 %f4, 0f00000000;
        and.b32 %r1, %r1, 0x3f3f3f3f; and.b32 %r2, %r2, 0xbfbfbfbf; and.b32 %r5, %r5, 0xbfbfbfbf;
        and.b32 %r3, %r3, 0x3f3f3f3f; and.b32 %r4, %r4, 0x3f3f3f3f; and.b32 %r6, %r6, 0x3f3f3f3f;
        mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32
            {%f5, %f6, %f7, %f8}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
        mov.b32 %r20, %f5; mov.b32 %r21, %f6; mov.b32 %r22, %f7; mov.b32 %r23, %f8;""",
        ("sm_89",),
    ),
    Case(
        "products of bytes as halves",
        r"QMMA\.16832\.F16\.E4M3\.E5M2",
        """and.b32 %r1, %r1, 0x3f3f3f3f; and.b32 %r2, %r2, 0xbfbfbfbf; and.b32 %r5, %r5, 0xbfbfbfbf;
        and.b32 %r3, %r3, 0x3f3f3f3f; and.b32 %r4, %r4, 0x3f3f3f3f; and.b32 %r6, %r6, 0x3f3f3f3f;
        mov.b32 %r9, 0x3c004000; mov.b32 %r10, 0x3800c200;
        mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16
            {%r20, %r21}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r9, %r10};""",
        ("sm_89",),
    ),
]
RUNS = [pytest.param(case, arch, id=f"{case.name}, {arch}") for case in CASES for arch in case.architectures]


def left_by(module: gpu.Module, device: gpu.Device, number: int) -> np.ndarray:
    generator = np.random.default_rng(7)
    data = device.array(generator.integers(0, 1 << 32, WORDS, dtype=np.uint32))
    # Addresses of rows of the data.
    table = data.address + 64 * generator.integers(0, 64, 8, dtype=np.uint64)
    module["tried"][1, THREADS](data, number, table.tobytes())
    return data.numpy().reshape(THREADS, 16)


@pytest.mark.parametrize(("case", "architecture"), RUNS)
def test_an_instruction_gives_the_same_bits_as_its_ptx(case: Case, architecture: str) -> None:
    device = gpu.Device(maximum_instructions=10_000_000)
    text = case.text(architecture)
    cubin = assemble(text, "tried.ptx", architecture)
    listing = [row.text or "" for row in disassemble_cubin(cubin, "tried")["tried"].instructions]
    assert any(re.search(case.instruction, row) for row in listing), "\n".join(listing)
    for number in case.numbers:
        expected = left_by(device.load(text, isa="ptx"), device, number)
        actual = left_by(device.load(cubin), device, number)
        np.testing.assert_array_equal(actual, expected)
        assert len(np.unique(expected[:, 8])) > 1 or case.name.startswith(("space", "reduction"))


SPARSE = (
    HEAD
    + """
    mov.b32 %f1, %r1; mov.b32 %f2, %r2;
    mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
        {{%f3, %f4, %f5, %f6}}, {{%r1, %r2}}, {{%r3, %r4}}, {{%f1, %f2, %f1, %f2}}, %r5, 0x0;
    mov.b32 %r20, %f3; mov.b32 %r21, %f4; mov.b32 %r22, %f5; mov.b32 %r23, %f6;
"""
    + STORE
)


def test_sparse_matrices_are_not_taken_for_dense_ones() -> None:
    cubin = assemble(SPARSE.format(architecture="sm_80").encode(), "sparse.ptx", "sm_80")
    device = gpu.Device()
    data = device.zeros(WORDS, np.uint32)
    with pytest.raises(InputError, match=r"HMMA\.SP\.16816\.F32\.BF16[\s\S]*sparse matrices"):
        device.load(cubin)["tried"][1, 32](data, 0, bytes(64))
