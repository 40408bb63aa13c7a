# SPDX-License-Identifier: Apache-2.0
"""SASS executed: two implementations that share no decoder, PTX and SASS, must agree to the bit.

`MANYSCALE_TEST_ISA=sass pytest tests/gpu` runs all programs of `programs/`, each fixture of theirs, as SASS.
"""

import re

import numpy as np
import pytest
from instruction_support import BLOCK, Form, columns, describe, dtype, kernel, operands, same
from programs_support import FIXTURES
from reference import HEADER

from manyscale import InputError, KernelError, gpu
from manyscale.gpu.assembler import assemble, find_assembler
from manyscale.gpu.isa import IsaChoice

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(
        find_assembler() is None, reason="SASS needs ptxas: pip install nvidia-cuda-nvcc-cu12"
    ),
]


@pytest.fixture(scope="module")
def device() -> gpu.Device:
    return gpu.Device(isa="sass", maximum_instructions=10_000_000, echo=False)


# Instructions whose result PTX defines for all operands they get here, from each part of the machine.
INTEGER = """
add.s32 sub.u64 mul.lo.s64 mul.hi.u32 mul.hi.s64 mul.wide.s32 mad.lo.u32 mad.lo.s64 mad.wide.u32 div.s32 div.u64 rem.s64
rem.u32 div.s64 min.s32 max.u64 abs.s64 neg.s32 sad.u32 shl.b64 shr.s64 shr.u32 and.b64 xor.b32 not.b64 bfe.u32 bfi.b32
popc.b64 clz.b64 brev.b64 bfind.s32 bfind.shiftamt.u64 prmt.b32 shf.l.wrap.b32 shf.r.clamp.b32 dp4a.s32.s32
dp2a.hi.s32.s32 szext.clamp.s32 add.sat.s32 mul24.lo.u32
"""
FLOATING = """
add.rn.f32 add.rz.f32 mul.rn.ftz.f32 fma.rn.f32 fma.rm.f32 div.rn.f32 rcp.rn.f32 sqrt.rn.f32 sqrt.rp.f32 div.rz.f32
min.f32 max.NaN.f32 add.rn.sat.f32 add.rn.f64 mul.rp.f64 fma.rn.f64 fma.rz.f64 div.rn.f64 rcp.rn.f64 sqrt.rn.f64 max.f64
min.f64 fma.rn.f16 fma.rn.f16x2 add.f16x2 mul.f16 max.f16x2 fma.rn.bf16 min.bf16x2 neg.f16 ex2.approx.f32 lg2.approx.f32
rcp.approx.ftz.f32 sqrt.approx.f32 rsqrt.approx.f32 rsqrt.approx.ftz.f64 tanh.approx.f32
"""
CONVERSIONS = """
cvt.rn.f32.s32 cvt.rz.f32.u64 cvt.rn.f64.s64 cvt.rp.f64.u64 cvt.rzi.s32.f32 cvt.rni.u32.f32 cvt.rmi.s64.f64
cvt.rpi.u64.f32 cvt.rzi.s8.f32 cvt.rn.f16.f32 cvt.f32.f16 cvt.rm.f32.f64 cvt.f64.f32 cvt.rni.f32.f32 cvt.rzi.f64.f64
cvt.rn.bf16x2.f32
cvt.s64.s8 cvt.u16.s32 setp.lt.s64 setp.ge.u32 setp.neu.f64 setp.ltu.f32 setp.num.f64 selp.b64 slct.s32.s32
"""
# Of these, the machine has a shorter way than the model of PTX: ulps by which they may differ.
APPROXIMATE = {"div.approx.f32": 2, "div.full.f32": 2}


@pytest.mark.parametrize("opcodes", [INTEGER, FLOATING, CONVERSIONS, " ".join(APPROXIMATE)])
def test_instructions_give_the_same_bits_as_in_ptx(device: gpu.Device, opcodes: str):
    """Each on special and random operands, in all lanes and in some, over one of its operands."""
    forms = [Form(opcode) for opcode in opcodes.split()]
    text = re.sub(r"sm_\d+\w*", "sm_90", HEADER)
    text += "".join(kernel(f"kernel{number}", form) for number, form in enumerate(forms))
    modules = [device.load(text, isa=isa) for isa in ("ptx", "sass")]
    faults = []
    for number, form in enumerate(forms):
        rows = operands(form, 60)
        sources = [device.array(each) for each in columns(rows, list(form.source_types.values()))]
        left = []
        for module in modules:
            results = [device.zeros(len(rows), dtype(each.type)) for each in form.outputs]
            module[f"kernel{number}"][-(-len(rows) // BLOCK), BLOCK](*sources, *results, len(rows))
            left.append([each.numpy() for each in results])
        allowed = APPROXIMATE.get(form.opcode, 0)
        for output, expected, actual in zip(form.outputs, *left, strict=True):
            for index in np.flatnonzero(expected != actual):
                bits, other = int(expected[index]), int(actual[index])
                if not same(bits, other, output.type, form.operation.nan) and abs(bits - other) > allowed:
                    faults.append(describe(form, index, rows[index], bits, other, output.what))
    assert not faults, f"{len(faults)} results differ\n" + "\n".join(faults[:8])


SAXPY = """
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .f32 factor = 0f40400000;
.visible .entry saxpy(.param .u32 count, .param .u64 x, .param .u64 y)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<8>;
    ld.param.u32 %r1, [count];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra END;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    ld.global.f32 %f2, [%rd5];
    ld.global.f32 %f3, [factor];
    fma.rn.f32 %f4, %f1, %f3, %f2;
    st.global.f32 [%rd5], %f4;
END:
    ret;
}
"""


@pytest.mark.parametrize("architecture", ["sm_70", "sm_75", "sm_80", "sm_90"])
def test_a_file_with_sass_only_runs(architecture: str):
    """Parameters have sizes but no types; variables have their names."""
    device = gpu.Device()
    module = device.load(assemble(SAXPY.encode(), "saxpy", architecture))
    assert (module.isa, module.kernels) == ("sass", ["saxpy"])
    kernel = module["saxpy"]
    assert [(each.offset, each.size) for each in kernel.parameters] == [(0, 4), (8, 8), (16, 8)]
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    placed = device.array(y)
    kernel[4, 32](100, device.array(x), placed)
    np.testing.assert_array_equal(placed.numpy(), 3 * x + 1)
    module.variable("factor", np.float32).write(np.array([2], np.float32))
    kernel[4, 32](100, device.array(x), placed)
    np.testing.assert_array_equal(placed.numpy(), 5 * x + 1)


def test_a_fault_names_the_machine_instruction_and_its_line_of_ptx():
    device = gpu.Device(isa="sass")
    kernel = device.load(SAXPY)["saxpy"]
    x = device.zeros(8)
    with pytest.raises(KernelError, match=r"invalid address.*reads 4 bytes") as raised:
        kernel[1, 32](32, x, device.zeros(32))
    words = str(raised.value)
    assert "thread (8, 0, 0)" in words
    assert re.search(
        r"at <ptx>:24: LDG\.E\S* R\d+, \[R\d+.*\] at 0x[0-9a-f]{4}, of ld\.global\.f32", words
    ), words


def test_a_fault_names_the_line_of_the_source_too():
    marks = '.file 1 "saxpy.cu"\n.visible .entry'
    text = SAXPY.replace(".visible .entry", marks).replace(
        "ld.global.f32 %f1", ".loc 1 77 5\n    ld.global.f32 %f1"
    )
    device = gpu.Device(isa="sass")
    with pytest.raises(KernelError, match=r"at <ptx>:\d+ \(saxpy\.cu:77\): LDG\.E.*, of ld\.global\.f32"):
        device.load(text)["saxpy"][1, 32](32, device.zeros(8), device.zeros(32))


# The assembler makes one instruction of it that is not modelled.
FORMATTED = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .b64 %d;
    .reg .b32 %r;
    ld.param.u64 %d, [out];
    mov.u32 %r, %pm0;
    st.global.u32 [%d], %r;
    ret;
}
"""


def test_the_isa_can_be_requested_and_is_reported():
    device = gpu.Device()
    assert device.load(SAXPY).isa == "ptx"
    with pytest.raises(InputError, match="one of auto, sass, ptx, not 'cubin'"):
        device.load(SAXPY, isa="cubin")
    with pytest.raises(InputError, match="SASS and has no PTX"):
        device.load(assemble(SAXPY.encode(), "saxpy", "sm_75"), isa="ptx")
    cluster = (FIXTURES / "sm_90" / "cluster_exchange.ptx").read_text()
    with pytest.raises(InputError, match="is not supported"):
        device.load(cluster, isa="sass")
    timed = gpu.TimedDevice("a100", changes=["gpu.sm_count=1"], allow_newer=True)
    assert timed.load(SAXPY, isa="auto").isa == "sass"
    module = timed.load(FORMATTED, isa="auto")
    assert module.isa == "ptx"
    assert module.isa_choice is IsaChoice.FALLBACK
    assert "cannot be executed" in module.isa_reason
    assert device.load(SAXPY, isa="ptx").isa_choice is IsaChoice.REQUESTED
    assert device.load(SAXPY, isa="sass").isa_choice is IsaChoice.ASSEMBLED


def test_broken_sass_is_refused_in_words():
    device = gpu.Device(maximum_instructions=100_000)
    whole = assemble(SAXPY.encode(), "saxpy", "sm_75")
    for length in (4, 63, 64, 300, len(whole) // 2):
        with pytest.raises(InputError, match="this is no cubin"):
            device.load(whole[:length])
    random = np.random.default_rng(1)
    for _ in range(300):
        broken = bytearray(whole)
        for byte in random.integers(0, len(whole), 4):
            broken[byte] = random.integers(256)
        try:
            module = device.load(bytes(broken))
            x = device.zeros(32)
            for kernel in module.kernels:
                module[kernel][1, 32](32, x, x)
        except (InputError, KernelError):
            pass


def test_races_and_uninitialised_reads_are_found_in_sass_too():
    text = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry race(.param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    .shared .align 4 .b8 tile[512];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.s32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    xor.b32 %r2, %r2, 128;
    add.s32 %r4, %r3, %r2;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}
"""
    device = gpu.Device(isa="sass", check=True)
    launch = device.load(text)["race"][1, 64](device.zeros(64, np.uint32))
    assert any("race in shared memory" in warning and "LDS" in warning for warning in launch.warnings)


def test_the_nth_set_bit_is_the_same_in_both_forms():
    """`fns` is one instruction of PTX and a loop of SASS."""
    text = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry find(.param .u64 operands, .param .u64 found)
{
 .reg .b32 %r<8>; .reg .b64 %d<6>;
 ld.param.u64 %d1,[operands]; ld.param.u64 %d2,[found];
 mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mad.lo.u32 %r1,%r2,128,%r1;
 mul.wide.u32 %d3,%r1,12; add.s64 %d3,%d1,%d3; mul.wide.u32 %d4,%r1,4; add.s64 %d4,%d2,%d4;
 ld.global.u32 %r3,[%d3]; ld.global.u32 %r4,[%d3+4]; ld.global.u32 %r5,[%d3+8];
 fns.b32 %r6,%r3,%r4,%r5; st.global.u32 [%d4],%r6;
 ret;
}
"""
    generator = np.random.default_rng(1)
    count = 128 * 16
    masks = generator.integers(0, 2**32, count, dtype=np.uint32)
    masks[::7] &= 0xFF
    masks[::11] = 0
    masks[::13] = 0xFFFFFFFF
    bit_indices = generator.integers(0, 32, count).astype(np.uint32)
    offsets = generator.integers(-34, 35, count).astype(np.int32)
    offsets[::5] = 0
    operands = np.stack([masks, bit_indices, offsets.view(np.uint32)], axis=1)
    device = gpu.Device()
    results = []
    for isa in ("ptx", "sass"):
        found = device.array(np.zeros(count, np.uint32))
        device.load(text, isa=isa)["find"][16, 128](device.array(operands), found)
        results.append(found.numpy())
    np.testing.assert_array_equal(results[0], results[1])
    assert 0.2 < np.mean(results[0] == 0xFFFFFFFF) < 0.95
