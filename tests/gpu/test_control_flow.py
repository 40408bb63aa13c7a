# SPDX-License-Identifier: Apache-2.0
"""Branches, loops, calls, exits and barriers in threads that part and meet, against the reference interpreter."""

import numpy as np
import pytest
from instruction_support import agree
from reference import HEADER
from reference.flow_programs import (
    ADD_AND_SCALE,
    LEAVE_IF_ODD,
    PICK,
    RECURSIVE,
    STRUCTURED,
    SWAP,
    UNSTRUCTURED,
)

import manyscale
from manyscale import gpu

pytestmark = pytest.mark.core

THREADS = 75


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def kernel(body: str, before: str = "", name: str = "kernel") -> str:
    """%thread is the thread's number, %x a word of its own; %a and %b are stored at END."""
    return f"""{HEADER}{before}
.visible .entry {name}(.param .u64 input, .param .u64 output)
{{
    .reg .pred %p, %q, %odd, %third;
    .reg .b32 %thread, %x, %a, %b, %i, %j, %t;
    .reg .b64 %input, %out, %wide;
    .shared .align 4 .b8 tile[{4 * THREADS}];
    mov.u32 %thread, %tid.x;
    ld.param.u64 %input, [input];
    mad.wide.u32 %input, %thread, 4, %input;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %thread, 8, %out;
    ld.global.u32 %x, [%input];
    and.b32 %t, %thread, 1;
    setp.eq.u32 %odd, %t, 1;
    rem.u32 %t, %thread, 3;
    setp.eq.u32 %third, %t, 0;
    mov.u32 %a, 1;
    mov.u32 %b, 0;
{body}
END:
    st.global.v2.u32 [%out], {{%a, %b}};
    ret;
}}"""


def compare(device, body: str, before: str = "", threads: int = THREADS) -> np.ndarray:
    """Runs it on both; gives the two words of each thread."""
    words = np.random.default_rng(9).integers(0, 2**32, threads, np.uint32)
    text = kernel(body, before)
    _input, output = agree(device, text, "kernel", 1, threads, words, np.zeros(2 * threads, np.uint32))
    return output.reshape(-1, 2)


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_flow(device, name):
    compare(device, STRUCTURED[name])


@pytest.mark.parametrize("name", UNSTRUCTURED)
def test_unstructured_flow(device, name):
    compare(device, UNSTRUCTURED[name])


def test_uniform_branches_go_one_way(device):
    """A warp's threads agree, the warps do not."""
    body = """
    shr.u32 %t, %thread, 5;
    setp.eq.u32 %p, %t, 1;
    @%p bra.uni SECOND;
    add.u32 %a, %a, 7;
    bra.uni JOIN;
SECOND:
    add.u32 %a, %a, 9;
JOIN:
    mov.u32 %b, %t;"""
    compare(device, body)


@pytest.mark.parametrize("uniform", ["", ".uni"])
def test_branch_by_index(device, uniform):
    """Into five targets, some of which fall through; with .uni the index is the same in a warp."""
    index = "shr.u32 %t, %thread, 5;" if uniform else "rem.u32 %t, %x, 5;"
    body = f"""
    {index}
TABLE: .branchtargets CASE0, CASE1, CASE2, CASE3, CASE1;
    brx.idx{uniform} %t, TABLE;
CASE0:
    add.u32 %a, %a, 1;
CASE1:
    add.u32 %a, %a, 10;
    bra JOIN;
CASE2:
    add.u32 %a, %a, 100;
    @%odd bra CASE1;
CASE3:
    add.u32 %a, %a, 1000;
JOIN:
    add.u32 %b, %a, %t;"""
    compare(device, body)


def test_guarded_branch_by_index(device):
    body = """
    rem.u32 %t, %x, 3;
TABLE: .branchtargets ONE, TWO, JOIN;
    @%odd brx.idx %t, TABLE;
    add.u32 %a, %a, 5;
ONE:
    add.u32 %a, %a, 10;
TWO:
    add.u32 %a, %a, 100;
JOIN:
    mov.u32 %b, %t;"""
    compare(device, body)


# Ends


def test_threads_end_within_branches(device):
    """Words of threads that end early stay zero; the others go on together."""
    body = """
    @%odd bra ODD;
    @%third exit;
    add.u32 %a, %a, 3;
    bra JOIN;
ODD:
    setp.lt.s32 %p, %x, 0;
    @!%p ret;
    add.u32 %a, %a, 4;
JOIN:
    add.u32 %b, %a, 1;"""
    output = compare(device, body)
    assert (output[0] == 0).all()
    assert output[2].tolist() == [4, 5]


def test_threads_end_within_a_loop(device):
    body = """
    mov.u32 %i, 0;
AGAIN:
    add.u32 %i, %i, 1;
    setp.eq.u32 %p, %i, %thread;
    @%p exit;
    add.u32 %a, %a, %i;
    setp.lt.u32 %p, %i, 40;
    @%p bra AGAIN;"""
    compare(device, body)


def test_all_threads_of_a_warp_end_and_the_others_go_on(device):
    body = """
    setp.lt.u32 %p, %thread, 40;
    @%p exit;
    bar.sync 0;
    mov.u32 %a, %thread;"""
    compare(device, body)


def test_a_trap_ends_the_kernel_with_an_error(device):
    text = kernel("    setp.eq.u32 %p, %thread, 40;\n    @%p trap;")
    arrays = device.zeros(THREADS, np.uint32), device.zeros(2 * THREADS, np.uint32)
    with pytest.raises(manyscale.KernelError):
        device.load(text)["kernel"][1, THREADS](*arrays)


# Barriers


def exchange(wait: str) -> str:
    """Each thread leaves its word and takes that of another after `wait`."""
    return f"""
    mov.u32 %t, tile;
    mad.lo.u32 %j, %thread, 4, %t;
    st.shared.u32 [%j], %x;
    {wait}
    mul.lo.u32 %i, %thread, 7;
    rem.u32 %i, %i, {THREADS};
    mad.lo.u32 %j, %i, 4, %t;
    ld.shared.u32 %a, [%j];"""


WAITS = [
    "bar.sync 0;",
    "bar.sync 7;",
    "bar.sync 1, 96;",
    "barrier.sync 0;",
    "barrier.sync.aligned 3;",
    "barrier.cta.sync.aligned 0;",
    "bar.cta.sync 2;",
    "mov.u32 %b, 5;\n    bar.sync %b;",
    "mov.u32 %b, 96;\n    bar.sync 4, %b;",
]


@pytest.mark.parametrize("wait", WAITS)
def test_barrier(device, wait):
    compare(device, exchange(wait))


def test_barrier_again_and_again(device):
    """A sum over neighbours in rounds, each with two barriers."""
    body = f"""
    mov.u32 %t, tile;
    mad.lo.u32 %j, %thread, 4, %t;
    mov.u32 %i, 1;
ROUND:
    st.shared.u32 [%j], %a;
    bar.sync 0;
    sub.u32 %b, %thread, %i;
    setp.ge.u32 %p, %thread, %i;
    mad.lo.u32 %b, %b, 4, %t;
    mov.u32 %x, 0;
    @%p ld.shared.u32 %x, [%b];
    bar.sync 0;
    add.u32 %a, %a, %x;
    shl.b32 %i, %i, 1;
    setp.lt.u32 %p, %i, {THREADS};
    @%p bra ROUND;
    mov.u32 %b, 0;"""
    output = compare(device, body)
    assert output[:, 0].tolist() == list(range(1, THREADS + 1))


@pytest.mark.parametrize("form", ["bar.red.{}", "barrier.cta.red.{}.aligned"])
def test_barrier_that_reduces(device, form):
    body = f"""
    setp.lt.s32 %p, %x, 0;
    {form.format("popc")}.u32 %a, 0, %p;
    {form.format("or")}.pred %q, 1, %third;
    selp.u32 %b, 1, 0, %q;
    {form.format("and")}.pred %q, 2, !%third;
    selp.u32 %t, 2, 0, %q;
    or.b32 %b, %b, %t;
    setp.lt.u32 %p, %thread, {THREADS};
    {form.format("and")}.pred %q, 0, %p;
    selp.u32 %t, 4, 0, %q;
    or.b32 %b, %b, %t;"""
    output = compare(device, body)
    assert (output[:, 1] == 5).all()


def test_barrier_after_an_early_return(device):
    """The usual guard of a kernel: some threads leave at once, the others wait for each other."""
    body = f"""
    setp.ge.u32 %p, %thread, 61;
    @%p bra END;
    {exchange("bar.sync 0;").replace(f"rem.u32 %i, %i, {THREADS}", "rem.u32 %i, %i, 61")}"""
    compare(device, body)


def test_shuffle_after_an_early_return(device):
    """Threads that have left are not waited for."""
    body = """
    setp.ge.u32 %p, %thread, 61;
    @%p bra END;
    vote.sync.ballot.b32 %a, %odd, 0xffffffff;
    redux.sync.add.u32 %b, 1, 0xffffffff;"""
    compare(device, body)


def test_producers_and_consumers(device):
    """The first warp arrives without waiting, the second waits for it; then the other way round."""
    body = """
    mov.u32 %t, tile;
    setp.ge.u32 %p, %thread, 32;
    @%p bra CONSUMER;
    mad.lo.u32 %j, %thread, 4, %t;
    st.shared.u32 [%j], %x;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    ld.shared.u32 %a, [%j];
    bra JOIN;
CONSUMER:
    bar.sync 1, 64;
    sub.u32 %i, 63, %thread;
    mad.lo.u32 %j, %i, 4, %t;
    ld.shared.u32 %a, [%j];
    add.u32 %b, %a, 1;
    st.shared.u32 [%j], %b;
    bar.arrive 2, 64;
JOIN:"""
    compare(device, body, threads=64)


def test_warps_meet_at_different_barrier_instructions(device):
    """A barrier is known by its number, not by its instruction."""
    body = """
    mov.u32 %t, tile;
    mad.lo.u32 %j, %thread, 4, %t;
    st.shared.u32 [%j], %x;
    setp.ge.u32 %p, %thread, 32;
    @%p bra SECOND;
    bar.sync 0;
    add.u32 %b, %b, 1;
    bra JOIN;
SECOND:
    bar.sync 0;
    add.u32 %b, %b, 2;
JOIN:
    xor.b32 %i, %thread, 32;
    mad.lo.u32 %j, %i, 4, %t;
    ld.shared.u32 %a, [%j];"""
    compare(device, body, threads=64)


def test_barrier_that_threads_of_a_warp_reach_on_two_sides_of_a_branch(device):
    """barrier without .aligned may stand in code that a warp's threads reach apart."""
    body = """
    mov.u32 %t, tile;
    mad.lo.u32 %j, %thread, 4, %t;
    st.shared.u32 [%j], %x;
    @%odd bra ODD;
    barrier.sync 0;
    add.u32 %b, %b, 1;
    bra JOIN;
ODD:
    barrier.sync 0;
    add.u32 %b, %b, 2;
JOIN:
    xor.b32 %i, %thread, 33;
    mad.lo.u32 %j, %i, 4, %t;
    ld.shared.u32 %a, [%j];"""
    compare(device, body, threads=64)


# Calls


def call(target: str, first: str, second: str, result: str, rest: str = "") -> str:
    return f"""
    {{
    .param .b32 p0;
    .param .b32 p1;
    .param .b32 back;
    st.param.b32 [p0], {first};
    st.param.b32 [p1], {second};
    call (back), {target}, (p0, p1){rest};
    ld.param.b32 {result}, [back];
    }}"""


def test_direct_calls(device):
    """With threads that part within the function, and return at different instructions."""
    body = call("add_and_scale", "%thread", "40", "%a") + call("return_early", "%thread", "%a", "%b")
    compare(device, body, ADD_AND_SCALE)


def test_calls_from_both_sides_of_a_branch(device):
    body = f"""
    @%odd bra ODD;{call("add_and_scale", "%x", "7", "%a")}
    bra JOIN;
ODD:{call("return_early", "%thread", "%x", "%a")}
    @%third bra JOIN;{call("add_and_scale", "%a", "%a", "%b")}
JOIN:"""
    compare(device, body, ADD_AND_SCALE)


def test_calls_within_a_loop(device):
    body = f"""
    and.b32 %i, %thread, 7;
AGAIN:{call("add_and_scale", "%a", "%i", "%a")}
    setp.eq.u32 %p, %i, 0;
    sub.u32 %i, %i, 1;
    @!%p bra AGAIN;"""
    compare(device, body, ADD_AND_SCALE)


def test_indirect_calls_by_prototype(device):
    """The pointer differs between the threads of a warp."""
    body = f"""
    mov.u64 %wide, add_and_scale;
    @%third mov.u64 %wide, return_early;
PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
    {call("%wide", "%thread", "%x", "%a", ", PROTOTYPE")}"""
    compare(device, body, ADD_AND_SCALE)


def test_indirect_calls_through_a_table(device):
    table = ".global .align 8 .u64 table[2] = {add_and_scale, return_early};"
    body = f"""
    and.b32 %t, %thread, 1;
    mov.u64 %wide, table;
    mad.wide.u32 %wide, %t, 8, %wide;
    ld.global.u64 %wide, [%wide];
PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
    {call("%wide", "%thread", "%x", "%a", ", PROTOTYPE")}"""
    compare(device, body, ADD_AND_SCALE + table)


def test_indirect_calls_with_a_list_of_targets(device):
    body = f"""
    mov.u64 %wide, add_and_scale;
    @%odd mov.u64 %wide, return_early;
TARGETS: .calltargets add_and_scale, return_early;
    {call("%wide", "%thread", "%x", "%a", ", TARGETS")}"""
    compare(device, body, ADD_AND_SCALE)


def test_recursion_keeps_registers_and_local_memory_apart(device):
    """Depths differ between threads; what a caller keeps in local memory is still there after its calls."""
    body = """
    rem.u32 %t, %thread, 11;
    {
    .param .b32 p0;
    .param .b32 back;
    st.param.b32 [p0], %t;
    call (back), fibonacci, (p0);
    ld.param.b32 %a, [back];
    }"""
    output = compare(device, body, RECURSIVE)
    assert output[:11, 0].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_structures_are_passed_by_value(device):
    """An array of bytes as parameter and as result; the callee's changes stay its own."""
    body = """
    {
    .param .align 8 .b8 given[16];
    .param .align 8 .b8 back[16];
    st.param.b32 [given], %x;
    st.param.b32 [given+4], 5;
    st.param.v2.b32 [given+8], {%thread, 6};
    call (back), swap, (given);
    ld.param.b32 %a, [back];
    ld.param.b32 %b, [back+8];
    }"""
    compare(device, body, SWAP)


def test_a_function_reads_its_parameter_through_its_address(device):
    """The address of a parameter of a function lies in local memory."""
    body = """
    and.b32 %t, %thread, 3;
    {
    .param .align 8 .b8 given[16];
    .param .b32 index;
    .param .b32 back;
    st.param.v2.b32 [given], {%x, 7};
    st.param.v2.b32 [given+8], {%thread, 9};
    st.param.b32 [index], %t;
    call (back), pick, (given, index);
    ld.param.b32 %a, [back];
    }"""
    compare(device, body, PICK)


def test_parameters_in_registers_and_functions_without_any(device):
    before = """
.global .u32 counter;
.func (.reg .u32 result) twice(.reg .u32 value)
{
    add.u32 result, value, value;
    ret;
}
.func count()
{
    red.global.add.u32 [counter], 1;
    ret;
}"""
    body = """
    call (%a), twice, (%thread);
    call count;
    @%odd call count;
    bar.sync 0;
    ld.global.u32 %b, [counter];"""
    output = compare(device, body, before)
    assert output[3].tolist() == [6, THREADS + THREADS // 2]


def test_a_thread_ends_within_a_function(device):
    body = """
    {
    .param .b32 p0;
    st.param.b32 [p0], %thread;
    call leave_if_odd, (p0);
    }
    mov.u32 %a, 7;
    bar.red.popc.u32 %b, 0, 1;"""
    output = compare(device, body, LEAVE_IF_ODD)
    assert output[:2].tolist() == [[7, THREADS - THREADS // 2], [0, 0]]


def test_a_barrier_within_a_function(device):
    before = """
.func wait()
{
    bar.sync 0;
    ret;
}"""
    compare(device, exchange("call wait;"), before)
