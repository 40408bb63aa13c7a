# SPDX-License-Identifier: Apache-2.0
"""What of a CUDA program cannot be simulated, found before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from manyscale.errors import InputError
from manyscale.gpu import KernelCheck, check
from manyscale.gpu.assembler import NEWEST_ARCHITECTURE, OLDEST_ARCHITECTURE
from manyscale.gpu.machine_code import Isa

from .executable import Executable
from .modules import without_ptx
from .program import library_folder

UNSUPPORTED_SECTION = "unsupported"
"""The section of the runtime with the functions that only say that they are not supported."""

_ONLY_ON_HARDWARE = (
    "libcublas",
    "libcufft",
    "libcusparse",
    "libcusolver",
    "libcurand",
    "libcudnn",
    "libnccl",
)
_CAPABILITY = 70


@dataclass(frozen=True)
class CallProblem:
    """Something that a program needs and that is not there."""

    what: str
    why: str


def check_calls(program: Executable) -> list[CallProblem]:
    """What a program needs of libraries and functions that cannot be simulated."""
    return list(_problems(program))


def _problems(program: Executable) -> Iterator[CallProblem]:
    if program.has_static_runtime:
        yield CallProblem(
            "the CUDA runtime", "it is linked into the program; build it again with: nvcc -cudart shared"
        )
    images = program.images
    runs = any(OLDEST_ARCHITECTURE <= image.architecture <= NEWEST_ARCHITECTURE for image in images)
    if images and not any(image.is_ptx for image in images) and not runs:
        yield CallProblem("device code", without_ptx(images))
    for name in program.needed:
        if name.startswith(_ONLY_ON_HARDWARE):
            yield CallProblem(name, "this library talks to the driver of a real GPU")
    runtime = program.runtime
    if runtime is None:
        return
    exported, unsupported = _functions_of(library_folder(), runtime)
    if not exported:
        yield CallProblem(runtime, "the simulator has the runtimes of CUDA 11, 12 and 13")
        return
    for name in program.imports:
        if name in unsupported:
            yield CallProblem(name, "it is not supported, and returns cudaErrorNotSupported")
        elif name not in exported:
            yield CallProblem(name, "the simulator's runtime does not have this function")


def check_kernels(program: Executable, isa: Isa = "ptx") -> Sequence[KernelCheck]:
    """All kernels of a program, with the instructions that cannot be executed; of one without PTX, in machine code."""
    checks: list[KernelCheck] = []
    for text in program.ptx(_CAPABILITY):
        checks += check(text, isa=isa)
    if not checks:
        for image in program.images:
            if OLDEST_ARCHITECTURE <= image.architecture <= NEWEST_ARCHITECTURE and not image.is_ptx:
                checks += check(image.unpacked())
    return checks


def _functions_of(folder: Path, runtime: str) -> tuple[set[str], set[str]]:
    """The functions of the simulator's runtime, and those of them that are not supported."""
    exported: set[str] = set()
    unsupported: set[str] = set()
    if not (folder / runtime).exists():
        return exported, unsupported
    for path in (folder / runtime, folder / "libcuda.so.1"):
        if not path.exists():
            continue
        with path.open("rb") as file:
            elf = ELFFile(file)
            symbols = elf.get_section_by_name(".dynsym")
            if not isinstance(symbols, SymbolTableSection):
                raise InputError(f"{path}: the simulator's CUDA runtime is broken; install the package anew")
            for symbol in symbols.iter_symbols():
                place = symbol["st_shndx"]
                if place != "SHN_UNDEF":
                    exported.add(symbol.name)
                    if isinstance(place, int) and elf.get_section(place).name == UNSUPPORTED_SECTION:
                        unsupported.add(symbol.name)
    return exported, unsupported
