# SPDX-License-Identifier: Apache-2.0
"""mma against matrix products of numpy.

Inputs are chosen so that f64 has every sum exactly; a result is then that sum rounded once.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tensor_support import (
    FORMATS,
    LANES,
    collect,
    multiply,
    pack,
    quad_position,
    register_kernel,
    run_registers,
    shape_of,
    spread,
    unpack,
)

from manyscale import gpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


MMA = [
    *product(["m16n8k8", "m16n8k16"], ["f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32"]),
    *product(["m16n8k4", "m16n8k8"], ["f32.tf32.tf32.f32"]),
    *product(["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"], ["f64.f64.f64.f64"]),
    *product(["m16n8k16", "m16n8k32"], ["f32.e4m3.e5m2.f32", "f32.e5m2.e4m3.f32", "f16.e4m3.e4m3.f16"]),
    *product(["m8n8k16", "m16n8k16", "m16n8k32"], [f"s32.{a}8.{b}8.s32" for a in "su" for b in "su"]),
    *product(["m8n8k32", "m16n8k32", "m16n8k64"], [f"s32.{a}4.{b}4.s32" for a in "su" for b in "su"]),
]


def random_matrices(random, shape: str, types: str) -> dict[str, np.ndarray]:
    m, n, k = shape_of(shape)
    _, a, b, c = (FORMATS[each] for each in types.split("."))
    third = c.draw(random, (m, n))
    if c.name == "f32":
        third = third / 2**12  # with what is before the point, more than the 24 bits of an f32
    return {"a": a.draw(random, (m, k)), "b": b.draw(random, (k, n)), "c": third}


@pytest.mark.parametrize(("shape", "types"), MMA)
def test_mma_is_the_matrix_product_rounded_once(device, shape, types):
    random = np.random.default_rng(len(shape) + len(types))
    matrices = random_matrices(random, shape, types)
    expected = FORMATS[types.split(".")[0]].round(matrices["a"] @ matrices["b"] + matrices["c"])
    np.testing.assert_array_equal(multiply(device, shape, types, **matrices), expected)


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("operation", ["xor", "and"])
def test_mma_of_bits_counts(device, shape, operation):
    random = np.random.default_rng(9)
    matrices = random_matrices(random, shape, "s32.b1.b1.s32")
    a, b = matrices["a"].astype(int)[:, :, None], matrices["b"].astype(int)[None]
    ones = (a ^ b if operation == "xor" else a & b).sum(axis=1)
    actual = multiply(device, shape, "s32.b1.b1.s32", f".{operation}.popc", **matrices)
    np.testing.assert_array_equal(actual, ones + matrices["c"])


@pytest.mark.parametrize("types", ["s32.s8.s8.s32", "s32.u8.u8.s32"])
@pytest.mark.parametrize("satfinite", [False, True])
def test_integers_wrap_or_saturate(device, types, satfinite):
    of = FORMATS[types.split(".")[1]]
    a, b = np.full((16, 32), float(of.high - 1)), np.full((32, 8), float(of.high - 1))
    b[:, ::2] = of.low  # half of the sums are negative or zero
    c = np.full((16, 8), 2.0**31 - 1)
    c[:, ::2] = -(2.0**31)
    actual = multiply(device, "m16n8k32", types, ".satfinite" if satfinite else "", a=a, b=b, c=c)
    exact = a @ b + c
    wrapped = (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(actual, np.clip(exact, -(2**31), 2**31 - 1) if satfinite else wrapped)


def test_tf32_ignores_the_lowest_bits(device):
    of = FORMATS["tf32"]
    a, b, c = np.full((16, 8), 3.0), np.full((8, 8), 1.0), np.zeros((16, 8))
    noisy = spread(a, "a", of) | 0x1FFF
    inputs = {
        "a": (noisy, of),
        "b": (spread(b, "b", of), of),
        "c": (spread(c, "c", FORMATS["f32"]), FORMATS["f32"]),
    }
    instruction = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {d}, {a}, {b}, {c};"
    registers = run_registers(device, instruction, inputs, FORMATS["f32"], 4)
    np.testing.assert_array_equal(collect(registers, (16, 8), FORMATS["f32"]), np.full((16, 8), 24.0))


def rounded(value: Fraction, mode: str) -> float:
    nearest = float(value)
    if mode == "rn" or Fraction(nearest) == value:
        return nearest
    down = nearest if Fraction(nearest) < value else math.nextafter(nearest, -math.inf)
    towards_up = mode == "rp" or (mode == "rz" and value < 0)
    return math.nextafter(down, math.inf) if towards_up else down


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k8"])
def test_f64_is_a_chain_of_fused_multiplications(device, shape, mode):
    m, n, k = shape_of(shape)
    random = np.random.default_rng(3)
    a, b, c = random.normal(size=(m, k)), random.normal(size=(k, n)), random.normal(size=(m, n))
    expected = np.empty((m, n))
    for row, column in product(range(m), range(n)):
        total = float(c[row, column])
        for i in range(k):
            total = rounded(Fraction(a[row, i]) * Fraction(b[i, column]) + Fraction(total), mode)
        expected[row, column] = total
    np.testing.assert_array_equal(
        multiply(device, shape, "f64.f64.f64.f64", f".{mode}", a=a, b=b, c=c), expected
    )


def test_special_values(device):
    a, b, c = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
    a[0, 0], a[1, 0], a[2, 0], a[3, 0], a[4, 0] = np.inf, np.nan, 2.0**-24, 65504, -np.inf
    b[0] = [1, 0, -1, 2.0**-24, 65504, np.inf, np.nan, 0.5]
    with np.errstate(invalid="ignore"):
        exact = np.where(np.arange(16)[:, None] < 5, a[:, :1] * b[:1], 0 * b[:1])
    wide = multiply(device, "m16n8k16", "f32.f16.f16.f32", a=a, b=b, c=c)
    np.testing.assert_array_equal(wide, exact.astype(np.float32).astype(np.float64))
    narrow = multiply(device, "m16n8k16", "f16.f16.f16.f16", a=a, b=b, c=c)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow, exact.astype(np.float16).astype(np.float64))


# mma.m8n8k4 of f16: four products at once


@pytest.mark.parametrize(("d", "c"), [("f32", "f32"), ("f32", "f16"), ("f16", "f16")])
@pytest.mark.parametrize(("layout_a", "layout_b"), list(product(["row", "col"], repeat=2)))
def test_quad_pairs(device, d, c, layout_a, layout_b):
    random = np.random.default_rng(5)
    half = FORMATS["f16"]
    matrices = {
        "a": [half.draw(random, (8, 4)) for _ in range(4)],
        "b": [half.draw(random, (4, 8)) for _ in range(4)],
        "c": [half.draw(random, (8, 8)) for _ in range(4)],
    }
    formats = {"a": half, "b": half, "c": FORMATS[c]}
    layouts = {"a": layout_a == "row", "b": layout_b == "row", "c": True}
    inputs = {}
    for name, of in formats.items():
        elements = np.zeros((LANES, 8 if name == "c" else 4), np.uint64)
        for lane, i in product(range(LANES), range(elements.shape[1])):
            position = quad_position(name, layouts[name], of.bits == 32, lane, i)
            elements[lane, i] = of.encode(matrices[name][lane // 4 % 4][position])
        inputs[name] = (pack(elements, of), of)
    instruction = f"mma.sync.aligned.m8n8k4.{layout_a}.{layout_b}.{d}.f16.f16.{c} {{d}}, {{a}}, {{b}}, {{c}};"
    result = FORMATS[d]
    registers = run_registers(device, instruction, inputs, result, 8 // result.per_register)
    elements = result.decode(unpack(registers, result))
    for lane, i in product(range(LANES), range(8)):
        quad = lane // 4 % 4
        row, column = quad_position("c", True, result.bits == 32, lane, i)
        expected = (
            matrices["a"][quad][row] @ matrices["b"][quad][:, column] + matrices["c"][quad][row, column]
        )
        assert elements[lane, i] == expected, (lane, i)


# What goes wrong


def test_all_lanes_must_take_part(device):
    instruction = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c};"
    text = register_kernel(instruction, {"a": 4, "b": 2, "c": 4, "d": 4}, dict.fromkeys("abcd", "b32"))
    arrays = [device.zeros((4, LANES), np.uint32) for _ in range(4)]
    with pytest.raises(ManyscaleError, match="all lanes of the warp, and lane 16"):
        device.load(text)["kernel"][1, 16](*arrays)


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "no such multiplication"),
        ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", "A by rows and B by columns"),
        ("mma.sync.aligned.m16n8k16.row.col.s32.f16.f16.f32", "not accumulated in .s32"),
        ("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32", "satfinite"),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sp"),
    ],
)
def test_what_does_not_exist_is_refused(device, opcode, message):
    text = register_kernel(
        f"{opcode} {{d}}, {{a}}, {{b}}, {{c}};",
        {"a": 4, "b": 2, "c": 4, "d": 4},
        dict.fromkeys("abcd", "b32"),
    )
    arrays = [device.zeros((4, LANES), np.uint32) for _ in range(4)]
    with pytest.raises(ManyscaleError, match=message):
        device.load(text)["kernel"][1, LANES](*arrays)
