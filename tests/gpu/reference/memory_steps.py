# SPDX-License-Identifier: Apache-2.0
"""Loads, stores, atomics, moves and addresses (PTX ISA 9.7.9, 9.7.13.5, 9.7.13.6)."""

from collections.abc import Callable

from reference.compiler import Compiled, pure, step_builder
from reference.machine import Step, Thread
from reference.memory import WINDOWS, window_of
from reference.operations import UnsupportedError, operation
from reference.parser import Address, Instruction, Name, Operand, Vector
from reference.ptx_types import TYPES, Type, mask

_SPACES = ("global", "shared", "local", "const", "param")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def _space(modifiers: list[str]) -> str:
    found = [name.partition("::")[0] for name in modifiers if name.partition("::")[0] in _SPACES]
    return found[0] if found else "generic"


def _type(modifiers: list[str]) -> Type:
    return [TYPES[name] for name in modifiers if name in TYPES][-1]


def _space_of(function: Compiled, operand: Address, modifiers: list[str]) -> str:
    """Parameters of device functions, and those of calls, are variables of the frame."""
    named = isinstance(operand.base, Name) and operand.base.text in function.offsets
    return "local" if named else _space(modifiers)


def _elements(operand: Operand) -> list[Operand]:
    return list(operand.parts) if isinstance(operand, Vector) else [operand]


@step_builder("ld", "ldu")
def load(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    target, source = instruction.operands[:2]
    type_, space = _type(modifiers), _space_of(function, source, modifiers)
    address, size = function.address(source), type_.size
    setters = [function.setter(each, type_) for each in _elements(target)]

    def step(thread: Thread) -> None:
        region, offset = thread.region(space, address(thread))
        bits = region.load(offset, size * len(setters))
        for index, put in enumerate(setters):
            put(thread, bits >> (8 * size * index) & mask(8 * size))

    return step


@step_builder("st")
def store(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    target, source = instruction.operands[:2]
    type_, space = _type(modifiers), _space_of(function, target, modifiers)
    address, size = function.address(target), type_.size
    getters = [function.getter(each, type_) for each in _elements(source)]

    def step(thread: Thread) -> None:
        region, offset = thread.region(space, address(thread))
        bits = sum(get(thread) << (8 * size * index) for index, get in enumerate(getters))
        region.store(offset, size * len(getters), bits)

    return step


def atomic_function(modifiers: list[str], space: str) -> Callable[..., int]:
    """What becomes of the value in memory, given it and the operands.

    An addition of f32 flushes subnormal numbers in global memory and not in shared memory.
    """
    type_ = _type(modifiers)
    name = next(each for each in modifiers if each in _ATOMICS)
    if name == "add" and type_.kind == "f":
        flush = ".ftz" if type_.name == "f32" and space == "global" else ""
        return operation(f"add.rn{flush}.{type_.name}").function
    if name in ("add", "min", "max"):
        return operation(f"{name}.{type_.name}").function
    return _ATOMICS[name]


_ATOMICS: dict[str, Callable[..., int] | None] = {
    "add": None,
    "min": None,
    "max": None,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: new if old == expected else old,
    "inc": lambda old, limit: 0 if old >= limit else old + 1,
    "dec": lambda old, limit: limit if old == 0 or old > limit else old - 1,
}


@step_builder("atom", "red")
def atomic(function: Compiled, instruction: Instruction) -> Step:
    base, *modifiers = instruction.opcode.split(".")
    operands = list(instruction.operands)
    targets = _elements(operands.pop(0)) if base == "atom" else []
    location, *sources = operands
    type_, space = _type(modifiers), _space(modifiers)
    address, size = function.address(location), type_.size
    columns = [[function.getter(each, type_) for each in _elements(source)] for source in sources]
    getters = list(zip(*columns, strict=True))
    setters = [function.setter(each, type_) for each in targets]

    def step(thread: Thread) -> None:
        offset = address(thread)
        window = window_of(offset) if space == "generic" else space
        compute = atomic_function(modifiers, window)
        region, offset = thread.region(space, offset)
        values = [[get(thread) for get in group] for group in getters]
        for index, group in enumerate(values):
            old = region.load(offset + size * index, size)
            region.store(offset + size * index, size, compute(old, *group))
            if setters:
                setters[index](thread, old)

    return step


@step_builder("mov")
def move(function: Compiled, instruction: Instruction) -> Step:
    """A vector on one side packs or unpacks; everything else is a move of bits."""
    target, source = instruction.operands
    if isinstance(target, Vector):
        type_ = _type(instruction.opcode.split(".")[1:])
        put, get = function.setter(target, type_), function.getter(source, type_)
        return lambda thread: put(thread, get(thread))
    return pure(function, instruction)


@step_builder("cvta")
def convert_address(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    type_, space = _type(modifiers), _space(modifiers)
    target, source = instruction.operands
    put, get = function.setter(target, type_), function.getter(source, type_)
    offset = -WINDOWS[space] if "to" in modifiers else WINDOWS[space]
    return lambda thread: put(thread, (get(thread) + offset) & mask(type_.width))


@step_builder("isspacep")
def is_in_space(function: Compiled, instruction: Instruction) -> Step:
    space = _space(instruction.opcode.split(".")[1:])
    if space == "const":
        raise UnsupportedError("isspacep.const: constants lie in the global window here")
    target, source = instruction.operands
    put, get = function.setter(target, TYPES["pred"]), function.getter(source, TYPES["u64"])
    return lambda thread: put(thread, int(window_of(get(thread)) == space))


@step_builder("cp")
def copy_asynchronously(function: Compiled, instruction: Instruction) -> Step:
    """cp.async copies at once here; what waits for it has nothing to wait for. Bytes beyond the source are zero."""
    modifiers = instruction.opcode.split(".")[1:]
    if not {"ca", "cg"} & set(modifiers):
        if {"commit_group", "wait_group", "wait_all"} & set(modifiers):
            return lambda thread: None
        raise UnsupportedError(f"{instruction.opcode} is not known here")
    target, source, size, *rest = instruction.operands
    to, from_ = function.address(target), function.address(source)
    length = function.getter(rest[0], TYPES["u32"]) if rest else None

    def step(thread: Thread) -> None:
        count = size.value if length is None else min(length(thread), size.value)
        bits = 0
        if count:
            region, offset = thread.region("global", from_(thread))
            bits = region.load(offset, count, 1)
        region, offset = thread.region("shared", to(thread))
        region.store(offset, size.value, bits)

    return step
