# SPDX-License-Identifier: Apache-2.0
"""Compares the lowering of kernels with the SASS that NVIDIA's assembler emits for Volta (sm_70).

    python tools/compare_with_ptxas.py kernels/*.ptx

The assembler is the one that comes with the package (ptxas of CUDA 12; CUDA 13 no longer knows sm_70), or the one that
--ptxas names; its SASS is read by the package's own decoder.

Each PTX instruction is given a line number of its own, so that the disassembly says which instruction each machine
instruction belongs to: `--lines` lists where the two disagree. Loops are not unrolled by the assembler here unless
`--unroll` is given: what one iteration costs is compared.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manyscale.gpu.assembler import find_assembler
from manyscale.gpu.disassembly import SassInstruction

# Machine instructions by what they begin with, and the kind that the lowering gives them; the longest that fits counts.
KINDS = {
    "IMAD.WIDE": "multiply_wide", "IMAD.HI": "multiply_wide", "IMAD": "multiply_add",
    "LOP3": "logic", "PLOP3": "logic", "SHF": "logic", "PRMT": "logic", "SGXT": "logic", "BMSK": "logic",
    "F2F": "convert", "F2I": "convert", "I2F": "convert", "FRND": "convert", "I2I": "convert",
    "POPC": "convert", "FLO": "convert", "BREV": "convert", "MUFU": "special_function",
    "HADD2": "fp16", "HMUL2": "fp16", "HFMA2": "fp16", "HSETP2": "fp16", "HSET2": "fp16", "HMMA": "tensor_half",
    "F": "fp32", "D": "fp64",
    "S2R": "move_special", "CS2R": "move_special", "LDG": "load_global", "LD.": "load_global", "LDL": "load_local",
    "LDS": "load_shared", "LDC": "load_constant", "STG": "store_global", "ST.": "store_global",
    "STL": "store_local", "STS": "store_shared", "ATOMS": "atomic_shared", "ATOM": "atomic_global",
    "RED": "reduce_global", "TEX": "texture", "TLD": "texture", "TXQ": "texture", "TMML": "texture",
    "SHFL": "shuffle", "VOTE": "vote", "MATCH": "vote",
    "BRA": "branch", "BRX": "branch", "BSSY": "branch", "BSYNC": "branch", "BREAK": "branch", "BMOV": "branch",
    "WARPSYNC": "branch", "CALL": "branch", "RET": "branch", "JMX": "branch", "YIELD": "branch",
    "BAR": "barrier", "MEMBAR": "fence", "EXIT": "exit", "NOP": "other", "NANOSLEEP": "other", "CCTL": "other",
    "ERRBAR": "other", "BPT": "other", "DEPBAR": "other", "KILL": "exit",
}  # fmt: skip

# What the table shows: columns of kinds that share hardware.
CLASSES = {
    "integer": ("integer", "logic", "multiply_add", "multiply_wide"),
    "fp32": ("fp32", "fp16"),
    "fp64": ("fp64",),
    "special": ("special_function", "convert"),
    "global": ("load_global", "store_global", "atomic_global", "reduce_global", "texture"),
    "shared": ("load_shared", "store_shared", "atomic_shared", "shuffle"),
    "local": ("load_local", "store_local"),
    "branch": ("branch", "exit"),
    "other": ("move_special", "load_constant", "vote", "barrier", "fence", "other", "tensor_half",
              "tensor_integer", "tensor_double"),
}  # fmt: skip


@dataclass
class Instruction:
    """A machine instruction: its kind, the location in the PTX it stems from, and how many loops it is in."""

    kind: str
    location: tuple[int, int]
    depth: int
    text: str = ""


@dataclass
class Listing:
    """The machine instructions of one kernel, in order."""

    name: str
    registers: int
    spilled: int  # values (ours) or bytes (theirs)
    instructions: list[Instruction] = field(default_factory=list)
    locations: list[tuple[int, int]] = field(default_factory=list)  # of the PTX instructions


def kind_of(opcode: str) -> str:
    """The kind of a machine instruction, by its opcode with modifiers."""
    for length in range(len(opcode), 0, -1):
        if opcode[:length] in KINDS:
            return KINDS[opcode[:length]]
    return "integer"


def our_listings(path: Path) -> dict[str, Listing]:
    """What the lowering makes of each kernel of a file; functions that it calls count with it."""
    from manyscale import _core

    parsed = _core.parse_ptx(path.read_bytes(), path.name)
    names = parsed.kernels
    module = _core.GpuDevice().load(parsed)
    listings = {}
    for name in names:
        kernel = module.kernel(name)
        assert kernel is not None
        lowered = _core.lower_kernel(kernel)
        listing = Listing(name, lowered.registers, lowered.spilled)
        for line, column, depth, instructions in lowered.operations:
            listing.locations.append((line, column))
            listing.instructions += [Instruction(row[0], (line, column), depth) for row in instructions]
        listings[name] = listing
    return listings


def with_locations(
    text: str, locations: Iterable[tuple[int, int]], unroll: bool
) -> tuple[str, list[tuple[int, int]]]:
    """PTX in which each instruction has a source line of its own, and the location that each such line stands for."""
    lines = re.sub(r"(?ms)^\s*\.section\s+\.debug.*?^\s*\}", "", text).split("\n")
    numbered = sorted(set(locations))
    for number, (line, column) in reversed(list(enumerate(numbered, 1))):
        row = lines[line - 1]
        guard = re.search(r"@!?[%$\w]+\s*$", row[: column - 1])
        at = guard.start() if guard else column - 1
        lines[line - 1] = f"{row[:at]}\n.loc 1 {number} 0\n{row[at:]}"
    kept = [row for row in lines if not re.match(r"\s*\.(file|loc)\s", row) or "\n" in row]
    result = "\n".join(kept)
    result = re.sub(r"(?m)^\.target.*$", ".target sm_70", result)
    result = re.sub(r"(?m)^\.version.*$", lambda m: ".version 8.0", result)
    head = '.address_size 64\n.file 1 "kernel.ptx"' + ("" if unroll else '\n.pragma "nounroll";')
    return result.replace(".address_size 64", head, 1), numbered


def their_listings(
    path: Path, ptxas: str, locations: Iterable[tuple[int, int]], unroll: bool
) -> dict[str, Listing]:
    """What the assembler makes of each kernel of a file."""
    from manyscale.gpu.disassembly import disassemble_cubin

    text, numbered = with_locations(path.read_text(), locations, unroll)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        said = _run([ptxas, "-arch=sm_70", "-lineinfo", "-v", str(source), "-o", str(binary)])
        listing = disassemble_cubin(binary.read_bytes(), path.name)
    spilled = {
        name: int(count)
        for name, count in re.findall(r"Function properties for (\S+)\n.*?(\d+) bytes spill loads", said)
    }
    return {
        function.name: Listing(
            function.name,
            function.registers,
            spilled.get(function.name, 0),
            executed_instructions(function.instructions, numbered),
        )
        for function in listing.functions
        if function.is_kernel
    }


def executed_instructions(
    rows: Sequence[SassInstruction], numbered: list[tuple[int, int]]
) -> list[Instruction]:
    """The instructions of a kernel's disassembly, without what it does not execute.

    Left out are the padding at the end and the library functions behind the code with the blocks that call them: slow
    paths, for operands such as denormal numbers.
    """
    texts = {row.offset: row.text or "" for row in rows}
    called = [int(found[1], 16) for text in texts.values() if (found := _CALL.search(text))]
    end = min([target for target in called if target in texts], default=rows[-1].offset + 1)
    own = [row for row in rows if row.offset < end]
    while own and (own[-1].text == "NOP" or _target(own[-1].text or "") == own[-1].offset):
        own.pop()
    leaders = {target for row in own if (target := _target(row.text or "")) is not None}
    leaders |= {row.offset + 16 for row in own if _ENDS_BLOCK.match(row.text or "")}
    blocks: list[list[SassInstruction]] = []
    for row in own:
        if not blocks or row.offset in leaders:
            blocks.append([])
        blocks[-1].append(row)
    flat = [
        row for block in blocks if not any(_CALL.search(row.text or "") for row in block) for row in block
    ]
    index = {row.offset: number for number, row in enumerate(flat)}
    change = [0] * (len(flat) + 1)
    for number, row in enumerate(flat):
        target = _target(row.text or "")
        if target is not None and index.get(target, number + 1) <= number:
            change[index[target]] += 1
            change[number + 1] -= 1
    depth = 0
    result = []
    for number, row in enumerate(flat):
        depth += change[number]
        line = row.source.line if row.source is not None else 0
        location = numbered[line - 1] if 0 < line <= len(numbered) else (0, 0)
        opcode = re.sub(r"^@!?U?PT?\d* ", "", row.text or "").split(" ")[0]
        result.append(Instruction(kind_of(opcode), location, depth, row.text or ""))
    return result


_CALL = re.compile(r"CALL\.REL\.NOINC (0x[0-9a-f]+)")
_BRANCH = re.compile(r"\bBRA\S* (?:\S+ )*(0x[0-9a-f]+)")
_ENDS_BLOCK = re.compile(r"(@!?U?P\d+ )?(BRA|EXIT|RET|BRX|CALL)\b")


def _target(text: str) -> int | None:
    found = _BRANCH.search(text)
    return None if found is None else int(found[1], 16)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr.strip()[:500]}")
    return done.stdout + done.stderr


def weighted(instructions: Iterable[Instruction], weight: float = 10) -> float:
    """Instructions, those in loops counted `weight` times for each loop they are in, up to three."""
    return sum(weight ** min(instruction.depth, 3) for instruction in instructions)


@dataclass
class Comparison:
    """One kernel, ours and theirs."""

    ours: Listing
    theirs: Listing

    def error(self, measure: str) -> float:
        """The relative error of ours in "instructions", "weighted", "loops" or "registers"."""
        a, b = (self._measure(listing, measure) for listing in (self.ours, self.theirs))
        return 0.0 if b == 0 else a / b - 1

    def _measure(self, listing: Listing, measure: str) -> float:
        if measure == "instructions":
            return len(listing.instructions)
        if measure == "weighted":
            return weighted(listing.instructions)
        if measure == "loops":
            deepest = max((i.depth for i in self.theirs.instructions), default=0)
            return sum(i.depth == deepest and deepest > 0 for i in listing.instructions)
        return listing.registers

    def by_class(self) -> dict[str, tuple[int, int]]:
        """Instructions by class: ours and theirs."""
        ours, theirs = (Counter(i.kind for i in x.instructions) for x in (self.ours, self.theirs))
        return {
            name: (sum(ours[k] for k in kinds), sum(theirs[k] for k in kinds))
            for name, kinds in CLASSES.items()
        }


def compare(path: Path, ptxas: str, unroll: bool = False) -> list[Comparison]:
    """All kernels of a file that both sides take."""
    ours = our_listings(path)
    locations = [location for listing in ours.values() for location in listing.locations]
    theirs = their_listings(path, ptxas, locations, unroll)
    return [Comparison(ours[name], theirs[name]) for name in ours if name in theirs]


def mean_error(comparisons: list[Comparison], measure: str) -> float:
    """The mean of the absolute errors, over the kernels that have such a thing."""
    errors = [abs(c.error(measure)) for c in comparisons if c._measure(c.theirs, measure) > 0]
    return sum(errors) / len(errors) if errors else 0.0


def show_lines(path: Path, comparison: Comparison, file: object = sys.stdout) -> None:
    """PTX instructions whose machine instructions differ in number or kind."""
    rows = path.read_text().split("\n")
    locations = sorted({i.location for x in (comparison.ours, comparison.theirs) for i in x.instructions})
    for location in locations:
        ours, theirs = (
            [i for i in x.instructions if i.location == location]
            for x in (comparison.ours, comparison.theirs)
        )
        if Counter(i.kind for i in ours) == Counter(i.kind for i in theirs):
            continue
        text = rows[location[0] - 1][location[1] - 1 :].split(";")[0] if location[0] else "(no line)"
        print(
            f"  {location[0]:5} {' '.join(text.split()):60.60} ours {' '.join(i.kind for i in ours)}",
            file=file,
        )  # type: ignore[call-overload]
        for i in theirs:
            print(f"{'':50} {i.text}", file=file)  # type: ignore[call-overload]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--ptxas", help="another assembler than the package's")
    parser.add_argument("--kernel", help="only kernels whose names contain this")
    parser.add_argument("--unroll", action="store_true", help="let the assembler unroll loops")
    parser.add_argument("--lines", action="store_true", help="list the PTX instructions that differ")
    arguments = parser.parse_args()
    ptxas = arguments.ptxas or find_assembler()
    if ptxas is None:
        print("there is no ptxas; pip install nvidia-cuda-nvcc-cu12", file=sys.stderr)
        return 2
    everything: list[Comparison] = []
    heads = " ".join(f"{name:>9}" for name in CLASSES)
    print(f"{'kernel':40} {'total':>11} {'err%':>6} {'loop%':>6} {'regs':>7} {heads}   (ours/theirs)")
    for path in arguments.files:
        try:
            comparisons = compare(path, str(ptxas), arguments.unroll)
        except (RuntimeError, ValueError) as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        for c in comparisons:
            if arguments.kernel and arguments.kernel not in c.ours.name:
                continue
            everything.append(c)
            classes = " ".join(f"{f'{a}/{b}':>9}" for a, b in c.by_class().values())
            total = f"{len(c.ours.instructions)}/{len(c.theirs.instructions)}"
            print(
                f"{c.ours.name:40.40} {total:>11} {100 * c.error('instructions'):+6.1f} {100 * c.error('loops'):+6.1f} "
                f"{f'{c.ours.registers}/{c.theirs.registers}':>7} {classes}"
            )
            if arguments.lines:
                show_lines(path, c)
    names = ("instructions", "weighted", "loops", "registers")
    print(
        f"{len(everything)} kernels, mean absolute error: "
        + ", ".join(f"{name} {100 * mean_error(everything, name):.1f}%" for name in names)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
