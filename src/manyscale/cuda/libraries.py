# SPDX-License-Identifier: Apache-2.0
"""The shared libraries that the dynamic linker loads with a program, by its search rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyscale.errors import InputError

from .executable import Executable

_SYSTEM_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64")
_CONFIGURATION = Path("/etc/ld.so.conf")
_MOST_LIBRARIES = 1000


@dataclass(frozen=True)
class Library:
    """A needed library: its name and its path."""

    name: str
    path: Path


def loaded_with(program: Executable) -> Iterator[Library]:
    """All libraries that a program needs, directly or not, except those that are not found."""
    seen: set[str] = set()
    waiting = [(program, _folders(program.rpath, program.path) if not program.runpath else [])]
    while waiting and len(seen) < _MOST_LIBRARIES:
        who, first = waiting.pop(0)
        for name in who.needed:
            if name in seen:
                continue
            seen.add(name)
            found = _find(name, first, _folders(who.runpath, who.path), who.machine)
            if found is None:
                continue
            yield Library(name, found)
            try:
                library = Executable.read(found, device_code=False)
            except InputError:
                continue
            # An RPATH also applies to the libraries that a library needs.
            own = [] if library.runpath else _folders(library.rpath, found)
            waiting.append((library, [*own, *first]))


def _find(name: str, first: Sequence[Path], later: Sequence[Path], machine: str) -> Path | None:
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    environment = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*first, *environment, *later, *_configured(), *map(Path, _SYSTEM_FOLDERS)):
        if _fits(folder / name, machine):
            return folder / name
    return None


def _fits(path: Path, machine: str) -> bool:
    """Whether it is a library for the same processor; the linker skips others."""
    try:
        return path.is_file() and Executable.read(path, device_code=False).machine == machine
    except InputError:
        return False


def _folders(paths: Sequence[str], of: Path) -> list[Path]:
    origin = str(of.resolve().parent)
    return [Path(re.sub(r"\$(ORIGIN\b|\{ORIGIN\})", origin, path)) for path in paths if path]


def _configured() -> Iterator[Path]:
    """The folders of /etc/ld.so.conf."""
    files = [_CONFIGURATION]
    while files:
        try:
            lines = files.pop(0).read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            words = line.partition("#")[0].split()
            if words[:1] == ["include"]:
                for pattern in words[1:]:
                    files += sorted(Path("/").glob(pattern.lstrip("/")))
            elif words:
                yield Path(words[0])
