# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic against exact values rounded once (`reference.rounding`, `reference.float_operations`).

Results have to be equal bit for bit; of NaN results only those that PTX calls canonical. Approximations have to be
within the error that PTX states, and exact at special values.
"""

import math

import pytest
from instruction_support import Form, check, describe, execute, operands
from reference import rounding
from reference.float_operations import Tolerance, to_float, tolerance
from reference.ptx_types import split
from reference.rounding import FORMATS

from manyscale import gpu

pytestmark = pytest.mark.core

RANDOMS = 500
ROUNDINGS = ("rn", "rz", "rm", "rp")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
TRANSCENDENTAL = ("ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt")
FLUSHING = ("add", "sub", "mul", "min", "max", "abs", "neg")

ARITHMETIC = [
    *(f"{base}.{type_}" for base in ("add", "sub", "mul") for type_ in ("f32", "f64", *HALVES)),
    *(
        f"{base}.{mode}.{type_}"
        for base in ("add", "sub", "mul")
        for mode in ROUNDINGS
        for type_ in ("f32", "f64")
    ),
    *(f"{base}.{mode}.{type_}" for base in ("fma", "mad") for mode in ROUNDINGS for type_ in ("f32", "f64")),
    *(
        f"{base}.{mode}.{type_}"
        for base in ("div", "rcp", "sqrt")
        for mode in ROUNDINGS
        for type_ in ("f32", "f64")
    ),
    *(f"fma.rn.{type_}" for type_ in HALVES),
]

FLUSHED = [
    *(f"{base}.ftz.f32" for base in FLUSHING),
    *(
        f"{base}.{mode}.ftz.f32"
        for base in ("add", "mul", "fma", "div", "rcp", "sqrt")
        for mode in ("rn", "rz")
    ),
    *(f"{base}.ftz.{type_}" for base in FLUSHING for type_ in ("f16", "f16x2")),
    *("fma.rn.ftz.f16", "fma.rn.ftz.f16x2"),
]

SATURATED = [
    *(f"{base}.sat.f32" for base in ("add", "sub", "mul")),
    *("fma.rn.sat.f32", "mad.rz.sat.f32", "add.rp.ftz.sat.f32", "fma.rn.ftz.sat.f32"),
    *(f"{base}.sat.{type_}" for base in ("add", "sub", "mul", "fma.rn") for type_ in ("f16", "f16x2")),
    *(f"fma.rn.relu.{type_}" for type_ in HALVES),
]

SELECTED = [
    *(f"{base}.{type_}" for base in ("min", "max") for type_ in ("f32", "f64", *HALVES)),
    *(f"{base}.NaN.{type_}" for base in ("min", "max") for type_ in ("f32", *HALVES)),
    *(f"{base}.xorsign.abs.{type_}" for base in ("min", "max") for type_ in ("f32", *HALVES)),
    *(f"{base}.NaN.xorsign.abs.f32" for base in ("min", "max")),
    *(f"{base}.{type_}" for base in ("abs", "neg") for type_ in ("f32", "f64", *HALVES)),
    *(f"copysign.{type_}" for type_ in ("f32", "f64")),
    *(
        f"testp.{name}.{type_}"
        for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
        for type_ in ("f32", "f64")
    ),
]

APPROXIMATIONS = [
    *(
        f"{base}.approx{flush}.f32"
        for base in ("ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt")
        for flush in ("", ".ftz")
    ),
    *("tanh.approx.f32", "div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32"),
    *(f"tanh.approx.{type_}" for type_ in HALVES),
    *("ex2.approx.f16", "ex2.approx.f16x2", "ex2.approx.ftz.bf16", "ex2.approx.ftz.bf16x2"),
    *("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"),
]


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def compare(device, opcode: str) -> None:
    form = Form(opcode)
    check(device, form, operands(form, RANDOMS))


@pytest.mark.parametrize("opcode", ARITHMETIC)
def test_arithmetic_is_rounded_once(device, opcode):
    compare(device, opcode)


@pytest.mark.parametrize("opcode", FLUSHED)
def test_subnormal_operands_and_results_are_flushed(device, opcode):
    compare(device, opcode)


@pytest.mark.parametrize("opcode", SATURATED)
def test_results_are_clamped(device, opcode):
    compare(device, opcode)


@pytest.mark.parametrize("opcode", SELECTED)
def test_selection_and_signs(device, opcode):
    compare(device, opcode)


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("base", ["add", "sub", "mul"])
def test_sums_near_ties_and_cancellation(device, base, mode):
    """Operands that differ in their last bits or by about the precision: where rounding modes part."""
    form = Form(f"{base}.{mode}.f32")
    rows = []
    for bits in range(0x3F800000, 0x3F800000 + 40):
        for shift in (-25, -24, -23, -1, 0, 1):
            other = bits + (shift << 23) ^ (bits * 0x9E3779B1 & 0x3)
            rows += [(bits, other & 0xFFFFFFFF), (bits | 0x80000000, other & 0xFFFFFFFF)]
    check(device, form, rows[:-1])


LITERALS = [
    Form("add.f32", {1: "0f3F800000"}),
    Form("add.f32", {1: "0fFF800000"}),
    Form("sub.f32", {0: "1.0"}),
    Form("mul.f32", {1: "-2.5e-3"}),
    Form("fma.rn.f32", {1: "0f00000001", 2: "0f80000000"}),
    Form("fma.rn.f32", {0: "3.0"}),
    Form("add.f64", {1: "0d3FF0000000000001"}),
    Form("mul.rz.f64", {1: "0.1"}),
    Form("fma.rn.f64", {2: "-1e300"}),
    Form("div.rn.f32", {0: "1.0"}),
    Form("max.f32", {1: "0f00000000"}),
    Form("selp.f32", {0: "0f7FC00001", 1: "-0.0"}),
    Form("setp.gt.f64", {1: "0d0000000000000000"}, results=1),
    Form("setp.neu.f32", {1: "0f7F800000"}, results=1),
    Form("mov.f32", {0: "0.1"}),
    Form("mov.f64", {0: "0f3DCCCCCD"}),
    Form("mov.f64", {0: "123456789.125"}),
    Form("copysign.f32", {0: "-1.0"}),
]


@pytest.mark.parametrize("form", LITERALS, ids=lambda form: f"{form.opcode} {form.literals}")
def test_literal_operand(device, form):
    """Exact bits, or decimal fractions, which are doubles that are rounded to the type of the instruction."""
    check(device, form, operands(form, 100))


# Approximations


def within(value: float, exact: float, bits: int, format_, allowed: Tolerance) -> bool:
    """Whether a result is as close to the exact value as is allowed; what overflows may also be infinite."""
    if math.isnan(exact) or math.isinf(exact) or math.isinf(value):
        rounded = to_float(bits, format_)
        return value == rounded or (math.isnan(value) and math.isnan(rounded))
    ulp = max(math.ulp(exact) * 2.0 ** (52 - format_.mantissa_bits), 2.0**format_.lowest_exponent)
    bound = max(allowed.relative * abs(exact), allowed.absolute, allowed.ulps * ulp)
    # The result has to be a number of the format: half an ulp is lost by rounding.
    return abs(value - exact) <= bound + ulp / 2


@pytest.mark.parametrize("opcode", APPROXIMATIONS)
def test_approximation_is_within_its_error(device, opcode):
    form = Form(opcode)
    type_ = form.operation.results[0]
    rows = operands(form, 2 * RANDOMS)
    actual = execute(device, form, rows)[0]
    format_ = FORMATS[type_.part.name]
    faults = []
    for thread, (row, bits) in enumerate(zip(rows, actual, strict=True)):
        expected = form.operation.function(*row)
        if not approximates(opcode, type_, format_, row, expected, int(bits)):
            faults.append(describe(form, thread, row, expected, int(bits)))
    assert not faults, f"{len(faults)} of {len(rows)} threads differ\n" + "\n".join(faults[:8])


def approximates(opcode: str, type_, format_, row: tuple, expected: int, actual: int) -> bool:
    parts = [split(each, type_) if type_.parts > 1 else [each] for each in (*row, expected, actual)]
    for *sources, want, got in zip(*parts, strict=True):
        values = [to_float(each, format_) for each in sources]
        if rounding.is_nan(want, format_) or want & ~format_.sign_bit in (0, format_.infinity):
            special = got == want or (rounding.is_nan(want, format_) and rounding.is_nan(got, format_))
            allowed = tolerance(opcode, values)
            if special or allowed is None:
                continue
            if rounding.is_nan(want, format_) or any(math.isinf(v) or v == 0 for v in values):
                return False
        allowed = tolerance(opcode, values)
        if allowed is None:
            continue
        if not within(to_float(got, format_), to_float(want, format_), want, format_, allowed):
            return False
    return True


def test_gross_reciprocals_leave_the_lower_half_zero(device):
    """rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and write upper halves; their NaN is 0x7fffffff00000000."""
    for opcode in ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"):
        form = Form(opcode)
        rows = operands(form, 100)
        for (bits,), result in zip(rows, execute(device, form, rows)[0], strict=True):
            assert int(result) & 0xFFFFFFFF == 0
            if rounding.is_nan(bits & ~0xFFFFFFFF, FORMATS["f64"]):
                assert int(result) == 0x7FFFFFFF00000000
