# SPDX-License-Identifier: Apache-2.0
"""The reference's arithmetic against the host's, against fractions, and against values worked out by hand."""

import struct
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from reference import rounding
from reference.float_operations import from_float, to_float
from reference.operations import UnsupportedError, operation
from reference.rounding import FORMATS, Number

F32, F64 = FORMATS["f32"], FORMATS["f64"]
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
BITS = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def run(opcode: str, *operands: int):
    return operation(opcode).function(*operands)


def bits_of(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def random_bits(name: str, count: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << FORMATS[name].width, count, BITS[name], endpoint=False)
    near = NUMPY[name](1) + random.standard_normal(count).astype(NUMPY[name])
    return np.where(random.random(count) < 0.5, bits, near.view(BITS[name]))


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
@pytest.mark.parametrize("base", ["add", "sub", "mul", "div", "sqrt"])
def test_rounding_to_nearest_is_that_of_the_host(name, base):
    a, b = random_bits(name, 3000, 1), random_bits(name, 3000, 2)
    mode = ".rn" if base in ("div", "sqrt") else ""
    x, y = a.view(NUMPY[name]), b.view(NUMPY[name])
    with np.errstate(all="ignore"):
        operations = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "sqrt": np.sqrt(x)}
    expected = operations[base].view(BITS[name])
    for i in range(len(a)):
        operands = (int(a[i]),) if base == "sqrt" else (int(a[i]), int(b[i]))
        result = run(f"{base}{mode}.{name}", *operands)
        both_nan = rounding.is_nan(result, FORMATS[name]) and np.isnan(operations[base][i])
        assert result == int(expected[i]) or both_nan, f"{base} {operands}"


def exact(bits: int, format_: rounding.Format) -> Fraction:
    number = rounding.decode(bits, format_)
    return (-1 if number.negative else 1) * Fraction(number.magnitude) * Fraction(2) ** number.exponent


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "e4m3", "e5m2"])
def test_rounding_is_to_a_neighbour_of_the_value(name, mode):
    """The result of each mode is the neighbour it names, found by looking at all numbers around it."""
    format_, random = FORMATS[name], Random(f"{name} {mode}")
    for _ in range(400):
        magnitude, exponent = random.getrandbits(random.randint(1, 40)) | 1, random.randint(-30, 5)
        value = Fraction(magnitude) * Fraction(2) ** exponent
        below = rounding.encode(Number("finite", False, magnitude, exponent), format_, "rz")
        if below >= format_.top or exact(below, format_) > value:
            continue
        step = Fraction(exact(below + 1, format_) - exact(below, format_))
        assert exact(below, format_) <= value < exact(below, format_) + step
        for negative in (False, True):
            result = rounding.encode(Number("finite", negative, magnitude, exponent), format_, mode)
            rest = value - exact(below, format_)
            up = {
                "rn": rest * 2 > step or (rest * 2 == step and below & 1),
                "rz": False,
                "rm": negative and rest > 0,
                "rp": not negative and rest > 0,
            }[mode]
            assert result == (below + bool(up)) | (format_.sign_bit if negative else 0)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e2m1", "e2m3", "e3m2"])
def test_numbers_of_a_format_survive_decoding_and_encoding(name):
    format_ = FORMATS[name]
    random = Random(name)
    for _ in range(500):
        bits = random.getrandbits(1 + format_.exponent_bits + format_.mantissa_bits)
        if not rounding.is_nan(bits, format_):
            assert rounding.encode(rounding.decode(bits, format_), format_) == bits


def test_overflow_goes_where_the_mode_says():
    top, infinity, sign = F32.top, F32.infinity, F32.sign_bit
    large = Number("finite", False, 1, 200)
    assert [rounding.encode(large, F32, mode) for mode in ("rn", "rz", "rm", "rp")] == [
        infinity,
        top,
        top,
        infinity,
    ]
    negative = [rounding.encode(large.negated(), F32, mode) for mode in ("rn", "rz", "rm", "rp")]
    assert negative == [sign | infinity, sign | top, sign | infinity, sign | top]
    assert rounding.encode(large, FORMATS["e4m3"]) == 0x7E


def test_a_sum_that_cancels_is_negative_only_when_rounding_down():
    one = bits_of(1.0)
    assert [run(f"sub.{mode}.f32", one, one) for mode in ("rn", "rz", "rm", "rp")] == [0, 0, 0x80000000, 0]
    assert run("add.rm.f32", 0x80000000, 0) == 0x80000000
    assert run("add.rn.f32", 0x80000000, 0x80000000) == 0x80000000


def test_fma_rounds_once():
    """(1 + 2^-23)^2 = 1 + 2^-22 + 2^-46: with a product rounded first, the last bit is lost."""
    x = bits_of(1 + 2.0**-23)
    assert to_float(run("fma.rn.f32", x, x, bits_of(-1 - 2.0**-22)), F32) == 2.0**-46
    assert run("fma.rn.f32", 0x7F800000, 0, 0) == F32.nan


def test_python_floats_are_exact():
    for value in (1.5, -0.1, 5e-324, -0.0, 1e308):
        assert rounding.encode(from_float(value), F64) == struct.unpack("<Q", struct.pack("<d", value))[0]
        assert struct.pack(
            "<d", to_float(struct.unpack("<Q", struct.pack("<d", value))[0], F64)
        ) == struct.pack("<d", value)


HAND_WORKED = [
    ("add.sat.s32", (0x7FFFFFFF, 1), 0x7FFFFFFF),
    ("sub.sat.s32", (0x80000000, 1), 0x80000000),
    ("mul.hi.s32", (0xFFFFFFFF, 2), 0xFFFFFFFF),
    ("mul.hi.u32", (0xFFFFFFFF, 2), 1),
    ("mul.wide.s16", (0xFFFF, 0xFFFF), 1),
    ("mad.hi.sat.s32", (0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), 0x7FFFFFFF),
    ("mul24.hi.u32", (0xFFFFFF, 0xFFFFFF), 0xFFFFFE00),
    ("sad.s32", (0xFFFFFFFF, 1, 10), 12),
    ("sad.u32", (0xFFFFFFFF, 1, 10), 8),
    ("div.s32", (0xFFFFFFF9, 2), 0xFFFFFFFD),
    ("rem.s32", (0xFFFFFFF9, 2), 0xFFFFFFFF),
    ("abs.s32", (0x80000000,), 0x80000000),
    ("popc.b64", (0xF0F0,), 8),
    ("clz.b32", (1,), 31),
    ("clz.b64", (0,), 64),
    ("bfind.s32", (0xFFFFFFFF,), 0xFFFFFFFF),
    ("bfind.s32", (0xFFFFFF00,), 7),
    ("bfind.shiftamt.u32", (1,), 31),
    ("fns.b32", (0xAAAAAAAA, 3, 1), 3),
    ("fns.b32", (0xAAAAAAAA, 2, 0xFFFFFFFF), 1),
    ("brev.b32", (1,), 0x80000000),
    ("bfe.u32", (0x12345678, 8, 8), 0x56),
    ("bfe.s32", (0x0000F000, 12, 4), 0xFFFFFFFF),
    ("bfe.s32", (0x80000000, 31, 5), 0xFFFFFFFF),
    ("bfe.s32", (0x80000000, 40, 5), 0xFFFFFFFF),
    ("bfe.s32", (0x80000000, 40, 0), 0),
    ("bfi.b32", (0xFF, 0, 28, 8), 0xF0000000),
    ("bfi.b32", (0xFF, 0x1234, 32, 8), 0x1234),
    ("szext.clamp.s32", (0x80, 8), 0xFFFFFF80),
    ("szext.wrap.u32", (0xFFFFFFFF, 0), 0),
    ("szext.clamp.s32", (0x12345678, 99), 0x12345678),
    ("bmsk.wrap.b32", (1, 2), 6),
    ("bmsk.clamp.b32", (4, 32), 0xFFFFFFF0),
    ("bmsk.clamp.b32", (32, 1), 0),
    ("dp4a.s32.u32", (0x000000FF, 0x00000003, 10), 7),
    ("dp2a.hi.u32.u32", (0x00020003, 0x05070000, 0), 3 * 7 + 2 * 5),
    ("prmt.b32", (0x33221100, 0x77665544, 0x7531), 0x77553311),
    ("prmt.b32", (0x00000080, 0, 0x8888), 0xFFFFFFFF),
    ("prmt.b32.b4e", (0x33221100, 0x77665544, 0), 0x55667700),
    ("prmt.b32.ecr", (0x33221100, 0x77665544, 2), 0x22221100),
    ("lop3.b32", (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x1A), 0x1A1A1A1A),
    ("shl.b32", (1, 32), 0),
    ("shr.s32", (0x80000000, 99), 0xFFFFFFFF),
    ("shr.u64", (1 << 63, 64), 0),
    ("shf.l.clamp.b32", (0x80000000, 1, 1), 3),
    ("shf.r.wrap.b32", (0x80000000, 1, 33), 0xC0000000),
    ("cnot.b16", (0,), 1),
    ("min.s16x2", (0x7FFF8000, 0x00000001), 0x00008000),
    ("max.relu.s16x2", (0xFFFF0005, 0xFFFE0003), 0x00000005),
    ("cvt.rzi.s32.f32", (bits_of(-2.9),), 0xFFFFFFFE),
    ("cvt.rni.s32.f32", (bits_of(2.5),), 2),
    ("cvt.rzi.u32.f32", (bits_of(-1.0),), 0),
    ("cvt.rzi.s32.f32", (0x7FC00000,), 0),
    ("cvt.rzi.s64.f32", (0x7FC00000,), 1 << 63),
    ("cvt.rzi.u32.f64", (0x7FF8000000000000,), 1 << 31),
    ("cvt.rzi.s32.f32", (bits_of(1e20),), 0x7FFFFFFF),
    ("cvt.rz.f32.u32", (0xFFFFFFFF,), 0x4F7FFFFF),
    ("cvt.rn.f32.u32", (0xFFFFFFFF,), 0x4F800000),
    ("cvt.sat.u8.s32", (0xFFFFFFFF,), 0),
    ("cvt.s32.s8", (0x80,), 0xFFFFFF80),
    ("cvt.rn.f16x2.f32", (bits_of(1.0), bits_of(2.0)), 0x3C004000),
    ("cvt.rn.satfinite.e4m3x2.f32", (bits_of(1000.0), bits_of(-1.0)), 0x7EB8),
    ("cvt.rn.satfinite.e5m2x2.f32", (0x7FC00000, bits_of(1e9)), 0x7F7B),
    ("cvt.rna.tf32.f32", (0x3F801000,), 0x3F802000),
    ("cvt.rn.tf32.f32", (0x3F801000,), 0x3F800000),
    ("cvt.pack.sat.u8.s32.b32", (300, 0xFFFFFFFF, 0xABCD), 0xABCDFF00),
    ("cvt.rni.f32.f32", (bits_of(-0.5),), 0x80000000),
    ("min.f32", (0x7FC00000, bits_of(1.0)), bits_of(1.0)),
    ("min.f32", (0, 0x80000000), 0x80000000),
    ("max.NaN.f32", (0x7FC00000, bits_of(1.0)), 0x7FFFFFFF),
    ("min.xorsign.abs.f32", (bits_of(-2.0), bits_of(3.0)), bits_of(-2.0)),
    ("add.sat.f32", (bits_of(0.75), bits_of(0.75)), bits_of(1.0)),
    ("add.sat.f32", (0x7FC00000, 0), 0),
    ("add.ftz.f32", (1, 0x80000001), 0),
    ("fma.rn.relu.bf16", (0x3F80, 0xBF80, 0), 0),
    ("copysign.f32", (0x80000000, bits_of(2.0)), bits_of(-2.0)),
    ("testp.normal.f32", (0,), 1),
    ("testp.subnormal.f32", (1,), 1),
    ("setp.lt.f32", (0x7FC00000, 0), (0, 1)),
    ("setp.ltu.f32", (0x7FC00000, 0), (1, 0)),
    ("setp.lt.and.s32", (0xFFFFFFFF, 0, 1), (1, 0)),
    ("setp.gt.f16x2", (0x3C000000, 0x00003C00), (0, 1)),
    ("set.eq.f32.s32", (3, 3), bits_of(1.0)),
    ("set.ne.u32.f16x2", (0x3C003C00, 0x3C000000), 0x0000FFFF),
    ("slct.b32.f32", (1, 2, 0x80000000), 1),
    ("slct.b32.f32", (1, 2, 0x7FC00000), 2),
    ("add.cc.u32", (0xFFFFFFFF, 1), (0, 1)),
    ("subc.cc.u32", (0, 0, 1), (0xFFFFFFFF, 1)),
    ("madc.hi.cc.u32", (0x80000000, 4, 0xFFFFFFFE, 1), (1, 1)),
    ("vadd4.u32.u32.u32.sat", (0x01FF7F80, 0x01017F80, 0), 0x02FFFEFF),
    ("vadd4.u32.u32.u32", (0x01FF7F80, 0x01017F80, 0), 0x0200FE00),
    ("vabsdiff4.u32.u32.u32.add", (0x0A000001, 0x000A0100, 5), 5 + 10 + 10 + 1 + 1),
    ("vsub2.s32.s32.s32.sat", (0x80000001, 0x00010002, 0), 0x8000FFFF),
    ("vavrg2.s32.s32.s32", (0xFFFF0003, 0xFFFE0004, 0), 0xFFFE0004),
    ("ex2.approx.f32", (bits_of(3.0),), bits_of(8.0)),
    ("lg2.approx.f32", (0x80000000,), 0xFF800000),
    ("rcp.approx.ftz.f64", (0x4000000000000000,), 0x3FE0000000000000),
    ("rcp.approx.ftz.f64", (0x7E40000000000000,), 0x01A0000000000000),
]


@pytest.mark.parametrize(("opcode", "operands", "expected"), HAND_WORKED)
def test_values_worked_out_by_hand(opcode, operands, expected):
    assert run(opcode, *operands) == expected


@pytest.mark.parametrize("opcode", ["add.frobnicate.s32", "nonsense.s32", "fma.f32", "cvt.s32.f32"])
def test_what_is_not_known_is_refused(opcode):
    with pytest.raises(UnsupportedError):
        operation(opcode)
