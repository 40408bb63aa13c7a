# SPDX-License-Identifier: Apache-2.0
"""Calls, recursion, function pointers and their parameters, against the reference interpreter."""

import pytest
from control_flow_support import THREADS, compare, exchange
from reference.flow_programs import ADD_AND_SCALE, LEAVE_IF_ODD, PICK, RECURSIVE, SWAP

from manyscale import gpu

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


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
