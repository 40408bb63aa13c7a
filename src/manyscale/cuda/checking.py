# SPDX-License-Identifier: Apache-2.0
"""Checks a CUDA program before it runs: missing libraries and functions, kernels with unsupported instructions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from manyscale.errors import InputError
from manyscale.gpu import KernelCheck, check
from manyscale.gpu.assembler import NEWEST_ARCHITECTURE, OLDEST_ARCHITECTURE
from manyscale.gpu.isa import Isa

from .executable import Executable
from .libraries import loaded_with
from .loader import library_folder
from .modules import unsuitable

UNSUPPORTED_SECTION = "unsupported"
"""The section of the runtime with the functions that report that they are not supported."""

_ONLY_ON_HARDWARE = (
    "libcublas",
    "libcufft",
    "libcusparse",
    "libcusolver",
    "libcurand",
    "libcudnn",
    "libnccl",
)
_DRIVER = "libcuda.so.1"
_OURS = ("libcudart.so", "libcuda.so")
_CAPABILITY = 70


@dataclass(frozen=True)
class CallProblem:
    """Something that a program needs and that is not there."""

    what: str
    why: str


def check_calls(program: Executable) -> list[CallProblem]:
    """The libraries and functions that a program needs and that are not simulated."""
    return list(_problems(program))


def _problems(program: Executable) -> Iterator[CallProblem]:
    if problem := program.runtime_problem:
        yield CallProblem("the CUDA runtime", problem)
    images = program.images
    runs = any(OLDEST_ARCHITECTURE <= image.architecture <= NEWEST_ARCHITECTURE for image in images)
    if images and not any(image.is_ptx for image in images) and not runs:
        yield CallProblem("device code", unsuitable(images))
    yield from _missing_functions(program, program.runtime, "")
    needed = dict.fromkeys(program.needed, "")
    for library in loaded_with(program):
        needed.setdefault(library.name, str(library.path))
        if not library.name.startswith((*_OURS, *_ONLY_ON_HARDWARE)):
            file = Executable.read(library.path, device_code=False)
            yield from _missing_functions(file, file.runtime or program.runtime, f" (in {library.name})")
    for name in needed:
        if name.startswith(_ONLY_ON_HARDWARE):
            yield CallProblem(name, "this library talks to the driver of a real GPU")


def _missing_functions(file: Executable, runtime: str | None, where: str) -> Iterator[CallProblem]:
    """The functions of the runtime and the driver that a program or library needs and that are not there."""
    if not file.imports and not file.names:
        return
    folder = library_folder()
    exported, unsupported = _functions_of(folder / _DRIVER)
    if runtime is not None:
        if not (folder / runtime).exists():
            yield CallProblem(runtime, f"the simulator has the runtimes of CUDA 11, 12 and 13{where}")
            return
        more = _functions_of(folder / runtime)
        exported, unsupported = exported | more[0], unsupported | more[1]
    for name in file.imports:
        error = "cudaErrorNotSupported" if name.startswith("cuda") else "CUDA_ERROR_NOT_SUPPORTED"
        if name in unsupported:
            yield CallProblem(name, f"it is not supported, and returns {error}{where}")
        elif name not in exported and (runtime is not None or not name.startswith(("cuda", "__cuda"))):
            what = "runtime" if name.startswith(("cuda", "__cuda")) else "driver"
            yield CallProblem(name, f"the simulator's {what} does not have this function{where}")
    by_name = {symbol.partition("_")[0] for symbol in exported - unsupported}
    for name in sorted(file.names - set(file.imports)):
        if name in unsupported and name.partition("_")[0] not in by_name:
            yield CallProblem(
                name,
                f"it is asked for by name, is not supported, and returns CUDA_ERROR_NOT_SUPPORTED{where}",
            )


def libraries_use_cuda(program: Executable) -> bool:
    """Whether a library that a program is started with calls the CUDA runtime or driver."""
    return any(
        library.name.startswith(_OURS) or Executable.read(library.path, device_code=False).imports
        for library in loaded_with(program)
    )


def check_kernels(program: Executable, isa: Isa = "ptx") -> Sequence[KernelCheck]:
    """All kernels of a program, with the instructions that cannot be executed; of one without PTX, in SASS."""
    checks: list[KernelCheck] = []
    for text in program.ptx(_CAPABILITY):
        checks += check(text, isa=isa)
    if not checks:
        for image in program.images:
            if OLDEST_ARCHITECTURE <= image.architecture <= NEWEST_ARCHITECTURE and not image.is_ptx:
                checks += check(image.unpacked())
    return checks


@functools.cache
def _functions_of(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The functions of a library of the simulator, and those of them that are not supported."""
    exported: set[str] = set()
    unsupported: set[str] = set()
    with path.open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        if not isinstance(symbols, SymbolTableSection):
            raise InputError(f"{path}: the simulator's CUDA library is broken; install the package again")
        sections = [section.name for section in elf.iter_sections()]
        for symbol in symbols.iter_symbols():
            index = symbol["st_shndx"]
            if index != "SHN_UNDEF":
                exported.add(symbol.name)
                if isinstance(index, int) and sections[index] == UNSUPPORTED_SECTION:
                    unsupported.add(symbol.name)
    return frozenset(exported), frozenset(unsupported)
