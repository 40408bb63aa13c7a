# SPDX-License-Identifier: Apache-2.0
"""The programs of the SST-GPU report themselves: its Table 3 and Table 4 (hardware) and Figure 5 (its own simulations).

They come from the folder of `manyscale validate --programs`: vectorAdd of 163840 elements, Rodinia's lud, and LULESH
with an edge of 22 elements and 50 iterations (`lulesh-22`), all run by `manyscale cuda` as a user runs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manyscale.gpu.isa import Isa
from manyscale.validation.gpu_programs import SuiteProgram, checked_folder, run_command
from manyscale.validation.rows import Row

_TABLE_3 = "SST-GPU final report, Table 3: nvprof on a P9/V100"
_TABLE_4 = "SST-GPU final report, Table 4: nvprof on a V100"

VECTOR_ADD = SuiteProgram("vectorAdd", "test")
LUD = SuiteProgram("lud", "calibrated", "-s 256")  # gpu.sm.timing.taken
LULESH = SuiteProgram("lulesh-22", "test")
# nvprof counts cycles by running a kernel again and again, with its memory restored in between. What that leaves of the
# L2's contents is not known: a program that needs more than the L2 holds is shown with a warm and with a cold one.
_MEASURED: Sequence[tuple[str, SuiteProgram, int, Sequence[str]]] = (
    ("vectorAdd, 163840 elements, the program", VECTOR_ADD, 5_271, ()),
    ("lud -s 256, the program", LUD, 494_519, ()),
    ("LULESH, edge 22, 50 iterations, the program", LULESH, 12_454_750, ()),
    ("LULESH, edge 22, 50 iterations, a cold L2 before each launch", LULESH, 12_454_750, ("--cold-l2",)),
)
_ITERATION = 28  # launches
_SWEPT = 3  # iterations at each clock

CLASSES = ("FP32", "FP64", "INT", "CTRL", "L/S", "MISC", "INACTIVE")
MIX: dict[str, Sequence[int]] = {  # percent of all threads of the instructions of warps, by class
    "CalcFBHourglassForceForElems": (1, 10, 11, 10, 12, 31, 23),
    "CalcPressureForElems": (5, 17, 27, 2, 19, 16, 15),
    "CalcHourglassControlForElems": (0, 25, 21, 3, 38, 9, 1),
}
# As nvprof sorts instructions of sm_70; all others are MISC.
_OPCODES = {
    "FP32": "FADD FMUL FFMA FADD32I FMUL32I FFMA32I FSETP FSET FMNMX FSEL FCHK MUFU",
    "FP64": "DADD DMUL DFMA DSETP DMNMX",
    "INT": "IADD IADD3 IADD32I IMAD IMUL LEA LOP LOP3 LOP32I SHF SHL SHR ISETP IMNMX IABS POPC FLO BMSK SGXT",
    "CTRL": "BRA BRX JMP CALL RET EXIT BSSY BSYNC BREAK WARPSYNC YIELD KILL",
    "L/S": "LD LDG LDS LDL LDC ST STG STS STL ATOM ATOMG ATOMS RED",
}
_CLASS_OF = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_OPCODE = re.compile(r"(?:@!?U?P\w+\s+)?([A-Z0-9]+)")

Say = Callable[[str], None]


def table_rows(machine: str, isa: Isa, programs: Path, say: Say) -> list[Row]:
    """Cycles of all launches of each program together."""
    folder = checked_folder(programs, "the SST-GPU report's Table 3")
    found = []
    for title, program, reference, options in _MEASURED:
        if is_there(folder, program, say):
            data = run_command(folder, program, "cuda", ["--machine", machine, "--isa", isa, *options])
            found.append(Row(title, data["total_cycles"], reference, "cycles", _TABLE_3, program.use))
    return found


def lulesh_seconds(folder: Path, machine: str, isa: Isa, changes: Sequence[str]) -> float:
    """Simulated seconds of the kernels of some iterations of LULESH, the first left out."""
    launches = _ITERATION * (_SWEPT + 1)
    options = ["--machine", machine, "--isa", isa, "--launches", str(launches), "--stop"]
    options += [word for change in changes for word in ("--set", change)]
    kernels = run_command(folder.resolve(), LULESH, "cuda", options)["kernels"][_ITERATION:]
    return float(sum(kernel["end_seconds"] - kernel["begin_seconds"] for kernel in kernels))


def mix_rows(
    machine: str = "v100-sst",
    isa: Isa = "auto",
    programs: Path | None = None,
    say: Say = lambda text: None,
) -> list[Row]:
    """How much of the instruction mix of LULESH's largest kernels is that of the table, in percent."""
    folder = checked_folder(programs, "gpu-mix")
    if not is_there(folder, LULESH, say):
        return []
    options = ["--machine", machine, "--isa", isa, "--launches", str(_ITERATION), "--stop"]
    found: list[Row] = []

    def look(run: Path) -> None:
        for kernel, reference in MIX.items():
            mix = instruction_mix(run, kernel)
            alike = sum(min(mix[name], share) for name, share in zip(CLASSES, reference, strict=True))
            pairs = zip(CLASSES, reference, strict=True)
            source = f"{_TABLE_4}: " + ", ".join(f"{name} {mix[name]:.0f}/{share}" for name, share in pairs)
            title = f"LULESH, {kernel}: instructions of the same class"
            found.append(Row(title, alike, sum(reference), "%", source))

    run_command(folder, LULESH, "cuda", options, look)
    return found


def instruction_mix(run: Path, kernel: str) -> dict[str, float]:
    """Percent of all thread slots of a kernel's instructions, by class, from a run directory."""
    import polars as pl

    table = pl.read_parquet(run / "operations.parquet")
    rows: list[dict[str, Any]] = table.filter(pl.col("scope").str.contains(kernel, literal=True)).to_dicts()
    slots = 32 * sum(row["executed"] for row in rows)
    mix = dict.fromkeys(CLASSES, 0.0)
    for row in rows:
        opcode = _OPCODE.match(row["text"].strip())
        name = _CLASS_OF.get(opcode.group(1) if opcode else "", "MISC")
        mix[name] += 100 * row["threads"] / slots
        mix["INACTIVE"] += 100 * (32 * row["executed"] - row["threads"]) / slots
    return mix


def is_there(folder: Path, program: SuiteProgram, say: Say) -> bool:
    binary = folder / "bin" / program.name
    if not binary.is_file():
        say(f"{binary} is not there: its rows are left out")
    return binary.is_file()
