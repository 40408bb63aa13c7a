# SPDX-License-Identifier: Apache-2.0
"""Shuffles, votes, matches, reductions and elections of a warp, against their definition lane by lane."""

import numpy as np
import pytest
from instruction_support import agree
from reference import HEADER
from sass_support import needs_assembler

from manyscale import gpu

pytestmark = pytest.mark.core

WARPS = 2
THREADS = 32 * WARPS
EVERY = "0xffffffff"


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


@pytest.fixture(scope="module")
def words():
    return np.random.default_rng(4).integers(0, 2**32, (THREADS, 4), np.uint32)


def kernel(body: str) -> str:
    """%x, %y, %z hold a thread's words; %a, %b, %p are stored as the result."""
    return f"""{HEADER}
.visible .entry kernel(.param .u64 input, .param .u64 output)
{{
    .reg .pred %p, %q, %odd;
    .reg .b32 %thread, %lane, %x, %y, %z, %a, %b, %t;
    .reg .b64 %input, %out, %wide;
    .reg .f32 %f;
    .shared .align 4 .b8 tile[{4 * THREADS}];
    mov.u32 %thread, %tid.x;
    mov.u32 %lane, %laneid;
    ld.param.u64 %input, [input];
    mad.wide.u32 %input, %thread, 16, %input;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %thread, 16, %out;
    ld.global.v2.u32 {{%x, %y}}, [%input];
    ld.global.u32 %z, [%input+8];
    and.b32 %t, %thread, 1;
    setp.eq.u32 %odd, %t, 1;
    mov.u32 %a, 0;
    mov.u32 %b, 0;
    setp.ne.u32 %p, %lane, %lane;
    {body}
    st.global.v2.u32 [%out], {{%a, %b}};
    selp.u32 %t, 1, 0, %p;
    st.global.u32 [%out+8], %t;
    ret;
}}"""


def compare(device, body: str, words: np.ndarray, threads: int = THREADS) -> np.ndarray:
    """The same kernel on the simulator and on the reference; gives the simulator's results."""
    (_input, output) = agree(
        device, kernel(body), "kernel", 1, threads, words, np.zeros((threads, 4), np.uint32)
    )
    return output


BOUNDS = (0x1F, 0x0, 0x101F, 0x181F, 0x1C1F, 0x1E1F, 0x1800, 0x0010, 0x180B)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffle(device, words, mode, bounds):
    """Amounts from 0 to 31, then one from a register that differs between lanes."""
    lines = []
    for amount in (0, 1, 2, 5, 8, 16, 31):
        lines.append(f"shfl.sync.{mode}.b32 %t|%q, %x, {amount}, {bounds}, {EVERY};")
        lines.append("mad.lo.u32 %a, %a, 31, %t;\n    selp.u32 %t, 1, 0, %q;\n    mad.lo.u32 %b, %b, 2, %t;")
    lines.append(f"shfl.sync.{mode}.b32 %t|%p, %x, %y, {bounds}, {EVERY};\n    add.u32 %a, %a, %t;")
    compare(device, "\n    ".join(lines), words)


def test_shuffle_takes_bounds_from_registers(device, words):
    compare(device, f"and.b32 %t, %z, 0x1f1f;\n    shfl.sync.down.b32 %a|%p, %x, 3, %t, {EVERY};", words)


def test_shuffle_of_other_bits_and_without_predicate(device, words):
    body = f"""
    shfl.sync.idx.b32 %a, %x, 7, 0x1f, {EVERY};
    shfl.sync.bfly.b32 %b, -5, 3, 0x1f, {EVERY};
    shfl.sync.up.b32 %x, %x, 1, 0, {EVERY};
    add.u32 %b, %b, %x;"""
    compare(device, body, words)


def test_shuffle_among_members_in_a_branch(device, words):
    """The odd lanes and the even lanes each exchange among themselves, on two sides of a branch."""
    body = """
    @%odd bra ODD;
    shfl.sync.down.b32 %a|%p, %x, 2, 0x1f, 0x55555555;
    bra JOIN;
ODD:
    shfl.sync.up.b32 %a|%p, %y, 2, 0, 0xaaaaaaaa;
JOIN:
    mov.u32 %b, %a;"""
    result = compare(device, body, words)
    assert result[0, 0] == words[2, 0]
    assert result[3, 0] == words[1, 1]


@pytest.mark.parametrize("isa", ["ptx", pytest.param("sass", marks=needs_assembler)])
def test_lanes_that_take_no_part_in_a_shuffle_add_nothing(words, isa):
    """As in programs that add up the sums of a few warps with all five steps of a whole warp."""
    body = """setp.lt.u32 %p, %lane, 8;
    @!%p bra DONE;
    mov.u32 %a, %x;"""
    for distance in (16, 8, 4, 2, 1):
        body += f"\n    shfl.sync.down.b32 %t, %a, {distance}, 0x1f, 0xff;\n    add.u32 %a, %a, %t;"
    device = gpu.Device(isa=isa)
    output = device.zeros((THREADS, 4), np.uint32)
    device.load(kernel(body + "\nDONE:"))["kernel"][1, THREADS](device.array(words), output)
    sums = output.numpy()[:, 0].reshape(WARPS, 32)[:, 0]
    assert (sums == words[:, 0].reshape(WARPS, 32)[:, :8].sum(axis=1, dtype=np.uint32)).all()


@pytest.mark.parametrize(
    "condition", ["setp.eq.u32 %q, %lane, 3;", "setp.ge.u32 %q, %lane, 0;", "mov.pred %q, %odd;"]
)
@pytest.mark.parametrize("mode", ["all", "any", "uni"])
def test_vote(device, words, mode, condition):
    lines = [condition, f"vote.sync.{mode}.pred %p, %q, {EVERY};", "selp.u32 %a, 1, 0, %p;"]
    lines.append(f"vote.sync.{mode}.pred %p, !%q, {EVERY};")
    compare(device, "\n    ".join(lines), words)


def test_ballot(device, words):
    body = f"""
    setp.lt.s32 %q, %x, 0;
    vote.sync.ballot.b32 %a, %q, {EVERY};
    vote.sync.ballot.b32 %b, !%q, {EVERY};"""
    result = compare(device, body, words)
    negative = sum(1 << lane for lane in range(32) if words[lane, 0] >> 31)
    assert result[5, 0] == negative


def test_vote_among_members_in_a_branch(device, words):
    """Lanes that are no members contribute nothing."""
    body = """
    @%odd bra ODD;
    setp.lt.s32 %q, %x, 0;
    vote.sync.ballot.b32 %a, %q, 0x55555555;
    vote.sync.uni.pred %p, %odd, 0x55555555;
    bra JOIN;
ODD:
    setp.lt.s32 %q, %y, 0;
    vote.sync.any.pred %p, %q, 0xaaaaaaaa;
    redux.sync.add.u32 %b, 1, 0xaaaaaaaa;
JOIN:"""
    compare(device, body, words)


def test_guards_keep_lanes_out(device, words):
    """What a lane's registers held before stays; the members are those that the guard lets in."""
    body = """
    mov.u32 %b, 5;
    @%odd shfl.sync.up.b32 %a, %x, 2, 0, 0xaaaaaaaa;
    @!%odd vote.sync.ballot.b32 %b, 1, 0x55555555;
    @%odd redux.sync.add.u32 %b, %lane, 0xaaaaaaaa;
    @!%odd match.all.sync.b32 %a|%p, 3, 0x55555555;
    @%odd bar.warp.sync 0xaaaaaaaa;"""
    compare(device, body, words)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("mode", ["any", "all"])
def test_match(device, words, mode, width):
    """Of values that often agree, and of one that all share."""
    predicate = "|%p" if mode == "all" else ""
    value = "%t" if width == 32 else "%wide"
    widen = "" if width == 32 else "cvt.u64.u32 %wide, %t;\n    shl.b64 %wide, %wide, 30;"
    body = f"""
    and.b32 %t, %x, 3;
    {widen}
    match.{mode}.sync.b{width} %a{predicate}, {value}, {EVERY};
    shr.u32 %t, %thread, 5;
    {widen}
    match.{mode}.sync.b{width} %b{predicate}, {value}, {EVERY};"""
    result = compare(device, body, words)
    assert (result[:, 1] == 0xFFFFFFFF).all()


REDUCTIONS = [f"{name}.{type_}" for name in ("add", "min", "max") for type_ in ("u32", "s32")]
REDUCTIONS += [f"{name}.b32" for name in ("and", "or", "xor")]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(device, words, name):
    body = f"""
    redux.sync.{name} %a, %x, {EVERY};
    setp.lt.u32 %q, %lane, 10;
    @!%q bra REST;
    redux.sync.{name} %b, %y, 0x3ff;
REST:"""
    compare(device, body, words)


@pytest.mark.parametrize("modifiers", ["", ".abs", ".NaN", ".abs.NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_reduction_of_floats(device, name, modifiers):
    """With and without a NaN among the members, of NaN alone, and of zeros of both signs."""
    body = f"""
    mov.b32 %f, %x;
    redux.sync.{name}{modifiers}.f32 %f, %f, {EVERY};
    mov.b32 %a, %f;
    setp.lt.u32 %q, %lane, 7;
    selp.b32 %t, 0x7fc00001, %x, %q;
    mov.b32 %f, %t;
    redux.sync.{name}{modifiers}.f32 %f, %f, {EVERY};
    mov.b32 %b, %f;
    shl.b32 %t, %lane, 31;
    mov.b32 %f, %t;
    redux.sync.{name}{modifiers}.f32 %f, %f, {EVERY};
    mov.b32 %t, %f;
    xor.b32 %b, %b, %t;
    mov.b32 %f, 0x7fc00001;
    redux.sync.{name}{modifiers}.f32 %f, %f, {EVERY};
    mov.b32 %t, %f;
    add.u32 %b, %b, %t;"""
    text = kernel(body).replace("sm_90", "sm_100a")
    numbers = np.random.default_rng(8).standard_normal((THREADS, 4)).astype(np.float32).view(np.uint32)
    agree(device, text, "kernel", 1, THREADS, numbers, np.zeros((THREADS, 4), np.uint32))


def test_members_that_have_ended_are_not_waited_for(device, words):
    body = f"""
    setp.lt.u32 %q, %lane, 5;
    @%q exit;
    vote.sync.ballot.b32 %a, 1, {EVERY};
    redux.sync.add.u32 %b, 1, {EVERY};
    match.any.sync.b32 %t, 9, {EVERY};
    add.u32 %b, %b, %t;
    vote.sync.all.pred %p, 1, {EVERY};"""
    result = compare(device, body, words)
    assert result[7].tolist() == [0xFFFFFFE0, (0xFFFFFFE0 + 27) % 2**32, 1, 0]


def test_a_warp_with_fewer_threads(device, words):
    """Lanes without a thread take no part, whatever the mask says."""
    body = f"""
    vote.sync.ballot.b32 %a, 1, {EVERY};
    redux.sync.max.u32 %b, %lane, {EVERY};
    vote.sync.all.pred %p, 1, {EVERY};"""
    result = compare(device, body, words[:41], threads=41)
    assert result[40].tolist() == [0x1FF, 8, 1, 0]


def test_active_mask_within_branches(device, words):
    """All lanes at first, then those that take each side, then all again."""
    body = """
    activemask.b32 %a;
    @%odd bra ODD;
    activemask.b32 %b;
    bra JOIN;
ODD:
    activemask.b32 %b;
JOIN:
    activemask.b32 %t;
    setp.eq.u32 %p, %t, 0xffffffff;"""
    output = device.zeros((THREADS, 4), np.uint32)
    device.load(kernel(body))["kernel"][1, THREADS](device.array(words), output)
    result = output.numpy()
    assert (result[:, 0] == 0xFFFFFFFF).all()
    assert result[:2, 1].tolist() == [0x55555555, 0xAAAAAAAA]
    assert (result[:, 2] == 1).all()


def test_active_mask_under_a_guard(device, words):
    output = device.zeros((THREADS, 4), np.uint32)
    text = kernel("mov.u32 %a, 77;\n    @%odd activemask.b32 %a;")
    device.load(text)["kernel"][1, THREADS](device.array(words), output)
    assert output.numpy()[:4, 0].tolist() == [77, 0xAAAAAAAA, 77, 0xAAAAAAAA]


@pytest.mark.parametrize("members", [0xFFFFFFFF, 0x55555555])
def test_election_has_one_leader(device, words, members):
    """One member, the same for all, and its predicate alone is true."""
    guard = "" if members == 0xFFFFFFFF else "@%odd bra REST;"
    text = kernel(f"{guard}\n    elect.sync %a|%p, {members:#x};\n    mov.u32 %b, 1;\nREST:")
    output = device.zeros((THREADS, 4), np.uint32)
    device.load(text)["kernel"][1, THREADS](device.array(words), output)
    for warp in output.numpy().reshape(WARPS, 32, 4):
        took_part = warp[warp[:, 1] == 1]
        leader = int(took_part[0, 0])
        assert (took_part[:, 0] == leader).all()
        assert members >> leader & 1
        assert [lane for lane in range(32) if warp[lane, 2]] == [leader]


def test_barrier_of_a_warp_orders_shared_memory(device, words):
    """Each lane writes, waits, and reads its neighbour's word, in a branch and outside."""
    body = f"""
    mov.u32 %t, tile;
    mad.lo.u32 %t, %thread, 4, %t;
    st.shared.u32 [%t], %x;
    bar.warp.sync {EVERY};
    xor.b32 %z, %thread, 1;
    mov.u32 %y, tile;
    mad.lo.u32 %y, %z, 4, %y;
    ld.shared.u32 %a, [%y];
    bar.warp.sync {EVERY};
    @%odd bra REST;
    st.shared.u32 [%t], %thread;
    bar.warp.sync 0x55555555;
    xor.b32 %z, %thread, 2;
    mov.u32 %y, tile;
    mad.lo.u32 %y, %z, 4, %y;
    ld.shared.u32 %b, [%y];
REST:"""
    compare(device, body, words)


def test_lane_masks_and_numbers(device):
    names = (
        "%laneid",
        "%lanemask_eq",
        "%lanemask_lt",
        "%lanemask_le",
        "%lanemask_gt",
        "%lanemask_ge",
        "WARP_SZ",
    )
    stores = [f"mov.u32 %x, {name};\n    st.global.u32 [%out+{4 * i}], %x;" for i, name in enumerate(names)]
    text = f"""{HEADER}
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %x;
    .reg .b64 %out;
    ld.param.u64 %out, [output];
    mov.u32 %x, %tid.x;
    mad.wide.u32 %out, %x, 32, %out;
    {"    ".join(stores)}
    ret;
}}"""
    output = device.zeros((THREADS, 8), np.uint32)
    device.load(text)["kernel"][1, THREADS](output)
    for thread, row in enumerate(output.numpy().tolist()):
        lane = thread % 32
        equal, below = 1 << lane, (1 << lane) - 1
        above = 0xFFFFFFFF - below - equal
        assert row[:7] == [lane, equal, below, below + equal, above, above + equal, 32]


def test_shapes_of_grids_and_blocks(device):
    """%tid, %ntid, %ctaid and %nctaid in three dimensions; lanes go along x first, then y, then z."""
    names = [f"%{base}.{part}" for base in ("tid", "ntid", "ctaid", "nctaid") for part in "xyz"]
    stores = [f"mov.u32 %x, {name};\n    st.global.u32 [%out+{4 * i}], %x;" for i, name in enumerate(names)]
    text = f"""{HEADER}
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %x, %y, %lane;
    .reg .b64 %out;
    ld.param.u64 %out, [output];
    mov.u32 %x, %ctaid.z;
    mov.u32 %y, %nctaid.y;
    mul.lo.u32 %x, %x, %y;
    mov.u32 %y, %ctaid.y;
    add.u32 %x, %x, %y;
    mov.u32 %y, %nctaid.x;
    mul.lo.u32 %x, %x, %y;
    mov.u32 %y, %ctaid.x;
    add.u32 %x, %x, %y;
    mul.lo.u32 %x, %x, 30;
    mov.u32 %y, %tid.z;
    mad.lo.u32 %x, %y, 15, %x;
    mov.u32 %y, %tid.y;
    mad.lo.u32 %x, %y, 5, %x;
    mov.u32 %y, %tid.x;
    add.u32 %x, %x, %y;
    mad.wide.u32 %out, %x, 64, %out;
    {"    ".join(stores)}
    mov.u32 %lane, %laneid;
    st.global.u32 [%out+48], %lane;
    ret;
}}"""
    agree(device, text, "kernel", (2, 3, 2), (5, 3, 2), np.zeros(12 * 30 * 16, np.uint32))
