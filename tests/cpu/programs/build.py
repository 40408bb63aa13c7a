# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of this folder and stores them, compressed, with what they print under qemu-riscv64.

Run by hand where the cross compilers and qemu are installed (Debian: g++-riscv64-linux-gnu, qemu-user):

    python tests/cpu/programs/build.py

The tests need neither: they take fixtures/*.xz and fixtures/expected.json, which also says which compiler and which
qemu made them. A program that is one of many is chosen by its first argument, as in `c sort 1000`.
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXTURES = HERE / "fixtures"
PREFIX = "riscv64-linux-gnu-"
QEMU = "qemu-riscv64"

# -g1: lines of functions without variables. -frounding-math: rounding.c changes the mode.
COMMON = ["-g1", "-Wall", "-Wextra", "-Wno-format-truncation", "-frounding-math", "-ffunction-sections"]
COMMON += ["-fdata-sections", "-Wl,--gc-sections", "-Wl,--build-id=none", f"-ffile-prefix-map={HERE}=."]
C = sorted(str(path.relative_to(HERE)) for path in (HERE / "c").glob("*.c"))
CPP = sorted(str(path.relative_to(HERE)) for path in (HERE / "cpp").glob("*.cpp"))
PARALLEL = sorted(str(path.relative_to(HERE)) for path in (HERE / "parallel").glob("*.c"))
ASSEMBLY = sorted(path.stem for path in (HERE / "assembly").glob("*.S"))

# name: compiler, options, sources, libraries
BINARIES: dict[str, tuple[str, list[str], list[str], list[str]]] = {
    "c": ("gcc", ["-O2", "-static"], C, ["-lm"]),
    "c_unoptimised": ("gcc", ["-O0", "-static"], C, ["-lm"]),
    "c_optimised": ("gcc", ["-O3", "-static"], C, ["-lm"]),
    "cpp": ("g++", ["-O2", "-static", "-std=c++20"], [*CPP, "c/suite.c"], []),
    "parallel": ("gcc", ["-O2", "-static", "-fopenmp"], [*PARALLEL, "c/suite.c"], ["-lm"]),
}
for _name in ASSEMBLY:
    BINARIES[f"assembly_{_name}"] = (
        "gcc",
        ["-static", "-nostdlib", "-Iassembly"],
        [f"assembly/{_name}.S"],
        [],
    )
# Debian's C library has no start code for static PIE on RISC-V, so the one such program is in assembly.
BINARIES["assembly_static_pie"] = (
    "gcc",
    ["-static-pie", "-Wl,--no-dynamic-linker", "-nostdlib", "-Iassembly"],
    ["assembly/integer.S"],
    [],
)

C_PROGRAMS = ["integer", "floating", "rounding", "mathematics", "strings", "allocation", "files", "control"]
C_PROGRAMS += ["signals", "self_modifying", "matrix", "sort", "conjugate_gradient", "stencil", "triad"]
C_PROGRAMS += ["pointer_chase", "queens", "sha256", "mix"]
PARALLEL_PROGRAMS = [
    "mutex",
    "condition",
    "barrier",
    "read_write",
    "cancellation",
    "loops",
    "constructs",
    "tasks",
]
PARALLEL_PROGRAMS += [
    "dependences",
    "nested",
    "omp_triad",
    "omp_matrix",
    "omp_stencil",
    "omp_solver",
    "omp_compute",
]

INPUT = "abc 12 3.5 xyz\nq 7 1e3 m\nlast -5 0x1p-3 end\n"
NUMBERS = "abc 12 3.5\nq 7 1e3\nlast -5 0.25\n"


@dataclass
class Case:
    """One run of a program."""

    binary: str
    arguments: list[str]
    standard_input: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def c_cases(binary: str) -> list[Case]:
    """The programs in C, and their ways to end."""
    cases = [Case(binary, [name]) for name in C_PROGRAMS]
    cases.append(Case(binary, ["formats"], INPUT))
    cases.append(
        Case(binary, ["process", "7"], environment={"SUITE_VARIABLE": "given", "SHOW_CONSTRUCTOR": "1"})
    )
    cases.append(Case(binary, ["process", "3", "at once", ""]))
    cases.append(Case(binary, ["no such program"]))
    cases += [
        Case(binary, ["signals", how]) for how in ("abort", "segmentation", "terminate", "trap", "illegal")
    ]
    return cases


def parallel_cases() -> list[Case]:
    """The programs with threads, on several numbers of them."""
    return [
        Case("parallel", [name, str(threads)]) for name in PARALLEL_PROGRAMS for threads in (1, 2, 4, 7, 16)
    ]


def all_cases() -> list[Case]:
    """Everything that is run under qemu."""
    cases = [Case(name, []) for name in BINARIES if name.startswith("assembly_")]
    for binary in ("c", "c_unoptimised", "c_optimised"):
        cases += c_cases(binary)
    cases += [Case("cpp", [name]) for name in ("containers", "exceptions", "objects")]
    cases += [Case("cpp", ["streams"], NUMBERS), Case("cpp", ["exceptions", "uncaught"])]
    cases += [Case("cpp", ["threads", str(threads)]) for threads in (1, 4, 9)]
    return cases + parallel_cases()


def build(name: str, folder: Path) -> Path:
    """Compiles one program and stores it compressed."""
    compiler, options, sources, libraries = BINARIES[name]
    target = folder / name
    command = [PREFIX + compiler, *options, *COMMON, *sources, *libraries, "-o", str(target)]
    subprocess.run(command, cwd=HERE, check=True)
    (FIXTURES / f"{name}.xz").write_bytes(lzma.compress(target.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    return target


def run_under_qemu(program: Path, case: Case) -> dict[str, object]:
    """What a run prints and how it ends; a signal n ends it with 128 + n, as a shell says."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [QEMU, str(program), *case.arguments],
            input=case.standard_input.encode(),
            capture_output=True,
            cwd=folder,
            env=case.environment,
            timeout=60,
            check=False,
        )
    signalled = result.returncode < 0
    return {
        "exit": 128 - result.returncode if signalled else result.returncode,
        "output": result.stdout.decode(),
        "error": None if signalled else result.stderr.decode().replace(str(program), "PROGRAM"),
    }


def first_line(*command: str) -> str:
    """What a tool says of its version."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def main() -> None:
    """Builds everything and asks qemu."""
    FIXTURES.mkdir(exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: build(name, Path(folder)) for name in BINARIES}
        for case in all_cases():
            row: dict[str, object] = {"binary": case.binary, "arguments": case.arguments}
            if case.standard_input:
                row["input"] = case.standard_input
            if case.environment:
                row["environment"] = case.environment
            rows.append(row | run_under_qemu(programs[case.binary], case))
    made_by = {
        "compiler": first_line(f"{PREFIX}gcc", "--version"),
        "assembler": first_line(f"{PREFIX}as", "--version"),
        "qemu": first_line(QEMU, "--version"),
    }
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"made_by": {json.dumps(made_by)},\n"cases": [\n{lines}\n]}}\n'
    (FIXTURES / "expected.json").write_text(text)
    total = sum(path.stat().st_size for path in FIXTURES.iterdir())
    print(f"{len(rows)} cases, {total / 1e6:.2f} MB in {os.path.relpath(FIXTURES)}")


if __name__ == "__main__":
    main()
