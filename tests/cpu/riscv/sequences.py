# SPDX-License-Identifier: Apache-2.0
"""Random sequences of RV64GC instructions (and bit manipulation) as programs that show all their state.

A program is a list of pieces; after each it writes a snapshot, with one system call: a buffer of memory, all
registers, and fcsr. A piece is a few units (an instruction with what it needs before it), sometimes in a loop. x31
points into the data and x30 is the loop counter and the link to the code that writes snapshots; all else is random.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from riscv import compressed as c
from riscv import encoding as e
from riscv.code import constant
from riscv.elf import EXECUTE, READ, WRITE, Elf, Segment
from riscv.encoding import Instruction
from riscv.values import Source

CODE, ANCHOR = 0x20000, 0x400F00  # the buffer crosses a page
POOL_ENTRIES, POOL = 128, -2048  # integers, then numbers; relative to x31, as all that follows
BUFFER_BYTES = 512
REGISTERS = BUFFER_BYTES
SNAPSHOT_BYTES = BUFFER_BYTES + 2 * 32 * 8 + 8
LINK, BASE = 30, 31
SHORT = range(8, 16)
# qemu 7.2 counts on above bit 31 in ctzw where the lower half is zero; a test of its own knows the right answer.
UNARY = [name for name in e.BIT_UNARY_FORMS if name != "ctzw"]


class Generator:
    """Makes units of instructions, each safe to execute wherever it stands."""

    def __init__(self, seed: int) -> None:
        self.source = Source(seed)
        self.kinds = [
            (14, self.integer_register),
            (8, self.integer_immediate),
            (4, self.integer_shift),
            (2, self.integer_upper),
            (7, self.bit_manipulation),
            (8, self.memory_load),
            (8, self.memory_store),
            (5, self.atomic),
            (2, self.reservation),
            (4, self.skip),
            (2, self.indirect),
            (3, self.control_register),
            (1, self.ordering),
            (14, self.float_arithmetic),
            (8, self.float_fused),
            (5, self.float_compare),
            (12, self.float_conversion),
            (6, self.compressed_arithmetic),
            (5, self.compressed_memory),
            (2, self.compressed_jump),
        ]
        self.total = sum(weight for weight, _ in self.kinds)

    def unit(self) -> list[Instruction]:
        """One unit of any kind."""
        at = self.source.below(self.total)
        for weight, make in self.kinds:
            if at < weight:
                return make()
            at -= weight
        raise AssertionError

    def to(self) -> int:
        """A register to write."""
        return self.source.below(30)

    def of(self) -> int:
        """A register to read."""
        return self.source.below(32)

    def short(self) -> int:
        return self.source.one(SHORT)

    def fetch(self, *registers: int, percent: int = 50) -> list[Instruction]:
        """Fills integer registers with fresh operands, in some cases."""
        return [
            e.load("ld", each, BASE, POOL + 8 * self.source.below(POOL_ENTRIES // 2))
            for each in registers
            if each < 30 and self.source.chance(percent)
        ]

    def fetch_float(self, double: bool, *registers: int) -> list[Instruction]:
        """Fills floating-point registers with fresh operands, in some cases of the other format."""
        result = []
        for each in registers:
            if not self.source.chance(70):
                continue
            wide = double != self.source.chance(10)
            entry = POOL_ENTRIES * (2 if wide else 3) // 4 + self.source.below(POOL_ENTRIES // 4)
            name = "flw" if not wide and self.source.chance(30) else "fld"
            result.append(e.load(name, each, BASE, POOL + 8 * entry))
        return result

    def integer_register(self) -> list[Instruction]:
        rd, rs1, rs2 = self.to(), self.of(), self.of()
        return [*self.fetch(rs1, rs2), e.register(self.source.one(e.REGISTER_FORMS), rd, rs1, rs2)]

    def integer_immediate(self) -> list[Instruction]:
        name, rd, rs1 = self.source.one(e.IMMEDIATE_FORMS), self.to(), self.of()
        if name == "slti" and rd == 0:
            rd = 5  # slti x0 tells the simulator something
        return [*self.fetch(rs1), e.immediate(name, rd, rs1, self.source.between(-2048, 2047))]

    def integer_shift(self) -> list[Instruction]:
        name, rd, rs1 = self.source.one(e.SHIFT_FORMS), self.to(), self.of()
        return [*self.fetch(rs1), e.shift(name, rd, rs1, self.source.bits(e.SHIFT_FORMS[name][3]))]

    def integer_upper(self) -> list[Instruction]:
        return [e.upper(self.source.one(["lui", "auipc"]), self.to(), self.source.bits(20))]

    def bit_manipulation(self) -> list[Instruction]:
        rd, rs1, rs2, kind = self.to(), self.of(), self.of(), self.source.below(4)
        if kind == 0:
            return [*self.fetch(rs1), e.unary(self.source.one(UNARY), rd, rs1)]
        if kind == 1:
            name = self.source.one(e.BIT_SHIFT_FORMS)
            return [*self.fetch(rs1), e.shift(name, rd, rs1, self.source.bits(e.BIT_SHIFT_FORMS[name][3]))]
        return [*self.fetch(rs1, rs2), e.register(self.source.one(e.BIT_REGISTER_FORMS), rd, rs1, rs2)]

    def point_into_buffer(
        self, base: int, size: int, aligned: bool, reach: tuple[int, int, int]
    ) -> tuple[list[Instruction], int]:
        """Points a register so that base + offset lies in the buffer; the offset's low, high and step are given."""
        target = self.source.below(BUFFER_BYTES - size + 1)
        if aligned:
            target -= target % size
        low, high, step = reach
        offset = low + step * self.source.below((high - low) // step + 1)
        offset = min(max(offset, -(-(target - 2047) // step) * step), (target + 2048) // step * step)
        return [e.immediate("addi", base, BASE, target - offset)], offset

    def base(self, *taken: int) -> int:
        """A register for an address: not x0, and none of those."""
        while True:
            chosen = self.source.between(1, 29)
            if chosen not in taken:
                return chosen

    def memory_load(self) -> list[Instruction]:
        name, base = self.source.one(e.LOADS), self.base()
        _, _, size, floating = e.LOADS[name]
        before, offset = self.point_into_buffer(base, size, self.source.chance(40), (-2048, 2047, 1))
        return [*before, e.load(name, self.source.below(32) if floating else self.to(), base, offset)]

    def memory_store(self) -> list[Instruction]:
        name, base = self.source.one(e.STORES), self.base()
        _, _, size, _ = e.STORES[name]
        before, offset = self.point_into_buffer(base, size, self.source.chance(40), (-2048, 2047, 1))
        return [*before, e.store(name, self.of(), base, offset)]

    def atomic(self) -> list[Instruction]:
        name = self.source.one([each for each in e.ATOMICS if each.startswith("amo")])
        base, wide, value = self.base(), self.source.chance(50), self.of()
        before, _ = self.point_into_buffer(base, 8 if wide else 4, True, (0, 0, 1))
        fresh = [] if value == base else self.fetch(value)
        return [*fresh, *before, e.atomic(name, wide, self.source.below(4), self.to(), base, value)]

    def reservation(self) -> list[Instruction]:
        """Load-reserved and store-conditional: of one address, of two, or without a reservation."""
        base, wide = self.base(), self.source.chance(50)
        other = self.base(base)
        size = 8 if wide else 4
        before, _ = self.point_into_buffer(base, size, True, (0, 0, 1))
        elsewhere, _ = self.point_into_buffer(other, size, True, (0, 0, 1))
        got = self.source.one([each for each in range(30) if each not in (base, other)])
        between = [e.register(self.source.one(e.REGISTER_FORMS), got, self.of(), self.of())]
        store = [e.atomic("sc", wide, self.source.below(4), self.to(), base, self.of())]
        load = [e.atomic("lr", wide, self.source.below(4), got, base, 0)]
        kind = self.source.below(5)
        if kind == 0:  # the second one has no reservation
            again = [*before, e.atomic("sc", wide, 0, self.to(), base, self.of())]
            return [*before, *load, *store, *again]
        if kind == 1:
            wrong = [e.atomic("sc", wide, 0, self.to(), other, self.of())]
            return [*before, *elsewhere, *load, *wrong]
        return [*before, *load, *(between if self.source.chance(50) else []), *store]

    def simple(self, count: int) -> list[Instruction]:
        """Instructions that may be jumped over."""
        return [
            e.register(self.source.one(e.REGISTER_FORMS), self.to(), self.of(), self.of())
            if self.source.chance(60)
            else c.add_immediate(self.source.between(1, 29), self.source.between(-32, 31) or 1)
            for _ in range(count)
        ]

    def skip(self) -> list[Instruction]:
        """A branch or jump over a few instructions."""
        over = self.simple(self.source.between(0, 3))
        offset = 4 + sum(each.size for each in over)
        if self.source.chance(20):
            return [e.jal(self.to(), offset), *over]
        rs1, rs2 = self.of(), self.of()
        fresh = self.fetch(rs1, rs2)
        if self.source.chance(20):
            rs2 = rs1
        return [*fresh, e.branch(self.source.one(e.BRANCHES), rs1, rs2, offset), *over]

    def indirect(self) -> list[Instruction]:
        """A jump to a register, whose lowest bit does not count."""
        over = self.simple(self.source.between(0, 3))
        base = self.base()
        offset = 8 + sum(each.size for each in over) + self.source.below(2)
        return [e.upper("auipc", base, 0), e.jalr(self.to(), base, offset), *over]

    def control_register(self) -> list[Instruction]:
        """Changes rounding mode and flags; the rounding mode stays a valid one."""
        rd, kind = self.to(), self.source.below(6)
        if kind == 0:
            return [e.csr("csrrwi", rd, "frm", self.source.below(5))]
        if kind == 1:
            return [e.csr("csrrci", rd, "frm", self.source.below(8))]
        if kind == 2:
            base = self.base()
            value = self.source.below(5) << 5 | self.source.below(32)
            return [e.immediate("addi", base, 0, value), e.csr("csrrw", rd, "fcsr", base)]
        if kind == 3:
            return [e.csr("csrrs", rd, self.source.one(["fcsr", "frm", "fflags"]), 0)]
        if kind == 4:
            return [
                e.csr(self.source.one(["csrrwi", "csrrsi", "csrrci"]), rd, "fflags", self.source.below(32))
            ]
        source = self.of()
        return [
            *self.fetch(source),
            e.csr(self.source.one(["csrrw", "csrrs", "csrrc"]), rd, "fflags", source),
        ]

    def ordering(self) -> list[Instruction]:
        if self.source.chance(30):
            return [e.fence_i()]
        return [e.fence(self.source.between(1, 15), self.source.between(1, 15))]

    def rounding(self) -> int:
        return self.source.one([0, 1, 2, 3, 4, 7, 7, 7, 7])

    def floats(self, count: int) -> list[int]:
        return [self.source.below(32) for _ in range(count)]

    def float_arithmetic(self) -> list[Instruction]:
        name, double = self.source.one(e.FLOAT_TWO), self.source.chance(50)
        rd, rs1, rs2 = self.floats(3)
        fresh = self.fetch_float(double, rs1, rs2)
        return [*fresh, e.float_two(name, double, rd, rs1, rs2, self.rounding())]

    def float_fused(self) -> list[Instruction]:
        double, (rd, rs1, rs2, rs3) = self.source.chance(50), self.floats(4)
        fresh = self.fetch_float(double, rs1, rs2, rs3)
        return [*fresh, e.float_fused(self.source.one(e.FUSED), double, rd, rs1, rs2, rs3, self.rounding())]

    def float_compare(self) -> list[Instruction]:
        double, (rs1, rs2) = self.source.chance(50), self.floats(2)
        fresh = self.fetch_float(double, rs1, rs2)
        return [*fresh, e.float_compare(self.source.one(e.FLOAT_COMPARE), double, self.to(), rs1, rs2)]

    def float_conversion(self) -> list[Instruction]:
        name = self.source.one(e.CONVERSIONS)
        _, _, _, to, of = e.CONVERSIONS[name]
        rd = self.source.below(32) if to == "f" else self.to()
        rs1 = self.source.below(32)
        fresh = self.fetch(rs1, percent=80) if of == "x" else self.fetch_float(name.endswith(".d"), rs1)
        return [*fresh, e.conversion(name, rd, rs1, self.rounding())]

    def compressed_arithmetic(self) -> list[Instruction]:
        rd, rs2, kind = self.source.between(1, 29), self.source.between(1, 31), self.source.below(10)
        value = self.source.between(-32, 31)
        if kind == 0:
            return [c.add_immediate(rd, value or 1)]
        if kind == 1:
            return [c.add_immediate(rd, value, word=True)]
        if kind == 2:
            return [c.load_immediate(rd, value)]
        if kind == 3:
            return [c.load_upper(rd if rd != 2 else 3, value or 1)]
        if kind == 4:
            return [c.add_to_stack_pointer(16 * (value or 1))]
        if kind == 5:
            return [c.address_on_stack(self.short(), 4 * self.source.between(1, 255))]
        if kind == 6:
            return [*self.fetch(rd), c.shift_left(rd, self.source.between(1, 63))]
        if kind == 7:
            name, rd = self.source.one(["c.srli", "c.srai", "c.andi"]), self.short()
            return [
                *self.fetch(rd),
                c.short_immediate(name, rd, value if name == "c.andi" else value % 63 + 1),
            ]
        if kind == 8:
            rd, rs2 = self.short(), self.short()
            return [*self.fetch(rd, rs2), c.short_register(self.source.one(c.SHORT_REGISTER_FORMS), rd, rs2)]
        return [*self.fetch(rs2), self.source.one([c.move, c.add])(rd, rs2)]

    def compressed_memory(self) -> list[Instruction]:
        aligned = self.source.chance(50)
        if self.source.chance(50):
            name = self.source.one([*c.SHORT_LOADS, *c.SHORT_STORES])
            _, size, _ = (c.SHORT_LOADS | c.SHORT_STORES)[name]
            base = self.short()
            before, offset = self.point_into_buffer(base, size, aligned, (0, 31 * size, size))
            return [*before, c.short_access(name, self.short(), base, offset)]
        name = self.source.one([*c.STACK_LOADS, *c.STACK_STORES])
        _, size, floating = (c.STACK_LOADS | c.STACK_STORES)[name]
        before, offset = self.point_into_buffer(2, size, aligned, (0, 63 * size, size))
        if name in c.STACK_STORES:
            return [*before, c.stack_store(name, self.of(), offset)]
        return [
            *before,
            c.stack_load(name, self.source.below(32) if floating else self.source.between(1, 29), offset),
        ]

    def compressed_jump(self) -> list[Instruction]:
        over = self.simple(self.source.between(0, 3))
        length = sum(each.size for each in over)
        kind = self.source.below(4)
        if kind == 0:
            return [c.jump(2 + length), *over]
        if kind == 1:
            rs1 = self.short()
            fresh = self.fetch(rs1)
            return [*fresh, c.branch(self.source.one(["c.beqz", "c.bnez"]), rs1, 2 + length), *over]
        base = self.base()
        target = [
            e.upper("auipc", base, 0),
            e.immediate("addi", base, base, 10 + length + self.source.below(2)),
        ]
        return [*target, c.jump_to(base, link=kind == 3), *over]

    def piece(self, units: int) -> list[Instruction]:
        """A few units, in a loop in some cases."""
        body = [each for _ in range(units) for each in self.unit()]
        if self.source.chance(85):
            return body
        start = [e.immediate("addi", LINK, 0, self.source.between(2, 5))]
        back = -4 - sum(each.size for each in body)
        return [*start, *body, e.immediate("addi", LINK, LINK, -1), e.branch("bne", LINK, 0, back)]


@dataclass(frozen=True)
class Program:
    """A random program: its file and its pieces, for messages."""

    seed: int
    elf: bytes
    pieces: list[list[Instruction]]

    def text(self, number: int) -> str:
        """The instructions before a snapshot."""
        return "\n".join(each.text for each in self.pieces[number])


def start_code() -> list[Instruction]:
    """Points x31 and fills all registers from the pool."""
    half = POOL_ENTRIES // 2
    code = constant(BASE, ANCHOR)
    code += [e.load("fld", each, BASE, POOL + 8 * (half + 2 * each)) for each in range(32)]
    return code + [e.load("ld", each, BASE, POOL + 8 * (2 * each)) for each in range(1, 30)]


def snapshot_code() -> list[Instruction]:
    """Writes a snapshot to standard output and changes no register."""
    clobbered = (1, 10, 11, 12, 17)
    code = [e.store("sd", each, BASE, REGISTERS + 8 * each) for each in range(1, 32)]
    code += [e.store("fsd", each, BASE, REGISTERS + 256 + 8 * each) for each in range(32)]
    code += [e.csr("csrrs", 1, "fcsr", 0), e.store("sd", 1, BASE, REGISTERS + 512)]
    code += [e.immediate("addi", 10, 0, 1), e.immediate("addi", 11, BASE, 0)]
    code += [e.immediate("addi", 12, 0, SNAPSHOT_BYTES), e.immediate("addi", 17, 0, 64), e.ecall()]
    code += [e.load("ld", each, BASE, REGISTERS + 8 * each) for each in clobbered]
    return [*code, e.jalr(0, LINK, 0)]


def make_program(seed: int, pieces: int = 50, units: int = 2) -> Program:
    """The program of a seed, always the same."""
    generator = Generator(seed)
    source = generator.source
    base = CODE + 2 * source.below(2048)
    snapshot = snapshot_code()
    bodies = [generator.piece(units) for _ in range(pieces)]
    code = [*snapshot, *start_code()]
    position = sum(each.size for each in code)
    for body in bodies:
        code += body
        position += sum(each.size for each in body)
        code.append(e.jal(LINK, -position))
        position += 4
    code += [e.immediate("addi", 10, 0, seed % 64), e.immediate("addi", 17, 0, 93), e.ecall()]
    entry = base + sum(each.size for each in snapshot)
    integers = [source.integer() for _ in range(POOL_ENTRIES // 2)]
    doubles = [source.double() for _ in range(POOL_ENTRIES // 4)]
    singles = [source.single() for _ in range(POOL_ENTRIES // 4)]
    data = struct.pack(f"<{POOL_ENTRIES}Q", *integers, *doubles, *singles)
    data += bytes(-POOL - len(data)) + source.bits(8 * BUFFER_BYTES).to_bytes(BUFFER_BYTES, "little")
    data += bytes(SNAPSHOT_BYTES - BUFFER_BYTES)
    segments = [
        Segment(base, b"".join(each.encoded() for each in code), READ | EXECUTE),
        Segment(ANCHOR + POOL, data, READ | WRITE),
    ]
    return Program(seed, Elf(segments, entry).encoded(), bodies)


def snapshots(output: bytes) -> list[bytes]:
    """What a program wrote, cut into snapshots."""
    return [output[at : at + SNAPSHOT_BYTES] for at in range(0, len(output), SNAPSHOT_BYTES)]


def differences(expected: bytes, actual: bytes) -> list[str]:
    """Which parts of two snapshots differ, one line each."""
    lines = []
    names = [f"x{each}" for each in range(32)] + [f"f{each}" for each in range(32)] + ["fcsr"]
    for number, name in enumerate(names):
        at = REGISTERS + 8 * number
        ours, theirs = (int.from_bytes(each[at : at + 8], "little") for each in (actual, expected))
        if ours != theirs:
            lines.append(f"{name}: expected {theirs:#018x}, got {ours:#018x}")
    for at in range(BUFFER_BYTES):
        if expected[at] != actual[at]:
            lines.append(f"buffer byte {at}: expected {expected[at]:#04x}, got {actual[at]:#04x}")
    return lines
