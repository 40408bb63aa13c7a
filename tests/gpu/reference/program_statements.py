# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs: single instructions, and sequences that go straight on."""

from dataclasses import dataclass
from random import Random

from reference.operations import operation
from reference.program_opcodes import OPCODES
from reference.ptx_types import Type

THREAD_SLOTS = 8
"""Slots of eight bytes that each thread has in global, shared and local memory: half for integers, half for f32."""
COUNTERS = 8

CLASSES = {
    "r": ("b32", 8),
    "d": ("b64", 5),
    "h": ("b16", 4),
    "f": ("f32", 4),
    "g": ("f64", 3),
    "e": ("b16", 2),
}
"""Registers by the letter they begin with: their type and how many there are. %e hold f16."""
PREDICATES = 4
_POINTERS = (
    *(("global", "%own_global"), ("shared", "%own_shared"), ("local", "%own_local")),
    *(("", "%generic_shared"), ("", "%generic_local"), ("", "%own_global")),
)
"""State spaces, or none for generic addresses, with what points at the thread's own slots there."""
_ACCESSES = (
    *(("u8", "r"), ("s8", "r"), ("u16", "h"), ("s16", "r"), ("u16", "d"), ("b32", "r"), ("s32", "d")),
    *(("u32", "r"), ("u64", "d"), ("b64", "d"), ("s8", "h"), ("u32", "d")),
)
"""Types of integers in memory with the registers they are loaded to."""


def register_class(type_: Type) -> str:
    """The letter of the registers that hold values of a type."""
    if type_.kind == "pred":
        return "p"
    if type_.kind == "f" and type_.name in ("f16", "f32", "f64"):
        return {"f16": "e", "f32": "f", "f64": "g"}[type_.name]
    return {8: "r", 16: "h", 32: "r", 64: "d"}[type_.width]


@dataclass(frozen=True)
class Shape:
    """How a program is launched, and which of the things that need all threads it may do."""

    grid: int
    block: int
    whole_warps: bool
    early_leavers: bool


class Statements:
    """Lines of a program, drawn at random."""

    def __init__(self, random: Random, shape: Shape) -> None:
        self.random = random
        self.shape = shape
        self.lines: list[str] = []
        self.labels = 0

    # Pieces

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def mark(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def register(self, letter: str) -> str:
        count = PREDICATES if letter == "p" else CLASSES[letter][1]
        return f"%{letter}{self.random.randrange(count)}"

    def literal(self, type_: Type) -> str:
        random = self.random
        if type_.width == 64 and random.random() < 0.3:
            return hex(random.getrandbits(63))
        if random.random() < 0.5:
            return str(random.choice((0, 1, 2, 3, 5, 8, 16, 31, 32, 63, 64, -1, -2, -7, 255)))
        return hex(random.getrandbits(min(type_.width, 32) - 1))

    def source(self, type_: Type, may_be_literal: bool) -> str:
        letter = register_class(type_)
        if may_be_literal and letter in "rdh" and self.random.random() < 0.25:
            return self.literal(type_)
        if letter == "p" and self.random.random() < 0.3:
            return f"!{self.register('p')}"
        return self.register(letter)

    def guard(self) -> str:
        if self.random.random() > 0.2:
            return ""
        return f"@{self.random.choice(('', '!'))}{self.register('p')} "

    # Statements

    def compute(self) -> None:
        """One instruction on registers."""
        opcode = self.random.choice(OPCODES)
        what = operation(opcode)
        base = opcode.split(".")[0]
        sources = []
        for index, type_ in enumerate(what.sources):
            literal = index > 0 and base not in ("cvt", "set", "bfe", "bfi") and type_.parts == 1
            sources.append(self.source(type_, literal))
        if base in ("and", "or", "xor", "not", "mov") and "pred" in opcode:
            sources = [each.lstrip("!") for each in sources]
        if base in ("selp", "lop3"):
            sources[-1] = sources[-1].lstrip("!")
        if base == "lop3":
            sources[3] = hex(self.random.getrandbits(8))
        targets = [self.register(register_class(type_)) for type_ in what.results]
        if base == "setp":
            targets = targets[: self.random.choice((1, 2)) if "16" not in opcode.split(".")[-1] else 1]
            if len(targets) == 2 and targets[0] == targets[1]:
                targets.pop()
        self.emit(f"{self.guard()}{opcode} {', '.join(['|'.join(targets), *sources])};")

    def carry_chain(self) -> None:
        a, b, c = (self.register("r") for _ in range(3))
        base = self.random.choice(("add", "sub"))
        self.emit(f"{base}.cc.u32 {a}, {self.register('r')}, {b};")
        self.emit(f"{base}c.cc.u32 {b}, {self.register('r')}, {c};")
        self.emit(f"{base}c.u32 {c}, {self.register('r')}, {self.literal(operation('add.u32').sources[0])};")

    def division(self) -> None:
        """The divisor is positive: PTX does not specify a division by zero, nor one that overflows."""
        operand, type_, divisor = self.random.choice(
            (("r", "s32", "%t"), ("r", "u32", "%t"), ("d", "s64", "%tt"))
        )
        width = type_[1:]
        self.emit(f"and.b{width} {divisor}, {self.register(operand)}, {2 ** (int(width) - 1) - 1};")
        self.emit(f"or.b{width} {divisor}, {divisor}, 1;")
        base = self.random.choice(("div", "rem"))
        self.emit(f"{base}.{type_} {self.register(operand)}, {self.register(operand)}, {divisor};")

    def bits_of_a_float(self) -> None:
        """Moves a float to an integer register, a NaN as its canonical one."""
        single = self.random.random() < 0.6
        size, floating, integer, nan = (
            (32, "f", "r", "0x7fffffff") if single else (64, "g", "d", "0x7fffffffffffffff")
        )
        source, target = self.register(floating), self.register(integer)
        self.emit(f"setp.nan.f{size} %q, {source}, {source};")
        self.emit(f"mov.b{size} {target}, {source};")
        self.emit(f"@%q mov.b{size} {target}, {nan};")

    def float_of_bits(self) -> None:
        source, target = self.random.choice((("r", "f"), ("d", "g")))
        self.emit(f"mov.b{CLASSES[source][0][1:]} {self.register(target)}, {self.register(source)};")

    def pack(self) -> None:
        choice = self.random.randrange(4)
        h, r = [self.register("h") for _ in range(4)], [self.register("r") for _ in range(2)]
        d = self.register("d")
        if choice == 0:
            self.emit(f"mov.b32 {r[0]}, {{{h[0]}, {h[1]}}};")
        elif choice == 1:
            self.emit(f"mov.b64 {d}, {{{r[0]}, {r[1]}}};")
        elif choice == 2 and r[0] != r[1]:
            self.emit(f"mov.b64 {{{r[0]}, {r[1]}}}, {d};")
        elif choice == 3 and h[0] != h[1]:
            self.emit(f"mov.b32 {{{h[0]}, {h[1]}}}, {r[0]};")

    def memory(self) -> None:
        """A load or store of the thread's own slots, in one of three spaces or by generic address."""
        random = self.random
        space, base = random.choice(_POINTERS)
        dot = f".{space}" if space else ""
        half = 8 * THREAD_SLOTS // 2
        if random.random() < 0.25:
            address = f"[{base}+{half + 4 * random.randrange(half // 4)}]"
            if random.random() < 0.5:
                self.emit(f"{self.guard()}ld{dot}.f32 {self.register('f')}, {address};")
            else:
                self.emit(f"{self.guard()}st{dot}.f32 {address}, {self.register('f')};")
            return
        kind, letter = random.choice(_ACCESSES)
        size = int(kind[1:]) // 8
        vector = random.choice((1, 1, 1, 2, 4)) if size * 4 <= 16 else random.choice((1, 1, 2))
        step = size * vector
        address = f"[{base}+{step * random.randrange(half // step)}]"
        count = CLASSES[letter][1]
        names = [f"%{letter}{index}" for index in random.sample(range(count), vector)]
        operand = names[0] if vector == 1 else f"{{{', '.join(names)}}}"
        shape = "" if vector == 1 else f".v{vector}"
        if random.random() < 0.5:
            self.emit(f"{self.guard()}ld{dot}{shape}.{kind} {operand}, {address};")
        else:
            self.emit(f"{self.guard()}st{dot}{shape}.{kind} {address}, {operand};")

    def atomic(self) -> None:
        """On counters that all threads share, without a look at the old value; or on an own slot, with one."""
        random = self.random
        name, type_ = random.choice(
            (("add", "u32"), ("min", "s32"), ("max", "u32"), ("xor", "b32"), ("or", "b32"))
        )
        if random.random() < 0.5:
            # Each counter is for one operation, so that the order does not matter.
            offset = 4 * ("add", "min", "max", "xor", "or").index(name)
            self.emit(f"{self.guard()}red.global.{name}.{type_} [%counters+{offset}], {self.register('r')};")
            return
        name, type_ = random.choice(
            ((name, type_), ("exch", "b32"), ("cas", "b32"), ("inc", "u32"), ("dec", "u32"))
        )
        space, base = random.choice((("global", "%own_global"), ("shared", "%own_shared")))
        operand = f"[{base}+{4 * random.randrange(THREAD_SLOTS)}]"
        last = f", {self.register('r')}" if name == "cas" else ""
        target, value = self.register("r"), self.register("r")
        self.emit(f"{self.guard()}atom.{space}.{name}.{type_} {target}, {operand}, {value}{last};")

    def simple(self) -> None:
        kinds = (
            [self.compute] * 14
            + [self.memory] * 4
            + [
                self.bits_of_a_float,
                self.float_of_bits,
                self.pack,
                self.carry_chain,
                self.division,
                self.atomic,
            ]
        )
        self.random.choice(kinds)()

    # What all threads do together

    def together(self) -> None:
        random = self.random
        r, p = self.register("r"), self.register("p")
        choices = [self.barrier, self.vote]
        if self.shape.whole_warps and not self.shape.early_leavers:
            choices += [self.shuffle, self.shuffle]
        random.choice(choices)(r, p)

    def barrier(self, r: str, p: str) -> None:
        choice = self.random.randrange(4)
        if choice == 0:
            self.emit(f"bar.red.popc.u32 {r}, 0, {p};")
        elif choice == 1:
            self.emit(f"bar.red.{self.random.choice(('and', 'or'))}.pred {p}, 0, {self.register('p')};")
        else:
            self.emit("bar.sync 0;")

    def vote(self, r: str, p: str) -> None:
        other, every = self.register("r"), "0xffffffff"
        texts = (
            f"vote.sync.ballot.b32 {r}, {p}, {every};",
            f"vote.sync.{self.random.choice(('all', 'any', 'uni'))}.pred {p}, !{self.register('p')}, {every};",
            f"match.any.sync.b32 {r}, {other}, {every};",
            f"match.all.sync.b64 {r}|{p}, {self.register('d')}, {every};",
            f"redux.sync.{self.random.choice(('add.s32', 'min.u32', 'max.s32', 'xor.b32'))} {r}, {other}, {every};",
            "bar.warp.sync 0xffffffff;",
        )
        self.emit(self.random.choice(texts))

    def shuffle(self, r: str, p: str) -> None:
        mode = self.random.choice(("up", "down", "bfly", "idx"))
        bounds = 0 if mode == "up" else 0x1F
        bounds |= self.random.choice((0, 0, 0x1000, 0x1800, 0x1C00))
        amount = self.random.choice((self.register("r"), str(self.random.randrange(32))))
        target = f"{r}|{p}" if self.random.random() < 0.5 else r
        self.emit(f"shfl.sync.{mode}.b32 {target}, {self.register('r')}, {amount}, {bounds:#x}, 0xffffffff;")
