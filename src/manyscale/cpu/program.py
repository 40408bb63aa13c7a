# SPDX-License-Identifier: Apache-2.0
"""A RISC-V program and what it is given: arguments, environment, input, files, ranks."""

from __future__ import annotations

import lzma
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from manyscale import _core
from manyscale.cpu.symbols import Symbols
from manyscale.errors import InputError, nearest
from manyscale.units import BYTES, parse

MOST_FILE_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20
_MOST_RANKS = 1024
_ET_DYN = b"\x03\x00"  # e_type of a program that can be loaded anywhere


@dataclass(frozen=True)
class Program:
    """A statically linked RISC-V (RV64GC) Linux program, and what it can see of the world.

    It has no files but its standard streams, unless `root` names a folder that it sees as `/`; it can change what is
    in there only if `writable`. Its environment is empty but for what is given. `ranks` processes are started, each
    of which may touch so much `memory` and write so much `output`. A file named .xz is unpacked.
    """

    path: str | os.PathLike[str]
    args: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    root: str | os.PathLike[str] | None = None
    writable: bool = False
    stdin: bytes = b""
    ranks: int = 1
    memory: str = "4GiB"
    output: str = "64MiB"

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= _MOST_RANKS:
            raise InputError(f"{self.ranks} ranks cannot be started; give 1 to {_MOST_RANKS}")
        if isinstance(self.args, str):
            raise InputError(f"args is the text {self.args!r}; give a list of arguments")
        for name in self.environment:
            if not name or "=" in name or "\0" in name:
                raise InputError(f"'{name}' is no name for an environment variable")
        if self.root is not None and not Path(self.root).is_dir():
            raise InputError(f"{self.root}: there is no such folder for the program's files")

    @property
    def name(self) -> str:
        """The name of its file, without the end .xz."""
        return Path(self.path).name.removesuffix(".xz")

    @cached_property
    def data(self) -> bytes:
        """The bytes of its file."""
        path = Path(self.path)
        try:
            if path.is_file() and path.stat().st_size > MOST_FILE_BYTES:
                raise InputError(
                    f"{path}: a program of more than {MOST_FILE_BYTES >> 20} MiB cannot be loaded"
                )
            return _unpacked(path) if path.suffix == ".xz" else path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None

    @cached_property
    def symbols(self) -> Symbols:
        """Its functions and source lines."""
        movable = self.data[16:18] == _ET_DYN
        return Symbols(self.data, str(self.path), base=_core.cpu_position_independent_base if movable else 0)

    def launch(self) -> dict[str, Any]:
        """The core's parameters to start it."""
        return {
            "elf": self.data,
            "path": os.fspath(self.path),
            "name": self.name,
            "arguments": [str(argument) for argument in self.args],
            "environment": [f"{name}={value}" for name, value in self.environment.items()],
            "root": "" if self.root is None else str(Path(self.root).resolve()),
            "writable": self.writable,
            "standard_input": self.stdin,
            "ranks": self.ranks,
            "memory_limit": int(parse(self.memory, BYTES)),
            "output_limit": int(parse(self.output, BYTES)),
        }

    def description(self) -> dict[str, Any]:
        """What a run directory keeps of it."""
        import hashlib

        return {
            "kind": "cpu-program",
            "name": self.name,
            "hash": f"sha256:{hashlib.sha256(self.data).hexdigest()}",
            "arguments": [str(argument) for argument in self.args],
            "environment": dict(self.environment),
            "ranks": self.ranks,
            "input_hash": f"sha256:{hashlib.sha256(self.stdin).hexdigest()}" if self.stdin else None,
        }


def sample(name: str = "heat") -> Path:
    """The file of a program that comes with the package; its source is beside it or in examples/elastic/programs."""
    folder = Path(__file__).parent / "samples"
    known = sorted(path.stem for path in folder.glob("*.xz"))
    if name not in known:
        raise InputError(f"there is no sample named '{name}'; {nearest(name, known)}")
    return folder / f"{name}.xz"


def _unpacked(path: Path) -> bytes:
    try:
        with lzma.open(path) as file:
            # In pieces: asked for so much at once, it would first make room for all of it.
            data = bytearray()
            while len(data) <= MOST_FILE_BYTES and (piece := file.read(_PIECE_BYTES)):
                data += piece
    except (lzma.LZMAError, EOFError) as error:
        raise InputError(f"{path}: it cannot be unpacked: {error}") from None
    if len(data) > MOST_FILE_BYTES:
        raise InputError(f"{path}: it unpacks to more than {MOST_FILE_BYTES >> 20} MiB")
    return bytes(data)
