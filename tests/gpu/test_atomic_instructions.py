# SPDX-License-Identifier: Apache-2.0
"""Atomics of all operations, types and spaces: on own locations against exact values, contended against any order."""

from random import Random

import numpy as np
import pytest
from instruction_support import agree, dtype, edge_values, random_value, same
from reference import HEADER
from reference.memory_steps import atomic_function
from reference.ptx_types import TYPES

from manyscale import gpu

pytestmark = pytest.mark.core

OPERATIONS = {
    **{f"{name}.{type_}": name for name in ("add", "min", "max") for type_ in ("u32", "s32", "u64", "s64")},
    **{f"{name}.{type_}": name for name in ("and", "or", "xor", "exch", "cas") for type_ in ("b32", "b64")},
    "inc.u32": "inc",
    "dec.u32": "dec",
    "cas.b16": "cas",
    **{
        f"add.{type_}": "add"
        for type_ in ("f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16", "noftz.bf16x2")
    },
}
del OPERATIONS["add.s64"]  # atom.add of 64 bits is unsigned in PTX
REDUCTIONS = [name for name, base in OPERATIONS.items() if base not in ("exch", "cas")]
SPACES = ("global", "shared", "generic global", "generic shared")


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def register(type_) -> str:
    return type_.name if type_.name in ("f32", "f64") else f"b{type_.width}"


def kernel(opcode: str, type_, space: str, third: bool, returns: bool, threads: int) -> str:
    """Each thread on a location of its own: loads it, executes, and stores the old and the new value."""
    size = type_.width // 8
    kind, store = register(type_), f"b{type_.width}"
    shared = space.endswith("shared")
    generic = space.startswith("generic")
    operands = "[%own], %b, %c" if third else "[%own], %b"
    execution = f"{opcode} %d, {operands};" if returns else f"{opcode} {operands};"
    plain = "shared" if shared else "global"
    address = (
        f"mov.u64 %own, tile;\n    mad.wide.u32 %own, %thread, {size}, %own;"
        if shared
        else "mov.u64 %own, %pa;"
    )
    return f"""{HEADER}
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 old)
{{
    .reg .b32 %thread;
    .reg .{kind} %a, %b, %c, %d;
    .reg .b64 %pa, %pb, %pc, %pd, %own;
    .shared .align 16 .b8 tile[{threads * size}];
    mov.u32 %thread, %tid.x;
    ld.param.u64 %pa, [a];
    ld.param.u64 %pb, [b];
    ld.param.u64 %pc, [c];
    ld.param.u64 %pd, [old];
    mad.wide.u32 %pa, %thread, {size}, %pa;
    mad.wide.u32 %pb, %thread, {size}, %pb;
    mad.wide.u32 %pc, %thread, {size}, %pc;
    mad.wide.u32 %pd, %thread, {size}, %pd;
    ld.global.{kind} %a, [%pa];
    ld.global.{kind} %b, [%pb];
    ld.global.{kind} %c, [%pc];
    {address}
    st.{plain}.{store} [%own], %a;
    {f"cvta.{plain}.u64 %own, %own;" if generic else ""}
    {execution}
    {f"cvta.to.{plain}.u64 %own, %own;" if generic else ""}
    {f"st.global.{store} [%pd], %d;" if returns else ""}
    ld.{plain}.{kind} %a, [%own];
    st.global.{store} [%pa], %a;
    ret;
}}"""


def operand_rows(type_, third: bool, seed: str) -> list[tuple[int, int, int]]:
    random = Random(seed)
    rows = [(a, b, random_value(type_, random)) for a in edge_values(type_) for b in edge_values(type_)]
    rows += [tuple(random_value(type_, random) for _ in range(3)) for _ in range(100)]
    if third:  # half of the comparisons succeed
        rows = [(a, a if random.random() < 0.5 else b, c) for a, b, c in rows]
    random.shuffle(rows)
    return rows[:255]


def check(device, opcode: str, space: str) -> None:
    """Runs an opcode on own locations of a space; what it does is what its parts say, in whatever order they stand."""
    base, *parts = opcode.split(".")
    type_ = TYPES[parts[-1]]
    third, returns = "cas" in parts, base == "atom"
    rows = operand_rows(type_, third, opcode)
    text = kernel(opcode, type_, space, third, returns, len(rows))
    a, b, c = (device.array(np.array(column, dtype(type_))) for column in zip(*rows, strict=True))
    old = device.zeros(len(rows), dtype(type_))
    device.load(text)["kernel"][1, len(rows)](a, b, c, old)
    function = atomic_function(parts, space.rpartition(" ")[2])
    for row, new, was in zip(rows, a.numpy(), old.numpy(), strict=True):
        first, second, last = row
        expected = function(first, second, last) if third else function(first, second)
        assert same(expected, int(new), type_, "any"), f"{opcode} {row}: {expected:#x} is {int(new):#x}"
        assert not returns or int(was) == first, f"{opcode} {row}: returns {int(was):#x}"


def named(base: str, name: str, space: str) -> str:
    return f"{base}.{name}" if space.startswith("generic") else f"{base}.{space}.{name}"


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_atom(device, name, space):
    """The new value in memory is that of the operation, and the old one is returned as it was."""
    check(device, named("atom", name, space), space)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_red(device, name, space):
    check(device, named("red", name, space), space)


WRITTEN = [
    *(
        "atom.relaxed.gpu.global.add.u32",
        "atom.acquire.cta.global.cas.b64",
        "atom.release.sys.global.add.f32",
    ),
    *("atom.add.acquire.cta.u32", "atom.add.relaxed.cta.u32", "atom.cas.relaxed.gpu.b32"),
    *("atom.global.acq_rel.gpu.cas.b32", "atom.global.gpu.acq_rel.add.f32"),
    *(f"atom.global.sys.{name}.b32" for name in ("and", "or", "xor", "cas", "exch")),
    *(f"atom.global.sys.{name}.u32" for name in ("add", "inc", "dec")),
    *(f"atom.global.sys.{name}.s32" for name in ("min", "max")),
    *("red.add.global.relaxed.gpu.f64", "red.add.relaxed.gpu.f64", "red.release.gpu.global.max.s64"),
]


@pytest.mark.parametrize("opcode", WRITTEN)
def test_memory_order_and_scope_do_not_change_values(device, opcode):
    """In the orders in which compilers and hand-written code put the parts of an opcode."""
    check(device, opcode, "global" if "global" in opcode else "generic global")


ORDERS = [
    "atom.global.gpu.acq_rel.add.u32",
    "atom.add.release.gpu.u32",
    "atom.global.sys.add.u32",
    "atom.add.global.relaxed.gpu.u32",
    "atom.add.u32",
    "atom.relaxed.cluster.global.add.u32",
]


def contended(operations: str) -> str:
    """%word is a location in global memory, %tile one in shared memory; what is in %d is stored."""
    return f"""{HEADER}
.visible .entry kernel(.param .u64 word, .param .u64 output)
{{
    .reg .b32 %thread, %x, %d, %e;
    .reg .b64 %word, %out, %tile, %wide;
    .reg .f32 %f<5>;
    .reg .f64 %g;
    .reg .b16 %h<5>;
    .reg .pred %p;
    .shared .align 16 .b8 tile[16];
    ld.param.u64 %word, [word];
    ld.param.u64 %out, [output];
    mov.u64 %tile, tile;
    mov.u32 %thread, %tid.x;
    mov.u32 %x, %ctaid.x;
    mov.u32 %d, %ntid.x;
    mad.lo.u32 %thread, %x, %d, %thread;
    mad.wide.u32 %out, %thread, 4, %out;
    mov.u32 %d, 0;
    {operations}
    st.global.u32 [%out], %d;
    ret;
}}"""


@pytest.mark.parametrize("opcode", ORDERS)
def test_qualifiers_in_the_orders_that_compilers_write(device, opcode):
    """Also: all threads of several CTAs draw different numbers from one counter."""
    word, output = device.zeros(1, np.uint32), device.zeros(320, np.uint32)
    device.load(contended(f"{opcode} %d, [%word], 1;"))["kernel"][4, 80](word, output)
    assert sorted(output.numpy().tolist()) == list(range(320))
    assert word.numpy()[0] == 320


def run_contended(
    device, operations: str, initial: int = 0, threads: int = 70
) -> tuple[np.ndarray, np.ndarray]:
    word, output = device.array(np.full(4, initial, np.uint32)), device.zeros(threads, np.uint32)
    device.load(contended(operations))["kernel"][1, threads](word, output)
    return word.numpy(), output.numpy()


def test_contended_counters_wrap(device):
    word, drawn = run_contended(device, "atom.global.inc.u32 %d, [%word], 9;")
    assert word[0] == 0
    assert np.bincount(drawn).tolist() == [7] * 10
    word, drawn = run_contended(device, "atom.global.dec.u32 %d, [%word], 9;")
    assert np.bincount(drawn).tolist() == [7] * 10


def test_contended_minimum_maximum_and_bits(device):
    operations = """
    red.global.max.u32 [%word], %thread;
    red.global.min.s32 [%word+4], %thread;
    shl.b32 %x, 1, %thread;
    red.global.or.b32 [%word+8], %x;
    red.global.xor.b32 [%word+12], %thread;"""
    word, _drawn = run_contended(device, operations, initial=5, threads=20)
    assert word.tolist() == [19, 0, 2**20 - 1, 5 ^ np.bitwise_xor.reduce(np.arange(20))]


def test_contended_exchange_hands_each_value_on_once(device):
    """What threads get is what they put, but for one value, and the first one there."""
    word, drawn = run_contended(device, "atom.global.exch.b32 %d, [%word], %thread;", initial=999)
    assert sorted([*drawn.tolist(), int(word[0])]) == [*range(70), 999]


def test_contended_compare_and_swap_lets_one_thread_win(device):
    _word, drawn = run_contended(device, "atom.global.cas.b32 %d, [%word], 0, 7;")
    assert sorted(drawn.tolist()) == [0] + [7] * 69


def test_contended_sums_of_floats_are_exact_when_no_rounding_is_needed(device):
    operations = """
    cvt.rn.f32.u32 %f0, %thread;
    red.global.add.f32 [%word], %f0;
    cvt.rn.f64.u32 %g, %thread;
    red.global.add.f64 [%word+8], %g;"""
    word, _drawn = run_contended(device, operations)
    assert word[:1].view(np.float32)[0] == 70 * 69 / 2
    assert word[2:].view(np.float64)[0] == 70 * 69 / 2


def test_contended_shared_memory(device):
    operations = """
    setp.eq.u32 %p, %thread, 0;
    @%p st.shared.u32 [%tile], 100;
    bar.sync 0;
    atom.shared.add.u32 %d, [%tile], 1;
    bar.sync 0;
    ld.shared.u32 %x, [%tile];
    @%p st.global.u32 [%word], %x;"""
    word, drawn = run_contended(device, operations)
    assert sorted(drawn.tolist()) == list(range(100, 170))
    assert word[0] == 170


def test_a_guard_keeps_threads_out(device):
    operations = """
    and.b32 %x, %thread, 3;
    setp.eq.u32 %p, %x, 1;
    mov.u32 %d, 1234;
    @%p atom.global.add.u32 %d, [%word], 1;
    @!%p red.global.add.u32 [%word+4], 1;"""
    word, drawn = run_contended(device, operations, threads=64)
    assert word[:2].tolist() == [16, 48]
    assert sorted(drawn.tolist()) == [*range(16), *[1234] * 48]


def test_the_result_may_be_thrown_away(device):
    word, _drawn = run_contended(device, "atom.global.add.u32 _, [%word], 2;")
    assert word[0] == 140


def test_a_lock_by_compare_and_swap(device):
    """Every thread of a warp gets the lock once; what it guards is not atomic."""
    operations = """
AGAIN:
    atom.global.cas.b32 %x, [%word], 0, 1;
    setp.ne.u32 %p, %x, 0;
    @%p bra AGAIN_LATER;
    ld.volatile.global.u32 %d, [%word+4];
    add.u32 %e, %d, 1;
    st.volatile.global.u32 [%word+4], %e;
    membar.gl;
    atom.global.exch.b32 %x, [%word], 0;
    bra DONE;
AGAIN_LATER:
    bra AGAIN;
DONE:"""
    word, drawn = run_contended(device, operations, threads=96)
    assert word[:2].tolist() == [0, 96]
    assert sorted(drawn.tolist()) == list(range(96))


ONE_AND_SIXTEEN = {"f32": (0x3F800000, 0x41800000), "f16": (0x3C00, 0x4C00), "bf16": (0x3F80, 0x4180)}


@pytest.mark.parametrize(("name", "count"), [("f32", 2), ("f32", 4), ("f16", 2), ("bf16", 4)])
def test_vectors(device, name, count):
    """Each element on its own: sixteen threads add one to each."""
    one, sixteen = ONE_AND_SIXTEEN[name]
    letter, modifier, move = ("f", "", "mov.b32") if name == "f32" else ("h", ".noftz", "mov.b16")
    values = [f"%{letter}{i}" for i in range(count)]
    sets = "\n    ".join(f"{move} {value}, {one};" for value in values)
    operations = f"{sets}\n    red.global.add{modifier}.v{count}.{name} [%word], {{{', '.join(values)}}};"
    word, _drawn = run_contended(device, operations, threads=16)
    elements = word.view(dtype(TYPES[name]))[:count]
    assert elements.tolist() == [sixteen] * count


def test_subnormal_sums_in_shared_memory_are_kept(device):
    """atom.add.f32 flushes in global memory only."""
    operations = """
    mov.f32 %f0, 0f00000003;
    setp.eq.u32 %p, %thread, 0;
    @%p st.shared.f32 [%tile], %f0;
    bar.sync 0;
    red.shared.add.f32 [%tile], %f0;
    bar.sync 0;
    ld.shared.u32 %d, [%tile];"""
    _word, drawn = run_contended(device, operations, threads=4)
    assert drawn.tolist() == [15] * 4


def test_whole_kernel_agrees_with_the_reference(device):
    """Operations whose outcome no order changes, on a table that threads reach by a hash."""
    operations = """
    mul.lo.u32 %x, %thread, 0x9E3779B1;
    shr.u32 %x, %x, 28;
    mad.wide.u32 %wide, %x, 4, %word;
    red.global.add.u32 [%wide], %thread;
    red.add.u32 [%wide+64], 1;
    red.global.xor.b32 [%wide+128], %thread;"""
    agree(device, contended(operations), "kernel", 3, 50, np.zeros(64, np.uint32), np.zeros(150, np.uint32))
