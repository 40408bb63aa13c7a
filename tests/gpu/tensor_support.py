# SPDX-License-Identifier: Apache-2.0
"""Formats, fragments and kernels for the tests of tensor instructions.

Where elements of a fragment are is written down here as the PTX ISA has it: groupID = laneid >> 2,
threadID_in_group = laneid % 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

HEADER = ".version 8.7\n.target sm_90\n.address_size 64\n"
LANES = 32


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


def braces(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"
