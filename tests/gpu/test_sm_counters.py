# SPDX-License-Identifier: Apache-2.0
"""What an SM counts, in closed form: cycles with resident warps, instructions by pipe; and that warps yield."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from sass_support import BYTES, needs_assembler

from manyscale import gpu, load_machine
from manyscale.gpu.assembler import find_assembler

pytestmark = pytest.mark.core

PIPES = ("alu", "fma", "fp64", "xu", "tensor", "lsu", "cbu", "other")
REPEATED = 64
ONE_SM = ("gpu.sm_count=1", "gpu.l2_slices=1", "gpu.sm.sub_cores=1")

KERNEL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{{
 .reg .b32 %r<4>; .reg .b64 %o, %t<4>; .reg .f32 %f<40>; .reg .f64 %d<4>;
 ld.param.u64 %o,[out];
 mov.u32 %r1,%tid.x; cvt.rn.f32.u32 %f1,%r1; cvt.rn.f64.u32 %d1,%r1; mov.f32 %f2,0f3F000000;
 mov.u64 %t1,%clock64;
 {steps}
 mov.u64 %t2,%clock64;
 sub.s64 %t3,%t2,%t1;
 shr.u32 %r2,%r1,5; mul.wide.u32 %t1,%r2,32; add.s64 %o,%o,%t1;
 st.global.u64 [%o],%t3; st.global.f32 [%o+8],%f1; st.global.f64 [%o+16],%d1; st.global.u32 [%o+24],%r1;
 ret;
}}
"""


def counted(steps: str, grid: int = 1, *changes: str) -> dict[str, int]:
    """All counters of the SM after one kernel of CTAs with one warp."""
    on = gpu.TimedDevice(load_machine("v100", [*ONE_SM, *changes]).machine, isa="ptx", allow_newer=True)
    on.load(KERNEL.format(steps=steps))["k"][grid, 32](on.zeros(64, np.uint64))
    table = on.result.stats
    return dict(table.filter(table["component"] == "sm[0]").select("statistic", "count").iter_rows())


@pytest.mark.parametrize(
    ("step", "pipe", "timing"),
    [
        ("add.f32 %f1,%f1,%f2;", "fma", "fp32"),
        ("fma.rn.f64 %d1,%d1,%d1,%d1;", "fp64", "fp64"),
        ("xor.b32 %r1,%r1,17;", "alu", "logic"),
        ("ex2.approx.ftz.f32 %f1,%f1;", "xu", "special_function"),
    ],
)
def test_instructions_count_on_their_pipe_and_on_no_other(step: str, pipe: str, timing: str) -> None:
    """n more instructions: n more issued on their pipe, n intervals more busy, and nothing on the others."""
    interval = 6
    change = f"gpu.sm.timing.{timing}.interval={interval}"
    less, more = (counted(step * count, 1, change) for count in (REPEATED, 2 * REPEATED))
    assert {name: more[f"issued_{name}"] - less[f"issued_{name}"] for name in PIPES} == {
        name: REPEATED * (name == pipe) for name in PIPES
    }
    assert {name: more[f"busy_{name}"] - less[f"busy_{name}"] for name in PIPES} == {
        name: REPEATED * interval * (name == pipe) for name in PIPES
    }
    assert sum(more[f"issued_{name}"] for name in PIPES) == more["issued_instructions"]


def test_cycles_with_resident_warps_are_counted_once() -> None:
    """One warp at a time: the SM counts its cycles and those in which CTAs begin. Four at once: each cycle once."""
    step = "add.f32 %f1,%f1,%f2;" * REPEATED
    for ctas in (1, 4):
        in_turn = counted(step, ctas, "gpu.scheduler.limits.ctas=1", "gpu.sm.cta_launch_latency=30")
        assert in_turn["active_cycles"] == in_turn["warp_cycles"] + ctas * 30
    together = counted(step, 4, "gpu.sm.cta_launch_latency=0")
    assert together["warp_cycles"] / 4 <= together["active_cycles"] < together["warp_cycles"] / 2


# Two registers that all instructions read, from memory, which the assembler cannot fold.
CHAINS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{{
 .reg .b32 %r<4>; .reg .b64 %o, %t<4>; .reg .f32 %f<40>;
 ld.param.u64 %o,[out];
 mov.u32 %r1,%tid.x; shr.u32 %r2,%r1,5; mul.wide.u32 %t1,%r2,16; add.s64 %o,%o,%t1;
 ld.volatile.global.f32 %f1,[%o]; ld.volatile.global.f32 %f2,[%o+4];
 {steps}
 st.volatile.global.f32 [%o],%f1;
 ret;
}}
"""


@needs_assembler
def test_warps_that_yield_take_turns_and_lose_kept_operands(tmp_path: Path) -> None:
    """Two warps fill a pipe with instructions that keep an operand for their next one in the reuse cache.

    The warp that goes first keeps the pipe, and its operands. If instructions yield, each follows one of the other
    warp: it reads all three operands from two banks, which takes three cycles where the registers are of one bank.
    """
    chains = [f"%f{number}" for number in range(3, 35)]
    begin = "".join(f"fma.rn.f32 {chain},%f1,%f2,0f3F8000{at:02X};" for at, chain in enumerate(chains))
    steps = "".join(f"fma.rn.f32 {chain},{chain},%f2,%f1;" for chain in chains * 8)
    end = "".join(f"fma.rn.f32 %f1,%f1,%f2,{chain};" for chain in chains)
    source, cubin = tmp_path / "k.ptx", tmp_path / "k.cubin"
    source.write_text(CHAINS.format(steps=begin + steps + end))
    subprocess.run([str(find_assembler()), "-arch=sm_70", str(source), "-o", str(cubin)], check=True)
    counts = {}
    for yields in (False, True):
        cubin.write_bytes(with_yield(cubin.read_bytes(), yields))
        on = gpu.TimedDevice(load_machine("v100", ONE_SM).machine, isa="sass", allow_newer=True)
        on.load(cubin)["k"][1, 64](on.zeros(64, np.uint64))
        counts[yields] = [on.result.value("sm[0]", name) for name in ("issued_fma", "busy_fma")]
    (issued, kept), (as_many, in_turns) = counts[False], counts[True]
    assert as_many == issued
    assert kept < 2.15 * issued, "most instructions take the two cycles of the pipe"
    assert in_turns > 1.05 * kept, "more of them take three"


def with_yield(cubin: bytes, yields: bool) -> bytes:
    """The yield flag of all instructions of the kernel: bit 109, which is 0 for one that yields."""
    from io import BytesIO

    from elftools.elf.elffile import ELFFile

    section = ELFFile(BytesIO(cubin)).get_section_by_name(".text.k")
    changed = bytearray(cubin)
    for at in range(section["sh_offset"], section["sh_offset"] + section["sh_size"], BYTES):
        changed[at + 13] = changed[at + 13] & ~0x20 | (0 if yields else 0x20)
    return bytes(changed)
