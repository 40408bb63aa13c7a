# SPDX-License-Identifier: Apache-2.0
"""Encodings of the compressed instructions (RV64C), each with the text that an assembler would take."""

from __future__ import annotations

from riscv.encoding import Instruction, field, pick

# Forms on registers x8 to x15: name: bits 15 to 13, bits 12 to 10, bits 6 to 5
SHORT_REGISTER_FORMS = {
    "c.sub": (4, 3, 0),
    "c.xor": (4, 3, 1),
    "c.or": (4, 3, 2),
    "c.and": (4, 3, 3),
    "c.subw": (4, 7, 0),
    "c.addw": (4, 7, 1),
}
# name: funct3, bytes, whether the register is a floating-point one
SHORT_LOADS = {"c.fld": (1, 8, True), "c.lw": (2, 4, False), "c.ld": (3, 8, False)}
SHORT_STORES = {"c.fsd": (5, 8, True), "c.sw": (6, 4, False), "c.sd": (7, 8, False)}
STACK_LOADS = {"c.fldsp": (1, 8, True), "c.lwsp": (2, 4, False), "c.ldsp": (3, 8, False)}
STACK_STORES = {"c.fsdsp": (5, 8, True), "c.swsp": (6, 4, False), "c.sdsp": (7, 8, False)}


def _made(bits: int, text: str) -> Instruction:
    return Instruction(bits, 2, text)


def add_immediate(rd: int, value: int, word: bool = False) -> Instruction:
    """`c.addi` or `c.addiw`; the constant has 6 bits."""
    bits = int(word) << 13 | pick(value, 5) << 12 | rd << 7 | field(value, 5) << 2 | 1
    return _made(bits, f"c.addi{'w' if word else ''} x{rd}, {value}")


def load_immediate(rd: int, value: int) -> Instruction:
    """`c.li`, a 6-bit constant."""
    return _made(2 << 13 | pick(value, 5) << 12 | rd << 7 | field(value, 5) << 2 | 1, f"c.li x{rd}, {value}")


def load_upper(rd: int, value: int) -> Instruction:
    """`c.lui`, a 6-bit constant that is not 0, for bits 17 to 12."""
    bits = 3 << 13 | pick(value, 5) << 12 | rd << 7 | field(value, 5) << 2 | 1
    return _made(bits, f"c.lui x{rd}, {field(value, 20)}")


def add_to_stack_pointer(value: int) -> Instruction:
    """`c.addi16sp`, a multiple of 16 that is not 0."""
    bits = 3 << 13 | pick(value, 9) << 12 | 2 << 7 | pick(value, 4, 6, 8, 7, 5) << 2 | 1
    return _made(bits, f"c.addi16sp x2, {value}")


def address_on_stack(rd: int, value: int) -> Instruction:
    """`c.addi4spn`, an unsigned multiple of 4 that is not 0; rd is x8 to x15."""
    bits = pick(value, 5, 4, 9, 8, 7, 6, 2, 3) << 5 | (rd - 8) << 2
    return _made(bits, f"c.addi4spn x{rd}, x2, {value}")


def shift_left(rd: int, amount: int) -> Instruction:
    """`c.slli`."""
    return _made(pick(amount, 5) << 12 | rd << 7 | field(amount, 5) << 2 | 2, f"c.slli x{rd}, {amount}")


def short_immediate(name: str, rd: int, value: int) -> Instruction:
    """`c.srli`, `c.srai` or `c.andi` on x8 to x15."""
    kind = {"c.srli": 0, "c.srai": 1, "c.andi": 2}[name]
    bits = 4 << 13 | pick(value, 5) << 12 | kind << 10 | (rd - 8) << 7 | field(value, 5) << 2 | 1
    return _made(bits, f"{name} x{rd}, {value}")


def short_register(name: str, rd: int, rs2: int) -> Instruction:
    """Arithmetic on two of x8 to x15."""
    funct3, high, low = SHORT_REGISTER_FORMS[name]
    return _made(
        funct3 << 13 | high << 10 | (rd - 8) << 7 | low << 5 | (rs2 - 8) << 2 | 1, f"{name} x{rd}, x{rs2}"
    )


def move(rd: int, rs2: int) -> Instruction:
    """`c.mv`; neither is x0."""
    return _made(8 << 12 | rd << 7 | rs2 << 2 | 2, f"c.mv x{rd}, x{rs2}")


def add(rd: int, rs2: int) -> Instruction:
    """`c.add`; neither is x0."""
    return _made(9 << 12 | rd << 7 | rs2 << 2 | 2, f"c.add x{rd}, x{rs2}")


def _short_offset(offset: int, size: int) -> int:
    low = pick(offset, 2, 6) if size == 4 else pick(offset, 7, 6)
    return pick(offset, 5, 4, 3) << 10 | low << 5


def short_access(name: str, value: int, base: int, offset: int) -> Instruction:
    """Load or store of one of registers 8 to 15, at a base in x8 to x15; the offset is a multiple of the size."""
    funct3, size, floating = (SHORT_LOADS | SHORT_STORES)[name]
    bits = funct3 << 13 | _short_offset(offset, size) | (base - 8) << 7 | (value - 8) << 2
    return _made(bits, f"{name} {'f' if floating else 'x'}{value}, {offset}(x{base})")


def stack_load(name: str, rd: int, offset: int) -> Instruction:
    """Load at the stack pointer; the offset is a multiple of the size."""
    funct3, size, floating = STACK_LOADS[name]
    low = pick(offset, 4, 3, 2, 7, 6) if size == 4 else pick(offset, 4, 3, 8, 7, 6)
    bits = funct3 << 13 | pick(offset, 5) << 12 | rd << 7 | low << 2 | 2
    return _made(bits, f"{name} {'f' if floating else 'x'}{rd}, {offset}(x2)")


def stack_store(name: str, rs2: int, offset: int) -> Instruction:
    """Store at the stack pointer; the offset is a multiple of the size."""
    funct3, size, floating = STACK_STORES[name]
    middle = pick(offset, 5, 4, 3, 2, 7, 6) if size == 4 else pick(offset, 5, 4, 3, 8, 7, 6)
    bits = funct3 << 13 | middle << 7 | rs2 << 2 | 2
    return _made(bits, f"{name} {'f' if floating else 'x'}{rs2}, {offset}(x2)")


def jump(offset: int) -> Instruction:
    """`c.j`."""
    return _made(5 << 13 | pick(offset, 11, 4, 9, 8, 10, 6, 7, 3, 2, 1, 5) << 2 | 1, f"c.j .{offset:+}")


def branch(name: str, rs1: int, offset: int) -> Instruction:
    """`c.beqz` or `c.bnez` on x8 to x15."""
    funct3 = {"c.beqz": 6, "c.bnez": 7}[name]
    bits = funct3 << 13 | pick(offset, 8, 4, 3) << 10 | (rs1 - 8) << 7 | pick(offset, 7, 6, 2, 1, 5) << 2 | 1
    return _made(bits, f"{name} x{rs1}, .{offset:+}")


def jump_to(rs1: int, link: bool) -> Instruction:
    """`c.jr` or `c.jalr`."""
    return _made((9 if link else 8) << 12 | rs1 << 7 | 2, f"{'c.jalr' if link else 'c.jr'} x{rs1}")
