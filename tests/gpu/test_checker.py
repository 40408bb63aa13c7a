# SPDX-License-Identifier: Apache-2.0
"""Races and divergent barriers that `Device(check=True)` finds, and that it is silent about correct programs."""

import re

import numpy as np
import pytest
from checker_support import THREADS, kernel, line_of, lines_in, races_among, run

from manyscale import gpu

pytestmark = pytest.mark.core

# --- Races: each program is right with its synchronisation, and wrong without ------------------------------------

REDUCTION = """
    ld.global.u32 %a, [%in];
    st.shared.u32 [%own], %a;                      // FIRST
    mov.u32 %step, 64;
LOOP:
    {sync}
    setp.lt.u32 %p, %i, %step;
    @!%p bra SKIP;
    shl.b32 %b, %step, 2;
    add.u32 %b, %own, %b;
    ld.shared.u32 %c, [%b];                        // SECOND
    ld.shared.u32 %d, [%own];
    add.u32 %c, %c, %d;
    st.shared.u32 [%own], %c;
SKIP:
    shr.u32 %step, %step, 1;
    setp.ne.u32 %p, %step, 0;
    @%p bra LOOP;
    @%first st.global.u32 [%out], %c;"""

TRANSPOSE = """
    ld.global.u32 %a, [%in];
    st.shared.u32 [%own], %a;                      // FIRST
    {sync}
    shl.b32 %a, %lane, 2;
    shr.u32 %b, %i, 5;
    add.u32 %a, %a, %b;
    shl.b32 %a, %a, 2;
    mov.u32 %b, tile;
    add.u32 %b, %b, %a;
    ld.shared.u32 %c, [%b];                        // SECOND
    st.global.u32 [%out], %c;"""

SCAN = """
    ld.global.u32 %a, [%in];
    st.shared.u32 [%own], %a;
    mov.u32 %step, 1;
    bar.sync 0;
LOOP:
    setp.ge.u32 %p, %i, %step;
    shl.b32 %b, %step, 2;
    sub.u32 %b, %own, %b;
    mov.u32 %c, 0;
    @%p ld.shared.u32 %c, [%b];                    // FIRST
    add.u32 %a, %a, %c;
    {sync}
    st.shared.u32 [%own], %a;                      // SECOND
    bar.sync 0;
    shl.b32 %step, %step, 1;
    setp.lt.u32 %p, %step, 128;
    @%p bra LOOP;
    st.global.u32 [%out], %a;"""

WARP_EXCHANGE = """
    ld.global.u32 %a, [%in];
    st.shared.u32 [%own], %a;                      // FIRST
    {sync}
    xor.b32 %b, %own, 12;
    ld.shared.u32 %c, [%b];                        // SECOND
    st.global.u32 [%out], %c;"""

BROADCAST = """
    @%first st.shared.u32 [flag], 7;               // FIRST
    {sync}
    ld.shared.u32 %c, [flag];                      // SECOND
    st.global.u32 [%out], %c;"""

COUNTER = """
    @%first st.shared.u32 [flag], 0;               // FIRST
    {sync}
    atom.shared.add.u32 %a, [flag], 1;             // SECOND
    bar.sync 0;
    ld.shared.u32 %c, [flag];
    st.global.u32 [%out], %c;"""

COUNTED = """
    @%first st.shared.u32 [flag], 0;
    bar.sync 0;
    red.shared.add.u32 [flag], 1;                  // FIRST
    {sync}
    ld.shared.u32 %c, [flag];                      // SECOND
    st.global.u32 [%out], %c;"""

COPY = """
    cp.async.ca.shared.global [%own], [%in], 4;    // FIRST
    cp.async.wait_all;
    {sync}
    xor.b32 %b, %own, 256;
    ld.shared.u32 %c, [%b];                        // SECOND
    st.global.u32 [%out], %c;"""

IN_SITU = """
    ld.global.u32 %a, [%in];
    st.shared.u32 [%own], %a;
    bar.sync 0;
    xor.b32 %b, %own, 508;
    ld.shared.u32 %c, [%b];                        // FIRST
    {sync}
    st.shared.u32 [%own], %c;                      // SECOND
    bar.sync 0;
    ld.shared.u32 %c, [%own];
    st.global.u32 [%out], %c;"""

ROUND_TRIP = """
    mov.u64 %wide, tile;
    cvta.shared.u64 %wide, %wide;
    mad.wide.u32 %wide, %i, 4, %wide;
    st.u32 [%wide], %i;                            // FIRST
    {sync}
    xor.b32 %b, %own, 256;
    ld.shared.u32 %c, [%b];                        // SECOND
    st.global.u32 [%out], %c;"""

ALL = "bar.sync 0;"
MBARRIER = """
    @%first mbarrier.init.shared.b64 [barrier], 128;
    bar.sync 1;
    mbarrier.arrive.shared.b64 %state, [barrier];
WAIT:
    mbarrier.test_wait.shared.b64 %q, [barrier], %state;
    @!%q bra WAIT;"""
RACES = {
    "reduction": (REDUCTION, ALL),
    "transpose": (TRANSPOSE, ALL),
    "transpose with a named barrier": (TRANSPOSE, "barrier.sync 5, 128;"),
    "scan": (SCAN, ALL),
    "exchange in a warp": (WARP_EXCHANGE, "bar.warp.sync -1;"),
    "exchange in a warp after a vote": (WARP_EXCHANGE, "vote.sync.any.pred %q, %first, -1;"),
    "broadcast": (BROADCAST, ALL),
    "broadcast with a reduction": (BROADCAST, "bar.red.popc.u32 %a, 0, %first;"),
    "counter": (COUNTER, ALL),
    "counted": (COUNTED, ALL),
    "asynchronous copy": (COPY, ALL),
    "in place": (IN_SITU, ALL),
    "generic address": (ROUND_TRIP, ALL),
}


@pytest.mark.parametrize(("body", "sync"), RACES.values(), ids=RACES.keys())
def test_a_barrier_that_is_there_makes_silence(body, sync):
    findings, _output, _text = run(body.format(sync=sync))
    assert findings == ()


@pytest.mark.parametrize(("body", "sync"), RACES.values(), ids=RACES.keys())
def test_a_barrier_that_is_missing_is_a_race(body, sync):
    del sync
    findings, _output, text = run(body.format(sync=""))
    races = races_among(findings)
    wanted = {line_of(text, "FIRST"), line_of(text, "SECOND")}
    assert wanted in [lines_in(race) for race in races]
    assert len(races) == len({tuple(sorted(lines_in(race))) for race in races})


def test_an_mbarrier_orders():
    findings, output, _text = run(TRANSPOSE.format(sync=MBARRIER))
    assert findings == ()
    assert output.tolist() == np.arange(3, 131).reshape(32, 4).T.ravel().tolist()


def test_a_warp_barrier_does_not_order_warps():
    findings, _output, text = run(COPY.format(sync="bar.warp.sync -1;"))
    [race] = races_among(findings)
    assert lines_in(race) == {line_of(text, "FIRST"), line_of(text, "SECOND")}


def test_a_finding_names_kernel_threads_and_byte():
    [finding] = races_among(run(TRANSPOSE.format(sync=""), threads=64, grid=1)[0])
    assert "kernel kernel, CTA (0, 0, 0)" in finding
    writer, byte, reader = re.search(
        r"thread \((\d+), 0, 0\) writes byte (\d+) of .* thread \((\d+), 0, 0\) reads", finding
    ).groups()
    assert int(byte) == 4 * int(writer)
    assert (int(reader) % 32 * 4 + int(reader) // 32) == int(writer)
    assert "st.shared.u32" in finding
    assert "ld.shared.u32" in finding


def test_a_finding_is_reported_once_for_all_threads_and_ctas():
    assert len(races_among(run(TRANSPOSE.format(sync=""), grid=7)[0])) == 1


def test_without_check_nothing_is_reported():
    device = gpu.Device()
    source, output = device.empty(THREADS, np.uint32), device.empty(THREADS, np.uint32)
    launch = device.load(kernel(TRANSPOSE.format(sync="")))["kernel"][1, THREADS](source, output)
    assert launch.warnings == ()


# --- Several writers -----------------------------------------------------------------------------------------------


def test_lanes_of_one_instruction_that_write_different_values():
    findings, _output, text = run("    st.shared.u32 [flag], %i;  // HERE", threads=32)
    [finding] = findings
    assert "lanes of one instruction" in finding
    assert lines_in(finding) == {line_of(text, "HERE")}


@pytest.mark.parametrize("value", ["5", "%step"])
def test_threads_may_write_the_same_value(value):
    """A flag that any thread may raise."""
    body = f"""
    mov.u32 %step, 9;
    st.shared.u32 [flag], {value};
    st.shared.v2.u32 [tile+8], {{{value}, %step}};
    bar.sync 0;
    ld.shared.u32 %c, [flag];
    ld.shared.u32 %d, [tile+8];
    add.u32 %c, %c, %d;
    st.global.u32 [%out], %c;"""
    assert run(body)[0] == ()


def test_warps_that_write_different_values():
    body = """
    shr.u32 %a, %i, 5;
    st.shared.u32 [flag], %a;   // HERE"""
    [finding] = run(body)[0]
    assert "without a barrier" in finding


def test_parts_of_a_word_belong_to_different_threads():
    """Bytes beside each other are not the same byte."""
    body = """
    mov.u32 %a, tile;
    add.u32 %a, %a, %i;
    st.shared.u8 [%a], %i;
    bar.sync 0;
    ld.shared.u32 %c, [tile+124];
    st.global.u32 [%out], %c;"""
    findings, output, _text = run(body)
    assert findings == ()
    assert output[0] == 0x7F7E7D7C


# --- Other ways of ordering ------------------------------------------------------------------------------------------

FLAG = """
    @%first st.shared.u32 [flag], 0;
    bar.sync 0;
    setp.eq.u32 %p, %i, 96;
    @!%p bra READER;
    st.shared.u32 [tile], 41;
    {release}
    bra END;
READER:
    @!%first bra END;
SPIN:
    {acquire}
    setp.eq.u32 %q, %a, 0;
    @%q bra SPIN;
    {fence}
    ld.shared.u32 %c, [tile];
    st.global.u32 [%out], %c;
END:"""

FLAGS = {
    "fences": (
        "membar.cta;\n    st.volatile.shared.u32 [flag], 1;",
        "ld.volatile.shared.u32 %a, [flag];",
        "membar.cta;",
    ),
    "release and acquire": (
        "st.release.cta.shared.u32 [flag], 1;",
        "ld.acquire.cta.shared.u32 %a, [flag];",
        "",
    ),
    "atomics": (
        "fence.acq_rel.cta;\n    atom.relaxed.cta.shared.exch.b32 %b, [flag], 1;",
        "atom.relaxed.cta.shared.or.b32 %a, [flag], 0;",
        "fence.acq_rel.cta;",
    ),
    "an atomic that releases": (
        "atom.release.cta.shared.exch.b32 %b, [flag], 1;",
        "atom.acquire.cta.shared.or.b32 %a, [flag], 0;",
        "",
    ),
}


@pytest.mark.parametrize(("release", "acquire", "fence"), FLAGS.values(), ids=FLAGS.keys())
def test_a_flag_orders(release, acquire, fence):
    findings, output, _text = run(FLAG.format(release=release, acquire=acquire, fence=fence))
    assert findings == ()
    assert output[0] == 41


def test_volatile_accesses_do_not_race():
    """Reductions of the last warp by volatile accesses, as they were once written."""
    body = """
    ld.global.u32 %a, [%in];
    st.volatile.shared.u32 [%own], %a;
    setp.ge.u32 %p, %lane, 16;
    @%p bra END;
    ld.volatile.shared.u32 %b, [%own+64];
    add.u32 %a, %a, %b;
    st.volatile.shared.u32 [%own], %a;
    st.global.u32 [%out], %a;
END:"""
    assert run(body, threads=32)[0] == ()


def test_producers_and_consumers_at_named_barriers():
    """Two warps write, two read, and each half waits only for what it needs."""
    body = """
    setp.ge.u32 %p, %i, 64;
    @%p bra CONSUMER;
    ld.global.u32 %a, [%in];
    st.shared.u32 [%own], %a;
    bar.arrive 1, 128;
    bar.sync 2, 128;
    st.shared.u32 [%own], 5;
    bra END;
CONSUMER:
    bar.sync 1, 128;
    xor.b32 %b, %own, 256;
    ld.shared.u32 %c, [%b];
    bar.arrive 2, 128;
    st.global.u32 [%out], %c;
END:"""
    findings, output, _text = run(body)
    assert findings == ()
    assert output[64:].tolist() == list(range(3, 67))


# --- Barriers ------------------------------------------------------------------------------------------------------

DIVERGENT = """
    setp.lt.u32 %p, %i, 10;
    @%p bra SOME;
    {barrier}     // FIRST
    bra END;
SOME:
    {barrier}     // SECOND
END:"""


def test_lanes_of_a_warp_at_different_barriers():
    findings, _output, text = run(DIVERGENT.format(barrier="bar.sync 0;"), grid=1)
    [finding] = findings
    assert finding.startswith("divergent barrier")
    assert f"lines {line_of(text, 'FIRST')} and {line_of(text, 'SECOND')}" in finding


def test_barriers_that_need_not_be_aligned():
    assert run(DIVERGENT.format(barrier="barrier.sync 0;"))[0] == ()


def test_warps_may_come_to_different_barriers():
    assert run(DIVERGENT.format(barrier="bar.sync 0;").replace("%i, 10", "%i, 64"))[0] == ()
