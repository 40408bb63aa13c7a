# SPDX-License-Identifier: Apache-2.0
"""Comparison and selection of all types against exact comparison (`reference.compare_operations`)."""

import pytest
from instruction_support import Form, check, operands
from reference.compare_operations import FLOAT_COMPARISONS, INTEGER_COMPARISONS, UNSIGNED_COMPARISONS

from manyscale import gpu

pytestmark = pytest.mark.core

RANDOMS = 150
SIZES = (16, 32, 64)
NUMBERS = tuple(f"{kind}{size}" for kind in "bus" for size in SIZES)
COMPARISONS = {
    **{f"b{size}": ("eq", "ne") for size in SIZES},
    **{f"s{size}": INTEGER_COMPARISONS for size in SIZES},
    **{f"u{size}": UNSIGNED_COMPARISONS for size in SIZES},
    **dict.fromkeys(("f32", "f64", "f16", "bf16"), FLOAT_COMPARISONS),
}
PAIRS = [(type_, name) for type_, names in COMPARISONS.items() for name in names]
COMBINED = [(type_, name) for type_, name in PAIRS if type_ in ("s32", "u64", "f32", "f16")]


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def compare(device, opcode: str, results: int | None = None) -> None:
    form = Form(opcode, results=results)
    check(device, form, operands(form, RANDOMS))


@pytest.mark.parametrize(("type_", "name"), PAIRS)
def test_setp(device, type_, name):
    compare(device, f"setp.{name}.{type_}", results=1)


@pytest.mark.parametrize(("type_", "name"), [pair for pair in COMBINED if pair[0] != "f16"])
def test_setp_also_gives_the_complement(device, type_, name):
    compare(device, f"setp.{name}.{type_}")


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
@pytest.mark.parametrize(("type_", "name"), COMBINED)
def test_setp_combines_with_a_predicate(device, type_, name, combine):
    compare(device, f"setp.{name}.{combine}.{type_}", results=1 if type_ == "f16" else None)


@pytest.mark.parametrize("combine", ["", ".and"])
@pytest.mark.parametrize("type_", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
def test_setp_of_packed_halves(device, type_, name, combine):
    compare(device, f"setp.{name}{combine}.{type_}")


@pytest.mark.parametrize("opcode", [f"setp.{name}.ftz.f32" for name in FLOAT_COMPARISONS])
def test_setp_flushes_subnormal_numbers(device, opcode):
    compare(device, opcode, results=1)


@pytest.mark.parametrize("result", ["u32", "s32", "f32"])
@pytest.mark.parametrize(
    "type_", ["b16", "u16", "s16", "b32", "s32", "u32", "b64", "u64", "s64", "f32", "f64"]
)
def test_set(device, result, type_):
    for name in ("eq", "ne") if type_[0] == "b" else ("lt", "ge"):
        compare(device, f"set.{name}.{result}.{type_}")


@pytest.mark.parametrize(
    "opcode", ["set.lt.and.u32.s32", "set.geu.xor.f32.f32", "set.hi.or.s32.u32", "set.eq.ftz.u32.f32"]
)
def test_set_combines_with_a_predicate(device, opcode):
    compare(device, opcode)


@pytest.mark.parametrize("result", ["u16", "s16", "u32", "s32", "f16", "f16x2", "bf16", "bf16x2"])
@pytest.mark.parametrize("name", ["lt", "neu", "num"])
def test_set_of_halves(device, result, name):
    """A result as wide as the operands, or of 32 bits; packed results only of packed operands."""
    kinds = ("bf16", "bf16x2") if result.startswith("bf") else ("f16", "f16x2")
    packed = result.endswith("x2")
    for kind in kinds:
        if kind.endswith("x2") == packed or (kind.endswith("x2") and result in ("u32", "s32")):
            compare(device, f"set.{name}.{result}.{kind}")


@pytest.mark.parametrize("type_", [*NUMBERS, "f32", "f64"])
def test_selp(device, type_):
    """Copies bits as they are, also those of NaN."""
    compare(device, f"selp.{type_}")


@pytest.mark.parametrize("control", ["s32", "f32"])
@pytest.mark.parametrize("type_", [*NUMBERS, "f32", "f64"])
def test_slct(device, type_, control):
    compare(device, f"slct.{type_}.{control}")


@pytest.mark.parametrize("type_", ["b32", "f64"])
def test_slct_flushes_the_control(device, type_):
    compare(device, f"slct.ftz.{type_}.f32")
