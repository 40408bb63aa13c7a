# SPDX-License-Identifier: Apache-2.0
"""Branches, loops, exits and barriers in threads that diverge and reconverge, against the reference interpreter."""

import numpy as np
import pytest
from control_flow_support import THREADS, compare, exchange, kernel
from reference.flow_programs import (
    STRUCTURED,
    UNSTRUCTURED,
)

import manyscale
from manyscale import gpu

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


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
