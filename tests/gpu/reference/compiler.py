# SPDX-License-Identifier: Apache-2.0
"""Functions as lists of steps: operands, instructions on registers alone, control flow and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reference import rounding
from reference.float_operations import from_float
from reference.machine import EXITED, Getter, Setter, Step, Thread, special_value
from reference.memory import align
from reference.operations import Operation, operation
from reference.parser import (
    Address,
    Constant,
    Function,
    Group,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    Variable,
    Vector,
)
from reference.ptx_types import TYPES, Type, mask, widened
from reference.rounding import FORMATS

if TYPE_CHECKING:
    from reference.interpreter import Program

StepBuilder = Callable[["Compiled", Instruction], Step]
_builders: dict[str, StepBuilder] = {}


def step_builder(*bases: str) -> Callable[[StepBuilder], StepBuilder]:
    """Registers what makes steps of instructions that do more than compute registers from registers."""

    def register(function: StepBuilder) -> StepBuilder:
        for base in bases:
            _builders[base] = function
        return function

    return register


def layout(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Offsets of variables one after the other, each aligned, and the end of the last."""
    offsets, end = {}, start
    for variable in variables:
        end = align(end, variable.alignment)
        offsets[variable.name] = end
        end += variable.size
    return offsets, end


def constant_bits(constant: Constant, type_: Type) -> int:
    """A literal as bits of the type at its use."""
    value = constant.value
    if isinstance(value, int):
        return int(value != 0) if type_.kind == "pred" else value & mask(type_.width)
    negative, text = value.startswith("-"), value.lstrip("-")
    if text[1:2] in ("f", "F", "d", "D"):
        width = 32 if text[1] in "fF" else 64
        bits = int(text[2:], 16)
        if width == type_.width and not negative:
            return bits
        number = rounding.decode(bits, FORMATS[f"f{width}"])
    else:
        number = from_float(float(text))
    return rounding.encode(number.negated() if negative else number, FORMATS[f"f{type_.width}"])


class Compiled:
    """A function as steps, and where its variables lie in a frame."""

    def __init__(self, program: Program, source: Function) -> None:
        self.program = program
        self.source = source
        own = source.variables if source.kernel else source.results + source.parameters + source.variables
        self.offsets, self.frame_size = layout([each for each in own if each.space in ("local", "param")])
        self.parameters, self.parameter_size = layout(source.parameters if source.kernel else [])
        self.steps: list[Step] = []

    def compile(self) -> None:
        self.steps = [self.step(instruction) for instruction in self.source.instructions]
        self.steps.append(Thread.leave)

    # Operands

    def symbol(self, name: Name) -> Getter:
        """The address, in its own space, of a variable or function."""
        if name.text in self.offsets:
            offset = self.offsets[name.text] + name.offset
            return lambda thread: thread.frames[-1].base + offset
        fixed = self.parameters.get(name.text)
        if fixed is None:
            fixed = self.program.symbols[name.text]
        address = fixed + name.offset
        return lambda thread: address

    def getter(self, operand: Operand, type_: Type) -> Getter:
        """Reads a source as bits of `type_`; a wider register is cut to its width."""
        if isinstance(operand, Constant):
            bits = constant_bits(operand, type_)
            return lambda thread: bits
        if isinstance(operand, Negated):
            name = operand.name.text
            return lambda thread: 1 - thread.registers[name]
        if isinstance(operand, Vector):
            return self._packed(operand, type_)
        name, keep = operand.text, mask(type_.width)
        register = self.source.registers.get(name)
        if register is not None:
            if register.width > type_.width:
                return lambda thread: thread.registers[name] & keep
            return lambda thread: thread.registers[name]
        if name.startswith("%") or name == "WARP_SZ":
            return lambda thread: special_value(name, thread) & keep
        symbol = self.symbol(operand)
        return lambda thread: symbol(thread) & keep

    def _packed(self, vector: Vector, type_: Type) -> Getter:
        width = type_.width // len(vector.parts)
        getters = [self.getter(part, TYPES[f"b{width}"]) for part in vector.parts]
        return lambda thread: sum(get(thread) << (width * i) for i, get in enumerate(getters))

    def setter(self, operand: Operand, type_: Type) -> Setter:
        """Writes bits of `type_` to a destination; a wider register gets them extended."""
        if isinstance(operand, Vector):
            return self._unpacked(operand, type_)
        name = operand.text
        if name == "_":
            return lambda thread, bits: None
        width = self.source.registers[name].width
        if width > type_.width:

            def put_wide(thread: Thread, bits: int) -> None:
                thread.registers[name] = widened(bits, type_, width)

            return put_wide

        def put(thread: Thread, bits: int) -> None:
            thread.registers[name] = bits

        return put

    def _unpacked(self, vector: Vector, type_: Type) -> Setter:
        width = type_.width // len(vector.parts)
        setters = [self.setter(part, TYPES[f"b{width}"]) for part in vector.parts]

        def put(thread: Thread, bits: int) -> None:
            for index, each in enumerate(setters):
                each(thread, bits >> (width * index) & mask(width))

        return put

    def address(self, operand: Address) -> Getter:
        if isinstance(operand.base, Constant):
            fixed = operand.base.value
            return lambda thread: fixed
        offset, name = operand.offset, operand.base.text
        if name in self.source.registers:
            keep = mask(self.source.registers[name].width)
            return lambda thread: (thread.registers[name] + offset) & keep
        return self.symbol(Name(name, offset))

    # Steps

    def step(self, instruction: Instruction) -> Step:
        build = _builders.get(instruction.opcode.split(".")[0], pure)
        inner, guard = build(self, instruction), instruction.guard
        if guard is None:
            return inner
        if instruction.guard_negated:
            return lambda thread: None if thread.registers[guard] else inner(thread)
        return lambda thread: inner(thread) if thread.registers[guard] else None


def destinations(operand: Operand) -> list[Operand]:
    return [operand.first, operand.second] if isinstance(operand, Pair) else [operand]


def pure(function: Compiled, instruction: Instruction) -> Step:
    """An instruction that computes registers from registers."""
    what = operation(instruction.opcode)
    target, *sources = instruction.operands
    getters = [function.getter(each, type_) for each, type_ in zip(sources, what.sources, strict=True)]
    targets = destinations(target)
    setters = [function.setter(each, type_) for each, type_ in zip(targets, what.results, strict=False)]
    compute, put = what.function, setters[0]
    if what.reads_carry or what.writes_carry:
        return _with_carry(what, getters, put)
    if len(what.results) == 1:
        return lambda thread: put(thread, compute(*[get(thread) for get in getters]))

    def several(thread: Thread) -> None:
        results = compute(*[get(thread) for get in getters])
        for each, bits in zip(setters, results, strict=False):
            each(thread, bits)

    return several


def _with_carry(what: Operation, getters: list[Getter], put: Setter) -> Step:
    def step(thread: Thread) -> None:
        operands = [get(thread) for get in getters]
        if what.reads_carry:
            operands.append(thread.carry)
        result = what.function(*operands)
        if what.writes_carry:
            result, thread.carry = result
        put(thread, result)

    return step


@step_builder("membar", "fence", "nanosleep", "prefetch", "prefetchu", "pmevent", "discard", "applypriority")
def nothing(_function: Compiled, _instruction: Instruction) -> Step:
    """What has no effect on a machine in which every access is performed at once."""
    return lambda thread: None


# Control flow


@step_builder("bra")
def branch(function: Compiled, instruction: Instruction) -> Step:
    target = function.source.labels[instruction.operands[0].text]

    def jump(thread: Thread) -> None:
        thread.pc = target

    return jump


@step_builder("brx")
def branch_by_index(function: Compiled, instruction: Instruction) -> Step:
    get = function.getter(instruction.operands[0], TYPES["u32"])
    targets = function.source.tables[instruction.operands[1].text]
    jumps = [function.source.labels[name] for name in targets]

    def jump(thread: Thread) -> None:
        thread.pc = jumps[get(thread)]

    return jump


@step_builder("ret")
def leave(_function: Compiled, _instruction: Instruction) -> Step:
    return Thread.leave


@step_builder("exit")
def end(_function: Compiled, _instruction: Instruction) -> Step:
    return lambda thread: EXITED


@step_builder("trap")
def trap(_function: Compiled, _instruction: Instruction) -> Step:
    def fail(thread: Thread) -> None:
        raise RuntimeError(f"trap in thread {thread.number}")

    return fail


@step_builder("call")
def call(function: Compiled, instruction: Instruction) -> Step:
    """Arguments are copied into the frame of the callee, results out of it when it returns."""
    operands = list(instruction.operands)
    results = operands.pop(0).parts if isinstance(operands[0], Group) else ()
    target = operands.pop(0)
    arguments = operands[0].parts if operands and isinstance(operands[0], Group) else ()
    find = _callee(function, target)

    def step(thread: Thread) -> None:
        callee = find(thread)
        formal = callee.source.parameters
        pairs = list(zip(arguments, formal, strict=True))
        values = [_argument(function, each, variable)(thread) for each, variable in pairs]
        frame = thread.enter(callee)
        for variable, value in zip(formal, values, strict=True):
            if variable.space == "reg":
                frame.registers[variable.name] = value
            else:
                thread.local.store(frame.base + callee.offsets[variable.name], variable.size, value, 1)
        frame.returned = [
            (_result_setter(function, each, variable), variable)
            for each, variable in zip(results, callee.source.results, strict=True)
        ]

    return step


def _callee(function: Compiled, target: Name) -> Callable[[Thread], Compiled]:
    program = function.program
    if target.text in program.functions:
        return lambda thread: program.functions[target.text]
    get = function.getter(target, TYPES["u64"])
    return lambda thread: program.function_at(get(thread))


def _argument(function: Compiled, operand: Operand, variable: Variable) -> Getter:
    if isinstance(operand, Name) and operand.text in function.offsets:
        offset, size = function.offsets[operand.text], variable.size
        return lambda thread: thread.local.load(thread.frames[-1].base + offset, size, 1)
    return function.getter(operand, variable.type)


def _result_setter(function: Compiled, operand: Name, variable: Variable) -> Setter:
    if operand.text in function.offsets:
        offset, size = function.offsets[operand.text], variable.size
        return lambda thread, bits: thread.local.store(thread.frames[-1].base + offset, size, bits, 1)
    return function.setter(operand, variable.type)
