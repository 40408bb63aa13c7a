# SPDX-License-Identifier: Apache-2.0
"""Registers of lowered PTX: values share them without waiting for each other, and what finds none is spilled as an
assembler does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from test_lowering import kernel, lower

from manyscale import gpu

pytestmark = pytest.mark.core


def rows_of(lowered):
    return [row for operation in lowered.operations for row in operation[3]]


def test_paths_that_exclude_each_other_share_registers_without_waiting_for_each_other() -> None:
    """Eight paths one behind the other in the text, whose values live in every other one: no register that holds what
    a load brings is written by anything else before it is read."""
    names = "".join(f".reg .b32 %v0_{i}; .reg .b32 %v1_{i};" for i in range(24))
    names += "".join(
        f".reg .b32 %t{path}_{i}; .reg .b64 %a{path}_{i}; .reg .b64 %b{path}_{i};"
        for path in range(8)
        for i in range(24)
    )
    tests = "".join(f"setp.eq.u32 %q,%r19,{path}; @%q bra P{path};\n" for path in range(1, 8))
    paths = ""
    for path in range(8):
        registers = [f"%v{path % 2}_{i}" for i in range(24)]
        loads = "".join(
            f"xor.b32 %t{path}_{i},%r19,{i + 5}; mul.wide.u32 %a{path}_{i},%t{path}_{i},{4 * i + 8};"
            f"add.s64 %b{path}_{i},%d16,%a{path}_{i}; ld.global.u32 {r},[%b{path}_{i}];"
            for i, r in enumerate(registers)
        )
        sums = "".join(f"add.u32 %s,%s,{r};" for r in registers)
        paths += f"P{path}: {loads} {sums} bra DONE;\n"
    body = f"{names} .reg .b32 %s; .reg .pred %q; mov.u32 %s,0;\n{tests}{paths}DONE: st.global.u32 [%d15],%s;"
    lowered = lower(kernel(body, ".maxnreg 40"))
    assert lowered.spilled == 0
    held: set[int] = set()  # registers that loads have written and nobody has read
    for kind, reads, writes, _, _ in rows_of(lowered):
        held -= set(reads)
        assert not held & set(writes), (kind, reads, writes)
        if kind == "load_global":
            held |= set(writes)
    assert not held


def test_a_spilled_value_is_stored_once_and_loaded_once_for_uses_that_are_near_each_other() -> None:
    """Sixteen values that are made first and each used three times in a row at the end, around a part that needs all
    registers."""
    count, many = 16, 50
    early = "".join(f"ld.global.f32 %e{i},[%d16+{4 * i}];" for i in range(count))
    middle = "".join(f"ld.global.f32 %m{i},[%d16+{1024 + 4 * i}];" for i in range(many))
    middle += "bar.sync 0;" + "".join(f"st.global.f32 [%d15+{4 * i}],%m{i};" for i in range(many))
    late = "".join(
        f"fma.rn.f32 %u,%e{i},%e{i},%u; fma.rn.f32 %u,%u,%e{i},%u; st.global.f32 [%d15+{2048 + 4 * i}],%u;"
        for i in range(count)
    )
    head = f".reg .f32 %e<{count}>; .reg .f32 %m<{many}>; .reg .f32 %u; mov.f32 %u,0f3F800000;"
    body = f"{head} {early} bar.sync 0; {middle} bar.sync 0; {late}"
    lowered = lower(kernel(body, ".maxnreg 64"))
    accesses = Counter(row[0] for row in rows_of(lowered))
    assert lowered.registers <= 64
    assert 0 < lowered.spilled <= count
    assert accesses["store_local"] == accesses["load_local"] == lowered.spilled


BODIES = {
    # What ptxas of CUDA 12.9 does with `if (…) { … }` for sm_70: the body, whether it is predicated.
    "eight instructions": ("fma.rn.f32 %f1,%f1,%f1,%f1;" * 8, True),
    "nine instructions": ("fma.rn.f32 %f1,%f1,%f1,%f1;" * 9, False),
    "eight, of which minima become seven each": ("min.f64 %g1,%g1,%g2; add.f64 %g1,%g1,%g2;" * 4, True),
    "volatile accesses of shared memory": (
        "ld.volatile.shared.f64 %g3,[%r22]; ld.volatile.shared.f64 %g4,[%r22+512]; min.f64 %g5,%g3,%g4; "
        "st.volatile.shared.f64 [%r22],%g5;",
        True,
    ),
    "a load that lets it begin early": (
        "ld.global.f32 %f1,[%d16+40];" + "fma.rn.f32 %f1,%f1,%f1,%f1;" * 18,
        True,
    ),
    "too much behind a load": ("ld.global.f32 %f1,[%d16+40];" + "fma.rn.f32 %f1,%f1,%f1,%f1;" * 20, False),
    "a read-only load that is stored": ("ld.global.nc.f32 %f2,[%d16+40]; st.shared.f32 [%r22],%f2;", True),
    "a load that is stored": ("ld.global.f32 %f2,[%d16+40]; st.shared.f32 [%r22],%f2;", False),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_branches_are_predicated_as_ptxas_does(name: str) -> None:
    body, predicated = BODIES[name]
    text = f""".shared .align 8 .b8 sm[8192]; mov.u32 %r20,sm; shl.b32 %r21,%r19,3; add.u32 %r22,%r20,%r21;
 mov.f32 %f1,0f3F800000; mov.f64 %g1,0d3FF0000000000000; mov.f64 %g2,%g1;
 setp.gt.u32 %p1,%r19,63; @%p1 bra L; {body}
 L: bar.sync 0; st.global.f32 [%d15],%f1; st.global.f64 [%d15+8],%g1;"""
    branches = Counter(row[0] for row in rows_of(lower(kernel(text))))["branch"]
    assert (branches == 0) == predicated


FOLDED = [
    ("mov.f32 %f1,0f40400000; cvt.rzi.s32.f32 %r5,%f1;", 3),
    ("mov.f32 %f1,0fC0400000; cvt.rzi.s32.f32 %r5,%f1;", -3),
    ("mov.u32 %r4,5; mul.lo.u32 %r6,%r4,3; sub.u32 %r5,%r6,20;", -5),
    ("mov.u32 %r4,-8; shr.s32 %r5,%r4,1;", -4),
    ("mov.u32 %r4,-8; shr.u32 %r5,%r4,28;", 15),
    ("mov.u32 %r4,6; shl.b32 %r6,%r4,2; or.b32 %r7,%r6,3; and.b32 %r8,%r7,30; xor.b32 %r5,%r8,1;", 27),
    ("mov.u32 %r4,-8; max.s32 %r6,%r4,3; min.u32 %r5,%r6,2;", 2),
]


@pytest.mark.parametrize(("made", "value"), FOLDED, ids=[text for text, _ in FOLDED])
def test_operations_on_constants_are_computed_by_the_assembler(made: str, value: int) -> None:
    """What is made of constants is the constant: the divisor of a remainder, whose sequence is then shorter."""
    use = "rem.s32 %r9,%r1,{0}; st.global.u32 [%d15],%r9;"
    known = lower(kernel(use.format(value)))
    computed = lower(kernel(made + use.format("%r5")))
    assert [row[:3] for row in rows_of(computed)] == [row[:3] for row in rows_of(known)]
    unknown = lower(kernel(use.format("%r2")))
    assert len(rows_of(unknown)) > len(rows_of(computed))


def test_operations_on_constants_give_the_same_results_with_time_and_without() -> None:
    text = kernel(
        "".join(
            f"{{ {made} add.s32 %r9,%r1,%r5; st.global.u32 [%d15+{4 * i}],%r9; }}\n"
            for i, (made, _) in enumerate(FOLDED)
        )
    )
    for device in (gpu.Device(), gpu.TimedDevice("v100", changes=["gpu.sm_count=1"], isa="ptx")):
        x, y = device.array(np.full(64, 100, np.int32)), device.zeros(64, np.int32)
        device.load(text)["k"][1, 1](x, y, 0)
        assert y.numpy()[: len(FOLDED)].tolist() == [100 + value for _, value in FOLDED]


@pytest.mark.parametrize("side", ["if", "else"])
def test_predicated_code_is_issued_by_warps_that_skip_it(side: str) -> None:
    """Four warps, of which none, two or all take a side of a branch that became predicates: the same instructions."""
    other = "bra M; L: fma.rn.f32 %f1,%f1,%f1,%f1; mul.f32 %f1,%f1,%f1; M:" if side == "else" else "L:"
    issued, results = [], []
    for bound in (1000, 63, -1):
        text = kernel(
            f"""mov.f32 %f1,0f40000000; setp.gt.s32 %p1,%r19,{bound}; @%p1 bra L;
 add.f32 %f1,%f1,%f1; mul.f32 %f1,%f1,%f1; st.global.f32 [%d15+8],%f1; {other} st.global.f32 [%d15],%f1;"""
        )
        device = gpu.TimedDevice("v100", changes=["gpu.sm_count=1"], isa="ptx")
        x, y = device.zeros(16 * 128), device.zeros(16 * 128)
        launch = device.load(text)["k"][1, 128](x, y, 0)
        issued.append(launch.issued_instructions)
        skipped = np.arange(128) > bound
        taken = y.numpy().reshape(128, 16)
        results.append(np.array_equal(taken[:, 2], np.where(skipped, 0, 16)))
        results.append(np.array_equal(taken[:, 0], np.where(skipped, 36 if side == "else" else 2, 16)))
    assert all(results)
    assert len(set(issued)) == 1
