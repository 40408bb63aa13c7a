# SPDX-License-Identifier: Apache-2.0
"""`manyscale check`: the kernels, instructions and functions of a program that are not supported, before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import complain, emit_json
from manyscale.cli.findings import Finding, Junit, Sarif, findings_to
from manyscale.cli.listing import print_table
from manyscale.cli.options import CodeChoice, Json
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.cpu.checking import ProgramProblem
    from manyscale.cuda.checking import CallProblem
    from manyscale.cuda.library_scan import ArchitectureScan
    from manyscale.gpu import KernelCheck
    from manyscale.gpu.isa import Isa

commands = typer.Typer()

Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="sm_XX",
        help="The GPU that CUDA C++ is compiled for (sm_80 by default), or whose SASS of a library is checked.",
    ),
]

_NOT_SUPPORTED = 1
_UNREADABLE = 2
_SHOWN = 10  # instructions that an architecture of a library lacks


@dataclass(frozen=True)
class _File:
    """A checked file: its kernels, the problems of a program, or the reason why it cannot be read."""

    path: Path
    kernels: Sequence[KernelCheck] = ()
    program: Sequence[ProgramProblem] = ()
    calls: Sequence[CallProblem] = ()
    architectures: Sequence[ArchitectureScan] = ()  # of a library
    error: str | None = None

    @property
    def supported(self) -> bool:
        return not (
            self.error is not None
            or self.program
            or self.calls
            or not all(scan.is_supported for scan in self.architectures if scan.readable)
            or any(kernel.problems for kernel in self.kernels)
        )


def _kernels(path: Path, target: str | None, isa: Isa) -> Sequence[KernelCheck]:
    from manyscale import gpu

    return gpu.check(path, target=target, isa=isa)


# Readers by file extension.
Reader = Callable[[Path, str | None, "Isa"], "Sequence[KernelCheck]"]
READERS: dict[str, Reader] = {".ptx": _kernels, ".cu": _kernels, ".cubin": _kernels}
_ELF = b"\x7fELF"
_RISCV = "EM_RISCV"


@commands.command()
def check(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="CUDA and RISC-V programs, libraries with CUDA kernels, files with PTX (.ptx), CUDA C++ (.cu) or "
            "SASS (.cubin), or folders with such files.",
        ),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Show every problem, as is done for a single file.")
    ] = False,
    target: Target = None,
    isa: CodeChoice = None,
    junit: Junit = None,
    sarif: Sarif = None,
    json: Json = False,
) -> None:
    """Show what of a program is not supported, before it runs.

    The exit code is 0 if all kernels and programs can be executed, 1 if some
    cannot, and 2 if a file cannot be read or compiled; the others are checked all
    the same. Of a RISC-V program, all instructions are looked at; which system
    calls it makes cannot be known. Of a CUDA program, all kernels are looked at
    and the functions of the CUDA runtime and driver that it and its libraries are
    linked with, or name in their data to ask for while they run. Of a library,
    the SASS of all its kernels is looked at, by architecture (--target takes one).
    """
    files = [_looked_at(path, target, isa or "ptx") for path in _found(paths)]
    with findings_to(junit, sarif, "check") as findings:
        findings.subjects = [str(file.path) for file in files]
        findings.found = [finding for file in files for finding in _findings(file)]
    if json:
        emit_json(
            {"supported": all(file.supported for file in files), "files": [_data(file) for file in files]}
        )
    else:
        _print(files, everything or (len(files) == 1 and files[0].path in paths))
    if any(file.error is not None for file in files):
        raise typer.Exit(_UNREADABLE)
    if not all(file.supported for file in files):
        raise typer.Exit(_NOT_SUPPORTED)


def _found(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that are meant: those named, and those in the folders named."""
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if file.suffix in READERS and file.is_file())
        yield from inside or [path]


def _looked_at(path: Path, target: str | None, isa: Isa) -> _File:
    try:
        if _is_program(path):
            return _checked_library(path, target) or _checked_program(path, isa)
        return _File(path, _reader(path)(path, target, isa))
    except InputError as error:
        return _File(path, error=str(error))


def _is_program(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return path.suffix == ".xz" or (path.suffix not in READERS and file.read(len(_ELF)) == _ELF)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _checked_library(path: Path, target: str | None) -> _File | None:
    """A library with kernels, by architecture; None if the file is something else."""
    from manyscale.cuda import Executable
    from manyscale.cuda.checking import check_calls
    from manyscale.cuda.library_scan import is_library, scan_library

    if path.suffix == ".xz" or not is_library(path):
        return None
    scans = scan_library(path, target)
    if not scans:
        return None
    return _File(path, calls=check_calls(Executable.read(path, device_code=False)), architectures=scans)


def _checked_program(path: Path, isa: Isa) -> _File:
    """A program: of this machine, and then with CUDA in it; or one for the simulated processors."""
    from manyscale.cpu import Program
    from manyscale.cpu.checking import check as check_program
    from manyscale.cuda import Executable
    from manyscale.cuda.checking import check_calls, check_kernels, libraries_use_cuda

    try:
        executable = Executable.read(path)
    except InputError:  # the reader of RISC-V programs reports the problem
        return _File(path, program=check_program(Program(path)))
    if executable.machine == _RISCV or not (executable.uses_cuda or libraries_use_cuda(executable)):
        return _File(path, program=check_program(Program(path)))
    return _File(path, check_kernels(executable, isa), calls=check_calls(executable))


def _reader(path: Path) -> Reader:
    known = " or ".join(READERS)
    if path.is_dir():
        raise InputError(f"{path}: there is no file named {known} in this folder")
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.suffix not in READERS:
        raise InputError(
            f"{path}: it is not known how to check this; give a CUDA or RISC-V program or a file named {known}"
        )
    return READERS[path.suffix]


def _findings(file: _File) -> Iterator[Finding]:
    path = str(file.path)
    if file.error is not None:
        yield Finding("unreadable", path, file.error, path)
    for kernel in file.kernels:
        for problem in kernel.problems:
            message = f"{kernel.kernel}: {problem.instruction}: {problem.why}"
            yield Finding("unsupported-instruction", path, message, path, problem.line or 0)
    for one in file.program:
        message = f"{one.function}, {one.address:#x}: {one.instruction}: {one.why}"
        yield Finding("unsupported-instruction", path, message, path)
    for scan in file.architectures:
        for missing in scan.missing:
            message = f"{scan.target}, {missing.kernel}: {missing.instruction}: {missing.why}"
            yield Finding("unsupported-instruction", path, message, path)
    for call in file.calls:
        yield Finding("unsupported-function", path, f"{call.what}: {call.why}", path)


def _data(file: _File) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "supported": file.supported,
        "error": file.error,
        "kernels": [
            {
                "name": kernel.kernel,
                "supported": not kernel.problems,
                "problems": [asdict(problem) for problem in kernel.problems],
            }
            for kernel in file.kernels
        ],
        "architectures": [asdict(scan) for scan in file.architectures],
        "problems": [*map(asdict, file.program), *map(asdict, file.calls)],
    }


def _print(files: Sequence[_File], everything: bool) -> None:
    plain = [file for file in files if not file.architectures]
    if plain:
        print_table(
            "", ("file", "kernels", "supported", "first that is missing"), [_row(file) for file in plain]
        )
    for file in files:
        if file.architectures:
            _print_library(file, everything)
    if everything:
        rows = [row for file in files for row in _problem_rows(file)]
        if rows:
            print_table("Problems", ("file", "line", "kernel or function", "instruction", "why"), rows)
    for file in files:
        if file.error is not None:
            complain(file.error)


def _print_library(file: _File, everything: bool) -> None:
    print_table(
        str(file.path),
        ("architecture", "kernels", "supported", "instructions"),
        [
            (scan.target, f"{scan.kernels}", f"{scan.supported}", f"{scan.instructions}")
            if scan.readable
            else (scan.target, "-", "not executed", "-")
            for scan in file.architectures
        ],
    )
    shown = None if everything else _SHOWN
    missing = [
        (scan.target, f"{one.kernels}", f"{one.instructions}", one.instruction, one.why)
        for scan in file.architectures
        for one in scan.missing[:shown]
    ]
    if missing:
        print_table("Missing", ("architecture", "kernels", "instructions", "instruction", "why"), missing)
    for scan in file.architectures:
        for error in scan.errors:
            complain(error)


def _row(file: _File) -> tuple[str, str, str, str]:
    if file.error is not None:
        return str(file.path), "-", "cannot be read", "-"
    if file.program:
        one = file.program[0]
        return str(file.path), "-", "no", f"{one.address:#x} in {one.function}: {one.instruction} ({one.why})"
    if file.calls:
        one_call = file.calls[0]
        return str(file.path), str(len(file.kernels)), "no", f"{one_call.what}: {one_call.why}"
    fine = sum(not kernel.problems for kernel in file.kernels)
    problems = [problem for kernel in file.kernels for problem in kernel.problems]
    first = min(problems, key=lambda problem: problem.line, default=None)
    return (
        str(file.path),
        str(len(file.kernels)),
        "yes" if file.supported else f"{fine} of {len(file.kernels)}",
        "-" if first is None else f"line {first.line}: {first.instruction} ({first.why})",
    )


def _problem_rows(file: _File) -> Iterator[tuple[str, str, str, str, str]]:
    for kernel in file.kernels:
        for problem in kernel.problems:
            inside = "" if problem.function == kernel.kernel else f" (in {problem.function})"
            yield (
                file.path.name,
                f"{problem.line}:{problem.column}",
                kernel.kernel + inside,
                problem.instruction,
                problem.why,
            )
    for found in file.program:
        where = found.source or f"{found.address:#x}"
        yield file.path.name, where, found.function, found.instruction, found.why
    for call in file.calls:
        yield file.path.name, "-", "-", call.what, call.why
