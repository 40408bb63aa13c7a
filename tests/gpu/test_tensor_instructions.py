# SPDX-License-Identifier: Apache-2.0
"""mma, wmma, ldmatrix, stmatrix and movmatrix against matrix products of numpy.

Where elements of a fragment are is written down here as the PTX ISA has it: groupID = laneid >> 2,
threadID_in_group = laneid % 4. Inputs are chosen so that f64 has every sum exactly; a result is then that sum rounded
once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from manyscale import gpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core

HEADER = ".version 8.7\n.target sm_90\n.address_size 64\n"
LANES = 32


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


# Formats


@dataclass(frozen=True)
class Format:
    """A type of matrix elements: how numbers become bits, and how random ones are drawn."""

    name: str
    bits: int
    low: int = -15
    high: int = 16

    @property
    def register_bits(self) -> int:
        return 64 if self.bits == 64 else 32

    @property
    def per_register(self) -> int:
        return self.register_bits // self.bits

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return random.integers(self.low, self.high, shape).astype(np.float64)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Bits of exactly representable numbers."""
        values = np.asarray(values, np.float64)
        if self.name == "f16":
            return values.astype(np.float16).view(np.uint16).astype(np.uint64)
        if self.name in ("f32", "tf32"):
            return values.astype(np.float32).view(np.uint32).astype(np.uint64)
        if self.name == "bf16":
            return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint64)
        if self.name == "f64":
            return values.view(np.uint64)
        if self.name in ("e4m3", "e5m2"):
            table = {fp8(self.name, code): code for code in range(255, -1, -1)}
            return np.vectorize(lambda x: table[float(x)], otypes=[np.uint64])(values)
        return values.astype(np.int64).astype(np.uint64) & np.uint64((1 << self.bits) - 1)

    def decode(self, bits: np.ndarray) -> np.ndarray:
        if self.name == "f16":
            return bits.astype(np.uint16).view(np.float16).astype(np.float64)
        if self.name == "f32":
            return bits.astype(np.uint32).view(np.float32).astype(np.float64)
        if self.name == "f64":
            return bits.astype(np.uint64).view(np.float64)
        return bits.astype(np.uint32).view(np.int32).astype(np.float64)

    def round(self, values: np.ndarray) -> np.ndarray:
        """What remains of numbers in this format."""
        if self.name in ("f16", "f32"):
            return values.astype(f"f{self.bits // 8}").astype(np.float64)
        return values


def fp8(name: str, code: int) -> float:
    exponent_bits = 4 if name == "e4m3" else 5
    mantissa_bits = 7 - exponent_bits
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    fraction = code & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    significand = fraction + (1 << mantissa_bits if exponent else 0)
    value = math.ldexp(significand, max(exponent, 1) - bias - mantissa_bits)
    return -value if code >> 7 else value


FORMATS = {
    each.name: each
    for each in (
        Format("f16", 16),
        Format("bf16", 16),
        Format("tf32", 32),
        Format("f32", 32, -(2**20), 2**20),
        Format("f64", 64),
        Format("e4m3", 8),
        Format("e5m2", 8, -7, 8),
        Format("s8", 8, -128, 128),
        Format("u8", 8, 0, 256),
        Format("s4", 4, -8, 8),
        Format("u4", 4, 0, 16),
        Format("b1", 1, 0, 2),
        Format("s32", 32, -(2**20), 2**20),
    )
}


# Fragments


def position(role: str, rows: int, columns: int, of: Format, lane: int, i: int) -> tuple[int, int]:
    """Row and column of element i of a lane, for mma of 8 or 16 rows and 8 columns."""
    group, thread = lane >> 2, lane % 4
    per = of.per_register
    if role == "c":
        return group + (8 if i >= 2 else 0), thread * 2 + (i & 1)
    if role == "b":
        return thread * per + i % per + 4 * per * (i // per), group
    if rows == 8:
        return group, thread * per + i
    return group + 8 * (i // per % 2), thread * per + i % per + 4 * per * (i // (2 * per))


def quad_position(role: str, row_major: bool, wide: bool, lane: int, i: int) -> tuple[int, int]:
    """The same for mma.m8n8k4 with .f16."""
    high = 0 if lane < 16 else 4
    if role == "a":
        return (lane % 4 + high, i) if row_major else (i % 4 + high, lane % 4)
    if role == "b":
        return (lane % 4, i + high) if row_major else (i, lane % 4 + high)
    if not wide:
        return lane % 4 + high, i
    return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)


def pack(bits: np.ndarray, of: Format) -> np.ndarray:
    """Elements [lane, i] as registers [register, lane]."""
    shifts = np.arange(of.per_register, dtype=np.uint64) * np.uint64(of.bits)
    words = (bits.reshape(LANES, -1, of.per_register) << shifts).sum(axis=2, dtype=np.uint64)
    return np.ascontiguousarray(words.T.astype(f"u{of.register_bits // 8}"))


def unpack(registers: np.ndarray, of: Format) -> np.ndarray:
    """Registers [register, lane] as elements [lane, i]."""
    shifts = np.arange(of.per_register, dtype=np.uint64) * np.uint64(of.bits)
    words = registers.T.astype(np.uint64)[:, :, None] >> shifts
    return (words & np.uint64((1 << of.bits) - 1)).reshape(LANES, -1)


def spread(matrix: np.ndarray, role: str, of: Format) -> np.ndarray:
    count = matrix.size // LANES
    bits = of.encode(matrix)
    lanes = [
        [bits[position(role, *matrix.shape, of, lane, i)] for i in range(count)] for lane in range(LANES)
    ]
    return pack(np.array(lanes, np.uint64), of)


def collect(registers: np.ndarray, shape: tuple[int, int], of: Format) -> np.ndarray:
    elements = of.decode(unpack(registers, of))
    matrix = np.full(shape, np.nan)
    for lane, i in product(range(LANES), range(elements.shape[1])):
        matrix[position("c", *shape, of, lane, i)] = elements[lane, i]
    return matrix


# Kernels


def register_kernel(instruction: str, counts: dict[str, int], kinds: dict[str, str]) -> str:
    """A kernel in which each lane loads registers %a0… from `a`, and so on, executes an instruction with {a}, {b}, {c}
    and {d} in it, and stores those of d."""
    lists = {name: "{" + ", ".join(f"%{name}{i}" for i in range(n)) + "}" for name, n in counts.items()}
    width = {name: 8 if kind.endswith("64") else 4 for name, kind in kinds.items()}
    declared = "".join(f"    .reg .{kinds[name]} %{name}<{n}>;\n" for name, n in counts.items())
    parameters = ", ".join(f".param .u64 {name}" for name in counts)
    lines = []
    for name, n in counts.items():
        lines.append(f"ld.param.u64 %address, [{name}];")
        lines.append(f"mad.wide.u32 %address_{name}, %lane, {width[name]}, %address;")
        if name != "d":
            for i in range(n):
                offset = i * LANES * width[name]
                lines.append(f"ld.global.{kinds[name]} %{name}{i}, [%address_{name}+{offset}];")
    lines.append(instruction.format(**lists))
    for i in range(counts["d"]):
        lines.append(f"st.global.{kinds['d']} [%address_d+{i * LANES * width['d']}], %d{i};")
    addresses = ", ".join(f"%address_{name}" for name in counts)
    body = "\n    ".join(lines)
    return f"""{HEADER}
.visible .entry kernel({parameters})
{{
{declared}    .reg .b64 %address, {addresses};
    .reg .b32 %lane;
    mov.u32 %lane, %tid.x;
    {body}
    ret;
}}"""


def register_kind(of: Format) -> str:
    return {"f32": "f32", "f64": "f64"}.get(of.name, f"b{of.register_bits}")


def run_registers(
    device, instruction: str, inputs: dict[str, tuple[np.ndarray, Format]], d: Format, count: int
):
    """Executes an instruction on registers [register, lane] and gives those of d."""
    counts = {name: len(registers) for name, (registers, _) in inputs.items()} | {"d": count}
    kinds = {name: register_kind(of) for name, (_, of) in inputs.items()} | {"d": register_kind(d)}
    module = device.load(register_kernel(instruction, counts, kinds))
    result = device.zeros((count, LANES), f"u{d.register_bits // 8}")
    module["kernel"][1, LANES](*(device.array(registers) for registers, _ in inputs.values()), result)
    return result.numpy()


# mma


def shape_of(name: str) -> tuple[int, int, int]:
    m, rest = name[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def multiply(device, shape: str, types: str, suffix: str = "", **matrices: np.ndarray) -> np.ndarray:
    """mma of given matrices; types as in the opcode: of D, A, B and C."""
    m, n, _ = shape_of(shape)
    d, a, b, c = (FORMATS[each] for each in types.split("."))
    satfinite = suffix if suffix == ".satfinite" else ""
    after = "" if satfinite else suffix
    instruction = f"mma.sync.aligned.{shape}.row.col{satfinite}.{types}{after} {{d}}, {{a}}, {{b}}, {{c}};"
    inputs = {name: (spread(matrices[name], name, of), of) for name, of in (("a", a), ("b", b), ("c", c))}
    registers = run_registers(device, instruction, inputs, d, m * n // (LANES * d.per_register))
    return collect(registers, (m, n), d)


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
            place = quad_position(name, layouts[name], of.bits == 32, lane, i)
            elements[lane, i] = of.encode(matrices[name][lane // 4 % 4][place])
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


# wmma


@dataclass(frozen=True)
class Wmma:
    """A shape of wmma with types of A and B and of C and D, and how many registers each takes."""

    shape: str
    inputs: str
    accumulator: str
    registers: tuple[int, int, int]


WMMA = [
    *(
        Wmma(shape, "f16", accumulator, (8, 8, count))
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for accumulator, count in (("f16", 4), ("f32", 8))
    ),
    Wmma("m16n16k16", "bf16", "f32", (4, 4, 8)),
    Wmma("m32n8k16", "bf16", "f32", (8, 2, 8)),
    Wmma("m8n32k16", "bf16", "f32", (2, 8, 8)),
    *(
        Wmma(shape, of, "s32", counts)
        for of in ("s8", "u8")
        for shape, counts in (("m16n16k16", (2, 2, 8)), ("m32n8k16", (4, 1, 8)), ("m8n32k16", (1, 4, 8)))
    ),
    Wmma("m16n16k8", "tf32", "f32", (4, 4, 8)),
    Wmma("m8n8k4", "f64", "f64", (1, 1, 2)),
    Wmma("m8n8k32", "s4", "s32", (1, 1, 2)),
    Wmma("m8n8k32", "u4", "s32", (1, 1, 2)),
    Wmma("m8n8k128", "b1", "s32", (1, 1, 2)),
]

LAYOUTS = ["row", "col"]


def in_memory(matrix: np.ndarray, of: Format, layout: str, padding: int) -> tuple[np.ndarray, int]:
    """Bytes of a matrix as it lies in memory, and the elements from one line to the next."""
    lines = of.encode(matrix if layout == "row" else matrix.T)
    lines = np.pad(lines, ((0, 0), (0, padding)), constant_values=1)
    if of.bits >= 8:
        return lines.astype(f"u{of.bits // 8}").reshape(-1).view(np.uint8).copy(), lines.shape[1]
    together = lines.reshape(-1, 8 // of.bits)
    shifts = np.arange(8 // of.bits, dtype=np.uint64) * np.uint64(of.bits)
    return (together << shifts).sum(axis=1).astype(np.uint8), lines.shape[1]


def from_memory(
    memory: np.ndarray, of: Format, layout: str, shape: tuple[int, int], stride: int
) -> np.ndarray:
    lines = memory.view(f"u{of.bits // 8}").reshape(-1, stride)
    count, length = shape if layout == "row" else shape[::-1]
    matrix = of.decode(np.ascontiguousarray(lines[:count, :length]))
    return matrix if layout == "row" else matrix.T


def braces(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def to_shared(name: str, count: int) -> str:
    """Copies bytes of a parameter to the shared variable of its name; 32 lanes, 4 bytes at a time."""
    lines = [f"ld.param.u64 %from, [{name}];", "mad.wide.u32 %from, %lane, 4, %from;"]
    lines += [f"mov.u32 %to, shared_{name};", "mad.lo.u32 %to, %lane, 4, %to;"]
    for offset in range(0, count, 4 * LANES):
        within = "" if offset + 4 * LANES <= count else f"@%low{(count - offset) // 4} "
        lines += [
            f"{within}ld.global.u32 %word, [%from+{offset}];",
            f"{within}st.shared.u32 [%to+{offset}], %word;",
        ]
    return "\n    ".join(lines)


def wmma_kernel(
    kind: Wmma, layouts: str, sizes: dict[str, int], strides: bool, space: str, body: str = ""
) -> str:
    """A kernel that loads a, b and c, multiplies, and stores d. In `space` shared and generic, a and b are copied to
    shared memory before; addresses are then of 32 bits, or generic."""
    a, b, c, d = (LAYOUTS["rc".index(each)] for each in layouts)
    input_type, result = FORMATS[kind.inputs], FORMATS[kind.accumulator]
    count_a, count_b, count_c = kind.registers
    types = (
        f"{result.name}.{result.name}"
        if kind.inputs == "f16"
        else f"{result.name}.{kind.inputs}.{kind.inputs}.{result.name}"
    )
    operation = ".xor.popc" if kind.inputs == "b1" else ""
    stride = {name: f", %stride_{name}" if strides else "" for name in "abcd"}
    copies = shared = ""
    address = {name: f"%address_{name}" for name in "abcd"}
    dots = dict.fromkeys("abcd", ".global" if space == "global" else "")
    if space in ("shared", "shared::cta", "generic", "variable"):
        shared = "".join(f"    .shared .align 32 .b8 shared_{name}[{sizes[name]}];\n" for name in "ab")
        copies = (
            "\n    ".join(to_shared(name, sizes[name]) for name in "ab") + "\n    bar.warp.sync 0xffffffff;"
        )
        for name in "ab":
            dots[name] = {"generic": "", "variable": ".shared"}.get(space, f".{space}")
            if space == "generic":
                copies += f"\n    cvta.shared.u64 %address_{name}, %narrow_{name};"
                copies = f"mov.u64 %narrow_{name}, shared_{name};\n    " + copies
            elif space == "variable":
                address[name] = f"shared_{name}"
            else:
                copies += f"\n    mov.u32 %small_{name}, shared_{name};"
                address[name] = f"%small_{name}"
    lows = "".join(
        f"    setp.lt.u32 %low{n}, %lane, {n};\n"
        for n in sorted({sizes[name] % 128 // 4 for name in "ab"} - {0})
    )
    addresses = "\n    ".join(f"ld.param.u64 %address_{name}, [{name}];" for name in "abcd")
    stride_loads = "\n    ".join(f"ld.param.u32 %stride_{name}, [stride_{name}];" for name in "abcd")
    multiply_text = body or (
        f"wmma.mma{operation}.sync.aligned.{a}.{b}.{kind.shape}.{types}{'.rn' if kind.inputs == 'f64' else ''} "
        f"{braces('d', count_c)}, {braces('a', count_a)}, {braces('b', count_b)}, {braces('c', count_c)};"
    )
    places = {name: f"[{each}]" for name, each in address.items()}
    store = f"wmma.store.d.sync.aligned.{d}.{kind.shape}{dots['d']}.{result.name}"

    def load(name: str, layout: str, of: str, count: int) -> str:
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.{kind.shape}{dots[name]}.{of}"
        return f"{opcode} {braces(name, count)}, {places[name]}{stride[name]};"

    return f"""{HEADER}
.visible .entry kernel({", ".join(f".param .u64 {name}" for name in "abcd")},
                       {", ".join(f".param .u32 stride_{name}" for name in "abcd")})
{{
    .reg .{register_kind(input_type)} %a<{count_a}>, %b<{count_b}>;
    .reg .{register_kind(result)} %c<{count_c}>, %d<{count_c}>;
    .reg .b64 %from, {", ".join(f"%address_{name}, %narrow_{name}" for name in "abcd")};
    .reg .b32 %lane, %word, %to, {", ".join(f"%stride_{name}, %small_{name}" for name in "abcd")};
    .reg .pred %low<33>;
{shared}    mov.u32 %lane, %tid.x;
{lows}    {addresses}
    {stride_loads}
    {copies}
    {load("a", a, kind.inputs, count_a)}
    {load("b", b, kind.inputs, count_b)}
    {load("c", c, result.name, count_c)}
    {multiply_text}
    {store} {places["d"]}, {braces("d", count_c)}{stride["d"]};
    ret;
}}"""


def run_wmma(device, kind: Wmma, layouts: str, strides: bool, space: str = "global", body: str = ""):
    """The matrices A, B and C, and what the kernel leaves in D."""
    m, n, k = shape_of(kind.shape)
    random = np.random.default_rng(11)
    of, result = FORMATS[kind.inputs], FORMATS[kind.accumulator]
    matrices = {"a": of.draw(random, (m, k)), "b": of.draw(random, (k, n)), "c": result.draw(random, (m, n))}
    if result.name == "f32":
        matrices["c"] = matrices["c"] / 2**12
    names = [LAYOUTS["rc".index(each)] for each in layouts]
    # 16 bytes more than a line has keep its alignment.
    padding = {name: 128 // (of if name in "ab" else result).bits if strides else 0 for name in "abcd"}
    placed = [
        in_memory(matrices[name], of if name in "ab" else result, layout, padding[name])
        for name, layout in zip("abc", names, strict=False)
    ]
    d_line = (n if names[3] == "row" else m) + padding["d"]
    d_lines = m if names[3] == "row" else n
    output = device.zeros(d_lines * d_line * result.bits // 8, np.uint8)
    sizes = {name: len(each[0]) for name, each in zip("ab", placed, strict=False)}
    module = device.load(wmma_kernel(kind, layouts, sizes, strides, space, body))
    arrays = [device.array(each[0]) for each in placed]
    module["kernel"][1, LANES](*arrays, output, *(each[1] for each in placed), d_line)
    return matrices, from_memory(output.numpy(), result, names[3], (m, n), d_line), output.numpy()


def legal_layouts(kind: Wmma) -> list[str]:
    small = FORMATS[kind.inputs].bits < 8
    pairs = ["rc"] if small else ["rr", "rc", "cr", "cc"]
    return [f"{pair}{c}{d}" for pair, c, d in zip(pairs * 4, "rrcc" * 4, "rcrc" * 4, strict=False)][
        : 4 if small else 8
    ]


WMMA_CASES = [
    pytest.param(kind, layouts, id=f"{kind.shape}-{kind.inputs}-{kind.accumulator}-{layouts}")
    for kind in WMMA
    for layouts in legal_layouts(kind)
]


@pytest.mark.parametrize(("kind", "layouts"), WMMA_CASES)
@pytest.mark.parametrize("strides", [False, True])
def test_wmma_is_the_matrix_product_rounded_once(device, kind, layouts, strides):
    matrices, actual, _ = run_wmma(device, kind, layouts, strides)
    if kind.inputs == "b1":
        total = (matrices["a"].astype(int)[:, :, None] ^ matrices["b"].astype(int)[None]).sum(
            axis=1
        ) + matrices["c"]
    else:
        total = matrices["a"] @ matrices["b"] + matrices["c"]
    np.testing.assert_array_equal(actual, FORMATS[kind.accumulator].round(total))


@pytest.mark.parametrize("kind", WMMA, ids=lambda kind: f"{kind.shape}-{kind.inputs}-{kind.accumulator}")
@pytest.mark.parametrize("layouts", ["rcrr", "rcrc", "rccr", "rccc"])
def test_wmma_stores_what_it_loads(device, kind, layouts):
    count = kind.registers[2]
    of = register_kind(FORMATS[kind.accumulator])
    body = "\n    ".join(f"mov.{of} %d{i}, %c{i};" for i in range(count))
    matrices, actual, memory = run_wmma(device, kind, layouts, True, body=body)
    np.testing.assert_array_equal(actual, matrices["c"])
    # Nothing is written between the lines.
    width = FORMATS[kind.accumulator].bits // 8
    m, n, _ = shape_of(kind.shape)
    line = (n if layouts[3] == "r" else m) * width
    assert not memory.reshape(-1, line + 16)[:, line:].any()


@pytest.mark.parametrize("space", ["shared", "shared::cta", "generic", "variable"])
@pytest.mark.parametrize(
    "kind", [WMMA[1], WMMA[6], WMMA[9], WMMA[15], WMMA[16]], ids=lambda kind: kind.inputs
)
def test_wmma_reads_shared_memory(device, kind, space):
    matrices, actual, _ = run_wmma(device, kind, "rcrr", True, space)
    total = matrices["a"] @ matrices["b"] + matrices["c"]
    np.testing.assert_array_equal(actual, FORMATS[kind.accumulator].round(total))


def test_fragments_of_wmma_are_where_hardware_has_them(device):
    """m16n16k16 of f16: registers 4 to 7 of A and B repeat 0 to 3, and are two fragments of m16n8k16."""
    matrix = np.arange(256, dtype=np.float64).reshape(16, 16)
    half = FORMATS["f16"]
    memory, _ = in_memory(matrix, half, "row", 0)
    stores = "\n    ".join(f"st.global.b32 [%out+{128 * i}], %r{i};" for i in range(8))
    for role in "ab":
        text = f"""{HEADER}
.visible .entry kernel(.param .u64 in, .param .u64 out)
{{
    .reg .b32 %r<8>, %lane;
    .reg .b64 %in, %out;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %lane, 4, %out;
    wmma.load.{role}.sync.aligned.row.m16n16k16.f16 {braces("r", 8)}, [%in];
    {stores}
    ret;
}}"""
        out = device.zeros((8, LANES), np.uint32)
        device.load(text)["kernel"][1, LANES](device.array(memory), out)
        elements = half.decode(unpack(out.numpy(), half))
        for lane, x in product(range(LANES), range(8)):
            group, pair = lane >> 2, 2 * (lane % 4) + (x & 1)
            if role == "a":
                expected = matrix[group + 4 * (x & 2), pair + 2 * (x & 4)]
            else:
                expected = matrix[pair + 4 * (x & 2), group + 2 * (x & 4)]
            assert elements[lane, x] == elements[lane, x + 8] == expected


# ldmatrix, stmatrix, movmatrix


def row_kernel(load: str, store: str) -> str:
    """1024 bytes of `input` go to shared memory; %r0… are loaded from there and stored to `output`, then shared memory
    to `memory`. Row i of matrix j is at 16 * ((8 * j + i) * 5 % 32) + 512."""
    copy_in = "\n    ".join(
        f"ld.global.u32 %word, [%in+{offset}];\n    st.shared.u32 [%to+{offset}], %word;"
        for offset in range(0, 1024, 128)
    )
    copy_out = "\n    ".join(
        f"ld.shared.u32 %word, [%to+{offset}];\n    st.global.u32 [%memory+{offset}], %word;"
        for offset in range(0, 1024, 128)
    )
    stores = "\n    ".join(f"st.global.b32 [%out+{128 * i}], %r{i};" for i in range(4))
    return f"""{HEADER}
.visible .entry kernel(.param .u64 input, .param .u64 output, .param .u64 memory)
{{
    .shared .align 16 .b8 tile[1024];
    .reg .b32 %r<4>, %lane, %word, %to, %row;
    .reg .b64 %in, %out, %memory, %wide;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %in, [input];
    ld.param.u64 %out, [output];
    ld.param.u64 %memory, [memory];
    mad.wide.u32 %in, %lane, 4, %in;
    mad.wide.u32 %out, %lane, 4, %out;
    mad.wide.u32 %memory, %lane, 4, %memory;
    mov.u32 %to, tile;
    mad.lo.u32 %to, %lane, 4, %to;
    {copy_in}
    bar.warp.sync 0xffffffff;
    mul.lo.u32 %row, %lane, 5;
    and.b32 %row, %row, 31;
    shl.b32 %row, %row, 4;
    mov.u32 %word, tile;
    add.u32 %row, %row, %word;
    mul.wide.u32 %wide, %row, 1;
    cvta.shared.u64 %wide, %wide;
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    {load}
    {store}
    {stores}
    bar.warp.sync 0xffffffff;
    {copy_out}
    ret;
}}"""


def run_rows(device, load: str, store: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of 8 elements in the order of lanes, registers [register, lane, half], and rows after the kernel."""
    tile = np.random.default_rng(2).integers(0, 2**16, (64, 8), np.uint16)
    output, memory = device.zeros((4, LANES), np.uint32), device.zeros((64, 8), np.uint16)
    device.load(row_kernel(load, store))["kernel"][1, LANES](device.array(tile), output, memory)
    order = 32 + np.arange(LANES) * 5 % 32
    registers = output.numpy().view(np.uint16).reshape(4, LANES, 2)
    return tile[order], registers, memory.numpy()[order]


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_ldmatrix(device, number, trans, space):
    address = "%row" if space else "%wide"
    load = f"ldmatrix.sync.aligned.m8n8.x{number}{trans}{space}.b16 {braces('r', number)}, [{address}+512];"
    rows, registers, _ = run_rows(device, load)
    for matrix, lane, half in product(range(number), range(LANES), range(2)):
        row, column = lane // 4, 2 * (lane % 4) + half
        if trans:
            row, column = column, row
        assert registers[matrix, lane, half] == rows[8 * matrix + row, column]
    assert not registers[number:].any()


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_is_the_inverse_of_ldmatrix(device, number, trans):
    """What is loaded transposed and stored as it is, or the other way round, is transposed."""
    load = f"ldmatrix.sync.aligned.m8n8.x{number}.shared.b16 {braces('r', number)}, [%row+512];"
    store = f"stmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16 [%row+512], {braces('r', number)};"
    rows, _, after = run_rows(device, load, store)
    expected = rows.reshape(4, 8, 8).copy()
    if trans:
        expected[:number] = expected[:number].transpose(0, 2, 1)
    np.testing.assert_array_equal(after.reshape(4, 8, 8), expected)


def test_movmatrix_transposes(device):
    load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%row+512];"
    rows, registers, _ = run_rows(device, load, "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;")
    np.testing.assert_array_equal(registers[0].reshape(8, 8), rows[:8].T)


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


def test_a_matrix_outside_of_memory_is_a_fault(device):
    kind = WMMA[1]
    module = device.load(wmma_kernel(kind, "rcrr", {"a": 512, "b": 512}, True, "global"))
    a, b, c, d = (device.zeros(1024, np.uint8) for _ in range(4))
    with pytest.raises(ManyscaleError, match="invalid address"):
        module["kernel"][1, LANES](a, b, c, d, 1 << 20, 16, 16, 16)
    with pytest.raises(ManyscaleError, match="misaligned"):
        module["kernel"][1, LANES](a, b, c, d, 17, 16, 16, 16)
