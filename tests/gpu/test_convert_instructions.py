# SPDX-License-Identifier: Apache-2.0
"""Conversions between all types, roundings and saturations against exact values (`reference.convert_operations`)."""

import pytest
from instruction_support import Form, check, operands

from manyscale import gpu

pytestmark = pytest.mark.core

RANDOMS = 300
INTEGERS = tuple(f"{kind}{size}" for kind in "us" for size in (8, 16, 32, 64))
FLOATS = ("f16", "bf16", "f32", "f64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
WHOLE = ("rni", "rzi", "rmi", "rpi")
WIDER = {("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f32", "bf16"), ("f64", "bf16")}
"""Pairs of target and source in which nothing is lost and no rounding is named."""


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def convert(device, opcode: str) -> None:
    form = Form(opcode)
    check(device, form, operands(form, RANDOMS))


def can_saturate(target: str, source: str) -> bool:
    """Whether the range of the target does not hold that of the source."""
    (to, to_size), (from_, from_size) = ((name[0], int(name[1:])) for name in (target, source))
    if from_ == to:
        return to_size < from_size
    return True if to == "u" else to_size <= from_size


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integer_to_integer(device, target, source):
    """Truncated or extended; results narrower than the register are extended by the sign of their type."""
    convert(device, f"cvt.{target}.{source}")


@pytest.mark.parametrize(
    ("target", "source"),
    [(target, source) for target in INTEGERS for source in INTEGERS if can_saturate(target, source)],
)
def test_integer_to_integer_saturates(device, target, source):
    convert(device, f"cvt.sat.{target}.{source}")


INTEGERS_AND_FLOATS = [
    (integer, floating)
    for integer in INTEGERS
    for floating in FLOATS
    if not (integer.endswith("8") and floating == "bf16")  # takes no wider registers, as eight bits need here
]


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize(("target", "source"), INTEGERS_AND_FLOATS)
def test_float_to_integer_clamps(device, target, source, mode):
    """Rounded, clamped to the range of the integer; NaN gives 0, or the top bit where 64 bits take part."""
    convert(device, f"cvt.{mode}.{target}.{source}")


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize(("source", "target"), INTEGERS_AND_FLOATS)
def test_integer_to_float_rounds(device, target, source, mode):
    convert(device, f"cvt.{mode}.{target}.{source}")


NARROWER = [("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32"), ("bf16", "f64")]
NARROWER += [("f16", "bf16"), ("bf16", "f16")]


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize(("target", "source"), NARROWER)
def test_float_to_narrower_float_rounds(device, target, source, mode):
    convert(device, f"cvt.{mode}.{target}.{source}")


@pytest.mark.parametrize(("target", "source"), sorted(WIDER))
def test_float_to_wider_float_is_exact(device, target, source):
    convert(device, f"cvt.{target}.{source}")


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
def test_float_to_whole_float(device, type_, mode):
    convert(device, f"cvt.{mode}.{type_}.{type_}")


@pytest.mark.parametrize(
    "opcode",
    [
        "cvt.sat.f32.f32",
        "cvt.sat.f64.f64",
        "cvt.rn.sat.f32.f64",
        "cvt.sat.f32.f16",
        "cvt.rn.sat.f32.s32",
        "cvt.rn.sat.f16.f64",
        "cvt.rni.sat.f32.f32",
    ],
)
def test_saturation_to_the_unit_interval(device, opcode):
    convert(device, opcode)


@pytest.mark.parametrize(
    "opcode",
    [
        "cvt.ftz.f32.f32",
        "cvt.rn.ftz.f32.f64",
        "cvt.ftz.f64.f32",
        "cvt.ftz.f32.f16",
        "cvt.rn.ftz.f16.f32",
        "cvt.rpi.ftz.s32.f32",
        "cvt.rmi.ftz.f32.f32",
        "cvt.rpi.ftz.u64.f32",
        "cvt.ftz.sat.f32.f32",
    ],
)
def test_subnormal_numbers_are_flushed(device, opcode):
    convert(device, opcode)


@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("limit", ["", ".relu", ".satfinite", ".relu.satfinite"])
@pytest.mark.parametrize("target", ["f16", "bf16", "f16x2", "bf16x2"])
def test_float_to_halves(device, target, limit, mode):
    """Pairs take the first operand into their upper half."""
    convert(device, f"cvt.{mode}{limit}.{target}.f32")


@pytest.mark.parametrize(
    "opcode",
    [
        "cvt.rna.tf32.f32",
        "cvt.rn.tf32.f32",
        "cvt.rz.tf32.f32",
        "cvt.rn.relu.tf32.f32",
        "cvt.rna.satfinite.tf32.f32",
    ],
)
def test_float_to_tf32(device, opcode):
    convert(device, opcode)


@pytest.mark.parametrize("limit", ["", ".relu"])
@pytest.mark.parametrize("source", ["f32", "f16x2"])
@pytest.mark.parametrize("target", ["e4m3x2", "e5m2x2"])
def test_float_to_eight_bits(device, target, source, limit):
    convert(device, f"cvt.rn.satfinite{limit}.{target}.{source}")


@pytest.mark.parametrize("limit", ["", ".relu"])
@pytest.mark.parametrize("source", ["e4m3x2", "e5m2x2"])
def test_eight_bits_to_halves(device, source, limit):
    form = Form(f"cvt.rn{limit}.f16x2.{source}")
    check(device, form, [(bits * 0x0101 ^ 0x3C00,) for bits in range(256)] + [(0x1234,)])


@pytest.mark.parametrize("target", ["u16", "s16"])
def test_pack_of_two_halves(device, target):
    convert(device, f"cvt.pack.sat.{target}.s32")


@pytest.mark.parametrize("target", ["u8", "s8", "u4", "s4", "u2", "s2"])
def test_pack_shifts_the_third_operand(device, target):
    form = Form(f"cvt.pack.sat.{target}.s32.b32")
    near = lambda random: random.randint(-300, 300) & 0xFFFFFFFF  # noqa: E731
    check(device, form, operands(form, RANDOMS, {0: near, 1: near}) + operands(form, RANDOMS)[1:])
