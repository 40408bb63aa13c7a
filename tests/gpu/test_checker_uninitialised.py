# SPDX-License-Identifier: Apache-2.0
"""Uninitialised memory that `Device(check=True)` finds: shared, local and global memory read before it is written."""

import numpy as np
import pytest
from checker_support import THREADS, kernel, line_of, lines_in, run

from manyscale import gpu

pytestmark = pytest.mark.core


def test_shared_memory_that_is_uninitialised():
    body = """
    setp.ne.u32 %p, %i, 17;
    @%p st.shared.u32 [%own], %i;
    ld.shared.u32 %c, [%own];      // HERE
    st.global.u32 [%out], %c;"""
    [finding] = run(body)[0]
    assert finding.startswith("uninitialised shared memory is read")
    assert "thread (17, 0, 0)" in finding


def test_shared_memory_does_not_outlive_a_cta():
    """What an earlier CTA left is not there for a later one."""
    body = """
    mov.u32 %a, %ctaid.x;
    setp.eq.u32 %p, %a, 0;
    @%p st.shared.u32 [%own], %i;
    ld.shared.u32 %c, [%own];
    st.global.u32 [%out], %c;"""
    [finding] = run(body)[0]
    assert "CTA (1, 0, 0)" in finding


def test_an_atomic_update_of_shared_memory_that_is_uninitialised():
    [finding] = run("    red.shared.add.u32 [flag], 1;", threads=32)[0]
    assert finding.startswith("uninitialised shared memory is read")


def test_an_exchange_reads_nothing_that_matters():
    assert run("    atom.shared.exch.b32 %a, [flag], 1;", threads=32)[0] == ()


def test_padding_may_be_read_with_its_neighbours():
    """A structure with a gap, copied as a whole."""
    body = """
    @%first st.shared.u8 [tile], 1;
    @%first st.shared.u32 [tile+4], 2;
    bar.sync 0;
    ld.shared.v2.u32 {%a, %b}, [tile];
    st.global.u32 [%out], %b;"""
    assert run(body)[0] == ()


def test_local_memory_that_the_thread_did_not_write():
    body = """
    setp.ne.u32 %p, %i, 40;
    @%p st.local.u32 [stack+8], %i;
    ld.local.u32 %c, [stack+8];      // HERE
    st.global.u32 [%out], %c;"""
    findings, _output, text = run(body)
    [finding] = findings
    assert finding.startswith("uninitialised local memory is read")
    assert "thread (40, 0, 0)" in finding
    assert lines_in(finding) == {line_of(text, "HERE")}


def test_local_memory_by_a_generic_address():
    body = """
    mov.u64 %wide, stack;
    cvta.local.u64 %wide, %wide;
    st.u32 [%wide+4], %i;
    ld.local.u32 %c, [stack+4];
    st.global.u32 [%out], %c;"""
    assert run(body)[0] == ()


TWICE = """
.func (.param .b32 result) twice (.param .align 8 .b8 pair[8])
{
    .reg .b32 %x, %y;
    .reg .b64 %address;
    mov.b64 %address, pair;
    cvta.local.u64 %address, %address;
    ld.u32 %x, [%address];
    ld.param.u32 %y, [pair+4];
    add.u32 %x, %x, %y;
    st.param.b32 [result], %x;
    ret;
}
"""


def test_arguments_of_functions_are_written_by_the_call():
    body = """
    {
    .param .align 8 .b8 argument[8];
    .param .b32 returned;
    st.param.b32 [argument], %i;
    st.param.b32 [argument+4], %i;
    call (returned), twice, (argument);
    ld.param.b32 %c, [returned];
    }
    st.global.u32 [%out], %c;"""
    findings, output, _text = run(body, functions=TWICE)
    assert findings == ()
    assert output.tolist() == [2 * i for i in range(THREADS)]


COPY_WORD = """
    ld.global.u32 %a, [%in];      // HERE
    st.global.u32 [%out], %a;"""


def test_global_memory_that_the_host_wrote():
    assert run(COPY_WORD)[0] == ()


def test_global_memory_that_is_uninitialised():
    findings, _output, text = run(COPY_WORD, fill=False)
    [finding] = findings
    assert finding.startswith("uninitialised global memory is read")
    assert "an array (128,) of uint32" in finding
    assert lines_in(finding) == {line_of(text, "HERE")}


def test_global_memory_that_a_kernel_wrote():
    device = gpu.Device(check=True)
    copy = device.load(kernel(COPY_WORD))["kernel"]
    source, middle = device.array(np.arange(64, dtype=np.uint32)), device.empty(96, np.uint32)
    assert copy[1, 64](source, middle).warnings == ()
    assert copy[1, 64](middle, device.empty(64, np.uint32)).warnings == ()
    [finding] = copy[1, 96](middle, device.empty(96, np.uint32)).warnings
    assert "thread (64, 0, 0)" in finding


def test_freed_memory_is_forgotten():
    """An array at the address of a freed one is uninitialised."""
    device = gpu.Device(check=True)
    copy = device.load(kernel(COPY_WORD))["kernel"]
    output = device.empty(64, np.uint32)
    source = device.array(np.arange(64, dtype=np.uint32))
    address = source.address
    assert copy[1, 64](source, output).warnings == ()
    del source
    source = device.empty(64, np.uint32)
    assert source.address == address
    assert len(copy[1, 64](source, output).warnings) == 1


def test_variables_of_a_module_are_zero_from_the_start():
    functions = ".global .align 4 .u32 plain[4];\n.const .align 4 .u32 fixed[2] = {5, 6};\n"
    body = """
    ld.global.u32 %a, [plain+4];
    ld.const.u32 %b, [fixed+4];
    add.u32 %a, %a, %b;
    st.global.u32 [%out], %a;"""
    findings, output, _text = run(body, functions=functions)
    assert findings == ()
    assert output[0] == 6
