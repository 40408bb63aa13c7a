# SPDX-License-Identifier: Apache-2.0
"""Integer, logic, shift, bit-field and carry instructions against whole-number arithmetic of any size.

Each opcode runs on all combinations of edge values and on random ones; every thread's result is compared, bit for bit,
with the reference (`reference.integer_operations`), also under a guard and in a partly active warp.
"""

from random import Random

import numpy as np
import pytest
from instruction_support import Form, check, execute, expectations, operands
from reference import HEADER

import manyscale
from manyscale import gpu

pytestmark = pytest.mark.core

RANDOMS = 300
SIZES = (16, 32, 64)
INTEGERS = tuple(f"{kind}{size}" for size in SIZES for kind in "us")
BITS = tuple(f"b{size}" for size in SIZES)


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def small_or_any(limit: int):
    """Mostly up to a little above `limit`, at times any number of 32 bits."""
    return lambda random: random.randrange(limit + 4) if random.random() < 0.8 else random.getrandbits(32)


def nonzero(size: int):
    """Not zero, of all magnitudes."""
    return lambda random: random.getrandbits(random.randint(1, size)) or 1


def of_24_bits(signed: bool):
    """24-bit values as they stand in a 32-bit register."""

    def choose(random: Random) -> int:
        edge = random.choice(
            (0, 1, 0x7FFFFF, 0x800000, 0xFFFFFF, random.getrandbits(24), random.getrandbits(24))
        )
        return (edge | 0xFF000000) if signed and edge & 0x800000 else edge

    return choose


ARITHMETIC = [
    *(f"{base}.{type_}" for base in ("add", "sub", "mul.lo", "mul.hi", "min", "max") for type_ in INTEGERS),
    *(f"{base}.{type_}" for base in ("mad.lo", "mad.hi", "sad") for type_ in INTEGERS),
    *(f"{base}.wide.{type_}" for base in ("mul", "mad") for type_ in ("u16", "s16", "u32", "s32")),
    *(f"{base}.s{size}" for base in ("abs", "neg") for size in SIZES),
    *("add.sat.s32", "sub.sat.s32", "mad.hi.sat.s32"),
    *("add.u16x2", "add.s16x2", "min.u16x2", "max.u16x2", "min.s16x2", "max.s16x2"),
    *(f"{base}.relu.{type_}" for base in ("min", "max") for type_ in ("s32", "s16x2")),
    *(f"dp4a.{a}.{b}" for a in ("u32", "s32") for b in ("u32", "s32")),
    *(f"dp2a.{half}.{a}.{b}" for half in ("lo", "hi") for a in ("u32", "s32") for b in ("u32", "s32")),
]

BIT_OPERATIONS = [
    *(f"{base}.{size}" for base in ("and", "or", "xor", "not", "cnot") for size in BITS),
    *(f"{base}.pred" for base in ("and", "or", "xor", "not")),
    *(f"{base}.{size}" for base in ("popc", "clz", "brev") for size in ("b32", "b64")),
    *(f"bfind{amount}.{type_}" for amount in ("", ".shiftamt") for type_ in ("u32", "s32", "u64", "s64")),
    *(f"mov.{type_}" for type_ in (*BITS, *INTEGERS, "f32", "f64", "pred")),
]

SHIFTS = [
    *(f"shl.{type_}" for type_ in BITS),
    *(f"shr.{type_}" for type_ in (*BITS, *INTEGERS)),
    *(f"shf.{way}.{mode}.b32" for way in "lr" for mode in ("clamp", "wrap")),
    *(f"szext.{mode}.{type_}" for mode in ("clamp", "wrap") for type_ in ("u32", "s32")),
]

CARRIES = [
    f"{base}.{type_}"
    for base in (
        *("add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc"),
        *(f"{mad}.{half}" for mad in ("mad", "madc") for half in ("lo.cc", "hi.cc")),
        *("madc.lo", "madc.hi"),
    )
    for type_ in ("u32", "s32", "u64", "s64")
]


@pytest.mark.parametrize("opcode", ARITHMETIC)
def test_arithmetic(device, opcode):
    form = Form(opcode)
    check(device, form, operands(form, RANDOMS))


@pytest.mark.parametrize("opcode", BIT_OPERATIONS)
def test_bit_operation(device, opcode):
    form = Form(opcode)
    check(device, form, operands(form, RANDOMS))


@pytest.mark.parametrize("opcode", SHIFTS)
def test_shift_amounts_above_the_width_clamp_or_wrap(device, opcode):
    form = Form(opcode)
    last = len(form.operation.sources) - 1
    check(device, form, operands(form, RANDOMS, {last: small_or_any(form.operation.results[0].width)}))


@pytest.mark.parametrize("opcode", CARRIES)
def test_carry_is_read_and_written(device, opcode):
    """The flag is set before by an instruction of the same kind, and read back after by one."""
    form = Form(opcode)
    check(device, form, operands(form, RANDOMS))


@pytest.mark.parametrize("opcode", [f"{base}.{type_}" for base in ("div", "rem") for type_ in INTEGERS])
def test_division_rounds_towards_zero(device, opcode):
    """Without zero as a divisor, whose result PTX does not specify. The smallest number divided by -1 wraps."""
    form = Form(opcode)
    width = form.operation.results[0].width
    rows = operands(form, 3 * RANDOMS, {1: nonzero(width)})
    least, minus_one = 1 << (width - 1), (1 << width) - 1
    check(device, form, [*rows, (least, minus_one), (least, 1)])


@pytest.mark.parametrize("opcode", [f"{base}.{type_}" for base in ("div", "rem") for type_ in INTEGERS])
def test_division_by_zero_does_not_stop_the_machine(device, opcode):
    """Its value is unspecified; other threads of the warp get theirs."""
    form = Form(opcode)
    width = form.operation.results[0].width
    rows = [(random_bits, index % 3) for index, random_bits in enumerate([0, 1, 7, 1 << (width - 1)] * 25)]
    results = execute(device, form, rows)[0]
    for row, (expected,), actual in zip(rows, expectations(form, rows), results, strict=True):
        assert row[1] == 0 or int(actual) == expected


SHORT_PRODUCTS = [
    *(
        f"{base}.{half}.{type_}"
        for base in ("mul24", "mad24")
        for half in ("lo", "hi")
        for type_ in ("u32", "s32")
    ),
    "mad24.hi.sat.s32",
]


@pytest.mark.parametrize("opcode", SHORT_PRODUCTS)
def test_24_bit_products(device, opcode):
    form = Form(opcode)
    choose = of_24_bits(signed=opcode.endswith("s32"))
    check(device, form, operands(form, 2 * RANDOMS, {0: choose, 1: choose}))


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_bit_field_extract(device, type_):
    """Positions and lengths are taken from their lowest eight bits, and fields may reach beyond the top."""
    form = Form(f"bfe.{type_}")
    bits = small_or_any(form.operation.results[0].width)
    check(device, form, operands(form, 4 * RANDOMS, {1: bits, 2: bits}))


@pytest.mark.parametrize("type_", ["b32", "b64"])
def test_bit_field_insert(device, type_):
    form = Form(f"bfi.{type_}")
    bits = small_or_any(form.operation.results[0].width)
    check(device, form, operands(form, 4 * RANDOMS, {2: bits, 3: bits}))


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bit_mask(device, mode):
    form = Form(f"bmsk.{mode}.b32")
    check(device, form, operands(form, 4 * RANDOMS, {0: small_or_any(32), 1: small_or_any(32)}))


def test_find_nth_set_bit(device):
    form = Form("fns.b32")
    offset = lambda random: random.randint(-34, 34) & 0xFFFFFFFF  # noqa: E731
    check(device, form, operands(form, 4 * RANDOMS, {1: lambda random: random.randrange(32), 2: offset}))


@pytest.mark.parametrize("mode", ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"])
def test_byte_permutation(device, mode):
    form = Form(f"prmt.b32{mode}")
    check(device, form, operands(form, 4 * RANDOMS))


@pytest.mark.parametrize(
    "table", [0x00, 0x01, 0x1A, 0x3C, 0x40, 0x78, 0x80, 0x96, 0xCA, 0xE8, 0xF0, 0xFE, 0xFF]
)
def test_three_input_logic(device, table):
    form = Form("lop3.b32", {3: hex(table)})
    check(device, form, operands(form, 60))


@pytest.mark.parametrize("combine", ["and", "or"])
@pytest.mark.parametrize("table", [0x00, 0x80, 0x96])
def test_three_input_logic_with_predicate(device, combine, table):
    form = Form(f"lop3.{combine}.b32", {3: hex(table)})
    check(device, form, operands(form, 100))


PACKED = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")
PACKED_TYPES = ("u32.u32.u32", "s32.s32.s32", "s32.u32.u32", "u32.s32.u32")


@pytest.mark.parametrize("last", ["", ".sat", ".add"])
@pytest.mark.parametrize("types", PACKED_TYPES)
@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("base", PACKED)
def test_operation_on_the_parts_of_words(device, base, parts, types, last):
    """Bytes or half-words, their results packed, clamped, or added up."""
    form = Form(f"{base}{parts}.{types}{last}")
    check(device, form, operands(form, 50))


SELECTED = {
    "vadd4.u32.u32.u32 %d.b0, %a, %b, %c;": 0xAABBCC11,
    "vadd4.u32.u32.u32 %d.b31, %a, %b, %c;": 0x44BB22DD,
    "vadd4.u32.u32.u32 %d, %a.b0000, %b.b4444, %c;": 0x11111111,
    "vadd4.u32.u32.u32 %d, %a.b7650, %b.b3211, %c;": 0x44332203,
    "vadd4.u32.u32.u32.add %d.b10, %a, %b, %c;": 0xAABBCD10,
    "vadd2.u32.u32.u32 %d.h0, %a, %b, %c;": 0xAABB2211,
    "vadd2.u32.u32.u32 %d, %a.h01, %b, %c;": 0x42312413,
}
"""With a = 0x04030201, b = 0x40302010, c = 0xAABBCCDD."""


@pytest.mark.parametrize("instruction", SELECTED)
def test_masks_and_selectors_of_parts(device, instruction):
    """Where they are not supported they have to be refused: without them the result is another one."""
    text = f"""{HEADER}
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %a, %b, %c, %d;
    .reg .b64 %out;
    ld.param.u64 %out, [output];
    mov.b32 %a, 0x04030201;
    mov.b32 %b, 0x40302010;
    mov.b32 %c, 0xAABBCCDD;
    {instruction}
    st.global.u32 [%out], %d;
    ret;
}}"""
    output = device.zeros(1, np.uint32)
    try:
        device.load(text)["kernel"][1, 1](output)
    except manyscale.InputError:
        return
    assert int(output.numpy()[0]) == SELECTED[instruction]


LITERALS = [
    Form("add.s32", {1: "-1"}),
    Form("add.s32", {1: "0x80000000"}),
    Form("add.s64", {1: "-9223372036854775808"}),
    Form("add.u64", {1: "0xFEDCBA9876543210"}),
    Form("sub.s16", {0: "-3"}),
    Form("and.b32", {1: "-256"}),
    Form("mul.wide.s32", {1: "-7"}),
    Form("mul.wide.u32", {1: "4294967295"}),
    Form("mad.lo.s32", {1: "12", 2: "-5"}),
    Form("shl.b32", {1: "31"}),
    Form("shl.b64", {1: "64"}),
    Form("shr.s32", {1: "40"}),
    Form("bfe.u32", {1: "3", 2: "7"}),
    Form("bfi.b64", {2: "60", 3: "10"}),
    Form("prmt.b32", {2: "0x9A07"}),
    Form("min.s32", {1: "-100"}),
    Form("shf.l.wrap.b32", {2: "8"}),
]


@pytest.mark.parametrize("form", LITERALS, ids=lambda form: f"{form.opcode} {form.literals}")
def test_literal_operand(device, form):
    check(device, form, operands(form, RANDOMS))


def test_literals_are_read_as_in_c(device):
    """Decimal, hexadecimal, octal, binary, with U and sign, in the width of the instruction."""
    literals = {
        "b32": {
            "42": 42,
            "0x2A": 42,
            "052": 42,
            "0b101010": 42,
            "42U": 42,
            "-1": 2**32 - 1,
            "0xFFFFFFFFU": 2**32 - 1,
        },
        "b64": {"-1": 2**64 - 1, "0xFFFFFFFFFFFFFFFF": 2**64 - 1, "18446744073709551615U": 2**64 - 1},
        "b16": {"65535": 65535, "-32768": 32768, "0x7fff": 32767},
    }
    expected = [(type_, text, value) for type_, each in literals.items() for text, value in each.items()]
    body = "".join(
        f"mov.{type_} %{type_}, {text};\nst.global.{type_} [%out+{8 * index}], %{type_};\n"
        for index, (type_, text, _value) in enumerate(expected)
    )
    text = f"""{HEADER}
.visible .entry literals(.param .u64 out)
{{
    .reg .b16 %b16;
    .reg .b32 %b32;
    .reg .b64 %b64, %out;
    ld.param.u64 %out, [out];
    {body}
    ret;
}}"""
    result = device.zeros(len(expected), np.uint64)
    device.load(text)["literals"][1, 1](result)
    assert [int(each) for each in result.numpy()] == [value for _type, _text, value in expected]


def test_sums_of_256_bits_carry_through_eight_words(device):
    """A chain of add.cc, addc.cc and addc against one addition of 256-bit numbers, and the same for subtraction."""
    chain = []
    for base in ("add", "sub"):
        for word in range(8):
            middle = f"{base}c.cc" if word < 7 else f"{base}c"
            opcode = f"{base}.cc" if word == 0 else middle
            chain.append(f"ld.global.u32 %x, [%a+{4 * word}];\nld.global.u32 %y, [%b+{4 * word}];")
            chain.append(f"{opcode}.u32 %x, %x, %y;\nst.global.u32 [%{base}+{4 * word}], %x;")
    newline = "\n    "
    names = ("a", "b", "add", "sub")
    loads = [f"ld.param.u64 %{name}, [{name}];\nmad.wide.u32 %{name}, %t, 32, %{name};" for name in names]
    text = f"""{HEADER}
.visible .entry long_sum(.param .u64 a, .param .u64 b, .param .u64 add, .param .u64 sub)
{{
    .reg .b32 %x, %y, %t;
    .reg .b64 %a, %b, %add, %sub;
    mov.u32 %t, %tid.x;
    {newline.join(loads)}
    {newline.join(chain)}
    ret;
}}"""
    random = Random(5)
    numbers = [
        [random.choice((random.getrandbits(256), 2**256 - 1, 2**128, 0)) for _ in range(61)] for _ in "ab"
    ]
    arrays = [np.frombuffer(b"".join(n.to_bytes(32, "little") for n in each), np.uint32) for each in numbers]
    a, b = (device.array(each.copy()) for each in arrays)
    added, subtracted = device.zeros(61 * 8, np.uint32), device.zeros(61 * 8, np.uint32)
    device.load(text)["long_sum"][1, 61](a, b, added, subtracted)
    for index, (x, y) in enumerate(zip(*numbers, strict=True)):
        words = slice(8 * index, 8 * index + 8)
        assert int.from_bytes(added.numpy()[words].tobytes(), "little") == (x + y) % 2**256
        assert int.from_bytes(subtracted.numpy()[words].tobytes(), "little") == (x - y) % 2**256


def test_product_of_64_bit_numbers_with_carries(device):
    """The example of madc in the PTX ISA: 128 bits from mul, mad.cc, madc and addc."""
    text = f"""{HEADER}
.visible .entry long_product(.param .u64 a, .param .u64 b, .param .u64 out)
{{
    .reg .b32 %r<8>, %t;
    .reg .b64 %a, %b, %out;
    mov.u32 %t, %tid.x;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %out, [out];
    mad.wide.u32 %a, %t, 8, %a;
    mad.wide.u32 %b, %t, 8, %b;
    mad.wide.u32 %out, %t, 16, %out;
    ld.global.v2.u32 {{%r4, %r5}}, [%a];
    ld.global.v2.u32 {{%r6, %r7}}, [%b];
    mul.lo.u32 %r0, %r4, %r6;
    mul.hi.u32 %r1, %r4, %r6;
    mad.lo.cc.u32 %r1, %r5, %r6, %r1;
    madc.hi.u32 %r2, %r5, %r6, 0;
    mad.lo.cc.u32 %r1, %r4, %r7, %r1;
    madc.hi.cc.u32 %r2, %r4, %r7, %r2;
    addc.u32 %r3, 0, 0;
    mad.lo.cc.u32 %r2, %r5, %r7, %r2;
    madc.hi.u32 %r3, %r5, %r7, %r3;
    st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};
    ret;
}}"""
    random = Random(6)
    numbers = [[random.choice((random.getrandbits(64), 2**64 - 1, 2**32)) for _ in range(45)] for _ in "ab"]
    a, b = (device.array(np.array(each, np.uint64)) for each in numbers)
    out = device.zeros(4 * 45, np.uint32)
    device.load(text)["long_product"][1, 45](a, b, out)
    for index, (x, y) in enumerate(zip(*numbers, strict=True)):
        assert int.from_bytes(out.numpy()[4 * index : 4 * index + 4].tobytes(), "little") == x * y
