# SPDX-License-Identifier: Apache-2.0
"""Shows what ptxas emits for the PTX instructions that hardware does not have, as rows of the table of expansions.

    python tools/make_expansions.py                          compares core/gpu/lower/expansions_sm70.hpp with ptxas
    python tools/make_expansions.py --architecture sm_80 --rows      the rows of another architecture, as C++

Each row of the table is assembled in a kernel of its own, whose operands come from memory (or, for a row of constants,
the last one from the parameters). Counted are the SASS instructions of its line, without the call of a slow path. The
steps that need each other (">") are the longest chain of registers up to the result. ptxas comes with the wheel
nvidia-cuda-nvcc-cu12 (12.9 is the last for sm_70); the SASS is read by the package's own decoder.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyscale import gpu

TABLE = Path(__file__).resolve().parents[1] / "core" / "gpu" / "lower" / "expansions_sm70.hpp"
_ROW = re.compile(
    r'\{"(?P<opcode>\w+)", "(?P<modifier>\w*)", "(?P<type>\w*)",\s*(?P<steps>(?:"[^"]*"\s*)+)_steps(?P<rest>[^}]*)\}'
)
# Modifiers that PTX demands, by opcode and type, where the row names none or not all of them.
_MODIFIERS = {
    ("div", "f32"): "rn", ("div", "f64"): "rn", ("rcp", "f32"): "rn", ("rcp", "f64"): "rn",
    ("sqrt", "f32"): "rn", ("sqrt", "f64"): "rn", ("rsqrt", "f32"): "approx", ("rsqrt", "f64"): "approx",
    ("sin", "f32"): "approx", ("cos", "f32"): "approx", ("lg2", "f32"): "approx", ("ex2", "f32"): "approx",
    ("tanh", "f32"): "approx", ("mul", "s16"): "lo", ("mul", "u16"): "lo", ("mad", "s16"): "lo", ("mad", "u16"): "lo",
    ("mul24", ""): "lo", ("mad24", ""): "lo",
}  # fmt: skip
_WHOLE_MODIFIERS = {("rcp", "approx", "f64"): "approx.ftz", ("rsqrt", "ftz", "f64"): "approx.ftz"}
_TYPES = {
    "mul24": "u32",
    "mad24": "u32",
    "bfe": "u32",
    "bfi": "b32",
    "brev": "b32",
    "bfind": "u32",
    "sad": "u32",
}
_TYPES |= {"copysign": "f32", "slct": "u32.s32", "cnot": "b32", "fns": "b32"}
_OLDEST = {"tanh": 75}  # architectures that have an instruction
_ONE = {
    "rcp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
    "abs",
    "neg",
    "brev",
    "popc",
    "clz",
    "bfind",
    "cnot",
}
_THREE = {"mad", "mad24", "sad", "slct", "fns", "bfe"}
_FOUR = {"bfi"}
# Kinds of SASS instructions by what their opcode begins with, the longest that fits; each by the opcode of the table.
_KINDS = {
    "IMAD.MOV": "IADD3", "IMAD.IADD": "IADD3", "IMAD.X": "IADD3", "IMAD.SHL": "LOP3",
    "IMAD.WIDE": "IMAD.WIDE", "IMAD.HI": "IMAD.WIDE", "IMAD": "IMAD", "LOP3": "LOP3", "PLOP3": "LOP3", "SHF": "LOP3",
    "PRMT": "LOP3", "SGXT": "LOP3", "BMSK": "LOP3", "F2F": "F2F", "F2I": "F2I", "I2F": "I2F", "FRND": "F2F",
    "POPC": "POPC", "FLO": "FLO", "BREV": "BREV", "MUFU": "MUFU", "H": "HFMA2", "F": "FFMA", "D": "DFMA",
    "S2R": "S2R", "CS2R": "S2R", "SHFL": "SHFL", "VOTE": "VOTE", "BRA": "BRA", "BSSY": "BRA", "BSYNC": "BRA",
    "BREAK": "BRA", "WARPSYNC": "BRA", "CALL": "BRA", "RET": "BRA", "NOP": "NOP",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row of the table: a PTX instruction, whether its last operand is a constant, and its expansion."""

    opcode: str
    modifier: str
    type: str
    constant: bool
    steps: tuple[str, ...]

    @property
    def name(self) -> str:
        words = ".".join(filter(None, (self.opcode, self.modifier, self.type)))
        return f"{words}, constant" if self.constant else words


def table_rows(path: Path = TABLE) -> list[Row]:
    """The rows that the core has."""
    rows = []
    text = path.read_text(encoding="utf-8").split("struct WarpAggregatedAtomic")[0]
    for found in _ROW.finditer(text):
        steps = "".join(re.findall(r'"([^"]*)"', found["steps"])).split()
        constant = "true" in found["rest"]
        rows.append(Row(found["opcode"], found["modifier"], found["type"], constant, tuple(steps)))
    return rows


def _register(kind: str) -> str:
    bits = int(re.search(r"\d+", kind)[0])  # type: ignore[index]
    return {16: "%h", 32: "%r", 64: "%d"}[bits]


def probe(row: Row, name: str) -> str:
    """A kernel with one such instruction."""
    kind = row.type or _TYPES[row.opcode]
    first = kind.split(".")[0]
    modifier = _WHOLE_MODIFIERS.get((row.opcode, row.modifier, row.type), row.modifier)
    modifier = modifier or _MODIFIERS.get((row.opcode, row.type), "")
    wide = modifier == "wide"
    small = row.opcode in ("popc", "clz", "bfind")  # their result has 32 bits
    result = "b32" if small or wide else first
    count = 1 if row.opcode in _ONE else 3 if row.opcode in _THREE else 4 if row.opcode in _FOUR else 2
    kinds = [first] * count
    if row.opcode in ("bfe", "bfi"):
        kinds[-2:] = ["u32", "u32"]
    if row.opcode in ("slct", "fns"):
        kinds[-1] = "s32"
    if row.opcode == "shr":
        kinds[-1] = "u32"
    lines, operands = [], []
    for i, each in enumerate(kinds):
        register = f"{_register(each)}{i + 1}"
        bits = re.sub(r"[a-z]+", "b", each)
        if row.constant and i == count - 1:
            lines.append(f"ld.param.{bits} {register}, [c];")
        else:
            lines.append(f"ld.volatile.global.{bits} {register}, [%a+{8 * i}];")
        operands.append(register)
    to = f"{_register(result)}0"
    instruction = ".".join(filter(None, (row.opcode, modifier, kind)))
    body = "\n".join(lines)
    return f"""
.visible .entry {name}(.param .u64 a, .param .u64 c)
{{
.reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b64 %a;
ld.param.u64 %a, [a];
{body}
{instruction} {to}, {", ".join(operands)}; // probe
st.volatile.global.{re.sub(r"[a-z]+", "b", result)} [%a+64], {to};
ret;
}}
"""


def kind_of(opcode: str) -> str:
    """The opcode that stands for all of a SASS instruction's kind."""
    for length in range(len(opcode), 0, -1):
        if opcode[:length] in _KINDS:
            return _KINDS[opcode[:length]]
    return "IADD3"


def _registers(text: str) -> list[str]:
    """The registers and predicates that an operand names, without those that are constant."""
    found: list[str] = re.findall(r"\b(U?R\d+|U?P\d)\b", text)
    return found


def chain(texts: Sequence[str]) -> list[bool]:
    """Which instructions are on the longest chain of results that ends at the last of the longest."""
    made: dict[str, int] = {}
    length, before = [1] * len(texts), [-1] * len(texts)
    for i, text in enumerate(texts):
        body = re.sub(r"^@!?U?P\d ", "", text)
        guard = re.findall(r"^@!?(U?P\d)", text)
        opcode, _, operands = body.partition(" ")
        parts = [part.strip() for part in operands.split(",")]
        written = 2 if re.match(r"(ISETP|FSETP|DSETP|PLOP3|LOP3\.LUT P|IADD3 .*P\d)", body) else 1
        for register in [*guard, *(name for part in parts[1:] for name in _registers(part))]:
            # A pair is named by its first register.
            for name in (register, re.sub(r"\d+", lambda n: str(int(n[0]) - 1), register)):
                if name in made and length[made[name]] + 1 > length[i]:
                    length[i], before[i] = length[made[name]] + 1, made[name]
        if opcode.split(".")[0] not in ("BRA", "BSSY", "BSYNC", "NOP", "CALL"):
            for part in parts[:written]:
                for name in _registers(part):
                    made[name] = i
    on = [False] * len(texts)
    at = max(range(len(texts)), key=lambda i: (length[i], i), default=-1)
    while at >= 0:
        on[at] = True
        at = before[at]
    return on


def _executed(texts: list[str]) -> list[str]:
    """The instructions of a probe without the block that calls a slow path."""
    kept: list[str] = []
    for text in texts:
        if re.match(r"(@!?P\d )?CALL\b", text):
            while kept and not re.match(r"(@!?P\d )?(BRA|BSSY)\b", kept[-1]):
                kept.pop()
            continue
        kept.append(text)
    return kept


def expansions(rows: Sequence[Row], architecture: str) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """What ptxas makes of each row, in the words of the table."""
    number = int(architecture.removeprefix("sm_"))
    rows = [row for row in rows if number >= _OLDEST.get(row.opcode, 0)]
    probes = [probe(row, f"probe_{i}") for i, row in enumerate(rows)]
    text = f".version 7.8\n.target {architecture}\n.address_size 64\n" + "".join(probes)
    lines = [i for i, line in enumerate(text.split("\n"), 1) if line.endswith("// probe")]
    listing = gpu.disassemble(text, architecture=architecture)
    for i, row in enumerate(rows):
        texts = [
            found.text
            for found in listing[f"probe_{i}"].instructions
            if found.ptx is not None and found.ptx.line == lines[i] and found.text is not None
        ]
        texts = _executed(texts)
        needed = chain(texts)
        opcodes = [kind_of(re.sub(r"^@!?U?P\d ", "", each).split(" ")[0]) for each in texts]
        yield row, tuple((">" if on else "") + opcode for on, opcode in zip(needed, opcodes, strict=True))


def counts(steps: Sequence[str]) -> Counter[str]:
    """Instructions by kind, in whatever order; the branches around a slow path belong to other lines."""
    return Counter(step.lstrip(">") for step in steps if step.lstrip(">") not in ("BRA", "NOP"))


def main(arguments: list[str] | None = None) -> int:
    """Prints a comparison, or rows of C++."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--architecture", default="sm_70", help="that ptxas assembles for")
    parser.add_argument("--rows", action="store_true", help="print the rows as C++")
    options = parser.parse_args(arguments)
    same = total = 0
    for row, found in expansions(table_rows(), options.architecture):
        total += 1
        same += counts(found) == counts(row.steps)
        if options.rows:
            constant = ", true" if row.constant else ""
            print(
                f'    {{"{row.opcode}", "{row.modifier}", "{row.type}", "{" ".join(found)}"_steps{constant}}},'
            )
        elif counts(found) != counts(row.steps):
            print(f"{row.name}\n  table: {' '.join(row.steps)}\n  ptxas: {' '.join(found)}")
    if not options.rows:
        print(f"{same} of {total} rows have as many instructions of each kind as ptxas emits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
