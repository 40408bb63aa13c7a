# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic, logic, shifts, bit fields and moves (PTX ISA 9.7.1, 9.7.2, 9.7.8, 9.7.9)."""

from collections.abc import Callable

from reference.float_operations import float_operation
from reference.operations import Modifiers, Operation, UnsupportedError, builder
from reference.ptx_types import TYPES, Type, clamp, mask, per_part, to_signed, value_of

B32, U32, S32, PRED = TYPES["b32"], TYPES["u32"], TYPES["s32"], TYPES["pred"]


def _twice(type_: Type) -> Type:
    return TYPES[f"{type_.kind}{2 * type_.width}"]


def _on_values(function: Callable[..., int], type_: Type, saturate: bool = False) -> Callable[..., int]:
    """A function of the integers that the operands stand for, its result wrapped to the type or clamped to it."""
    part = type_.part
    keep = mask(part.width)

    def compute(*operands: int) -> int:
        result = function(*(value_of(operand, part) for operand in operands))
        return (clamp(result, part) if saturate else result) & keep

    return per_part(compute, type_)


def _sum_with_carry(sign: int) -> Callable[[Modifiers], Operation]:
    def build(modifiers: Modifiers) -> Operation:
        type_, carries = modifiers.type, modifiers.flag("cc")
        reads = modifiers.base.endswith("c")

        def function(a: int, b: int, carry: int = 0) -> tuple[int, int] | int:
            total = a + sign * (b + carry)
            result = total & mask(type_.width)
            return (result, int(total != result)) if carries else result

        return Operation(function, (type_, type_), (type_,), reads_carry=reads, writes_carry=carries)

    return build


@builder("add", "sub")
def add_or_subtract(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    if type_.kind == "f":
        return float_operation(modifiers)
    sign = 1 if modifiers.base == "add" else -1
    if "cc" in modifiers.left:
        return _sum_with_carry(sign)(modifiers)
    function = _on_values(lambda a, b: a + sign * b, type_, modifiers.flag("sat"))
    return Operation(function, (type_, type_), (type_,))


builder("addc")(_sum_with_carry(1))
builder("subc")(_sum_with_carry(-1))


@builder("mul", "mad", "madc")
def multiply(modifiers: Modifiers) -> Operation:
    """The product, or a half of it, and for mad a sum with the third operand; `.cc` concerns that sum."""
    type_ = modifiers.type
    if type_.kind == "f":
        return float_operation(modifiers)
    half = modifiers.take("hi", "lo", "wide")
    saturate, carries = modifiers.flag("sat"), modifiers.flag("cc")
    reads = modifiers.base == "madc"
    result_type = _twice(type_) if half == "wide" else type_
    shift = type_.width if half == "hi" else 0
    keep = mask(result_type.width)

    def product(a: int, b: int) -> int:
        return (value_of(a, type_) * value_of(b, type_) >> shift) & keep

    def accumulate(a: int, b: int, c: int, carry: int = 0) -> tuple[int, int] | int:
        if saturate:
            return clamp(to_signed(product(a, b), 32) + to_signed(c, 32), S32) & keep
        total = product(a, b) + c + carry
        return (total & keep, total >> result_type.width) if carries else total & keep

    if modifiers.base == "mul":
        return Operation(product, (type_, type_), (result_type,))
    sources = (type_, type_, result_type)
    return Operation(accumulate, sources, (result_type,), reads_carry=reads, writes_carry=carries)


@builder("mul24", "mad24")
def multiply_24(modifiers: Modifiers) -> Operation:
    """Of the 48 bits of the product of two 24-bit values, the upper or lower 32."""
    type_, half, saturate = modifiers.type, modifiers.take("hi", "lo"), modifiers.flag("sat")

    def short(bits: int) -> int:
        return to_signed(bits & mask(24), 24) if type_.signed else bits & mask(24)

    def product(a: int, b: int) -> int:
        return (short(a) * short(b) >> (16 if half == "hi" else 0)) & mask(32)

    def accumulate(a: int, b: int, c: int) -> int:
        total = value_of(product(a, b), type_) + value_of(c, type_)
        return (clamp(total, type_) if saturate else total) & mask(32)

    if modifiers.base == "mul24":
        return Operation(product, (type_, type_), (type_,))
    return Operation(accumulate, (type_, type_, type_), (type_,))


def _truncating_division(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@builder("div", "rem")
def divide(modifiers: Modifiers) -> Operation:
    """Division rounds towards zero; what a division by zero gives is not specified (here 0)."""
    type_ = modifiers.type
    if type_.kind == "f":
        return float_operation(modifiers)

    def quotient(a: int, b: int) -> int:
        return _truncating_division(a, b) if b else 0

    def remainder(a: int, b: int) -> int:
        return a - _truncating_division(a, b) * b if b else 0

    function = _on_values(quotient if modifiers.base == "div" else remainder, type_)
    return Operation(function, (type_, type_), (type_,))


@builder("sad")
def sum_of_absolute_difference(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    return Operation(_on_values(lambda a, b, c: c + abs(a - b), type_), (type_, type_, type_), (type_,))


@builder("abs", "neg")
def absolute_or_negative(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    if type_.kind == "f":
        return float_operation(modifiers)
    function = abs if modifiers.base == "abs" else int.__neg__
    return Operation(_on_values(function, type_), (type_,), (type_,))


@builder("min", "max")
def minimum_or_maximum(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    if type_.kind == "f":
        return float_operation(modifiers)
    choose = min if modifiers.base == "min" else max
    relu = modifiers.flag("relu")
    function = _on_values(lambda a, b: max(choose(a, b), 0) if relu else choose(a, b), type_)
    return Operation(function, (type_, type_), (type_,))


@builder("popc")
def population_count(modifiers: Modifiers) -> Operation:
    return Operation(int.bit_count, (modifiers.type,), (U32,))


@builder("clz")
def leading_zeros(modifiers: Modifiers) -> Operation:
    width = modifiers.type.width
    return Operation(lambda a: width - a.bit_length(), (modifiers.type,), (U32,))


@builder("bfind")
def find_leading_bit(modifiers: Modifiers) -> Operation:
    """The index of the leading bit that is not a copy of the sign, or how far it is from the top."""
    type_, shift_amount = modifiers.type, modifiers.flag("shiftamt")

    def function(a: int) -> int:
        value = value_of(a, type_)
        bit = (~value if value < 0 else value).bit_length() - 1
        if bit < 0:
            return 0xFFFFFFFF
        return type_.width - 1 - bit if shift_amount else bit

    return Operation(function, (type_,), (U32,))


@builder("fns")
def find_nth_set(_modifiers: Modifiers) -> Operation:
    def function(bits: int, base: int, offset: int) -> int:
        offset = to_signed(offset, 32)
        if offset == 0:
            return base if bits >> base & 1 else 0xFFFFFFFF
        step = 1 if offset > 0 else -1
        bit_range = range(base, 32 if step > 0 else -1, step)
        found = [bit for bit in bit_range if bits >> bit & 1]
        return found[abs(offset) - 1] if abs(offset) <= len(found) else 0xFFFFFFFF

    return Operation(function, (B32, B32, S32), (B32,))


@builder("brev")
def reverse(modifiers: Modifiers) -> Operation:
    width = modifiers.type.width
    return Operation(lambda a: int(f"{a:0{width}b}"[::-1], 2), (modifiers.type,), (modifiers.type,))


@builder("bfe")
def extract_field(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type
    width = type_.width

    def function(a: int, start: int, length: int) -> int:
        start, length = start & 0xFF, length & 0xFF
        if length == 0:
            return 0
        shifted = value_of(a, type_) >> start
        if start + length > width:
            return shifted & mask(width)
        field = shifted & mask(length)
        return (to_signed(field, length) if type_.signed else field) & mask(width)

    return Operation(function, (type_, U32, U32), (type_,))


@builder("bfi")
def insert_field(modifiers: Modifiers) -> Operation:
    type_ = modifiers.type

    def function(a: int, b: int, start: int, length: int) -> int:
        start, length = start & 0xFF, length & 0xFF
        field = mask(length) << start & mask(type_.width)
        return (a << start & field) | (b & ~field)

    return Operation(function, (type_, type_, U32, U32), (type_,))


@builder("szext")
def extend(modifiers: Modifiers) -> Operation:
    type_, wraps = modifiers.type, modifiers.take("clamp", "wrap") == "wrap"

    def function(a: int, width: int) -> int:
        width = width & 31 if wraps else min(width, 32)
        if width == 0:
            return 0
        field = a & mask(width)
        return (to_signed(field, width) if type_.signed else field) & mask(32)

    return Operation(function, (type_, U32), (type_,))


@builder("bmsk")
def bit_mask(modifiers: Modifiers) -> Operation:
    wraps = modifiers.take("clamp", "wrap") == "wrap"

    def function(start: int, width: int) -> int:
        start, width = (start & 31, width & 31) if wraps else (min(start, 32), min(width, 32))
        return mask(width) << start & mask(32)

    return Operation(function, (B32, B32), (B32,))


@builder("dp4a", "dp2a")
def dot_product(modifiers: Modifiers) -> Operation:
    """Four products of bytes, or two of half-words of a with bytes of one half of b, added to c."""
    a_type, b_type = modifiers.types
    upper = modifiers.take("lo", "hi") == "hi"
    result_type = S32 if a_type.signed or b_type.signed else U32

    def pieces(bits: int, type_: Type, width: int) -> list[int]:
        parts = [bits >> bit & mask(width) for bit in range(0, 32, width)]
        return [to_signed(part, width) if type_.signed else part for part in parts]

    def function(a: int, b: int, c: int) -> int:
        left = pieces(a, a_type, 8 if modifiers.base == "dp4a" else 16)
        right = pieces(b, b_type, 8)
        if modifiers.base == "dp2a":
            right = right[2:] if upper else right[:2]
        return (c + sum(x * y for x, y in zip(left, right, strict=True))) & mask(32)

    return Operation(function, (B32, B32, result_type), (result_type,))


_PERMUTATIONS = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}
"""By mode and the two lowest bits of c: the source of each byte, highest first (table of prmt)."""


@builder("prmt")
def permute(modifiers: Modifiers) -> Operation:
    mode = modifiers.take(*_PERMUTATIONS)

    def function(a: int, b: int, c: int) -> int:
        source = (b << 32 | a).to_bytes(8, "little")
        if mode:
            return int.from_bytes((source[int(index)] for index in _PERMUTATIONS[mode][c & 3]), "big")
        result = 0
        for byte_index in range(4):
            selector = c >> (4 * byte_index) & 0xF
            byte = source[selector & 7]
            if selector & 8:
                byte = 0xFF if byte & 0x80 else 0
            result |= byte << (8 * byte_index)
        return result

    return Operation(function, (B32, B32, B32), (B32,))


@builder("lop3")
def three_input_logic(modifiers: Modifiers) -> Operation:
    """Each bit of the result is the bit of the table that the bits of a, b and c point at."""
    combine = modifiers.take("and", "or")

    def function(a: int, b: int, c: int, table: int, *predicate: int) -> int | tuple[int, int]:
        result = 0
        for bit in range(32):
            index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)
            result |= (table >> index & 1) << bit
        if combine is None:
            return result
        nonzero = int(result != 0)
        return result, nonzero & predicate[0] if combine == "and" else nonzero | predicate[0]

    if combine is None:
        return Operation(function, (B32, B32, B32, B32), (B32,))
    return Operation(function, (B32, B32, B32, B32, PRED), (B32, PRED))


@builder("and", "or", "xor")
def logic(modifiers: Modifiers) -> Operation:
    functions = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}
    return Operation(functions[modifiers.base], (modifiers.type,) * 2, (modifiers.type,))


@builder("not")
def complement(modifiers: Modifiers) -> Operation:
    keep = mask(modifiers.type.width)
    return Operation(lambda a: a ^ keep, (modifiers.type,), (modifiers.type,))


@builder("cnot")
def logical_not(modifiers: Modifiers) -> Operation:
    return Operation(lambda a: int(a == 0), (modifiers.type,), (modifiers.type,))


@builder("shl", "shr")
def shift(modifiers: Modifiers) -> Operation:
    """Amounts are unsigned 32-bit values; those above the width are clamped to it."""
    type_ = modifiers.type

    def left(a: int, amount: int) -> int:
        return a << min(amount, type_.width) & mask(type_.width)

    def right(a: int, amount: int) -> int:
        return value_of(a, type_) >> min(amount, type_.width) & mask(type_.width)

    return Operation(left if modifiers.base == "shl" else right, (type_, U32), (type_,))


@builder("shf")
def funnel_shift(modifiers: Modifiers) -> Operation:
    left = modifiers.take("l", "r") == "l"
    wraps = modifiers.take("clamp", "wrap") == "wrap"

    def function(a: int, b: int, c: int) -> int:
        amount = c & 31 if wraps else min(c, 32)
        both = b << 32 | a
        return (both << amount >> 32 if left else both >> amount) & mask(32)

    return Operation(function, (B32, B32, U32), (B32,))


@builder("mov")
def move(modifiers: Modifiers) -> Operation:
    return Operation(lambda a: a, (modifiers.type,), (modifiers.type,), nan="exact")


@builder("isspacep", "cvta")
def _address_operation(modifiers: Modifiers) -> Operation:
    raise UnsupportedError(f"{modifiers.opcode}: depends on the machine")
