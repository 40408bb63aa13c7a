# SPDX-License-Identifier: Apache-2.0
"""What threads do together: barriers of the CTA, and shuffles, votes, matches and reductions of a warp.

A thread that reaches such an instruction gives a request and waits. The interpreter completes a request when all
threads that take part have given theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from reference.compiler import Compiled, destinations, step_builder
from reference.machine import WARP_SIZE, Step, Thread
from reference.operations import operation
from reference.parser import Constant, Instruction, Operand
from reference.ptx_types import TYPES, Type, mask
from reference.rounding import FORMATS, is_nan

B32, U32, PRED = TYPES["b32"], TYPES["u32"], TYPES["pred"]
ALL_LANES = mask(WARP_SIZE)


@dataclass
class WarpRequest:
    """A thread waits for the lanes of `members`, or without `members` for those that come to the same instruction."""

    thread: Thread
    key: tuple
    members: int | None
    source: object
    complete: Callable[[dict[int, "WarpRequest"]], None]
    """Called once, with the requests of all lanes that take part, by lane."""


@dataclass
class BarrierRequest:
    """A thread has come to a barrier of its CTA. `count` is how many threads it takes, None for all."""

    thread: Thread
    barrier: int
    count: int | None
    waits: bool
    source: int
    complete: Callable[[list[int]], None]
    """Called with the sources of all threads that came."""


def _warp_step(
    function: Compiled,
    instruction: Instruction,
    sources: list[tuple[Operand, Type]],
    results: list[Type],
    members: Operand | None,
    compute: Callable[[int, dict[int, tuple]], tuple],
) -> Step:
    """`compute` gives the results of a lane from the lane and the sources of all."""
    targets = destinations(instruction.operands[0]) if results else []
    setters = [function.setter(each, type_) for each, type_ in zip(targets, results, strict=False)]
    getters = [function.getter(operand, type_) for operand, type_ in sources]
    get_members = function.getter(members, B32) if members is not None else None

    def step(thread: Thread) -> WarpRequest:
        wanted = get_members(thread) if get_members else None
        key = (instruction.opcode, id(instruction)) if wanted is None else (instruction.opcode, wanted)

        def complete(requests: dict[int, WarpRequest]) -> None:
            values = {lane: request.source for lane, request in requests.items()}
            for put, bits in zip(setters, compute(thread.lane, values), strict=False):
                put(thread, bits)

        return WarpRequest(thread, key, wanted, tuple(get(thread) for get in getters), complete)

    return step


# Shuffles


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Where a lane takes its value from, and whether that is in range."""
    value, bound, segment = b & 31, c & 31, c >> 8 & 31
    largest = lane & segment | bound & ~segment & 31
    smallest = lane & segment
    match mode:
        case "up":
            index = lane - value
            in_range = index >= largest
        case "down":
            index = lane + value
            in_range = index <= largest
        case "bfly":
            index = lane ^ value
            in_range = index <= largest
        case _:
            index = smallest | value & ~segment & 31
            in_range = index <= largest
    return (index if in_range else lane), in_range


@step_builder("shfl")
def shuffle(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    mode = next(each for each in modifiers if each in ("up", "down", "bfly", "idx"))
    a, b, c, *members = instruction.operands[1:]

    def compute(lane: int, values: dict[int, tuple]) -> tuple[int, int]:
        _own, amount, bounds = values[lane]
        index, in_range = source_lane(mode, lane, amount, bounds)
        return values.get(index, (0,))[0], int(in_range)  # a lane that takes no part holds nothing

    sources = [(a, B32), (b, B32), (c, B32)]
    return _warp_step(function, instruction, sources, [B32, PRED], members[0] if members else None, compute)


# Votes, matches, reductions


@step_builder("vote")
def vote(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    mode = next(each for each in modifiers if each in ("all", "any", "uni", "ballot"))
    source, *members = instruction.operands[1:]

    def compute(_lane: int, values: dict[int, tuple]) -> tuple[int]:
        votes = {lane: value for lane, (value,) in values.items()}
        match mode:
            case "all":
                return (int(all(votes.values())),)
            case "any":
                return (int(any(votes.values())),)
            case "uni":
                return (int(len(set(votes.values())) == 1),)
        return (sum(value << lane for lane, value in votes.items()),)

    result = B32 if mode == "ballot" else PRED
    wanted = members[0] if members else None
    return _warp_step(function, instruction, [(source, PRED)], [result], wanted, compute)


@step_builder("match")
def match_values(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    type_ = TYPES[modifiers[-1]]
    source, members = instruction.operands[1:]

    def lanes(values: dict[int, tuple]) -> int:
        return sum(1 << lane for lane in values)

    def compute(lane: int, values: dict[int, tuple]) -> tuple[int, int]:
        same = {other: value for other, value in values.items() if value == values[lane]}
        if "any" in modifiers:
            return lanes(same), 0
        everyone = len(same) == len(values)
        return lanes(values) if everyone else 0, int(everyone)

    return _warp_step(function, instruction, [(source, type_)], [B32, PRED], members, compute)


@step_builder("redux")
def reduce(function: Compiled, instruction: Instruction) -> Step:
    modifiers = instruction.opcode.split(".")[1:]
    name = next(each for each in modifiers if each in ("add", "min", "max", "and", "or", "xor"))
    type_ = TYPES[modifiers[-1]]
    source, members = instruction.operands[1:]
    nan = ".NaN" if "NaN" in modifiers else ""
    combine = operation(f"{name}{nan}.{type_.name}").function

    def compute(_lane: int, values: dict[int, tuple]) -> tuple[int]:
        bits = [value for (value,) in values.values()]
        if "abs" in modifiers:
            bits = [each & mask(31) for each in bits]
        result = bits[0]
        for each in bits[1:]:
            result = combine(result, each)
        if type_.kind == "f" and is_nan(result, FORMATS["f32"]):
            result = FORMATS["f32"].nan
        return (result,)

    return _warp_step(function, instruction, [(source, type_)], [type_], members, compute)


@step_builder("activemask")
def active_mask(function: Compiled, instruction: Instruction) -> Step:
    """The lanes that reach this instruction together; threads of a warp are taken to stay together where they can."""
    return _warp_step(
        function, instruction, [], [B32], None, lambda _lane, values: (sum(1 << each for each in values),)
    )


@step_builder("elect")
def elect(function: Compiled, instruction: Instruction) -> Step:
    """Some leader, the same for the same members: here the lowest lane."""
    members = instruction.operands[1]
    return _warp_step(
        function,
        instruction,
        [],
        [B32, PRED],
        members,
        lambda lane, values: (min(values), int(lane == min(values))),
    )


# Barriers


@step_builder("bar", "barrier")
def barrier(function: Compiled, instruction: Instruction) -> Step:
    modifiers = [each for each in instruction.opcode.split(".")[1:] if each not in ("cta", "aligned")]
    if modifiers[0] == "warp":
        return _warp_step(function, instruction, [], [], instruction.operands[0], lambda _lane, _values: ())
    operands = list(instruction.operands)
    reduction = modifiers[1] if modifiers[0] == "red" else None
    put = get_source = None
    if reduction:
        put = function.setter(operands.pop(0), U32 if reduction == "popc" else PRED)
        get_source = function.getter(operands.pop(), PRED)
    get_barrier = function.getter(operands[0] if operands else Constant(0), U32)
    get_count = function.getter(operands[1], U32) if len(operands) > 1 else None

    def step(thread: Thread) -> BarrierRequest:
        def complete(sources: list[int]) -> None:
            if reduction:
                results = {"popc": sum(sources), "and": int(all(sources)), "or": int(any(sources))}
                put(thread, results[reduction])

        count = get_count(thread) if get_count else None
        source = get_source(thread) if get_source else 0
        return BarrierRequest(thread, get_barrier(thread), count, modifiers[0] != "arrive", source, complete)

    return step
