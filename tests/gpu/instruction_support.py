# SPDX-License-Identifier: Apache-2.0
"""Single instructions on the simulator: kernels around them, operands for them, and comparison with the reference.

In a kernel each thread loads its operands and executes the instruction three times: into a new register; under a guard,
into a register that held something before; and into one of its own operands. The number of threads is odd, so the last
warp is partly active.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

import numpy as np
from reference import HEADER
from reference.compiler import constant_bits
from reference.interpreter import Program
from reference.operations import Operation, operation
from reference.parser import parse_constant
from reference.ptx_types import TYPES, Type, mask, split
from reference.rounding import FORMATS, Format, is_nan

BLOCK = 96
OLD = 0xA5C3_96E1_5AF0_0F3C
"""What a destination holds before the guarded instruction."""

Column = Sequence[int]


# Registers


def register_width(type_: Type) -> int:
    """Registers of eight bits are not used in arithmetic: such values are held in 32 bits."""
    return 32 if type_.width < 16 or type_.kind == "pred" else type_.width


def register_type(type_: Type) -> str:
    """The type to declare a register with."""
    if type_.kind == "pred":
        return "pred"
    if type_.name in ("f32", "f64"):
        return type_.name
    return f"b{register_width(type_)}"


def dtype(type_: Type) -> type:
    return {16: np.uint16, 32: np.uint32, 64: np.uint64}[register_width(type_)]


# Kernels


@dataclass(frozen=True)
class Form:
    """An instruction as it is written: its opcode, and which sources are literals."""

    opcode: str
    literals: dict[int, str] = field(default_factory=dict)
    results: int | None = None
    """How many results are written down; all if None."""

    @property
    def operation(self) -> Operation:
        return operation(self.opcode)

    @property
    def result_types(self) -> tuple[Type, ...]:
        return self.operation.results[: self.results]

    @property
    def carry_in(self) -> bool:
        return self.operation.reads_carry

    @property
    def carry_out(self) -> bool:
        return self.operation.writes_carry

    @property
    def source_types(self) -> dict[str, Type]:
        """The registers that are loaded, by name; the carry is loaded as a number."""
        types = {f"%s{i}": type_ for i, type_ in enumerate(self.operation.sources) if i not in self.literals}
        if self.carry_in:
            types["%carry"] = TYPES["u32"]
        return types

    @property
    def subtracts(self) -> bool:
        """Whether the carry is a borrow."""
        return self.opcode.startswith("sub")

    @property
    def overwritten(self) -> str | None:
        """The first operand that the first result fits into."""
        wanted = register_type(self.result_types[0])
        names = [name for name, type_ in self.source_types.items() if register_type(type_) == wanted]
        return names[0] if names and names[0] != "%carry" else None

    @property
    def outputs(self) -> list["Output"]:
        """What is stored, in its order."""
        types = list(enumerate(self.result_types))
        outputs = [Output(f"%d{i}", type_, "", i) for i, type_ in types]
        if self.carry_out:
            outputs.append(Output("%dcarry", TYPES["u32"], "carry", -1))
        outputs += [Output(f"%g{i}", type_, "with a guard", i) for i, type_ in types]
        if self.overwritten:
            outputs.append(Output(self.overwritten, self.result_types[0], "over an operand", 0))
        return outputs

    def text(self, prefix: str, first: str | None = None) -> str:
        """The instruction with results in registers that begin with `prefix`, but for the first if that is given."""
        names = [f"%{prefix}{i}" for i in range(len(self.result_types))]
        if first:
            names[0] = first
        sources = [self.literals.get(i, f"%s{i}") for i in range(len(self.operation.sources))]
        return f"{self.opcode} {', '.join(['|'.join(names), *sources])};"


@dataclass(frozen=True)
class Output:
    """A register that is stored: the result of that index, or the carry, of one of the executions."""

    register: str
    type: Type
    what: str
    index: int


def _load(name: str, type_: Type, index: int) -> str:
    width = register_width(type_)
    text = f"""
    ld.param.u64 %address, [source{index}];
    mad.wide.u32 %address, %thread, {width // 8}, %address;"""
    if type_.kind == "pred":
        return (
            text
            + f"""
    ld.global.u32 %word, [%address];
    setp.ne.u32 {name}, %word, 0;"""
        )
    return text + f"\n    ld.global.{register_type(type_)} {name}, [%address];"


def _store(name: str, type_: Type, index: int) -> str:
    width = register_width(type_)
    text = f"""
    ld.param.u64 %address, [result{index}];
    mad.wide.u32 %address, %thread, {width // 8}, %address;"""
    if type_.kind == "pred":
        return (
            text
            + f"""
    selp.u32 %word, 1, 0, {name};
    st.global.u32 [%address], %word;"""
        )
    return text + f"\n    st.global.{register_type(type_)} [%address], {name};"


def _old(name: str, type_: Type) -> str:
    if type_.kind == "pred":
        return f"\n    setp.ne.u32 {name}, %thread, %thread;"
    bits = OLD & mask(register_width(type_))
    if type_.name in ("f32", "f64"):
        return (
            f"\n    mov.{type_.name} {name}, 0{'f' if type_.width == 32 else 'd'}{bits:0{type_.width // 4}X};"
        )
    return f"\n    mov.{register_type(type_)} {name}, {bits:#x};"


def _execution(form: Form, prefix: str, guard: str = "", first: str | None = None) -> str:
    """The instruction, between one that sets the carry flag and one that reads it."""
    before = after = ""
    if form.carry_in:
        setter = "sub.cc.u32 %word, 0, %carry;" if form.subtracts else "add.cc.u32 %word, %carry, 0xffffffff;"
        before = f"\n    {setter}"
    if form.carry_out:
        after = f"\n    {'subc' if form.subtracts else 'addc'}.u32 %{prefix}carry, 0, 0;"
    return f"{before}\n    {guard}{form.text(prefix, first)}{after}"


def kernel(name: str, form: Form) -> str:
    """The kernel `name` that executes `form` on arrays `source0`... and leaves arrays `result0`... ."""
    sources, outputs = form.source_types, form.outputs
    declared = {**{each.register: each.type for each in outputs}, **sources}
    if form.carry_out:
        declared["%gcarry"] = TYPES["u32"]
    parameters = [f".param .u64 source{i}" for i in range(len(sources))]
    parameters += [f".param .u64 result{i}" for i in range(len(outputs))]
    registers = "".join(f"    .reg .{register_type(type_)} {each};\n" for each, type_ in declared.items())
    loads = "".join(_load(each, type_, i) for i, (each, type_) in enumerate(sources.items()))
    olds = "".join(_old(each.register, each.type) for each in outputs if each.what == "with a guard")
    stores = "".join(_store(each.register, each.type, i) for i, each in enumerate(outputs))
    # The second results and the carry of the last execution replace those of the first, which are the same.
    last = _execution(form, "d", first=form.overwritten) if form.overwritten else ""
    return f"""
.visible .entry {name}({", ".join([*parameters, ".param .u32 count"])})
{{
    .reg .pred %done, %guard;
    .reg .b32 %thread, %block, %size, %count, %word;
    .reg .b64 %address;
{registers}
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mad.lo.u32 %thread, %block, %size, %thread;
    ld.param.u32 %count, [count];
    setp.ge.u32 %done, %thread, %count;
    @%done bra END;
    and.b32 %word, %thread, 5;
    setp.eq.u32 %guard, %word, 4;{loads}
    {_execution(form, "d")}{olds}
    {_execution(form, "g", "@!%guard ")}
    {last}{stores}
END:
    ret;
}}
"""


# Operands


def edge_values(type_: Type, few: bool = False) -> list[int]:
    """Values at which something special happens; with `few` the most important ones."""
    if type_.kind == "pred":
        return [0, 1]
    if type_.parts > 1:
        parts = edge_values(type_.part, few=True)
        width = type_.part.width
        return [low | high << width for low, high in zip(parts, reversed(parts), strict=True)]
    if type_.kind == "f":
        return _float_edges(FORMATS[type_.name], few)
    width = type_.width
    top = 1 << (width - 1)
    values = [0, 1, 2, top - 1, top, top + 1, mask(width) - 1, mask(width)]
    if few:
        return [0, 1, top - 1, top, mask(width)]
    pattern = 0x55AA55AA55AA55AA & mask(width)
    return [*values, 3, 31, 32, 33, pattern, 0xFF & mask(width), top | 0x7F, top >> 1]


def _float_edges(format_: Format, few: bool) -> list[int]:
    sign, normal, step = format_.sign_bit, format_.smallest_normal, 1 << format_.pad
    one = ((1 << (format_.exponent_bits - 1)) - 1) << (format_.mantissa_bits + format_.pad)
    values = [0, one, normal - step, normal, format_.top]
    if format_.infinity is not None:
        values.append(format_.infinity)
    if not few:
        values += [
            step,
            one + step,
            one - step,
            one + normal,
            normal + step,
            normal >> 1,
            one // 2,
            one + normal // 2,
        ]
    values += [each | sign for each in values]
    if format_.nan is not None:
        values.append(format_.nan)
        if format_.infinity is not None and not few:
            values += [format_.infinity + step, format_.nan | sign]
    return values


def random_value(type_: Type, random: Random) -> int:
    """Random bits; integers at times small, floats mostly such that they meet others and come near ties."""
    if type_.parts > 1:
        part = type_.part
        return sum(random_value(part, random) << (part.width * i) for i in range(type_.parts))
    bits = random.getrandbits(type_.width)
    if type_.kind == "f":
        return _random_float(bits, FORMATS[type_.name], random)
    if type_.width > 8 and random.random() < 0.3:
        bits >>= random.randrange(type_.width)
    return bits


def _random_float(bits: int, format_: Format, random: Random) -> int:
    """Any bits, or an exponent near that of one, or one whose square is near the smallest; few bits set at times."""
    exponent_shift = format_.mantissa_bits + format_.pad
    one = (1 << (format_.exponent_bits - 1)) - 1
    choice = random.random()
    if choice < 0.65:
        middle = one if choice < 0.5 else one // 2
        exponent = min(max(middle + random.randint(-9, 9), 0), 2 * one)
        bits = bits & (format_.sign_bit | mask(exponent_shift)) | exponent << exponent_shift
    if random.random() < 0.4:
        kept = (
            random.choice(
                (0, 3, 3 << (exponent_shift - 2), 1 << (exponent_shift // 2), 3 << (exponent_shift - 2) | 3)
            )
            << format_.pad
        )
        bits &= ~mask(exponent_shift) | kept
    return bits & mask(format_.width)


Choice = Callable[[Random], int]


def operands(
    form: Form, randoms: int, choices: dict[int, Choice] | None = None, seed: int = 1
) -> list[tuple]:
    """Rows of operands: all combinations of edge values, then random ones. `choices` restricts single sources."""
    random = Random(f"{form.opcode} {seed}")
    types = list(form.source_types.values())
    choices = choices or {}
    if form.carry_in:
        choices = {**choices, len(types) - 1: lambda random: random.getrandbits(1)}
    edges = [
        [choices[i](random) for _ in range(12)] if i in choices else edge_values(type_, few=len(types) > 2)
        for i, type_ in enumerate(types)
    ]
    rows = list(product(*edges))
    if len(rows) > 900:
        rows = random.sample(rows, 900)
    for _ in range(randoms):
        rows.append(
            tuple(
                choices[i](random) if i in choices else random_value(type_, random)
                for i, type_ in enumerate(types)
            )
        )
    return rows if len(rows) % 2 else rows[:-1]


# Running and comparing


def columns(rows: Sequence[tuple], types: Sequence[Type]) -> list[np.ndarray]:
    return [
        np.array(column, dtype(type_)) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)
    ]


def execute(device, form: Form, rows: Sequence[tuple]) -> list[np.ndarray]:
    """The arrays that the kernel leaves, one for each output of the form."""
    module = device.load(HEADER + kernel("kernel", form))
    types = list(form.source_types.values())
    sources = [device.array(column) for column in columns(rows, types)]
    results = [device.zeros(len(rows), dtype(each.type)) for each in form.outputs]
    grid = -(-len(rows) // BLOCK)
    module["kernel"][grid, BLOCK](*sources, *results, len(rows))
    return [each.numpy() for each in results]


def same(expected: int, actual: int, type_: Type, nan: str) -> bool:
    """Equal bits; where any NaN will do, any NaN. The lowest bits of tf32 are not defined."""
    if expected == actual:
        return True
    if type_.parts > 1:
        pairs = zip(split(expected, type_), split(actual, type_), strict=True)
        return all(same(a, b, type_.part, nan) for a, b in pairs)
    if type_.name == "tf32":
        low = mask(FORMATS["tf32"].pad)
        expected, actual = expected & ~low, actual & ~low
        if expected == actual:
            return True
    if type_.kind != "f" or nan == "exact":
        return False
    format_ = FORMATS[type_.name]
    return is_nan(expected, format_) and is_nan(actual, format_)


def expectations(form: Form, rows: Sequence[tuple]) -> list[tuple]:
    """What the reference gives for each row: the results, and the carry if there is one."""
    what = form.operation
    literals = {i: constant_bits(parse_constant(text), what.sources[i]) for i, text in form.literals.items()}
    answers = []
    for row in rows:
        values = iter(row)
        full = [literals[i] if i in literals else next(values) for i in range(len(what.sources))]
        full = [bits & mask(type_.width) for bits, type_ in zip(full, what.sources, strict=True)]
        result = what.function(*full, *values)
        answers.append(result if isinstance(result, tuple) else (result,))
    return answers


def widened_result(bits: int, type_: Type) -> int:
    """A result of eight bits as it stands in a register."""
    width = register_width(type_)
    if type_.signed and bits >> (type_.width - 1):
        bits -= 1 << type_.width
    return bits & mask(width)


def check(device, form: Form, rows: Sequence[tuple]) -> None:
    """Compares every thread's results with the reference's: plain, under a guard, over an operand, and the carry."""
    arrays = [[int(bits) for bits in each] for each in execute(device, form, rows)]
    outputs = list(zip(form.outputs, arrays, strict=True))
    faults = []
    for thread, (row, expected) in enumerate(zip(rows, expectations(form, rows), strict=True)):
        for output, array in outputs:
            bits, nan = widened_result(expected[output.index], output.type), form.operation.nan
            if output.what == "carry":
                bits = expected[-1] * (0xFFFFFFFF if form.subtracts else 1)
            elif output.what == "with a guard" and thread & 5 == 4:
                bits = 0 if output.type.kind == "pred" else OLD & mask(register_width(output.type))
                nan = "exact"
            if not same(bits, array[thread], output.type, nan):
                faults.append(describe(form, thread, row, bits, array[thread], output.what))
    assert not faults, f"{len(faults)} results in {len(rows)} threads differ\n" + "\n".join(faults[:8])


def describe(form: Form, thread: int, row: tuple, expected: int, actual: int, what: str = "") -> str:
    sources = ", ".join(f"{each:#x}" for each in row)
    literals = "".join(f" [{i}]={text}" for i, text in form.literals.items())
    return f"{form.opcode}{literals} ({sources}) {what}: expected {expected:#x}, is {actual:#x} in thread {thread}"


# Whole kernels on both


def agree(
    device, text: str, name: str, grid, block, *arguments, dynamic_shared: int = 0, nan: tuple[int, ...] = ()
):
    """Runs a kernel on the simulator and on the reference, on copies of the arrays, and compares all arrays after it.

    Arguments whose index is in `nan` hold floats of which any NaN equals any other. Gives the arrays of the simulator.
    """
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    Program(text).launch(name, grid, block, *copies, dynamic_shared=dynamic_shared)
    placed = [device.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
    device.load(text)[name][grid, block, dynamic_shared](*placed)
    results = []
    for index, (expected, argument) in enumerate(zip(copies, placed, strict=True)):
        if not isinstance(expected, np.ndarray):
            continue
        actual = argument.numpy()
        results.append(actual)
        differs = expected != actual
        if index in nan:
            differs &= ~(np.isnan(expected) & np.isnan(actual))
        indices = np.flatnonzero(differs)
        shown = ", ".join(f"[{i}] {_shown(expected, i)} is {_shown(actual, i)}" for i in indices[:6])
        assert not len(indices), f"{name}: argument {index} differs in {len(indices)} elements: {shown}"
    return results


def _shown(array: np.ndarray, index: int) -> str:
    value = array.reshape(-1)[index]
    return f"{int(value):#x}" if array.dtype.kind in "ui" else str(value)
