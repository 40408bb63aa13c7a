# SPDX-License-Identifier: Apache-2.0
"""In which order atomics take effect, that host threads do not change it, and the forms of 128 bits and of vectors."""

import numpy as np
import pytest
from instruction_support import HEADER

from manyscale import gpu

pytestmark = pytest.mark.core


def kernel(body: str, declarations: str = "") -> str:
    """%i is the thread in the grid, %word a pointer to memory that all share, %out to four bytes of its own."""
    return f"""{HEADER}
.visible .entry kernel(.param .u64 word, .param .u64 output)
{{
    .reg .b32 %i, %x, %y, %d, %unread;
    .reg .b64 %word, %out, %slot, %low, %high;
    .reg .pred %p;
    {declarations}
    ld.param.u64 %word, [word];
    ld.param.u64 %out, [output];
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %x, %y, %i;
    mad.wide.u32 %out, %i, 4, %out;
    {body}
    ret;
}}"""


def run(body: str, grid: int, block: int, words: np.ndarray, threads: int = 1, declarations: str = ""):
    device = gpu.Device(threads=threads)
    word, output = device.array(words), device.zeros(grid * block, np.uint32)
    device.load(kernel(body, declarations))["kernel"][grid, block](word, output)
    return word.numpy(), output.numpy()


def test_lanes_take_effect_in_their_order():
    """Each lane gets the sum of those before it."""
    word, drawn = run(
        "atom.global.add.u32 %d, [%word], %i;\n    st.global.u32 [%out], %d;", 3, 64, np.zeros(1, np.uint32)
    )
    before = np.cumsum(np.arange(192)) - np.arange(192)
    assert drawn.tolist() == before.tolist()
    assert word[0] == 191 * 192 // 2


def test_lanes_take_effect_in_their_order_where_some_are_kept_out():
    body = """
    and.b32 %x, %i, 5;
    setp.eq.u32 %p, %x, 4;
    mov.u32 %d, 0;
    @%p atom.global.add.u32 %d, [%word], %i;
    st.global.u32 [%out], %d;"""
    _word, drawn = run(body, 1, 96, np.array([1000], np.uint32))
    total = 1000
    for i, value in enumerate(drawn):
        assert value == (total if i & 5 == 4 else 0)
        total += i if i & 5 == 4 else 0


def test_the_result_may_go_where_the_operand_was():
    body = "atom.global.add.u32 %i, [%word], %i;\n    st.global.u32 [%out], %i;"
    _word, drawn = run(body, 1, 32, np.zeros(1, np.uint32))
    assert drawn.tolist() == [i * (i - 1) // 2 for i in range(32)]


UNORDERED = {
    "red.global.add.u32 [%slot], %i;": False,
    "red.add.u64 [%slot], %low;": False,
    "red.global.max.s32 [%slot], %i;": False,
    "red.global.xor.b32 [%slot], %i;": False,
    "atom.global.min.u32 _, [%slot], %i;": False,
    "atom.global.or.b32 %unread, [%slot], %i;": False,
    "atom.global.or.b32 %d, [%slot], %i;": True,
    "atom.add.u32 %d, [%slot], %i;": True,
    "atom.global.exch.b32 _, [%slot], %i;": True,
    "atom.global.cas.b32 _, [%slot], 0, %i;": True,
    "red.global.inc.u32 [%slot], %i;": True,
    "red.global.add.f32 [%slot], 0f3F800000;": True,
    "red.global.add.noftz.f16x2 [%slot], %i;": True,
    "atom.shared.add.u32 %d, [tile], %i;": False,
    "atom.shared.exch.b32 %d, [tile], %i;": False,
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("instruction", UNORDERED)
def test_host_threads_do_not_change_results(instruction, threads):
    """Whatever would tell the order of CTAs makes them run in turn."""
    body = f"""
    mul.lo.u32 %x, %i, 0x9E3779B1;
    shr.u32 %x, %x, 28;
    mad.wide.u32 %slot, %x, 8, %word;
    mov.u64 %low, 0x100000007;
    mov.u32 %d, 0;
    {instruction}
    st.global.u32 [%out], %d;"""
    declarations = ".shared .align 8 .b8 tile[16];"
    native = gpu.Device().load(kernel(body, declarations))["kernel"]._native
    assert native.order_matters == UNORDERED[instruction]
    words = np.full(32, 77, np.uint32)
    once = run(body, 64, 128, words, 1, declarations)
    again = run(body, 64, 128, words, threads, declarations)
    assert np.array_equal(once[0], again[0])
    assert np.array_equal(once[1], again[1])


def test_many_host_threads_lose_no_update():
    body = """
    and.b32 %x, %i, 7;
    mad.wide.u32 %slot, %x, 4, %word;
    red.global.add.u32 [%slot], 1;
    red.global.add.u32 [%word+32], %i;
    red.global.max.u32 [%word+36], %i;"""
    word, _drawn = run(body, 512, 256, np.zeros(10, np.uint32), 4)
    count = 512 * 256
    assert word.tolist() == [count // 8] * 8 + [count * (count - 1) // 2 % 2**32, count - 1]


WIDE = ".reg .b128 %q<4>;"
MAKE_WIDE = """
    cvta.to.global.u64 %slot, %word;
    add.u32 %x, %i, 1;
    mov.b64 %low, {%i, %x};
    mov.b64 %high, {%x, %i};
    mov.b128 %q0, {%low, %high};"""


def test_exchange_of_128_bits():
    """Lane i gets what lane i - 1 put there."""
    body = f"""{MAKE_WIDE}
    atom.global.exch.b128 %q1, [%word], %q0;
    mov.b128 {{%low, %high}}, %q1;
    mov.b64 {{%x, %d}}, %high;
    st.global.u32 [%out], %x;"""
    word, drawn = run(body, 1, 32, np.array([9, 8, 7, 6], np.uint32), declarations=WIDE)
    assert word.tolist() == [31, 32, 32, 31]
    assert drawn.tolist() == [7, *range(1, 32)]


def test_compare_and_swap_of_128_bits_looks_at_all_of_them():
    body = f"""{MAKE_WIDE}
    mov.u64 %low, 5;
    mov.u64 %high, 1;
    mov.b128 %q1, {{%low, %high}};
    atom.global.cas.b128 %q2, [%word], %q1, %q0;
    atom.global.cas.b128 %q3, [%word+16], %q1, %q0;
    mov.b128 {{%low, %high}}, %q2;
    mov.b64 {{%x, %d}}, %low;
    st.global.u32 [%out], %x;"""
    words = np.array([5, 0, 1, 0, 5, 0, 1, 1], np.uint32)
    word, drawn = run(body, 1, 2, words, declarations=WIDE)
    assert word.tolist() == [0, 1, 1, 0, 5, 0, 1, 1]
    assert drawn.tolist() == [5, 0]


def test_a_vector_returns_each_element_as_it_was():
    """Also where the results go to the registers of the operands, in another order."""
    body = """
    mov.f32 %f0, 0f3F800000;
    mov.f32 %f1, 0f40000000;
    atom.global.v2.f32.add {%f1, %f0}, [%word], {%f0, %f1};
    setp.eq.u32 %p, %i, 1;
    @%p st.global.f32 [%word+8], %f1;
    @%p st.global.f32 [%word+12], %f0;"""
    words = np.array([10, 20, 0, 0], np.float32)
    word, _drawn = run(body, 1, 2, words.view(np.uint32), declarations=".reg .f32 %f<2>;")
    assert word.view(np.float32).tolist() == [12, 24, 11, 22]


@pytest.mark.parametrize("name", ["min", "max"])
def test_minimum_and_maximum_of_vectors_of_halves(name):
    values = np.array([[-3, 0.5], [7, -0.25], [1, 65504], [2, -8]], np.float16)
    body = f"""
    mov.b32 %y, {int(np.array([0.25, 0.75], np.float16).view(np.uint32)[0])};
    mov.b32 %x, {int(np.array([-5, 4], np.float16).view(np.uint32)[0])};
    red.global.v4.f16x2.{name}.noftz [%word], {{%x, %y, %x, %y}};"""
    word, _drawn = run(body, 1, 1, values.view(np.uint32).ravel())
    operand = np.array([[-5, 4], [0.25, 0.75]] * 2, np.float16)
    expected = (np.minimum if name == "min" else np.maximum)(values, operand)
    assert word.view(np.float16).tolist() == expected.ravel().tolist()


FLUSHED = """
    mov.u64 %slot, tile;
    cvta.shared.u64 %slot, %slot;
    setp.eq.u32 %p, %i, 0;
    @%p st.u32 [%slot], 3;
    bar.sync 0;
    red.add.f32 [%slot], 0f00000003;
    red.add.f32 [%word], 0f00000003;
    bar.sync 0;
    ld.u32 %d, [%slot];
    st.global.u32 [%out], %d;"""


def test_subnormal_numbers_are_flushed_by_the_window_of_a_generic_address():
    """Sums in global memory flush them, sums in shared memory do not."""
    word, drawn = run(FLUSHED, 1, 4, np.array([3], np.uint32), declarations=".shared .align 4 .b8 tile[4];")
    assert drawn.tolist() == [15] * 4
    assert word.tolist() == [0]


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("red.async.relaxed.cluster.add.u32 [%word], %i;", "clusters"),
        ("atom.global.min.f32 %x, [%word], %y;", "no such atomic operation on .f32"),
        ("atom.local.add.u32 %x, [%word], %y;", "state space"),
        ("red.global.exch.b32 [%word], %y;", "no such operation"),
    ],
)
def test_instructions_that_do_not_exist_are_refused(instruction, why):
    [check] = gpu.check(kernel(instruction))
    assert why in check.problems[0].why
