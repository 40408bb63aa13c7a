# SPDX-License-Identifier: Apache-2.0
"""The reference interpreter on small programs whose outcome is plain to see."""

import numpy as np
import pytest

from reference import HEADER
from reference.interpreter import DeadlockError, Program, run
from reference.memory import FaultError
from reference.parser import parse
from reference.programs import COUNTERS, THREAD_SLOTS, Generator, registers_dumped


def kernel(body: str, parameters: str = ".param .u64 out", before: str = "") -> str:
    return f"""{HEADER}{before}
.visible .entry kernel({parameters})
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 4, %d0;
{body}
    ret;
}}"""


def outcome(body: str, threads: int, **extra) -> list[int]:
    out = np.zeros(threads, np.uint32)
    run(kernel(body, **extra), "kernel", 1, threads, out)
    return out.tolist()


def test_a_branch_parts_threads():
    body = """
    mov.u32 %r1, 10;
    setp.lt.u32 %p0, %r0, 3;
    @%p0 bra SMALL;
    add.u32 %r1, %r1, %r0;
SMALL:
    st.global.u32 [%d1], %r1;"""
    assert outcome(body, 6) == [10, 10, 10, 13, 14, 15]


def test_a_loop_runs_as_often_as_each_thread_says():
    body = """
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
AGAIN:
    add.u32 %r1, %r1, %r2;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p0, %r2, %r0;
    @%p0 bra AGAIN;
    st.global.u32 [%d1], %r1;"""
    assert outcome(body, 6) == [0, 1, 3, 6, 10, 15]


def test_a_barrier_orders_stores_and_loads():
    body = """
    .shared .b32 values[8];
    mov.u64 %d2, values;
    mad.wide.u32 %d2, %r0, 4, %d2;
    mul.lo.u32 %r1, %r0, %r0;
    st.shared.u32 [%d2], %r1;
    bar.sync 0;
    sub.u32 %r2, 7, %r0;
    mov.u64 %d2, values;
    mad.wide.u32 %d2, %r2, 4, %d2;
    ld.shared.u32 %r1, [%d2];
    st.global.u32 [%d1], %r1;"""
    assert outcome(body, 8) == [49, 36, 25, 16, 9, 4, 1, 0]


def test_a_barrier_does_not_wait_for_threads_that_have_ended():
    body = """
    setp.lt.u32 %p0, %r0, 2;
    @%p0 exit;
    bar.red.popc.u32 %r1, 0, 1;
    st.global.u32 [%d1], %r1;"""
    assert outcome(body, 5) == [0, 0, 3, 3, 3]


def test_shuffles_votes_and_matches():
    body = """
    shfl.sync.down.b32 %r1|%p0, %r0, 1, 0x1f, 0xffffffff;
    setp.gt.u32 %p1, %r0, 29;
    vote.sync.ballot.b32 %r2, %p1, 0xffffffff;
    and.b32 %r3, %r0, 3;
    match.any.sync.b32 %r3, %r3, 0xffffffff;
    popc.b32 %r3, %r3;
    redux.sync.add.u32 %r4, %r0, 0xffffffff;
    add.u32 %r1, %r1, %r3;
    add.u32 %r1, %r1, %r4;
    @%p1 add.u32 %r1, %r1, %r2;
    st.global.u32 [%d1], %r1;"""
    high = 0xC0000000
    expected = [min(i + 1, 31) + 8 + 496 + (high if i > 29 else 0) for i in range(32)]
    assert outcome(body, 32) == expected


def test_calls_return_values_and_recurse():
    before = """
.func (.param .b32 result) factorial(.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.b32 %r0, [n];
    mov.u32 %r1, 1;
    setp.lt.u32 %p, %r0, 2;
    @%p bra DONE;
    sub.u32 %r2, %r0, 1;
    {
    .param .b32 argument;
    .param .b32 back;
    st.param.b32 [argument], %r2;
    call (back), factorial, (argument);
    ld.param.b32 %r3, [back];
    }
    mul.lo.u32 %r1, %r0, %r3;
DONE:
    st.param.b32 [result], %r1;
    ret;
}"""
    body = """
    {
    .param .b32 argument;
    .param .b32 back;
    st.param.b32 [argument], %r0;
    call (back), factorial, (argument);
    ld.param.b32 %r1, [back];
    }
    st.global.u32 [%d1], %r1;"""
    assert outcome(body, 7, before=before) == [1, 1, 2, 6, 24, 120, 720]


def test_atomics_give_each_thread_another_value():
    body = """
    atom.global.add.u32 %r1, [%d0+64], 1;
    st.global.u32 [%d1], %r1;"""
    out = np.zeros(17, np.uint32)
    run(kernel(body), "kernel", 1, 16, out)
    assert sorted(out[:16]) == list(range(16))
    assert out[16] == 16


def test_variables_of_inner_blocks_are_their_own():
    module = parse(kernel("{ .reg .b32 %x; mov.u32 %x, 1; }\n{ .reg .b64 %x; mov.u64 %x, 1; }"))
    names = [name for name in module.functions["kernel"].registers if name.startswith("%x")]
    assert len(names) == 2


def test_faults_and_deadlocks_are_errors():
    with pytest.raises(FaultError, match="outside"):
        outcome("    st.global.u32 [%d1+4096], %r0;", 1)
    with pytest.raises(FaultError, match="aligned"):
        outcome("    st.global.u32 [%d0+2], %r0;", 4)
    with pytest.raises(DeadlockError):
        outcome("    setp.eq.u32 %p0, %r0, 0;\n    @%p0 bar.sync 0;\n    @!%p0 bar.sync 1;", 64)


def test_random_programs_are_the_same_for_the_same_seed():
    assert Generator(11).program() == Generator(11).program()
    assert Generator(11).program() != Generator(12).program()


def test_a_random_program_does_not_depend_on_the_order_of_threads():
    """Threads in turns from the last to the first give the same: programs are free of races."""
    for seed in range(12):
        results = []
        for backwards in (False, True):
            generator = Generator(seed)
            text, shape = generator.program(), generator.shape
            threads = shape.grid * shape.block
            random = np.random.default_rng(seed)
            inputs = random.integers(0, 2**64, (threads, registers_dumped()), np.uint64)
            slots = random.integers(0, 2**64, (threads, THREAD_SLOTS), np.uint64)
            outputs, counters = np.zeros_like(inputs), np.zeros(COUNTERS, np.uint32)
            Program(text, backwards=backwards).launch(
                "program", shape.grid, shape.block, inputs, outputs, slots, counters
            )
            results.append((outputs, slots, counters))
        for one, other in zip(*results, strict=True):
            assert (one == other).all()
