# SPDX-License-Identifier: Apache-2.0
"""Scans the SASS of a shared library: which of its kernels can be executed, by architecture.

Images are unpacked and decoded one at a time, so that libraries of gigabytes take little memory.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile

from manyscale import _core
from manyscale.errors import InputError
from manyscale.gpu.assembler import NEWEST_ARCHITECTURE, OLDEST_ARCHITECTURE

from .fatbin import MAGIC, Image, container_at

# Where fat binaries are: put there by nvcc, and by libraries that load them by themselves.
_SECTIONS = (".nv_fatbin", ".rodata", ".data", ".lrodata", ".ldata", ".cask_resource")
_MAGIC = struct.pack("<I", MAGIC)
_THREADS = 2
_WAITING = 8  # images that wait for a thread; each may have hundreds of megabytes
# What pyelftools raises for a broken file depends on where it is broken.
_BROKEN = Exception


@dataclass
class MissingInstruction:
    """An instruction that is not executed, and how much depends on it."""

    instruction: str
    why: str
    instructions: int = 0
    kernels: int = 0  # that have it
    alone: int = 0  # that could be executed but for it
    kernel: str = ""  # one that has it
    words: tuple[int, int] = (0, 0)  # of one such instruction: low and high 64 bits


@dataclass
class ArchitectureScan:
    """The SASS of a library for one architecture."""

    target: str  # "sm_80", "sm_90a"
    readable: bool = True  # whether SASS of this architecture can be executed at all
    images: int = 0
    kernels: int = 0
    supported: int = 0
    instructions: int = 0
    missing: list[MissingInstruction] = field(default_factory=list)  # those that block most kernels first
    errors: list[str] = field(default_factory=list)  # images that cannot be read

    @property
    def is_supported(self) -> bool:
        return self.readable and self.kernels == self.supported and not self.errors


def is_library(path: Path) -> bool:
    """Whether a file is a shared library with device code: it has no interpreter, so that it is no program."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            return (
                elf.header["e_type"] == "ET_DYN"
                and any(section.name in _SECTIONS for section in elf.iter_sections())
                and not any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments())
            )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except _BROKEN:
        return False


def scan_library(path: Path, target: str | None = None) -> list[ArchitectureScan]:
    """Scans a library, oldest architecture first; with `target` ("sm_80") only that one."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            parts = [
                (section.name, section["sh_offset"], section["sh_offset"] + section["sh_size"])
                for section in ELFFile(file).iter_sections()
                if section.name in _SECTIONS
            ]
            with memoryview(data) as view:
                return _Scan(target).run(_images(data, view, parts))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _images(data: mmap.mmap, view: memoryview, parts: list[tuple[str, int, int]]) -> Iterator[Image]:
    """The cubins in parts of a file. They hold views of it: nothing is copied before it is unpacked."""
    for name, begin, end in parts:
        at = data.find(_MAGIC, begin, end)
        while at >= 0:
            with view[:end] as part:
                try:
                    images, at = container_at(part, at, name)  # type: ignore[arg-type]
                except InputError:  # these four bytes happen to be there
                    images, at = [], at + 1
            yield from (image for image in images if not image.is_ptx)
            at = data.find(_MAGIC, at, end)


class _Scan:
    """One scan: a decoder for each thread and architecture, whose counts are added up at the end."""

    def __init__(self, target: str | None) -> None:
        self._target = target
        self._found: dict[tuple[int, str], ArchitectureScan] = {}
        self._own = threading.local()
        self._scans: list[tuple[str, _core.SassSupportScan]] = []
        self._lock = threading.Lock()

    def run(self, images: Iterator[Image]) -> list[ArchitectureScan]:
        waiting: list[Future[None]] = []
        with ThreadPoolExecutor(_THREADS) as pool:
            for image in images:
                if self._target not in (None, image.target):
                    continue
                found = self._found.setdefault(
                    (image.architecture, image.target), ArchitectureScan(image.target)
                )
                found.images += 1
                found.readable = OLDEST_ARCHITECTURE <= image.architecture <= NEWEST_ARCHITECTURE
                if found.readable:
                    waiting.append(pool.submit(self._add, image, found))
                while len(waiting) >= _WAITING:
                    waiting.pop(0).result()
            for one in waiting:
                one.result()
        for found in self._found.values():
            _add_up(found, [scan for target, scan in self._scans if target == found.target])
        return [self._found[key] for key in sorted(self._found)]

    def _add(self, image: Image, found: ArchitectureScan) -> None:
        scans: dict[str, _core.SassSupportScan] = self._own.__dict__.setdefault("scans", {})
        scan = scans.get(image.target)
        if scan is None:
            scan = scans[image.target] = _core.SassSupportScan()
            with self._lock:
                self._scans.append((image.target, scan))
        try:
            scan.add(bytes(image.unpacked()), f"image {found.images} of {image.target}")
        except (InputError, _core.CubinError) as error:
            with self._lock:
                found.errors.append(str(error))


def _add_up(found: ArchitectureScan, scans: list[_core.SassSupportScan]) -> None:
    missing: dict[tuple[str, str], MissingInstruction] = {}
    for scan in scans:
        found.kernels += scan.kernels
        found.supported += scan.supported
        found.instructions += scan.instructions
        for instruction, why, instructions, kernels, alone, kernel, low, high in scan.missing():
            one = missing.setdefault((instruction, why), MissingInstruction(instruction, why))
            one.instructions += instructions
            one.kernels += kernels
            one.alone += alone
            # The same example whichever thread found it first.
            if not one.kernel or kernel < one.kernel:
                one.kernel, one.words = kernel, (low, high)
    found.missing = sorted(missing.values(), key=lambda one: (-one.kernels, one.instruction, one.why))
