# SPDX-License-Identifier: Apache-2.0
"""Kernels that each have one problem, and twins that do the same work without it."""

from dataclasses import dataclass, replace

from bound_kernels import BOUNDS, FLOATS, HEAD, SUM, Bound, source


@dataclass(frozen=True)
class Pair:
    """A kernel with a problem, and its twin: what the advice makes of it."""

    problem: Bound
    twin: Bound
    launches: int = 1  # of the problem, for one of the twin

    @property
    def kind(self):
        return self.problem.kind


def _twin(problem, **changes):
    return replace(problem, kind="", **changes)


def _fma(registers, count, between=""):
    return "".join(f"fma.rn.f32 %f{n},%f{n},%f{n},%f{n};{between}" for n in registers) * count


# --- Shared memory ---


def _transposition(pitch):
    """Of 256 x 256 words, in tiles of 32 x 32 that lie in shared memory in rows of `pitch` words."""
    return source(
        "ld.global.u32 %x5,[%a]; st.shared.u32 [%x3],%x5; bar.sync 0; ld.shared.u32 %x5,[%x4];"
        "st.global.u32 [%e],%x5;",
        "and.b32 %x1,%t,31; shr.u32 %x2,%t,5; and.b32 %x6,%m,7; shr.u32 %x7,%m,3;"
        f"mov.u32 %n,words; mad.lo.u32 %x3,%x2,{4 * pitch},%n; mad.lo.u32 %x3,%x1,4,%x3;"
        f"mad.lo.u32 %x4,%x1,{4 * pitch},%n; mad.lo.u32 %x4,%x2,4,%x4;"
        "mad.lo.u32 %i,%x7,32,%x2; mad.lo.u32 %i,%i,8,%x6; mad.lo.u32 %i,%i,32,%x1;"
        "mul.wide.u32 %o,%i,4; add.s64 %a,%data,%o;"
        "mad.lo.u32 %i,%x6,32,%x2; mad.lo.u32 %i,%i,8,%x7; mad.lo.u32 %i,%i,32,%x1;"
        "mul.wide.u32 %o,%i,4; add.s64 %e,%data,%o; add.s64 %e,%e,262144;",
        shared=32 * pitch,
    )


_TRANSPOSITION = Bound("bank conflicts", _transposition(32), grid=64, block=1024, times=1, words=1 << 17)

# Sixteen lanes at a time want words of one bank; in the twin, words beside each other.
_COLUMNS = (
    "mov.u32 %x1,words; and.b32 %x2,%t,31; mul.lo.u32 %x2,%x2,{stride}; add.u32 %x1,%x1,%x2; mov.u32 %x3,0;"
)
_SHARED_LOADS = "ld.volatile.shared.u32 %x2,[%x1]; add.u32 %x3,%x3,%x2;"


def _columns(stride):
    return source(
        _SHARED_LOADS,
        _COLUMNS.format(stride=stride) + "st.shared.u32 [%x1],%t; bar.sync 0;",
        "st.global.u32 [%a],%x3;",
        shared=1024,
    )


_STRIDED = Bound("bank conflicts", _columns(64), times=32)


# All lanes change words of one bank; in the twin, each in its own.
def _shared_atomics(stride):
    return source(
        "atom.shared.add.u32 %x2,[%x1],%t; add.u32 %x3,%x3,%x2;",
        _COLUMNS.format(stride=stride),
        "st.global.u32 [%a],%x3;",
        shared=1024,
    )


_SHARED_ATOMICS = Bound("contention of shared-memory atomics", _shared_atomics(128), times=16)


def _table(space):
    """Lanes look up entries of a table, one after the other: in constant or in shared memory."""
    text = source(
        f"add.u32 %x4,%t,%m; and.b32 %x4,%x4,31; mul.wide.u32 %e,%x4,4; add.s64 %e,%o,%e; ld.{space}.u32 %x2,[%e];"
        "add.u32 %x3,%x3,%x2;",
        "mov.u64 %o,table; mov.u32 %x3,0;",
        "st.global.u32 [%a],%x3;",
    )
    return text.replace(HEAD, HEAD + f".{space} .align 4 .b32 table[32];\n")


_CONSTANTS = Bound("serialised constant loads", _table("const"), times=32)

# --- Global memory ---


def _strided(words, then):
    """Thread i reads the word i * words + m * then in round m."""
    return source(
        "ld.global.f32 %f1,[%e]; add.f32 %f5,%f5,%f1; add.s64 %e,%e,%o;",
        f"mul.wide.u32 %e,%i,{4 * words}; add.s64 %e,%data,%e; mov.u64 %o,{4 * then}; mov.f32 %f5,0f00000000;",
        "st.global.f32 [%a],%f5;",
    )


# Fields of records of 32 B: a sector for each lane, and nobody wants the rest of it.
_RECORDS = Bound("uncoalesced global access", _strided(8, 1 << 17), grid=64, times=8, words=1 << 20)
# Each thread reads consecutive words: L1 has them from the second on, but a warp touches 32 lines at a time.
_CHUNKS = Bound("uncoalesced global access", _strided(32, 1), grid=64, times=32, words=1 << 19)


def _bytes(load, count, step):
    return source(
        f"{load} %x1,[%e]; add.u32 %x3,%x3,%x1;" * count,
        f"mul.wide.u32 %e,%t,{step}; add.s64 %e,%data,%e; mov.u32 %x3,0;",
        "st.global.u32 [%a],%x3;",
    )


# The host has written the pages last.
_PAGES = Bound("page faults", _strided(1, 1 << 12), times=16, words=1 << 16, managed=True)
_NARROW = Bound(  # on an SM for which words are wide enough: Volta gains from 8 B too
    "narrow accesses",
    _bytes("ld.volatile.global.u8", 32, 1),
    grid=32,
    times=8,
    changes=("gpu.sm.global_interval=4",),
)

# --- Occupancy ---

_CHAIN = (
    "ld.global.u32 %x1,[%a]; mad.lo.u32 %i,%x1,7,%i; add.u32 %i,%i,4128; and.b32 %i,%i,65535;"
    "mul.wide.u32 %o,%i,4; add.s64 %a,%data,%o;"
)
_KEEP = "add.s64 %e,%a,262144; and.b32 %i,%i,65535;"  # where results go: not where the chain reads
_RESULT = "st.global.u32 [%e],%i;"


def _hog(shared):
    return source(_CHAIN, _KEEP + "st.shared.u32 [words],%t;", _RESULT, shared=shared)


_SHARED_HOG = Bound(
    "low occupancy: shared memory",
    _hog(5120),
    grid=64,
    block=64,
    times=24,
    words=1 << 17,
)


def _live(begin):
    """96 values that are needed at the end are loaded at the begin, or only there."""
    end = "cvt.rn.f32.u32 %f2,%i; add.f32 %f1,%f1,%f2; st.global.f32 [%e],%f1;"
    if not begin:
        again = "mov.u32 %m,0; MORE: ld.global.f32 %f2,[%data]; add.f32 %f1,%f1,%f2; add.s64 %data,%data,4;"
        loop = "add.u32 %m,%m,1; setp.lt.u32 %p,%m,96; @%p bra MORE;"
        return source(_CHAIN, _KEEP + "mov.f32 %f1,0f00000000;", again + loop + end)
    loads = ".reg .f32 %v<96>;" + "".join(f"ld.global.f32 %v{n},[%data+{4 * n}];" for n in range(96))
    sums = "".join(f"add.f32 %f1,%f1,%v{n};" for n in range(96))
    return source(_CHAIN, _KEEP + "mov.f32 %f1,0f00000000;" + loads, sums + end)


_REGISTERS = Bound("low occupancy: registers", _live(True), grid=64, block=128, times=128, words=1 << 17)
_SMALL_BLOCKS = Bound(
    "low occupancy: small blocks",
    source(_CHAIN, _KEEP, _RESULT),
    grid=512,
    block=32,
    times=24,
    words=1 << 17,
)

# --- Instructions ---


def _paths(number):
    """Four paths, by the last two bits of a number."""
    return source(
        f"{number} and.b32 %x1,%x1,3; setp.eq.u32 %q,%x1,1; @%q bra ONE; setp.eq.u32 %q,%x1,2; @%q bra TWO;"
        "setp.eq.u32 %q,%x1,3; @%q bra THREE;"
        + "fma.rn.f32 %f1,%f1,%f1,%f1; fma.rn.f32 %f2,%f2,%f2,%f2;" * 24
        + "bra JOIN; ONE:"
        + "fma.rn.f32 %f1,%f1,%f1,%f2; fma.rn.f32 %f2,%f2,%f2,%f1;" * 24
        + "bra JOIN; TWO:"
        + "fma.rn.f32 %f1,%f1,%f2,%f1; fma.rn.f32 %f2,%f2,%f1,%f2;" * 24
        + "bra JOIN; THREE:"
        + "fma.rn.f32 %f1,%f2,%f1,%f1; fma.rn.f32 %f2,%f1,%f2,%f2;" * 24
        + "JOIN:",
        FLOATS,
        SUM,
    )


_DIVERGENT = Bound("branch divergence", _paths("mov.u32 %x1,%t;"), times=4)
_FILLED = Bound("partly filled warps", source(_fma(range(1, 5), 16), FLOATS, SUM), grid=512, block=8)
_FETCH = replace(BOUNDS["fetch"], kind="instruction fetch")
_ROLLED = source("".join(f"add.f32 %f{n},%f{n},%f8;" for n in range(1, 8)) * 5, FLOATS, SUM)
_DOUBLE = replace(BOUNDS["fp64"], kind="FP64 pipe")
_SINGLE = source(_fma(range(1, 5), 8), FLOATS, SUM)


def _exponentials(inside, outside):
    return source(inside + "".join(f"add.f32 %f3,%f3,%f{n};" for n in (2, 5, 6, 7)), FLOATS + outside, SUM)


_HOISTED = "".join(f"ex2.approx.f32 %f{n},%f1;" for n in (2, 5, 6, 7))
_SPECIAL = Bound("XU pipe", _exponentials(_HOISTED, ""), grid=32, times=32)


def _accumulators(local):
    """A sum that lies in local memory, as where an array is indexed at run time; or in a register."""
    if not local:
        return source("add.f32 %f2,%f2,%f1; mul.f32 %f1,%f1,%f3;", FLOATS, "st.global.f32 [%a],%f2;")
    return source(
        "ld.local.f32 %f2,[%e]; add.f32 %f2,%f2,%f1; st.local.f32 [%e],%f2; mul.f32 %f1,%f1,%f3;",
        FLOATS + ".local .align 4 .b32 sums[8]; and.b32 %x1,%t,7; mul.wide.u32 %e,%x1,4; mov.u64 %o,sums;"
        "add.s64 %e,%o,%e; st.local.f32 [%e],%f2;",
        "ld.local.f32 %f2,[%e]; st.global.f32 [%a],%f2;",
    )


_LOCAL = Bound("local memory", _accumulators(True), times=32)

# --- Threads that meet ---


def _barriers(spread):
    """Between barriers the first warp does all additions; in the twin each warp does its part, and waits for nobody."""
    alone = "setp.ge.u32 %q,%t,32; @%q bra WAIT;" + "add.f32 %f1,%f1,%f2;" * 256 + "WAIT: bar.sync 0;"
    return source(
        "add.f32 %f1,%f1,%f2;" * 8 + "bar.warp.sync -1;" if spread else alone,
        FLOATS,
        "st.global.f32 [%a],%f1;",
    )


_BARRIERS = Bound("barriers", _barriers(False), block=1024, grid=8, times=16)

# All threads add to one word; in the twin the first of each CTA does, what the CTA has added up in shared memory.
_ATOMICS = Bound(
    "contention of atomics",
    source(
        "atom.global.max.u32 %x1,[%data],%t; add.u32 %x3,%x3,%x1;",
        "mov.u32 %x3,0;",
        "st.global.u32 [%a],%x3;",
    ),
    grid=32,
    times=4,
)
_ADDED_UP = source(
    "mov.u32 %x2,%t;"
    + "".join(
        f"shfl.sync.bfly.b32 %x1,%x2,{distance},31,-1; max.u32 %x2,%x2,%x1;" for distance in (16, 8, 4, 2, 1)
    )
    + "shr.u32 %x4,%t,5; mov.u32 %x5,words; mad.lo.u32 %x5,%x4,4,%x5; and.b32 %x6,%t,31; setp.eq.u32 %q,%x6,0;"
    "@%q st.shared.u32 [%x5],%x2; bar.sync 0; setp.eq.u32 %q,%t,0; @%q ld.shared.u32 %x1,[words];"
    "@%q atom.global.max.u32 %x3,[%data],%x1; bar.sync 0;",
    "mov.u32 %x3,0;",
    "st.global.u32 [%a],%x3;",
    shared=32,
)

# --- Grids ---

_WORK = source(_fma(range(1, 5), 16), FLOATS, SUM)
_LAUNCH = Bound("launch overhead", _WORK, times=1, grid=16)
_FEW = Bound("too few CTAs", _WORK, grid=1, times=64)
_TAIL = Bound(
    "tail effect",
    _WORK,
    grid=9,
    block=1024,
    times=16,
)
_UNEVEN = Bound(
    "uneven CTAs",
    source(
        _fma(range(1, 5), 16),
        FLOATS + "mov.u32 %x1,%ctaid.x; setp.eq.u32 %q,%x1,0; @%q mul.lo.u32 %times,%times,64;",
        SUM,
    ),
    grid=64,
    times=2,
)

PAIRS = {
    "transposition": Pair(_TRANSPOSITION, _twin(_TRANSPOSITION, source=_transposition(33))),
    "strided shared memory": Pair(_STRIDED, _twin(_STRIDED, source=_columns(4))),
    "shared atomics": Pair(_SHARED_ATOMICS, _twin(_SHARED_ATOMICS, source=_shared_atomics(4))),
    "constants": Pair(_CONSTANTS, _twin(_CONSTANTS, source=_table("shared"))),
    "records": Pair(_RECORDS, _twin(_RECORDS, source=_strided(1, 1 << 14))),
    "chunks": Pair(_CHUNKS, _twin(_CHUNKS, source=_strided(1, 1 << 14))),
    "bytes": Pair(_NARROW, _twin(_NARROW, source=_bytes("ld.volatile.global.u32", 8, 4))),
    "managed memory": Pair(_PAGES, _twin(_PAGES, prefetched=True)),
    "shared memory": Pair(_SHARED_HOG, _twin(_SHARED_HOG, source=_hog(1))),
    "registers": Pair(_REGISTERS, _twin(_REGISTERS, source=_live(False))),
    "small blocks": Pair(_SMALL_BLOCKS, _twin(_SMALL_BLOCKS, grid=64, block=256)),
    "divergence": Pair(_DIVERGENT, _twin(_DIVERGENT, source=_paths("shr.u32 %x1,%t,5;"))),
    "short blocks": Pair(_FILLED, _twin(_FILLED, grid=16, block=256)),
    "fetch": Pair(_FETCH, _twin(_FETCH, source=_ROLLED, times=160)),
    "fp64": Pair(_DOUBLE, _twin(_DOUBLE, source=_SINGLE)),
    "special functions": Pair(_SPECIAL, _twin(_SPECIAL, source=_exponentials("", _HOISTED))),
    "local memory": Pair(_LOCAL, _twin(_LOCAL, source=_accumulators(False))),
    "barriers": Pair(_BARRIERS, _twin(_BARRIERS, source=_barriers(True))),
    "atomics": Pair(_ATOMICS, _twin(_ATOMICS, source=_ADDED_UP)),
    "launch": Pair(_LAUNCH, _twin(_LAUNCH, times=8), launches=8),
    "few CTAs": Pair(_FEW, _twin(_FEW, grid=16, times=4)),
    "tail": Pair(_TAIL, _twin(_TAIL, grid=8, times=18)),
    "uneven": Pair(_UNEVEN, _twin(_UNEVEN, source=_WORK, times=4)),
}
