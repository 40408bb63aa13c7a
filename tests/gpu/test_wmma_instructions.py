# SPDX-License-Identifier: Apache-2.0
"""wmma against matrix products of numpy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from tensor_support import FORMATS, HEADER, LANES, Format, braces, register_kind, shape_of, unpack

from manyscale import gpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


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
    operands = {name: f"[{each}]" for name, each in address.items()}
    store = f"wmma.store.d.sync.aligned.{d}.{kind.shape}{dots['d']}.{result.name}"

    def load(name: str, layout: str, of: str, count: int) -> str:
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.{kind.shape}{dots[name]}.{of}"
        return f"{opcode} {braces(name, count)}, {operands[name]}{stride[name]};"

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
    {store} {operands["d"]}, {braces("d", count_c)}{stride["d"]};
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


def test_a_matrix_outside_of_memory_is_a_fault(device):
    kind = WMMA[1]
    module = device.load(wmma_kernel(kind, "rcrr", {"a": 512, "b": 512}, True, "global"))
    a, b, c, d = (device.zeros(1024, np.uint8) for _ in range(4))
    with pytest.raises(ManyscaleError, match="invalid address"):
        module["kernel"][1, LANES](a, b, c, d, 1 << 20, 16, 16, 16)
    with pytest.raises(ManyscaleError, match="misaligned"):
        module["kernel"][1, LANES](a, b, c, d, 17, 16, 16, 16)
