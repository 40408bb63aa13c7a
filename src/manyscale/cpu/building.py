# SPDX-License-Identifier: Apache-2.0
"""Compiles programs for simulated processors, and the same programs for this machine.

A cross-compiler for RISC-V Linux has to be installed (Debian: gcc-riscv64-linux-gnu and g++-riscv64-linux-gnu).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from manyscale.errors import InputError
from manyscale.guard import temporary_folder
from manyscale.results.files import FileKind, check_output, write_file

_PACKAGE = Path(__file__).resolve().parent.parent
_CPP_ENDINGS = (".cc", ".cpp", ".cxx", ".C")
_PROGRAM = FileKind.magic("a program or object file (ELF)", b"\x7fELF")
_CROSS = "riscv64-linux-gnu-"


def runtime_folder() -> Path:
    """Where manyscale.h and the MPI library are: in the checkout, or installed in the package."""
    checkout = _PACKAGE.parent.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "runtime").is_dir():
        return checkout / "runtime"
    return _PACKAGE / "runtime"


def build(
    sources: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    mpi: bool = False,
    host: bool = False,
    options: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Compiles C or C++ sources (and objects) into a program that `manyscale cpu run` takes.

    A program of the name `output` is replaced only with `force`, and another file never is.

    It can include `manyscale.h`; with `mpi` also `mpi.h`, and the MPI library of this package is linked to it. With
    `host` it is made for this machine instead. `options` go to the compiler and come after the usual ones: -O2, -g1,
    and -static for RISC-V.
    """
    if not sources:
        raise InputError("nothing to compile; give at least one source file")
    for source in sources:
        if not Path(source).is_file():
            raise InputError(f"{source}: there is no such file to compile")
    check_output(output, _PROGRAM, force=force)
    is_cpp = any(str(source).endswith(_CPP_ENDINGS) for source in sources)
    runtime = runtime_folder()
    includes = [f"-I{runtime}", *([f"-I{runtime / 'mpi'}"] if mpi else [])]
    with temporary_folder() as folder:
        library = _mpi_objects(folder, host) if mpi else []
        made = folder / "program"
        _run(
            [
                _compiler("g++" if is_cpp else "gcc", host),
                "-O2",
                "-g1",
                *([] if host else ["-static"]),
                *includes,
                *options,
                *(os.fspath(source) for source in sources),
                *library,
                "-o",
                str(made),
                "-lm",
            ]
        )
        content, mode = made.read_bytes(), made.stat().st_mode
    write_file(output, lambda file: file.write(content), _PROGRAM, force=force, mode=mode)


def _mpi_objects(folder: Path, host: bool) -> list[str]:
    """The MPI library, compiled."""
    runtime = runtime_folder()
    objects = []
    for source in sorted((runtime / "mpi").glob("*.c")):
        target = folder / f"{source.stem}.o"
        _run(
            [_compiler("gcc", host), "-std=c11", "-O2", f"-I{runtime}", "-c", str(source), "-o", str(target)]
        )
        objects.append(str(target))
    return objects


def _compiler(name: str, host: bool) -> str:
    command = name if host else _CROSS + name
    found = shutil.which(command)
    if found is None:
        package = f"{name}-riscv64-linux-gnu" if not host else name
        raise InputError(f"the compiler {command} is not installed (on Debian: apt install {package})")
    return found


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode != 0:
        raise InputError(f"{Path(command[0]).name} failed:\n{result.stderr.strip()}")
