# SPDX-License-Identifier: Apache-2.0
"""Every instruction that reads or writes memory moves its bytes through L2 and DRAM when nothing is in a cache.

A kernel of `CTAS` x `THREADS` threads reads or writes `BYTES` bytes once, each thread some neighbouring ones. The L2 of
the machine is smaller than that, so what is written reaches DRAM in the same launch, but for what the L2 holds.
"""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import gpu, load_machine

pytestmark = pytest.mark.core

CTAS, THREADS = 64, 256
BYTES = 4 * CTAS * THREADS
L2_BYTES = 4 * 8 * 1024
SMALL = ["gpu.sm_count=4", "gpu.l2_slices=4", "gpu.l2_slice_capacity=8KiB"]

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b32 table[8192];
.visible .entry k(.param .u64 x, .param .u64 texture)
{{
 .reg .b32 %r<8>, %thread, %offset, %tile; .reg .b64 %d<4>, %a, %x, %texture; .reg .f32 %f<8>; .reg .pred %p;
 .shared .align 16 .b8 words[4096];
 .local .align 16 .b8 own[64];
 ld.param.u64 %x,[x]; ld.param.u64 %texture,[texture];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%tid.x; mad.lo.s32 %thread,%r1,{threads},%r2;
 mul.lo.s32 %offset,%thread,4; cvt.u64.u32 %d1,%offset; add.s64 %a,%x,%d1;
 and.b32 %r3,%r2,255; mul.lo.s32 %r3,%r3,16; mov.u32 %tile,words; add.s32 %tile,%tile,%r3;
 mov.b32 %r4,7; mov.b32 %r5,7; mov.b32 %r6,7; mov.b32 %r7,7;
 cvt.rn.f32.s32 %f1,%thread;
 {body}
 setp.eq.s32 %p,%r4,-1; @%p st.global.u32 [%x],%r4;
 ret;
}}
"""
FOUR = "{%r4,%r5,%r6,%r7}"
READS = {
    "ld.global": "ld.global.u32 %r4,[%a];",
    "ld": "ld.u32 %r4,[%a];",
    "ldu, volatile": "ld.volatile.global.u32 %r4,[%a];",
    "ld.global.nc": "ld.global.nc.u32 %r4,[%a];",
    "cp.async": "cp.async.ca.shared.global [%tile],[%a],4; cp.async.wait_all; ld.shared.u32 %r4,[%tile];",
    "tex.1d by index": f"tex.1d.v4.u32.s32 {FOUR},[%texture,{{%thread}}];",
    "tex.1d by coordinate": f"tex.1d.v4.u32.f32 {FOUR},[%texture,{{%f1}}];",
    "suld": "suld.b.1d.b32.trap %r4,[%texture,{%offset}];",
}
WRITES = {
    "st.global": "st.global.u32 [%a],%r4;",
    "st": "st.u32 [%a],%r4;",
    "sust": "sust.b.1d.b32.trap [%texture,{%offset}],%r4;",
    "red": "red.global.add.u32 [%a],%r4;",
}
INSIDE = {
    "ld.shared, st.shared": "st.shared.u32 [%tile],%r4; bar.sync 0; ld.shared.u32 %r4,[%tile];",
    "generic ld, st of shared memory": (
        "cvt.u64.u32 %d2,%tile; cvta.shared.u64 %d2,%d2; st.u32 [%d2],%r4; ld.u32 %r4,[%d2];"
    ),
    "atom.shared": "atom.shared.add.u32 %r4,[%tile],1;",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7},[%tile];",
    "txq": "txq.width.b32 %r4,[%texture];",
    "shfl": "shfl.sync.idx.b32 %r4,%r2,0,31,-1;",
}


def run(
    body: str,
    *,
    ctas: int = CTAS,
    threads: int = THREADS,
    changes: tuple[str, ...] = (),
    isa: str | None = None,
) -> gpu.KernelProfile:
    device = gpu.TimedDevice(load_machine("v100", [*SMALL, *changes]).machine, allow_newer=True)
    x = device.empty(CTAS * THREADS, np.uint32)
    x.set(np.arange(CTAS * THREADS, dtype=np.uint32))
    texture = device.texture(x)
    kernel = device.load(KERNEL.format(body=body, threads=THREADS), isa=isa)["k"]
    return kernel[ctas, threads](x, texture).profile


@pytest.mark.parametrize("name", READS)
def test_a_cold_read_moves_its_bytes(name: str) -> None:
    profile = run(READS[name])
    assert profile["l2_bytes"] == BYTES
    assert profile["dram_read_bytes"] == BYTES


@pytest.mark.parametrize("name", WRITES)
def test_a_write_moves_its_bytes(name: str) -> None:
    profile = run(WRITES[name])
    assert BYTES <= profile["l2_bytes"] <= 2 * BYTES  # an update reads what it changes
    assert BYTES - L2_BYTES <= profile["dram_write_bytes"] <= BYTES


@pytest.mark.parametrize("name", ["atom"])
def test_an_atomic_operation_reads_and_writes(name: str) -> None:
    profile = run("atom.global.add.u32 %r4,[%a],1;")
    assert BYTES <= profile["l2_bytes"] <= 2 * BYTES
    assert profile["dram_read_bytes"] == BYTES
    assert BYTES - L2_BYTES <= profile["dram_write_bytes"] <= BYTES


@pytest.mark.parametrize("name", INSIDE)
def test_what_stays_on_the_sm_moves_nothing(name: str) -> None:
    profile = run(INSIDE[name])
    assert profile["l2_bytes"] == 0
    assert profile["dram_read_bytes"] == profile["dram_write_bytes"] == 0


@pytest.mark.parametrize("words", [1, 2, 4])
def test_local_memory_moves_its_bytes(words: int) -> None:
    """Each thread writes and reads `words` words; those of all threads lie apart."""
    vector, values = (
        ("", "%r4")
        if words == 1
        else (f".v{words}", "{" + ",".join(f"%r{4 + i}" for i in range(words)) + "}")
    )
    body = f"st.local{vector}.u32 [own],{values}; ld.local{vector}.u32 {values},[own];"
    profile = run(body, ctas=4, changes=("gpu.l2_slice_capacity=192KiB",), isa="ptx")
    written = 4 * THREADS * 4 * words
    assert profile["l2_bytes"] == 2 * written  # the L1 does not keep what is stored


def test_constants_beyond_their_caches_come_from_memory() -> None:
    """A warp reads a word of each of 256 lines of 128 B, of which its SM has none."""
    body = """mul.lo.s32 %r3,%r2,128; cvt.u64.u32 %d2,%r3; mov.u64 %d3,table; add.s64 %d3,%d3,%d2;
 ld.const.u32 %r4,[%d3]; """
    profile = run(body, ctas=1)
    assert profile["l2_bytes"] == profile["dram_read_bytes"] == 256 * 128
    again = run(body + "add.s64 %d3,%d3,64; ld.const.u32 %r4,[%d3];", ctas=1)
    assert again["l2_bytes"] == 256 * 128  # the cache behind has them now


def test_texture_units_take_four_lanes_a_cycle() -> None:
    """A warp of texels of 4 B takes 32 / 4 cycles of its SM, so `n` of them 8 n; of 16 B a lane it is the same."""
    device = gpu.TimedDevice(load_machine("v100", [*SMALL, "gpu.sm_count=1"]).machine, allow_newer=True)
    x = device.zeros(CTAS * THREADS, np.uint32)
    texture = device.texture(x)
    cycles = []
    for times in (64, 128):
        kernel = device.load(
            KERNEL.format(body=READS["tex.1d by index"] * times, threads=THREADS), isa="ptx"
        )["k"]
        kernel[1, 32 * 16](x, texture)  # so that instructions are there
        cycles.append(kernel[1, 32 * 16](x, texture).cycles)
    assert cycles[1] - cycles[0] == pytest.approx(8 * 16 * 64, rel=0.02)


def test_a_stream_through_textures_is_no_faster_than_memory() -> None:
    """Reads through tex1Dfetch and through ld.global of the same cold bytes take about as long."""
    loads = run(READS["ld.global"], changes=("gpu.l2_slice_capacity=192KiB",))
    texels = run(READS["tex.1d by index"], changes=("gpu.l2_slice_capacity=192KiB",))
    assert texels["duration"] == pytest.approx(loads["duration"], rel=0.1)
    assert texels["dram_read_bytes"] == loads["dram_read_bytes"]


def test_textures_and_constants_take_as_long_on_any_number_of_threads() -> None:
    body = READS["tex.1d by index"] + "and.b32 %r3,%r2,63; mul.lo.s32 %r3,%r3,128; cvt.u64.u32 %d2,%r3;"
    body += "mov.u64 %d3,table; add.s64 %d3,%d3,%d2; ld.const.u32 %r5,[%d3]; add.s32 %r4,%r4,%r5;"
    machine = load_machine("v100", SMALL).machine
    taken = []
    for threads in (1, 2, 4):
        device = gpu.TimedDevice(machine, allow_newer=True, threads=threads)
        x = device.zeros(CTAS * THREADS, np.uint32)
        kernel = device.load(KERNEL.format(body=body, threads=THREADS), isa="ptx")["k"]
        launch = kernel[CTAS, THREADS](x, device.texture(x))
        taken.append((launch.seconds, launch.profile.counts.sm))
    assert taken[0] == taken[1] == taken[2]
