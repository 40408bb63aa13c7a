# SPDX-License-Identifier: Apache-2.0
"""Instructions that ptxas does not make of PTX, but that hand-written kernels of libraries have.

Each replaces an instruction that ptxas made, and keeps the rest of its bits.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from sass_support import needs_assembler, words_as_bytes

from manyscale import gpu
from manyscale.gpu.assembler import assemble
from manyscale.gpu.disassembly import SassInstruction, disassemble_cubin

pytestmark = [pytest.mark.core, needs_assembler]

THREADS = 64
HEAD = """
.version 8.0
.target {architecture}
.address_size 64
.visible .entry tried(.param .u64 data, .param .u64 results, .param .u32 number)
{{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<20>;
    .reg .f32 %f<8>;
    .reg .b64 %d<8>;
    .shared .align 16 .b8 tile[4096];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [results];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d2, %r0, 16, %d0;
    mad.wide.u32 %d3, %r0, 16, %d1;
"""


class Kernel:
    """A kernel of PTX, assembled, some of whose instructions are replaced."""

    def __init__(self, body: str, architecture: str) -> None:
        text = HEAD.format(architecture=architecture) + body + "ret; }\n"
        self._architecture = architecture
        self._cubin = assemble(text.encode(), "tried.ptx", architecture)

    def rows(self) -> tuple[SassInstruction, ...]:
        return disassemble_cubin(self._cubin, "tried")["tried"].instructions

    def find(self, pattern: str) -> SassInstruction:
        (found,) = [row for row in self.rows() if re.search(pattern, row.text or "")]
        return found

    def set(self, pattern: str, fields: dict[tuple[int, int], int], becomes: str) -> None:
        """Sets fields (first bit, number of bits) of the one instruction with this text, which then reads otherwise."""
        row = self.find(pattern)
        value = row.words[0] | row.words[1] << 64
        for (first, count), bits in fields.items():
            value = value & ~(((1 << count) - 1) << first) | bits << first
        old = words_as_bytes(*row.words)
        assert self._cubin.count(old) == 1
        self._cubin = self._cubin.replace(old, value.to_bytes(16, "little"))
        (made,) = [other.text for other in self.rows() if other.offset == row.offset]
        assert made is not None
        assert made.endswith(becomes)

    def run(self, data: np.ndarray, number: int = 0) -> np.ndarray:
        device = gpu.Device(maximum_instructions=1_000_000)
        results = device.zeros(4 * THREADS, np.uint32)
        device.load(self._cubin)["tried"][1, THREADS](device.array(data), results, number)
        return results.numpy().reshape(THREADS, 4)


def some_words(seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, 4 * THREADS, dtype=np.uint32)


@pytest.mark.parametrize("architecture", ["sm_70", "sm_80"])
@pytest.mark.parametrize("compared", ["lt", "ge"])
@pytest.mark.parametrize(
    ("loaded", "words"), [("v4.u32", 4), ("v2.u32", 2), ("u32", 1), ("u16", 1), ("s8", 1)]
)
def test_a_load_gives_zeros_where_its_predicate_does_not_hold(
    architecture: str, compared: str, loaded: str, words: int
) -> None:
    """There it reads no memory either: the data ends before. The predicate is the guard of what ptxas made."""
    registers = ", ".join(f"%r{4 + k}" for k in range(words))
    into = f"{{{registers}}}" if words > 1 else registers
    kernel = Kernel(
        f"""
        mov.b32 %r4, 70; mov.b32 %r5, 71; mov.b32 %r6, 72; mov.b32 %r7, 73;
        setp.{compared}.u32 %p1, %r0, {THREADS // 2};
        @{"" if compared == "lt" else "!"}%p1 ld.global.{loaded} {into}, [%d2];
        st.global.v4.u32 [%d3], {{%r4, %r5, %r6, %r7}};
        """,
        architecture,
    )
    text = kernel.find(" LDG").text or ""
    guard = re.match(r"@(!?P\d)", text)
    assert guard is not None
    # The predicate is written with its bits inverted, and without a uniform register.
    fields = {
        (9, 3): 1,
        (12, 4): 7,
        (32, 8): 0,
        (64, 3): 7 - int(guard[1][-1]),
        (67, 1): int("!" in guard[1]),
    }
    without_descriptor = {(76, 1): 0, (90, 2): 0} if architecture == "sm_80" else {}
    plain = text.split(" ", 1)[1].replace(".64]", "]")
    kernel.set(" LDG", fields | without_descriptor, f"{plain}, {guard[1]}")
    data = some_words()[: 2 * THREADS]
    expected = np.tile(np.array([70, 71, 72, 73], np.uint32), (THREADS, 1))
    part = {"u16": np.uint16, "s8": np.int8}.get(loaded, np.uint32)
    # The lowest bytes of words, extended as their type says.
    rows = data.view(part).reshape(THREADS // 2, -1)[:, :words].astype(np.int64)
    expected[: THREADS // 2, :words] = (rows & 0xFFFFFFFF).astype(np.uint32)
    expected[THREADS // 2 :, :words] = 0
    np.testing.assert_array_equal(kernel.run(data), expected)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80"])
def test_the_upper_half_of_a_register_is_converted(architecture: str) -> None:
    kernel = Kernel(
        """
        ld.global.v2.u32 {%r1, %r2}, [%d2]; xor.b32 %r3, %r1, %r2; mov.b32 {%h1, %h2}, %r3;
        cvt.rni.s32.f16 %r4, %h1; st.global.v4.u32 [%d3], {%r4, %r3, %r1, %r2};
        """,
        architecture,
    )
    text = kernel.find("^F2I").text or ""
    kernel.set("^F2I", {(60, 2): 1}, text + ".H1")
    upper = np.array([-3.0, 17.4, 0.5, 1000.0], np.float16)
    data = np.zeros((THREADS, 4), np.uint32)
    data[:, 0] = np.resize(upper, THREADS).view(np.uint16).astype(np.uint32) << 16 | 0x3C00
    results = kernel.run(data.ravel())
    np.testing.assert_array_equal(
        results[:, 0].view(np.int32), np.rint(np.resize(upper, THREADS).astype(np.float64)).astype(np.int32)
    )


def test_a_load_of_128_bits_in_its_other_spelling() -> None:
    kernel = Kernel(
        """
        ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%d2]; add.u32 %r1, %r1, %r4;
        st.global.v4.u32 [%d3], {%r1, %r2, %r3, %r4};
        """,
        "sm_75",
    )
    text = kernel.find("^LDG").text or ""
    kernel.set("^LDG", {(73, 3): 7}, text.replace(".128", ".U.128"))
    data = some_words()
    expected = data.reshape(THREADS, 4).copy()
    expected[:, 0] += expected[:, 3]
    np.testing.assert_array_equal(kernel.run(data), expected)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_a_fence_without_a_kind(architecture: str) -> None:
    kernel = Kernel(
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2]; st.global.v4.u32 [%d3], {%r1, %r2, %r3, %r4}; membar.gl;",
        architecture,
    )
    kernel.set("^MEMBAR", {(79, 2): 2}, "MEMBAR.GPU")
    data = some_words()
    np.testing.assert_array_equal(kernel.run(data), data.reshape(THREADS, 4))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_90"])
def test_a_uniform_register_is_added_to_where_a_copy_goes(architecture: str) -> None:
    """The kernel's number, which is put into the uniform register that held a descriptor, is added to the address."""
    kernel = Kernel(
        """
        mov.u32 %r1, tile; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2;
        cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.wait_all; bar.sync 0;
        ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3+1024]; st.global.v4.u32 [%d3], {%r4, %r5, %r6, %r7};
        """,
        architecture,
    )
    row = kernel.find("^LDGSTS")
    target, source = re.findall(r"R(\d+)", re.sub(r"UR\d+", "", row.text or ""))[:2]
    (uniform,) = re.findall(r"^ULDC(?:\.64)? UR(\d+)", kernel.find(r"^ULDC.*0x(118|208)\]").text or "")
    number_at = 0x220 if architecture == "sm_90" else 0x170
    kernel.set(r"^ULDC.*0x(118|208)\]", {(38, 16): number_at}, f"UR{uniform}, c[0x0][{number_at:#x}]")
    kernel.set(
        "^LDGSTS",
        {(9, 3): 6, (64, 6): int(uniform), (70, 1): 1, (76, 1): 0, (90, 2): 2},
        f"LDGSTS.E.BYPASS.128 [R{target}+UR{uniform}], [R{source}.64]",
    )
    data = some_words()
    np.testing.assert_array_equal(kernel.run(data, 1024), data.reshape(THREADS, 4))


def test_a_return_skips_the_call() -> None:
    """LEPC gives its own address, so that what it calls returns behind the call: two instructions later."""
    kernel = Kernel(
        """
        .reg .b64 %back; .reg .b32 %x;
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2]; add.u32 %r1, %r1, 5;
        st.global.v4.u32 [%d3], {%r1, %r2, %r3, %r4};
        bar.sync 0; bar.sync 1; bar.sync 2; bar.sync 3; bar.sync 4;
        """,
        "sm_80",
    )
    barriers = [kernel.find(rf"^BAR\.SYNC\S* {number:#x}").offset for number in range(5)]
    assert barriers == list(range(barriers[0], barriers[0] + 80, 16))
    schedule = {(105, 17): 0x7F1}  # a stall of one cycle, and no dependence counters
    # 0: LEPC R20; 1: CALL.REL 4; 2: BRA 5 (behind the last); 3: NOP; 4: RET.ABS.NODEC R20 0x20
    plain = {(16, 16): 0, (32, 32): 0, (64, 41): 0, **schedule}
    kernel.set(r"^BAR\.SYNC\S* 0x0", plain | {(0, 12): 0x34E, (16, 8): 20}, "LEPC R20")
    always = {(87, 3): 7}
    kernel.set(
        r"^BAR\.SYNC\S* 0x1",
        plain | {(0, 12): 0x944, (34, 48): 32 // 4, (86, 1): 1} | always,
        f"CALL.REL.NOINC {barriers[4]:#x}",
    )
    kernel.set(
        r"^BAR\.SYNC\S* 0x2",
        plain | {(0, 12): 0x947, (34, 48): 32 // 4} | always,
        f"BRA {barriers[4] + 16:#x}",
    )
    kernel.set(r"^BAR\.SYNC\S* 0x3", plain | {(0, 12): 0x918}, "NOP")
    kernel.set(
        r"^BAR\.SYNC\S* 0x4",
        plain | {(0, 12): 0x950, (24, 8): 20, (34, 48): 0x20 // 4, (85, 2): 3} | always,
        "RET.ABS.NODEC R20 0x20",
    )
    data = some_words()
    expected = data.reshape(THREADS, 4).copy()
    expected[:, 0] += 5
    np.testing.assert_array_equal(kernel.run(data), expected)


def test_floats_are_packed_on_turing() -> None:
    kernel = Kernel(
        """
        ld.global.v2.f32 {%f1, %f2}, [%d2]; add.rn.f32 %f3, %f1, %f2; mov.b32 %r1, %f3;
        st.global.v4.u32 [%d3], {%r1, %r0, %r0, %r0};
        """,
        "sm_75",
    )
    row = kernel.find("^FADD")
    result, first, second = re.findall(r"R(\d+)", row.text or "")
    kernel.set(
        "^FADD",
        {(0, 12): 0x23E, (64, 8): 255, (72, 33): 0},
        f"F2FP.PACK_AB R{result}, R{first}, R{second}",
    )
    floats = np.random.default_rng(5).normal(0, 100, (THREADS, 4)).astype(np.float32)
    halves = floats.astype(np.float16).view(np.uint16).astype(np.uint32)
    expected = halves[:, 0] << 16 | halves[:, 1]
    if int(first) > int(second):
        expected = halves[:, 1] << 16 | halves[:, 0]
    np.testing.assert_array_equal(kernel.run(floats.ravel().view(np.uint32))[:, 0], expected)


def test_an_index_is_subtracted_from_an_address_also_if_it_is_zero() -> None:
    kernel = Kernel(
        """
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2]; mov.b64 %d4, {%r3, %r4};
        cvt.u64.u32 %d5, %r1; shl.b64 %d5, %d5, 2; add.u64 %d6, %d4, %d5;
        mov.b64 {%r5, %r6}, %d6; st.global.v4.u32 [%d3], {%r5, %r6, %r1, %r2};
        """,
        "sm_80",
    )
    low, high = (kernel.find(pattern).text or "" for pattern in (r"^LEA R\d+, P", r"^LEA\.HI\.X"))
    kernel.set(r"^LEA R\d+, P", {(72, 1): 1}, re.sub(r"(P\d, )R", r"\1-R", low))
    kernel.set(r"^LEA\.HI\.X", {(72, 1): 1}, re.sub(r"^(\S+ R\d+, )R", r"\1~R", high))
    data = some_words().reshape(THREADS, 4)
    data[::4, 0] = 0
    address = data[:, 2] | data[:, 3].astype(np.uint64) << np.uint64(32)
    expected = address - (data[:, 0].astype(np.uint64) << np.uint64(2))
    found = kernel.run(data.ravel())
    np.testing.assert_array_equal(found[:, 0] | found[:, 1].astype(np.uint64) << np.uint64(32), expected)


def test_a_kernel_takes_more_than_four_kilobytes_of_parameters() -> None:
    text = """
    .version 8.1
    .target sm_80
    .address_size 64
    .visible .entry large(.param .align 4 .b8 values[24000], .param .u64 results)
    {
        .reg .b32 %r<2>;
        .reg .b64 %d<5>;
        ld.param.u64 %d0, [results];
        mov.u32 %r0, %tid.x;
        mul.wide.u32 %d1, %r0, 4;
        add.u64 %d0, %d0, %d1;
        mov.b64 %d2, values;
        mad.wide.u32 %d3, %r0, 368, %d2;
        ld.param.u32 %r1, [%d3];
        st.global.u32 [%d0], %r1;
        ret;
    }
    """
    device = gpu.Device(maximum_instructions=1_000_000)
    values = np.arange(6000, dtype=np.uint32) * 7
    results = device.zeros(THREADS, np.uint32)
    kernel = device.load(assemble(text.encode(), "large.ptx", "sm_80"))["large"]
    kernel[1, THREADS](values.view(np.uint8), results)
    np.testing.assert_array_equal(results.numpy(), values[::92][:THREADS])
