# SPDX-License-Identifier: Apache-2.0
"""Encodings of RV64IMAFDC and of bit manipulation (Zba, Zbb, Zbs), each with the text that an assembler would take.

Written from the tables of the RISC-V instruction set manual (volume I, chapter "RV32/64G Instruction Set Listings" and
"C" extension), not from the simulator's decoder: the two check each other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One instruction: its bits, how many bytes it has, and its text."""

    bits: int
    size: int
    text: str

    def encoded(self) -> bytes:
        """The bytes as they lie in memory."""
        return self.bits.to_bytes(self.size, "little")


def field(value: int, width: int) -> int:
    """A signed or unsigned value as the bits of a field."""
    return value & ((1 << width) - 1)


def pick(value: int, *bits: int) -> int:
    """The given bits of a value, the first named one highest."""
    result = 0
    for bit in bits:
        result = result << 1 | (value >> bit & 1)
    return result


# name: opcode, funct3, funct7
REGISTER_FORMS = {
    "add": (0x33, 0, 0x00),
    "sub": (0x33, 0, 0x20),
    "sll": (0x33, 1, 0x00),
    "slt": (0x33, 2, 0x00),
    "sltu": (0x33, 3, 0x00),
    "xor": (0x33, 4, 0x00),
    "srl": (0x33, 5, 0x00),
    "sra": (0x33, 5, 0x20),
    "or": (0x33, 6, 0x00),
    "and": (0x33, 7, 0x00),
    "addw": (0x3B, 0, 0x00),
    "subw": (0x3B, 0, 0x20),
    "sllw": (0x3B, 1, 0x00),
    "srlw": (0x3B, 5, 0x00),
    "sraw": (0x3B, 5, 0x20),
    "mul": (0x33, 0, 1),
    "mulh": (0x33, 1, 1),
    "mulhsu": (0x33, 2, 1),
    "mulhu": (0x33, 3, 1),
    "div": (0x33, 4, 1),
    "divu": (0x33, 5, 1),
    "rem": (0x33, 6, 1),
    "remu": (0x33, 7, 1),
    "mulw": (0x3B, 0, 1),
    "divw": (0x3B, 4, 1),
    "divuw": (0x3B, 5, 1),
    "remw": (0x3B, 6, 1),
    "remuw": (0x3B, 7, 1),
}
# name: opcode, funct3
IMMEDIATE_FORMS = {
    "addi": (0x13, 0),
    "slti": (0x13, 2),
    "sltiu": (0x13, 3),
    "xori": (0x13, 4),
    "ori": (0x13, 6),
    "andi": (0x13, 7),
    "addiw": (0x1B, 0),
}
# name: opcode, funct3, bits above the shift amount, width of the shift amount
SHIFT_FORMS = {
    "slli": (0x13, 1, 0x00, 6),
    "srli": (0x13, 5, 0x00, 6),
    "srai": (0x13, 5, 0x10, 6),
    "slliw": (0x1B, 1, 0x00, 5),
    "srliw": (0x1B, 5, 0x00, 5),
    "sraiw": (0x1B, 5, 0x20, 5),
}
# Zba, Zbb, Zbs: the same three shapes, and one source alone (name: opcode, funct3, the upper 12 bits)
BIT_REGISTER_FORMS = {
    "sh1add": (0x33, 2, 0x10),
    "sh2add": (0x33, 4, 0x10),
    "sh3add": (0x33, 6, 0x10),
    "add.uw": (0x3B, 0, 0x04),
    "sh1add.uw": (0x3B, 2, 0x10),
    "sh2add.uw": (0x3B, 4, 0x10),
    "sh3add.uw": (0x3B, 6, 0x10),
    "andn": (0x33, 7, 0x20),
    "orn": (0x33, 6, 0x20),
    "xnor": (0x33, 4, 0x20),
    "min": (0x33, 4, 0x05),
    "minu": (0x33, 5, 0x05),
    "max": (0x33, 6, 0x05),
    "maxu": (0x33, 7, 0x05),
    "rol": (0x33, 1, 0x30),
    "ror": (0x33, 5, 0x30),
    "rolw": (0x3B, 1, 0x30),
    "rorw": (0x3B, 5, 0x30),
    "bclr": (0x33, 1, 0x24),
    "bext": (0x33, 5, 0x24),
    "binv": (0x33, 1, 0x34),
    "bset": (0x33, 1, 0x14),
}
BIT_SHIFT_FORMS = {
    "slli.uw": (0x1B, 1, 0x02, 6),
    "rori": (0x13, 5, 0x18, 6),
    "roriw": (0x1B, 5, 0x30, 5),
    "bclri": (0x13, 1, 0x12, 6),
    "bexti": (0x13, 5, 0x12, 6),
    "binvi": (0x13, 1, 0x1A, 6),
    "bseti": (0x13, 1, 0x0A, 6),
}
BIT_UNARY_FORMS = {
    "clz": (0x13, 1, 0x600),
    "ctz": (0x13, 1, 0x601),
    "cpop": (0x13, 1, 0x602),
    "sext.b": (0x13, 1, 0x604),
    "sext.h": (0x13, 1, 0x605),
    "clzw": (0x1B, 1, 0x600),
    "ctzw": (0x1B, 1, 0x601),
    "cpopw": (0x1B, 1, 0x602),
    "zext.h": (0x3B, 4, 0x080),
    "orc.b": (0x13, 5, 0x287),
    "rev8": (0x13, 5, 0x6B8),
}
# name: opcode, funct3, bytes, whether the register is a floating-point one
LOADS = {
    "lb": (0x03, 0, 1, False),
    "lh": (0x03, 1, 2, False),
    "lw": (0x03, 2, 4, False),
    "ld": (0x03, 3, 8, False),
    "lbu": (0x03, 4, 1, False),
    "lhu": (0x03, 5, 2, False),
    "lwu": (0x03, 6, 4, False),
    "flw": (0x07, 2, 4, True),
    "fld": (0x07, 3, 8, True),
}
STORES = {
    "sb": (0x23, 0, 1, False),
    "sh": (0x23, 1, 2, False),
    "sw": (0x23, 2, 4, False),
    "sd": (0x23, 3, 8, False),
    "fsw": (0x27, 2, 4, True),
    "fsd": (0x27, 3, 8, True),
}
BRANCHES = {"beq": 0, "bne": 1, "blt": 4, "bge": 5, "bltu": 6, "bgeu": 7}
# name: funct5
ATOMICS = {
    "amoswap": 0x01,
    "amoadd": 0x00,
    "amoxor": 0x04,
    "amoand": 0x0C,
    "amoor": 0x08,
    "amomin": 0x10,
    "amomax": 0x14,
    "amominu": 0x18,
    "amomaxu": 0x1C,
    "lr": 0x02,
    "sc": 0x03,
}
CSR_FORMS = {"csrrw": 1, "csrrs": 2, "csrrc": 3, "csrrwi": 5, "csrrsi": 6, "csrrci": 7}
CSRS = {"fflags": 1, "frm": 2, "fcsr": 3, "cycle": 0xC00, "time": 0xC01, "instret": 0xC02}
ROUNDING = {0: "rne", 1: "rtz", 2: "rdn", 3: "rup", 4: "rmm", 7: "dyn"}
FUSED = {"fmadd": 0x43, "fmsub": 0x47, "fnmsub": 0x4B, "fnmadd": 0x4F}
# name: funct7 of the single format, fixed funct3 or None where it is the rounding mode
FLOAT_TWO = {
    "fadd": (0x00, None),
    "fsub": (0x04, None),
    "fmul": (0x08, None),
    "fdiv": (0x0C, None),
    "fsgnj": (0x10, 0),
    "fsgnjn": (0x10, 1),
    "fsgnjx": (0x10, 2),
    "fmin": (0x14, 0),
    "fmax": (0x14, 1),
}
FLOAT_COMPARE = {"fle": 0, "flt": 1, "feq": 2}
# name: funct7, rs2, funct3 (None: the rounding mode), kind of destination, kind of source
CONVERSIONS = {
    "fsqrt.s": (0x2C, 0, None, "f", "f"),
    "fsqrt.d": (0x2D, 0, None, "f", "f"),
    "fcvt.s.d": (0x20, 1, None, "f", "f"),
    "fcvt.d.s": (0x21, 0, None, "f", "f"),
    "fclass.s": (0x70, 0, 1, "x", "f"),
    "fclass.d": (0x71, 0, 1, "x", "f"),
    "fmv.x.w": (0x70, 0, 0, "x", "f"),
    "fmv.x.d": (0x71, 0, 0, "x", "f"),
    "fmv.w.x": (0x78, 0, 0, "f", "x"),
    "fmv.d.x": (0x79, 0, 0, "f", "x"),
}
for _letter, _offset in (("s", 0), ("d", 1)):
    for _number, _integer in enumerate(("w", "wu", "l", "lu")):
        CONVERSIONS[f"fcvt.{_integer}.{_letter}"] = (0x60 + _offset, _number, None, "x", "f")
        CONVERSIONS[f"fcvt.{_letter}.{_integer}"] = (0x68 + _offset, _number, None, "f", "x")
# These are exact, so an assembler takes no rounding mode; the field may hold any.
EXACT = {"fcvt.d.s", "fcvt.d.w", "fcvt.d.wu"}


def register(name: str, rd: int, rs1: int, rs2: int) -> Instruction:
    """Arithmetic on two registers."""
    opcode, funct3, funct7 = (REGISTER_FORMS | BIT_REGISTER_FORMS)[name]
    bits = funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
    return Instruction(bits, 4, f"{name} x{rd}, x{rs1}, x{rs2}")


def immediate(name: str, rd: int, rs1: int, value: int) -> Instruction:
    """Arithmetic on a register and a 12-bit constant."""
    opcode, funct3 = IMMEDIATE_FORMS[name]
    bits = field(value, 12) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
    return Instruction(bits, 4, f"{name} x{rd}, x{rs1}, {value}")


def shift(name: str, rd: int, rs1: int, amount: int) -> Instruction:
    """Shift by a constant."""
    opcode, funct3, above, width = (SHIFT_FORMS | BIT_SHIFT_FORMS)[name]
    bits = above << (20 + width) | amount << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
    return Instruction(bits, 4, f"{name} x{rd}, x{rs1}, {amount}")


def unary(name: str, rd: int, rs1: int) -> Instruction:
    """Bit manipulation of one register."""
    opcode, funct3, high = BIT_UNARY_FORMS[name]
    return Instruction(high << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode, 4, f"{name} x{rd}, x{rs1}")


def upper(name: str, rd: int, value: int) -> Instruction:
    """`lui` or `auipc`, with a 20-bit constant."""
    opcode = {"lui": 0x37, "auipc": 0x17}[name]
    return Instruction(field(value, 20) << 12 | rd << 7 | opcode, 4, f"{name} x{rd}, {field(value, 20)}")


def load(name: str, rd: int, rs1: int, offset: int) -> Instruction:
    """Load of an integer or floating-point register."""
    opcode, funct3, _, floating = LOADS[name]
    bits = field(offset, 12) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
    return Instruction(bits, 4, f"{name} {'f' if floating else 'x'}{rd}, {offset}(x{rs1})")


def store(name: str, rs2: int, rs1: int, offset: int) -> Instruction:
    """Store of an integer or floating-point register."""
    opcode, funct3, _, floating = STORES[name]
    low, high = field(offset, 5), field(offset >> 5, 7)
    bits = high << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | low << 7 | opcode
    return Instruction(bits, 4, f"{name} {'f' if floating else 'x'}{rs2}, {offset}(x{rs1})")


def branch(name: str, rs1: int, rs2: int, offset: int) -> Instruction:
    """Conditional branch, `offset` bytes from itself."""
    bits = pick(offset, 12, 10, 9, 8, 7, 6, 5) << 25 | rs2 << 20 | rs1 << 15 | BRANCHES[name] << 12
    bits |= pick(offset, 4, 3, 2, 1, 11) << 7 | 0x63
    return Instruction(bits, 4, f"{name} x{rs1}, x{rs2}, .{offset:+}")


def jal(rd: int, offset: int) -> Instruction:
    """Direct jump, `offset` bytes from itself."""
    high = pick(offset, 20, *range(10, 0, -1), 11, *range(19, 11, -1))
    return Instruction(high << 12 | rd << 7 | 0x6F, 4, f"jal x{rd}, .{offset:+}")


def jalr(rd: int, rs1: int, offset: int) -> Instruction:
    """Jump to a register."""
    return Instruction(
        field(offset, 12) << 20 | rs1 << 15 | rd << 7 | 0x67, 4, f"jalr x{rd}, {offset}(x{rs1})"
    )


def atomic(name: str, wide: bool, ordering: int, rd: int, rs1: int, rs2: int) -> Instruction:
    """Read-modify-write, load-reserved or store-conditional; `ordering` is the two bits aq and rl."""
    bits = ATOMICS[name] << 27 | ordering << 25 | rs2 << 20 | rs1 << 15 | (3 if wide else 2) << 12 | rd << 7
    suffix = ("", ".rl", ".aq", ".aqrl")[ordering]
    operands = f"x{rd}, (x{rs1})" if name == "lr" else f"x{rd}, x{rs2}, (x{rs1})"
    return Instruction(bits | 0x2F, 4, f"{name}.{'d' if wide else 'w'}{suffix} {operands}")


def csr(name: str, rd: int, register_name: str, source: int) -> Instruction:
    """Access to a control register, with a register or a 5-bit constant."""
    bits = CSRS[register_name] << 20 | source << 15 | CSR_FORMS[name] << 12 | rd << 7 | 0x73
    operand = f"{source}" if name.endswith("i") else f"x{source}"
    return Instruction(bits, 4, f"{name} x{rd}, {register_name}, {operand}")


def fence(before: int = 15, after: int = 15) -> Instruction:
    """Orders memory accesses; the sets are bits of iorw."""

    def letters(bits: int) -> str:
        return "".join(letter for letter, bit in {"i": 8, "o": 4, "r": 2, "w": 1}.items() if bits & bit)

    text = f"fence {letters(before)}, {letters(after)}"
    return Instruction(before << 24 | after << 20 | 0x0F, 4, text)


def fence_i() -> Instruction:
    """Orders stores to code before its fetch."""
    return Instruction(0x100F, 4, "fence.i")


def ecall() -> Instruction:
    """Call of the operating system."""
    return Instruction(0x73, 4, "ecall")


def float_two(name: str, double: bool, rd: int, rs1: int, rs2: int, rounding: int) -> Instruction:
    """Floating-point arithmetic on two registers."""
    funct7, fixed = FLOAT_TWO[name]
    funct3 = rounding if fixed is None else fixed
    bits = (funct7 | double) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x53
    tail = f", {ROUNDING[rounding]}" if fixed is None else ""
    return Instruction(bits, 4, f"{name}.{'d' if double else 's'} f{rd}, f{rs1}, f{rs2}{tail}")


def float_compare(name: str, double: bool, rd: int, rs1: int, rs2: int) -> Instruction:
    """Floating-point comparison into an integer register."""
    bits = (0x50 | double) << 25 | rs2 << 20 | rs1 << 15 | FLOAT_COMPARE[name] << 12 | rd << 7 | 0x53
    return Instruction(bits, 4, f"{name}.{'d' if double else 's'} x{rd}, f{rs1}, f{rs2}")


def float_fused(name: str, double: bool, rd: int, rs1: int, rs2: int, rs3: int, rounding: int) -> Instruction:
    """Fused multiply-add."""
    bits = rs3 << 27 | double << 25 | rs2 << 20 | rs1 << 15 | rounding << 12 | rd << 7 | FUSED[name]
    letter = "d" if double else "s"
    return Instruction(bits, 4, f"{name}.{letter} f{rd}, f{rs1}, f{rs2}, f{rs3}, {ROUNDING[rounding]}")


def conversion(name: str, rd: int, rs1: int, rounding: int) -> Instruction:
    """Root, classification, move or conversion: one source."""
    funct7, rs2, fixed, to, of = CONVERSIONS[name]
    if name in EXACT:
        fixed = 0
    funct3 = rounding if fixed is None else fixed
    bits = funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x53
    tail = f", {ROUNDING[rounding]}" if fixed is None else ""
    return Instruction(bits, 4, f"{name} {to}{rd}, {of}{rs1}{tail}")
