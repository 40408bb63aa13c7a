# SPDX-License-Identifier: Apache-2.0
"""The ELF file of a CUDA program: its libraries, its device code, and the CUDA functions it imports."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from manyscale.errors import InputError

from .fatbin import Image, best_cubin, best_ptx, containers
from .linking import link
from .loader import STATIC_ARCHIVES, find_static_runtime
from .modules import unsuitable

_MAGIC = b"\x7fELF"
_SEPARATE, _LINKED = ".nv_fatbin", "__nv_relfatbin"  # sections with device code
MOST_BYTES = 1 << 32
_MOST_SYMBOLS = 1 << 20
# What pyelftools raises for a broken file depends on where it is broken.
_BROKEN = Exception
_REDIRECTED = "EM_X86_64"  # the machine for which libmanyscale-interposer.so replaces a static runtime
_ASKING = ("dlsym", "dlvsym", "cuGetProcAddress")
_FUNCTION_NAME = re.compile(rb"(?<=\0)(cu[A-Z][A-Za-z0-9]+(?:_v\d)?(?:_pt[ds][sz])?)(?=\0)")
_RELEASE = re.compile(rb"Cuda compilation tools, release (\d{1,3}\.\d{1,3}), V")
_FIRST_WITHOUT_SUFFIX = 13  # release of CUDA whose packages are named without it


@dataclass
class Executable:
    """A program or library: the parts of it that concern CUDA."""

    path: Path
    machine: str = ""
    needed: list[str] = field(default_factory=list)
    rpath: list[str] = field(default_factory=list)  # folders with its libraries: before LD_LIBRARY_PATH
    runpath: list[str] = field(default_factory=list)  # and after it
    imports: list[str] = field(default_factory=list)  # functions of the CUDA runtime and driver
    asks_by_name: bool = False  # it may look up functions by name at run time
    names: set[str] = field(default_factory=set)  # strings in it that may be names of such functions
    has_static_runtime: bool = False
    static_runtime: str | None = None  # the simulator's library for it, if it can be replaced
    toolkit: str = ""  # the release of CUDA that compiled its device code, if that says so
    separate: list[list[Image]] = field(default_factory=list)  # device code, by container
    linked: list[list[Image]] = field(default_factory=list)  # relocatable device code

    @classmethod
    def read(cls, path: Path, *, device_code: bool = True) -> Executable:
        """Reads an ELF file; what is not one, such as a script, has no device code of its own."""
        try:
            with path.open("rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:
                    return cls(path)
                if path.stat().st_size > MOST_BYTES:
                    raise InputError(f"{path}: the program has more than {MOST_BYTES >> 30} GiB")
                file.seek(0)
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    return _parsed(path, ELFFile(data), device_code)  # type: ignore[arg-type]
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except _BROKEN as error:
            raise InputError(f"{path}: this ELF file is broken: {error or type(error).__name__}") from None

    @property
    def images(self) -> list[Image]:
        """All device code."""
        return [image for part in (*self.separate, *self.linked) for image in part]

    def ptx(self, capability: int) -> list[bytes]:
        """The PTX that a GPU of this compute capability would be given, or what is nearest to that; a text for each
        module."""
        chosen = [
            [best_ptx(part, capability, allow_newer=True) for part in parts]
            for parts in (self.separate, self.linked)
        ]
        separate, linked = ([image.ptx() for image in images if image is not None] for images in chosen)
        return [*separate, link(linked)] if linked else separate

    @property
    def uses_cuda(self) -> bool:
        """Whether it has device code or calls the CUDA runtime."""
        return bool(self.images) or bool(self.imports) or self.has_static_runtime

    @property
    def runtime(self) -> str | None:
        """The name of the CUDA runtime that it is linked with, such as libcudart.so.13."""
        return next((name for name in self.needed if name.startswith("libcudart.so")), None)

    @property
    def runtime_problem(self) -> str | None:
        """Why the CUDA runtime that is linked into the program cannot be replaced by the simulator's."""
        if not self.has_static_runtime:
            return None
        remedy = "build it again with: nvcc -cudart shared"
        if self.machine != _REDIRECTED:
            return f"the CUDA runtime is linked into the program, so that its calls cannot be simulated; {remedy}"
        if self.static_runtime is None:
            return (
                "the CUDA runtime is linked into the program, which is stripped, so that its calls cannot be found; "
                "install the toolkit that it was built with (its libcudart_static.a is enough"
                f"{self._package}), or {remedy}"
            )
        return None

    @property
    def _package(self) -> str:
        """Which package of Python has the runtime for linking, if the program says which release compiled its code."""
        if not self.toolkit:
            return ""
        major = self.toolkit.partition(".")[0]
        name = "nvidia-cuda-runtime" + (f"-cu{major}" if int(major) < _FIRST_WITHOUT_SUFFIX else "")
        return f": pip install {name}=={self.toolkit}.*, or a path to it in {STATIC_ARCHIVES}"

    def check_runnable(self, capability: int, allow_newer: bool = False) -> None:
        """An error if the program cannot be run at all on GPUs of this compute capability (75 for 7.5)."""
        if problem := self.runtime_problem:
            raise InputError(f"{self.path.name}: {problem}")
        if (
            self.images
            and best_ptx(self.images, capability, allow_newer) is None
            and best_cubin(self.images, capability) is None
        ):
            raise InputError(f"{self.path.name}: {unsuitable(self.images, capability)}")


def _parsed(path: Path, elf: ELFFile, device_code: bool) -> Executable:
    program = Executable(path, machine=str(elf.header["e_machine"]))
    own_symbols: set[str] = set()
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    program.needed.append(str(tag.needed))  # type: ignore[attr-defined]
                elif tag.entry.d_tag == "DT_RPATH":
                    program.rpath += str(tag.rpath).split(":")  # type: ignore[attr-defined]
                elif tag.entry.d_tag == "DT_RUNPATH":
                    program.runpath += str(tag.runpath).split(":")  # type: ignore[attr-defined]
        elif isinstance(section, SymbolTableSection) and _may_concern_cuda(elf, section):
            if section.num_symbols() > _MOST_SYMBOLS:
                raise InputError(f"{path}: the program has more than {_MOST_SYMBOLS} symbols")
            for symbol in section.iter_symbols():
                if symbol["st_shndx"] == "SHN_UNDEF":
                    if section.name == ".dynsym" and _is_cuda(symbol.name):
                        program.imports.append(symbol.name)
                    program.asks_by_name |= symbol.name.startswith(_ASKING)
                else:
                    own_symbols.add(symbol.name)
    program.imports.sort()
    for name, into in ((_SEPARATE, program.separate), (_LINKED, program.linked)) if device_code else ():
        found = elf.get_section_by_name(name)
        if found is not None:
            into += containers(found.data(), f"{path.name}, section {name}")
    has_code = elf.get_section_by_name(".nvFatBinSegment") is not None
    if program.runtime is None:
        program.static_runtime = _static_runtime(own_symbols)
        if program.static_runtime is None and has_code and program.machine == _REDIRECTED:
            program.static_runtime = find_static_runtime(path)
            program.toolkit = "" if program.static_runtime else _toolkit(elf.stream)  # type: ignore[arg-type]
        driver_alone = bool(program.imports) or any(name.startswith("libcuda") for name in program.needed)
        program.has_static_runtime = program.static_runtime is not None or (has_code and not driver_alone)
    if program.asks_by_name and not program.has_static_runtime:  # a runtime asks for the whole driver
        for section in elf.iter_sections():
            if section.name.startswith((".rodata", ".data")):
                program.names |= {name.decode() for name in _FUNCTION_NAME.findall(section.data())}
    return program


def _toolkit(data: mmap.mmap) -> str:
    """The latest release of nvcc that says in device code that it has compiled it; code that is packed does not."""
    found = {match[1].decode() for match in _RELEASE.finditer(data)}
    return max(found, key=lambda text: tuple(map(int, text.split("."))), default="")


def _static_runtime(symbols: set[str]) -> str | None:
    """The simulator's library for a runtime with these functions, as `cudart/interposer` chooses it."""
    if "cudaGetDeviceCount" not in symbols:
        return None
    if "cudaBindTexture" in symbols:
        return "libcudart.so.11.0"
    return "libcudart.so.12" if "cudaGetDeviceProperties_v2" in symbols else "libcudart.so.13"


def _may_concern_cuda(elf: ELFFile, section: SymbolTableSection) -> bool:
    """Whether a name in a table of symbols may be one of CUDA's; most libraries have none."""
    names = elf.get_section(section["sh_link"]).data()
    return b"cuda" in names or _FUNCTION_NAME.search(names) is not None or b"dlsym" in names


def _is_cuda(name: str) -> bool:
    return name.startswith(("cuda", "__cuda")) or (name.startswith("cu") and name[2:3].isupper())
