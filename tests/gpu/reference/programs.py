# SPDX-License-Identifier: Apache-2.0
"""Random PTX programs whose outcome PTX defines to the bit.

A program loads its registers from an array, runs, and stores them in another. In between it computes, branches (nested
and unstructured), loops, loads and stores in memory of its own, calls functions, and meets the other threads where all
come together. It never looks at what is not defined: bits of NaN, lanes that do not take part, orders of atomics.
"""

from random import Random

from reference import HEADER
from reference.program_statements import CLASSES, COUNTERS, PREDICATES, THREAD_SLOTS, Shape, Statements

__all__ = ["COUNTERS", "THREAD_SLOTS", "Generator", "dumped_classes", "registers_dumped"]

_COUNTERS_OF_LOOPS = 4


class Generator(Statements):
    def __init__(self, seed: int) -> None:
        random = Random(seed)
        block = random.choice((1, 7, 31, 32, 32, 33, 40, 64))
        super().__init__(
            random,
            Shape(
                grid=random.choice((1, 1, 2)),
                block=block,
                whole_warps=block % 32 == 0,
                early_leavers=random.random() < 0.3,
            ),
        )
        self.loops = 0
        self.functions: list[str] = []

    # Control flow

    def body(self, depth: int, length: int) -> None:
        for _ in range(length):
            choice = self.random.random()
            if depth == 0 or choice < 0.72:
                self.simple()
            elif choice < 0.82:
                self.choose(depth - 1)
            elif choice < 0.89:
                self.loop(depth - 1)
            elif choice < 0.95:
                self.tangle(depth - 1)
            else:
                self.call()

    def condition(self) -> str:
        return f"@{self.random.choice(('', '!'))}{self.register('p')}"

    def choose(self, depth: int) -> None:
        """if, or if and else."""
        other, end = self.label(), self.label()
        self.emit(f"{self.condition()} bra {other};")
        self.body(depth, self.random.randint(1, 4))
        if self.random.random() < 0.5:
            self.emit(f"bra {end};")
            self.mark(other)
            self.body(depth, self.random.randint(1, 4))
            self.mark(end)
        else:
            self.mark(other)

    def loop(self, depth: int) -> None:
        """One to four rounds, not the same in all threads; a round may end early, or the loop."""
        if self.loops == _COUNTERS_OF_LOOPS:
            return
        counter = f"%c{self.loops}"
        self.loops += 1
        start, next_round, end = self.label(), self.label(), self.label()
        self.emit(f"and.b32 {counter}, {self.register('r')}, 3;")
        self.mark(start)
        self.body(depth, self.random.randint(1, 4))
        if self.random.random() < 0.4:
            self.emit(f"{self.condition()} bra {self.random.choice((next_round, end))};")
            self.body(depth, self.random.randint(1, 3))
        self.mark(next_round)
        self.emit(f"setp.eq.u32 %q, {counter}, 0;")
        self.emit(f"sub.u32 {counter}, {counter}, 1;")
        self.emit(f"@!%q bra {start};")
        self.mark(end)
        self.loops -= 1

    def tangle(self, depth: int) -> None:
        """Blocks that jump forward to any later one: paths that join where no structure says so."""
        blocks = [self.label() for _ in range(self.random.randint(3, 5))]
        end = self.label()
        for index, block in enumerate(blocks):
            self.mark(block)
            self.body(depth, self.random.randint(1, 3))
            later = [*blocks[index + 1 :], end]
            for _ in range(self.random.choice((0, 1, 1, 2))):
                self.emit(f"{self.condition()} bra {self.random.choice(later)};")
            if self.random.random() < 0.3:
                self.jump_table(later)
        self.mark(end)

    def jump_table(self, targets: list[str]) -> None:
        table = self.label()
        self.emit(f"{table}: .branchtargets {', '.join(targets)};")
        self.emit(f"and.b32 %t, {self.register('r')}, 0xffff;")
        self.emit(f"rem.u32 %t, %t, {len(targets)};")
        self.emit(f"brx.idx %t, {table};")

    def call(self) -> None:
        """A direct call, or one by a pointer that may differ between threads."""
        if not self.functions:
            return
        random = self.random
        target = random.choice(self.functions)
        self.emit("{ .param .b32 a0; .param .b64 a1; .param .b32 a2; .param .b32 result;")
        self.emit(f"st.param.b32 [a0+0], {self.register('r')};")
        self.emit(f"st.param.b64 [a1+0], {self.register('d')};")
        self.emit(f"st.param.f32 [a2+0], {self.register('f')};")
        if random.random() < 0.4 and len(self.functions) > 1:
            other = random.choice(self.functions)
            label = self.label()
            self.emit(f"mov.u64 %callee, {target};")
            self.emit(f"@{self.register('p')} mov.u64 %callee, {other};")
            self.emit(
                f"{label}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b32 _);"
            )
            self.emit(f"call (result), %callee, (a0, a1, a2), {label};")
        else:
            self.emit(f"call (result), {target}, (a0, a1, a2);")
        self.emit(f"ld.param.b32 {self.register('r')}, [result+0]; }}")

    def leave_early(self) -> None:
        self.emit(f"@{self.register('p')} bra DUMP;")

    # Functions and kernels

    def declarations(self) -> None:
        for letter, (type_, count) in CLASSES.items():
            self.emit(f".reg .{type_} %{letter}<{count}>;")
        self.emit(f".reg .pred %p<{PREDICATES}>, %q;")
        self.emit(f".reg .b32 %c<{_COUNTERS_OF_LOOPS}>, %t;")
        self.emit(".reg .b64 %tt, %callee;")

    def function(self, name: str) -> None:
        """A function of an integer, a wide integer and a float. Every second one calls itself a few times."""
        self.lines.append(
            f".func (.param .b32 result) {name}(.param .b32 a0, .param .b64 a1, .param .b32 a2)\n{{"
        )
        self.declarations()
        self.emit(
            ".reg .b64 %own_global, %own_shared, %own_local, %generic_shared, %generic_local, %counters;"
        )
        random = self.random
        for letter, (_type, count) in CLASSES.items():
            for index in range(count):
                self.emit(self._from_parameter(letter, index))
        for index in range(PREDICATES):
            self.emit(
                f"setp.{random.choice(('lt', 'ge'))}.s32 %p{index}, %r0, {random.getrandbits(31) - 2**30};"
            )
        kinds = [self.compute] * 6 + [self.pack, self.float_of_bits, self.bits_of_a_float, self.division]
        for _ in range(random.randint(3, 7)):
            random.choice(kinds)()
        skip = self.label()
        self.emit(f"{self.condition()} bra {skip};")
        for _ in range(random.randint(1, 4)):
            random.choice(kinds)()
        if random.random() < 0.5:
            self.emit("st.param.b32 [result+0], %r1;")
            self.emit("ret;")
        self.mark(skip)
        if random.random() < 0.5:
            self.recurse(name)
        self.emit(f"st.param.b32 [result+0], {self.register('r')};")
        self.emit("ret;\n}")

    def _from_parameter(self, letter: str, index: int) -> str:
        name = f"%{letter}{index}"
        match letter:
            case "r":
                return f"ld.param.b32 {name}, [a0+0];"
            case "d":
                return f"ld.param.b64 {name}, [a1+0];"
            case "h":
                return f"ld.param.u16 {name}, [a1+{2 * (index % 4)}];"
            case "f":
                return f"ld.param.f32 {name}, [a2+0];"
            case "g":
                return f"ld.param.f64 {name}, [a1+0];"
        return f"ld.param.b16 {name}, [a1+{2 * index}];"

    def recurse(self, name: str) -> None:
        """The lowest bits of the first argument count down, so that it ends."""
        end = self.label()
        self.emit("ld.param.b32 %t, [a0+0];")
        self.emit("and.b32 %t, %t, 3;")
        self.emit(f"setp.eq.u32 %q, %t, 0;\n    @%q bra {end};")
        self.emit("ld.param.b32 %r0, [a0+0];\n    sub.u32 %r0, %r0, 1;")
        self.emit("{ .param .b32 b0; .param .b64 b1; .param .b32 b2; .param .b32 back;")
        self.emit("st.param.b32 [b0+0], %r0;\n    st.param.b64 [b1+0], %d0;\n    st.param.f32 [b2+0], %f0;")
        self.emit(f"call (back), {name}, (b0, b1, b2);")
        self.emit("ld.param.b32 %r1, [back+0]; }")
        self.mark(end)

    def kernel(self) -> None:
        bytes_of_thread = 8 * THREAD_SLOTS
        parameters = ", ".join(f".param .u64 {name}" for name in ("inputs", "outputs", "slots", "counters"))
        self.lines.append(f".visible .entry program({parameters})\n{{")
        self.declarations()
        self.emit(".reg .b32 %thread, %cta, %size;")
        self.emit(
            ".reg .b64 %own_global, %own_shared, %own_local, %generic_shared, %generic_local, %counters;"
        )
        self.emit(".reg .b64 %inputs, %outputs;")
        self.emit(f".shared .align 16 .b8 shared_slots[{bytes_of_thread * self.shape.block}];")
        self.emit(f".local .align 16 .b8 local_slots[{bytes_of_thread}];")
        self.emit("mov.u32 %thread, %tid.x;\n    mov.u32 %cta, %ctaid.x;\n    mov.u32 %size, %ntid.x;")
        self.emit("mov.u64 %own_shared, shared_slots;\n    mov.u64 %own_local, local_slots;")
        self.emit(f"mad.wide.u32 %own_shared, %thread, {bytes_of_thread}, %own_shared;")
        self.emit(
            "cvta.shared.u64 %generic_shared, %own_shared;\n    cvta.local.u64 %generic_local, %own_local;"
        )
        self.emit("mad.lo.u32 %thread, %cta, %size, %thread;")
        for name, parameter, stride in (
            ("%inputs", "inputs", 8 * registers_dumped()),
            ("%outputs", "outputs", 8 * registers_dumped()),
            ("%own_global", "slots", bytes_of_thread),
        ):
            self.emit(
                f"ld.param.u64 {name}, [{parameter}];\n    mad.wide.u32 {name}, %thread, {stride}, {name};"
            )
        self.emit("ld.param.u64 %counters, [counters];")
        self.transfer("ld.global")
        for offset in range(0, bytes_of_thread, 8):
            self.emit(f"ld.global.b64 %tt, [%own_global+{offset}];")
            self.emit(
                f"st.shared.b64 [%own_shared+{offset}], %tt;\n    st.local.b64 [%own_local+{offset}], %tt;"
            )
        for section in range(self.random.randint(2, 4)):
            if section:
                self.together()
            self.body(3, self.random.randint(4, 9))
            if self.shape.early_leavers and self.random.random() < 0.5:
                self.leave_early()
        self.mark("DUMP")
        self.transfer("st.global")
        self.emit("ret;\n}")

    def transfer(self, opcode: str) -> None:
        """Loads or stores all registers; a predicate as a word."""
        offset = 0
        address = "%inputs" if opcode.startswith("ld") else "%outputs"
        for letter, (type_, count) in CLASSES.items():
            for index in range(count):
                operands = [f"%{letter}{index}", f"[{address}+{offset}]"]
                operands = operands if opcode.startswith("ld") else operands[::-1]
                self.emit(f"{opcode}.{type_} {', '.join(operands)};")
                offset += 8
        for index in range(PREDICATES):
            if opcode.startswith("ld"):
                self.emit(f"ld.global.b32 %t, [{address}+{offset}];\n    setp.lt.s32 %p{index}, %t, 0;")
            else:
                self.emit(f"selp.b32 %t, 1, 0, %p{index};\n    st.global.b32 [{address}+{offset}], %t;")
            offset += 8

    def program(self) -> str:
        for index in range(self.random.choice((0, 2, 3))):
            self.function(f"function{index}")
            self.functions.append(f"function{index}")
        self.kernel()
        return HEADER + "\n".join(self.lines) + "\n"


def registers_dumped() -> int:
    return sum(count for _type, count in CLASSES.values()) + PREDICATES


def dumped_classes() -> list[str]:
    """The class of each dumped register, in the order in which they lie in memory."""
    letters = [letter for letter, (_type, count) in CLASSES.items() for _ in range(count)]
    return letters + ["p"] * PREDICATES
