# SPDX-License-Identifier: Apache-2.0
"""Timing of real SASS: the schedule that the assembler has put into it, and its registers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sass_support import needs_assembler

from manyscale import InputError, gpu, load_machine
from manyscale.gpu.assembler import find_assembler
from manyscale.machine.gpu_system import build_gpu
from manyscale.validation import gpu_apps, gpu_micro, mean_error_percent
from manyscale.validation.gpu_target import GpuTarget

pytestmark = [pytest.mark.core, needs_assembler]

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
# A chain of operations between two readings of the clock; what it begins with comes from memory.
CHAIN = """
.visible .entry chain(.param .u64 out)
{{
 .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .f64 %g<4>;
 ld.param.u64 %d1,[out];
 ld.volatile.global.f32 %f1,[%d1]; ld.volatile.global.f64 %g1,[%d1+8]; ld.volatile.global.u32 %r1,[%d1+16];
 mov.u64 %d2,%clock64;
 {steps}
 mov.u64 %d3,%clock64;
 sub.u64 %d4,%d3,%d2;
 st.global.f32 [%d1],%f1; st.global.f64 [%d1+8],%g1; st.global.u32 [%d1+16],%r1; st.global.u64 [%d1+24],%d4;
 ret;
}}
"""


def one_sm(**options: object) -> gpu.TimedDevice:
    machine = load_machine("v100", ["gpu.sm_count=1", "gpu.l2_slices=1"]).machine
    return gpu.TimedDevice(machine, isa="sass", allow_newer=True, **options)


def cycles_of(steps: str) -> int:
    device = one_sm()
    out = device.zeros(4, np.uint64)
    chain = device.load(HEAD + CHAIN.format(steps=steps))["chain"]
    for _ in range(2):  # the second time its instructions are in the caches
        chain[1, 1](out)
    return int(out.numpy()[3])


@pytest.mark.parametrize(
    ("step", "cycles"),
    [
        ("fma.rn.f32 %f1,%f1,%f1,%f1;", 4),  # a stall count of 4
        ("fma.rn.f64 %g1,%g1,%g1,%g1;", 8),  # a dependence counter
        ("mul.lo.u32 %r1,%r1,%r1;", 4),  # IMAD, of one unit
        ("mul.lo.u32 %r1,%r1,%r1; xor.b32 %r1,%r1,17;", 10),  # to another unit and back: 5 each
        ("ex2.approx.ftz.f32 %f1,%f1;", 14),  # a dependence counter, and the latency of the machine
    ],
)
def test_a_chain_takes_the_latency_of_its_instruction(step: str, cycles: int) -> None:
    assert cycles_of(step * 160) - cycles_of(step * 96) == pytest.approx(64 * cycles, rel=0.02)


def test_dependence_counters_wait_for_memory() -> None:
    # Each load needs the address that the one before it brings: a hit in L1 takes as long as the machine says.
    latency = gpu_micro._chase(GpuTarget("v100", "sass"), pointers=64, stride=64, loads=128)
    assert latency == pytest.approx(28, rel=0.02)


def test_registers_and_occupancy_are_those_of_the_sass(tmp_path: Path) -> None:
    source = gpu_apps._KERNELS / "blocked_lu.ptx"
    copy = tmp_path / "lu.ptx"
    copy.write_bytes(
        re.sub(rb"(?m)^\.version.*$", b".version 7.0", source.read_bytes()).replace(b"sm_75", b"sm_70")
    )
    command = [str(find_assembler()), "-arch=sm_70", "-v", str(copy), "-o", str(tmp_path / "lu.cubin")]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.findall(r"Function properties for (\w+)\n.*?Used (\d+) registers", listing, re.DOTALL)
    registers = {name: int(count) for name, count in found}
    device = one_sm()
    module = device.load(source)
    matrix = device.array(np.eye(32, dtype=np.float32))
    for kernel, block in (("lu_diagonal", (16, 1)), ("lu_internal", (16, 16))):
        launch = module[kernel][1, block](matrix, 32, 0)
        assert launch.registers == registers[kernel]
        warps = -(-block[0] * block[1] // 32)
        units = warps * -(
            -launch.registers * 32 // 256
        )  # a warp gets registers in units of 256, an SM has 256
        by_shared = (
            launch.profile.counts.ctas_per_sm
        )  # what shared memory allows is the functional model's matter
        fitting = min(32, 64 // warps, 256 // units)
        assert launch.occupancy == min(fitting, by_shared) * warps / 64
        assert by_shared <= fitting


COPIES = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry copies(.param .u64 near, .param .u64 far, .param .u64 out)
{
 .reg .b32 %r<4>; .reg .b64 %d<8>; .shared .align 16 .b8 cells[64];
 ld.param.u64 %d1,[near]; ld.param.u64 %d2,[far]; ld.param.u64 %d3,[out];
 ld.volatile.global.u32 %r1,[%d1]; st.volatile.global.u32 [%d3+24],%r1;
 mov.u32 %r2,cells;
 bar.sync 0;
 mov.u64 %d4,%clock64;
 cp.async.cg.shared.global [%r2],[%d1],16; cp.async.commit_group;
 cp.async.cg.shared.global [%r2+16],[%d2],16; cp.async.commit_group;
 cp.async.wait_group 1;
 mov.u64 %d5,%clock64;
 cp.async.wait_group 0;
 mov.u64 %d6,%clock64;
 sub.u64 %d5,%d5,%d4; sub.u64 %d6,%d6,%d4;
 st.global.u64 [%d3],%d5; st.global.u64 [%d3+8],%d6;
 ret;
}
"""


def test_waits_for_all_but_the_newest_copies() -> None:
    """DEPBAR.LE: the older copy, of a line that is near, is waited for without the newer one from memory."""
    device = gpu.TimedDevice(load_machine("a100", ["gpu.sm_count=1"]).machine, isa="sass")
    copies = device.load(COPIES)["copies"]
    out = device.zeros(4, np.uint64)
    near, *far = (device.zeros(1 << 16, np.uint32) for _ in range(3))
    for each in far:  # the second time its instructions are in the caches, and the other array in no cache
        copies[1, 1](near, each, out)
    older, newer = (int(cycles) for cycles in out.numpy()[:2])
    assert 30 < older < 80  # a hit in L1: 33 cycles, and a few instructions
    assert 400 < newer < 700  # a miss in L2: 549 cycles in the mean


def test_same_on_any_number_of_threads() -> None:
    tables = []
    for threads in (1, 2, 4):
        machine = load_machine("v100", ["gpu.sm_count=4", "gpu.l2_slices=4"]).machine
        device = gpu.TimedDevice(machine, threads=threads, isa="sass", allow_newer=True)
        matrix = np.random.default_rng(1).random((64, 64)).astype(np.float32) + 64 * np.eye(
            64, dtype=np.float32
        )
        a = device.array(matrix)
        module = device.load(gpu_apps._KERNELS / "blocked_lu.ptx")
        assert module.isa == "sass"
        for offset in range(0, 48, 16):
            left = (64 - offset) // 16 - 1
            module["lu_diagonal"][1, 16](a, 64, offset)
            module["lu_perimeter"][left, 32](a, 64, offset)
            module["lu_internal"][(left, left), (16, 16)](a, 64, offset)
        assert device.result is not None
        tables.append((a.numpy().tobytes(), device.result.stats))
    for values, table in tables[1:]:
        assert values == tables[0][0]
        assert table.equals(tables[0][1])


def test_stalls_add_up_to_the_cycles_of_warps() -> None:
    device = one_sm()
    x = device.array(np.arange(4096, dtype=np.float32))
    launch = device.load(gpu_apps._KERNELS / "vector_add.ptx")["vector_add"][16, 256](
        x, x, device.empty(4096), 4096
    )
    counts = launch.profile.counts.sm
    stalls = sum(value for name, value in counts.items() if name.startswith("stall_"))
    assert counts["issued_instructions"] == counts["warp_instructions"]
    assert stalls + counts["issued_instructions"] == counts["warp_cycles"]


def test_programs_are_as_near_to_hardware_as_ptx() -> None:
    rows = {isa: gpu_apps.rows("v100", isa) for isa in ("ptx", "sass")}
    assert mean_error_percent(rows["sass"]) < mean_error_percent(rows["ptx"]) + 2
    lu = rows["sass"][1]
    assert lu.name.startswith("blocked LU")
    assert abs(lu.error_percent) < 5


def test_sass_is_that_of_the_machine() -> None:
    text = HEAD + ".visible .entry nothing() { ret; }"
    for name, architecture in (("v100", "sm_70"), ("a100", "sm_80")):
        device = gpu.TimedDevice(load_machine(name, ["gpu.sm_count=1"]).machine, isa="auto")
        assert architecture in device.load(text).isa_reason
    pascal = gpu.TimedDevice(load_machine("p100", ["gpu.sm_count=1"]).machine, isa="auto", allow_newer=True)
    assert pascal.load(text).isa == "ptx"
    with pytest.raises(InputError, match="SASS of this GPU cannot be read"):
        pascal.load(text, isa="sass")


def test_architecture_must_be_a_name() -> None:
    with pytest.raises(InputError, match=r"gpu\.architecture: is a name such as"):
        build_gpu(load_machine("v100", ["gpu.architecture=Volta"]).machine)
