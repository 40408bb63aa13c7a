# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies to shared memory, and mbarriers."""

import numpy as np
import pytest
from instruction_support import HEADER

import manyscale
from manyscale import gpu

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def device():
    return gpu.Device(maximum_instructions=1_000_000)


def kernel(body: str) -> str:
    """%i is the thread, %tile and %from its 16 bytes of shared memory and of the input, %out 16 bytes of output."""
    return f"""{HEADER}
.visible .entry kernel(.param .u64 input, .param .u64 output)
{{
    .reg .b32 %i, %tile, %a, %b, %c, %d;
    .reg .b64 %from, %out, %s<4>, %policy, %generic;
    .reg .pred %p, %q;
    .shared .align 16 .b8 tile[16384];
    .shared .align 8 .b64 barrier;
    .shared .align 8 .b64 other;
    mov.u32 %i, %tid.x;
    mov.u32 %tile, tile;
    shl.b32 %a, %i, 4;
    add.u32 %tile, %tile, %a;
    ld.param.u64 %from, [input];
    mad.wide.u32 %from, %i, 16, %from;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %i, 16, %out;
    setp.eq.u32 %p, %i, 0;
    {body}
    ret;
}}"""


SHOW_TILE = """
    ld.shared.v4.u32 {%a, %b, %c, %d}, [%tile];
    st.global.v4.u32 [%out], {%a, %b, %c, %d};"""


def run(device, body: str, values: np.ndarray, threads: int) -> np.ndarray:
    """The 16 bytes that each thread stored."""
    source, output = device.array(values), device.zeros((threads, 16), np.uint8)
    device.load(kernel(body))["kernel"][1, threads](source, output)
    return output.numpy()


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(8).integers(1, 256, (70, 16), np.uint8)


# --- cp.async ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "size"),
    [
        ("ca.shared.global", 4),
        ("ca.shared.global", 8),
        ("ca.shared.global", 16),
        ("cg.shared.global", 16),
        ("ca.shared::cta.global.L2::64B", 8),
        ("cg.shared.global.L2::128B", 16),
        ("cg.shared.global.L2::256B", 16),
    ],
)
def test_copy(device, values, form, size):
    """The copied bytes are there after the wait, and no others."""
    body = f"""
    st.shared.v4.b32 [%tile], {{-1, -1, -1, -1}};
    cp.async.{form} [%tile], [%from], {size};
    cp.async.commit_group;
    cp.async.wait_group 0;{SHOW_TILE}"""
    expected = np.where(np.arange(16) < size, values, 255)
    assert np.array_equal(run(device, body, values, 70), expected)


def test_copies_reach_other_threads_after_a_barrier(device, values):
    body = f"""
    cp.async.cg.shared.global [%tile], [%from+16], 16;
    cp.async.wait_all;
    bar.sync 0;
    xor.b32 %tile, %tile, 48;{SHOW_TILE}"""
    expected = values[1:65].reshape(16, 4, 16)[:, ::-1].reshape(64, 16)
    assert np.array_equal(run(device, body, values, 64), expected)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_bytes_beyond_the_source_are_zero(device, values, size):
    """Each thread says for itself how many bytes its source has."""
    body = f"""
    st.shared.v4.b32 [%tile], {{-1, -1, -1, -1}};
    rem.u32 %a, %i, {size + 1};
    cp.async.ca.shared.global [%tile], [%from], {size}, %a;
    cp.async.wait_all;{SHOW_TILE}"""
    there = np.arange(70)[:, None] % (size + 1)
    offset = np.arange(16)
    expected = np.where(offset < size, np.where(offset < there, values, 0), 255)
    assert np.array_equal(run(device, body, values, 70), expected)


@pytest.mark.parametrize("operand", ["%a", "%q"])
def test_a_source_that_is_not_read_may_be_anywhere(device, values, operand):
    """Odd threads have an address that does not exist, and zeros come of it."""
    body = f"""
    and.b32 %a, %i, 1;
    setp.eq.u32 %q, %a, 1;
    @%q mov.u64 %from, 12345;
    selp.b32 %a, 0, 16, %q;
    cp.async.cg.shared.global [%tile], [%from], 16, {operand};
    cp.async.wait_all;{SHOW_TILE}"""
    expected = values * (np.arange(70)[:, None] % 2 == 0)
    assert np.array_equal(run(device, body, values, 70), expected)


def test_a_negated_predicate_that_ignores_the_source(device, values):
    body = f"""
    setp.lt.u32 %q, %i, 40;
    cp.async.ca.shared.global [%tile], [%from], 16, !%q;
    cp.async.wait_all;{SHOW_TILE}"""
    expected = values * (np.arange(70)[:, None] < 40)
    assert np.array_equal(run(device, body, values, 70), expected)


def test_a_cache_policy_changes_nothing(device, values):
    body = f"""
    createpolicy.fractional.L2::evict_first.b64 %policy, 0f3F800000;
    cp.async.cg.shared.global.L2::cache_hint [%tile], [%from], 16, %policy;
    setp.lt.u32 %q, %i, 40;
    cp.async.cg.shared.global.L2::cache_hint.L2::128B [%tile], [%from], 16, !%q, %policy;
    cp.async.wait_all;{SHOW_TILE}"""
    expected = values * (np.arange(70)[:, None] < 40)
    assert np.array_equal(run(device, body, values, 70), expected)


def test_a_guard_keeps_copies_out(device, values):
    body = f"""
    st.shared.v4.b32 [%tile], {{-1, -1, -1, -1}};
    setp.lt.u32 %q, %i, 40;
    @%q cp.async.ca.shared.global [%tile], [%from], 16;
    cp.async.wait_all;{SHOW_TILE}"""
    expected = np.where(np.arange(70)[:, None] < 40, values, 255)
    assert np.array_equal(run(device, body, values, 70), expected)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("cp.async.ca.shared.global [%tile], [%from], 8, %i;", "told that the source has 9"),
        ("cp.async.ca.shared.global [%tile+4], [%from], 8;", "misaligned"),
        ("cp.async.ca.shared.global [%tile], [%from+4], 16;", "misaligned"),
        ("cp.async.ca.shared.global [%tile], [%from+160], 16;", "invalid address"),
        ("cp.async.ca.shared.global [%tile+16384], [%from], 4;", "out of bounds"),
    ],
)
def test_faults_of_copies(device, instruction, message):
    with pytest.raises(manyscale.KernelError, match=message):
        run(device, instruction, np.zeros((10, 16), np.uint8), 10)


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%from], 16, [barrier];",
            "bulk",
        ),
        ("cp.async.bulk.commit_group;", "bulk"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%from], [%tile], 16;", "bulk"),
        ("cp.async.ca.shared.global [%tile], [%from], 12;", "12 bytes"),
        ("cp.async.cg.shared.global [%tile], [%from], 8;", "8 bytes"),
    ],
)
def test_copies_that_are_not_supported_are_refused(instruction, why):
    [check] = gpu.check(kernel(instruction))
    [problem] = check.problems
    assert why in problem.why


# --- mbarrier ---------------------------------------------------------------------------------------------------


def initialised(count: int | str, body: str, barrier: str = "barrier") -> str:
    return f"""
    @%p mbarrier.init.shared.b64 [{barrier}], {count};
    bar.sync 0;
    {body}"""


def store(*registers: str) -> str:
    return "\n".join(f"    st.global.u32 [%out+{4 * i}], {name};" for i, name in enumerate(registers))


def words(device, body: str, threads: int) -> np.ndarray:
    return run(device, body, np.zeros((threads, 16), np.uint8), threads).view(np.uint32)


WAITS = {
    "by state": "mbarrier.test_wait.shared.b64 %q, [barrier], %s0;",
    "by parity": "mbarrier.test_wait.parity.shared::cta.b64 %q, [barrier], 0;",
    "which may suspend": "mbarrier.try_wait.shared.b64 %q, [barrier], %s0;",
    "with a time": "mbarrier.try_wait.parity.acquire.cta.shared.b64 %q, [barrier], 0, 1000;",
    "with an order": "mbarrier.test_wait.acquire.cta.shared.b64 %q, [barrier], %s0;",
    "generic": "cvta.shared.u64 %generic, %generic;\n    mbarrier.test_wait.b64 %q, [%generic], %s0;",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_all_threads_meet(device, wait):
    """What a thread wrote before it arrived, its neighbour in another warp reads after it waited."""
    body = initialised(
        128,
        f"""
    st.shared.u32 [%tile], %i;
    mbarrier.arrive.shared.b64 %s0, [barrier];
AGAIN:
    mov.u64 %generic, barrier;
    {wait}
    @!%q bra AGAIN;
    xor.b32 %tile, %tile, 1008;
    ld.shared.u32 %a, [%tile];
{store("%a")}""",
    )
    assert words(device, body, 128)[:, 0].tolist() == [i ^ 63 for i in range(128)]


def test_phases_follow_each_other(device):
    """Thread 0 adds up in 20 phases what all others wrote in each."""
    body = f"""
    @%p mbarrier.init.shared.b64 [barrier], 64;
    @%p mbarrier.init.shared.b64 [other], 1;
    bar.sync 0;
    mov.u32 %c, 0;
    mov.u32 %d, 0;
PHASE:
    and.b32 %b, %c, 1;
    add.u32 %a, %i, %c;
    st.shared.u32 [%tile], %a;
    mbarrier.arrive.shared.b64 _, [barrier];
    @!%p bra NEXT;
WRITTEN:
    mbarrier.try_wait.parity.shared.b64 %q, [barrier], %b;
    @!%q bra WRITTEN;
    ld.shared.u32 %a, [tile+1008];
    add.u32 %d, %d, %a;
    mbarrier.arrive.shared.b64 _, [other];
NEXT:
    mbarrier.try_wait.parity.shared.b64 %q, [other], %b;
    @!%q bra NEXT;
    add.u32 %c, %c, 1;
    setp.lt.u32 %q, %c, 20;
    @%q bra PHASE;
{store("%d")}"""
    assert words(device, body, 64)[0, 0] == sum(63 + c for c in range(20))


def test_parity(device):
    """The phase before the current one is over, the current one is not."""
    body = initialised(
        1,
        """
    @!%p bra END;
    mbarrier.test_wait.parity.shared.b64 %q, [barrier], 0;
    selp.b32 %a, 1, 0, %q;
    mbarrier.test_wait.parity.shared.b64 %q, [barrier], 1;
    selp.b32 %b, 1, 0, %q;
    mbarrier.arrive.shared.b64 %s0, [barrier];
    mbarrier.test_wait.parity.shared.b64 %q, [barrier], 0;
    selp.b32 %c, 1, 0, %q;
    mbarrier.test_wait.parity.shared.b64 %q, [barrier], 1;
    selp.b32 %d, 1, 0, %q;
"""
        + store("%a", "%b", "%c", "%d")
        + "\nEND:",
    )
    assert words(device, body, 32)[0].tolist() == [0, 1, 1, 0]


COUNTS = """
    @!%p bra END;
    mbarrier.arrive.noComplete.shared.b64 %s0, [barrier], 4;
    mbarrier.pending_count.b64 %a, %s0;
    mbarrier.arrive.noComplete.release.cta.shared.b64 %s1, [barrier], 1;
    mbarrier.pending_count.b64 %b, %s1;
    mbarrier.test_wait.shared.b64 %q, [barrier], %s1;
    selp.b32 %c, 1, 0, %q;
    mbarrier.arrive.shared.b64 %s2, [barrier], 5;
    mbarrier.test_wait.shared.b64 %q, [barrier], %s2;
    selp.b32 %d, 1, 0, %q;
"""


def test_counts_of_arrivals(device):
    """Ten are expected: four and one leave five, and five end the phase."""
    body = initialised(10, COUNTS + store("%a", "%b", "%c", "%d") + "\nEND:")
    assert words(device, body, 32)[0].tolist() == [10, 6, 0, 1]


def test_who_drops_out_is_not_expected_again(device):
    body = initialised(
        3,
        """
    @!%p bra END;
    mbarrier.arrive_drop.shared.b64 %s0, [barrier];
    mbarrier.arrive.shared.b64 %s0, [barrier], 2;
    mbarrier.arrive.noComplete.shared.b64 %s1, [barrier], 1;
    mbarrier.pending_count.b64 %a, %s1;
    mbarrier.arrive_drop.shared.b64 %s2, [barrier], 1;
    mbarrier.test_wait.shared.b64 %q, [barrier], %s2;
    selp.b32 %b, 1, 0, %q;
    mbarrier.arrive.shared.b64 %s3, [barrier];
    mbarrier.test_wait.shared.b64 %q, [barrier], %s3;
    selp.b32 %c, 1, 0, %q;
"""
        + store("%a", "%b", "%c")
        + "\nEND:",
    )
    assert words(device, body, 32)[0, :3].tolist() == [2, 1, 1]


def test_bytes_are_waited_for(device):
    """The phase ends when all have arrived and as many bytes came as were announced, in either order."""
    look = """
    mbarrier.test_wait.parity.shared.b64 %q, [barrier], {};
    selp.b32 {}, 1, 0, %q;"""
    body = initialised(
        2,
        f"""
    @!%p bra END;
    mbarrier.arrive.expect_tx.shared.b64 %s0, [barrier], 128;
    mbarrier.arrive.release.cta.shared::cta.b64 %s0, [barrier];{look.format(0, "%a")}
    mbarrier.complete_tx.relaxed.cta.shared.b64 [barrier], 100;{look.format(0, "%b")}
    mbarrier.complete_tx.shared::cta.relaxed.cta.b64 [barrier], 28;{look.format(0, "%c")}
    mbarrier.complete_tx.relaxed.cta.shared.b64 [barrier], 7;
    mbarrier.arrive.shared.b64 %s0, [barrier], 2;
    mbarrier.expect_tx.relaxed.cta.shared.b64 [barrier], 9;
    mbarrier.complete_tx.relaxed.cta.shared.b64 [barrier], 2;{look.format(1, "%d")}
"""
        + store("%a", "%b", "%c", "%d")
        + "\nEND:",
    )
    assert words(device, body, 32)[0].tolist() == [0, 0, 1, 1]


def test_copies_arrive(device, values):
    """With .noinc a copy's arrival is one of those expected; without, the threads arrive themselves."""
    body = f"""
    @%p mbarrier.init.shared.b64 [barrier], 64;
    @%p mbarrier.init.shared.b64 [other], 64;
    bar.sync 0;
    cp.async.ca.shared.global [%tile], [%from], 8;
    cp.async.mbarrier.arrive.noinc.shared.b64 [barrier];
    cp.async.ca.shared.global [%tile+8], [%from+8], 8;
    cp.async.mbarrier.arrive.shared::cta.b64 [other];
    mbarrier.arrive.shared.b64 %s0, [other];
FIRST:
    mbarrier.test_wait.parity.shared.b64 %q, [barrier], 0;
    @!%q bra FIRST;
SECOND:
    mbarrier.test_wait.shared.b64 %q, [other], %s0;
    @!%q bra SECOND;
    xor.b32 %tile, %tile, 512;{SHOW_TILE}"""
    expected = np.roll(values[:64], 32, axis=0)
    assert np.array_equal(run(device, body, values, 64), expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mbarrier.arrive.shared.b64 _, [barrier];", "no mbarrier at this address"),
        ("mbarrier.init.shared.b64 [barrier], 0;", "for 0 arrivals"),
        ("mbarrier.init.shared.b64 [barrier], 1048576;", "for 1048576 arrivals"),
        (
            "mbarrier.init.shared.b64 [barrier], 2;\n    mbarrier.arrive.shared.b64 _, [barrier], 3;",
            "3 arrivals at an mbarrier that waits for 2",
        ),
        (
            "mbarrier.init.shared.b64 [barrier], 2;\n    mbarrier.arrive.noComplete.shared.b64 %s0, [barrier], 2;",
            "noComplete",
        ),
        (
            "mbarrier.init.shared.b64 [barrier], 2;\n    mbarrier.inval.shared.b64 [barrier];\n"
            "    mbarrier.test_wait.parity.shared.b64 %q, [barrier], 0;",
            "no mbarrier at this address",
        ),
        ("mbarrier.init.shared.b64 [barrier+4], 2;", "misaligned"),
    ],
)
def test_faults_of_mbarriers(device, body, message):
    with pytest.raises(manyscale.KernelError, match=message):
        words(device, body, 1)


def test_memory_of_an_invalid_mbarrier_can_be_used(device):
    body = f"""
    @%p mbarrier.init.shared.b64 [barrier], 2;
    @%p mbarrier.inval.shared.b64 [barrier];
    @%p st.shared.u32 [barrier], 17;
    bar.sync 0;
    ld.shared.u32 %a, [barrier];
{store("%a")}"""
    assert words(device, body, 40)[:, 0].tolist() == [17] * 40
