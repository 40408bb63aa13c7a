# SPDX-License-Identifier: Apache-2.0
"""How a program gets the simulator's CUDA libraries, whichever of NVIDIA's it was built with."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from manyscale.errors import InputError

INTERPOSER = "libmanyscale-interposer.so"
"""The library that replaces runtimes of NVIDIA while programs are loaded."""
NVTX_TOOL = "libmanyscale-nvtx.so"
"""The library by which NVTX says in which ranges a program is."""
HOST_CLOCK = "libmanyscale-hostclock.so"
"""The library with the clocks of programs in simulated time."""
STATIC_ARCHIVES = "MANYSCALE_CUDART_STATIC"
"""The variable with the runtimes for linking (`libcudart_static.a`) that stripped programs are compared with."""

_ARCHIVE = "libcudart_static.a"
_TOOLKIT_FOLDERS = ("lib64", "lib", "lib/x86_64-linux-gnu", "targets/x86_64-linux/lib")


def library_folder() -> Path:
    """The folder of the CUDA runtime that programs load."""
    folder = Path(os.environ.get("MANYSCALE_CUDART") or str(files("manyscale") / "cudart"))
    if not any(folder.glob("libcudart.so*")):
        raise InputError(f"the simulator's CUDA runtime is not in {folder}; install the package again")
    return folder


def loader_variables(
    folder: Path,
    static_runtime: str | None = None,
    *,
    program: Path | None = None,
    host_clock: bool = False,
    operators: bool = False,
) -> dict[str, str]:
    """What has to stand first in each variable, before a colon.

    `static_runtime`: the library that replaces the runtime in a program. It is loaded before others, since it also
    stands before some functions of the C library. `program`: what is started, whose packages may have runtimes to
    compare with. `host_clock`: clocks tell simulated time. `operators`: those of PyTorch are NVTX ranges.
    """
    variables = {"LD_LIBRARY_PATH": str(folder)}
    if (folder / INTERPOSER).exists():
        variables["LD_AUDIT"] = str(folder / INTERPOSER)
        if archives := static_archives(program):
            variables[STATIC_ARCHIVES] = archives
    preloaded = [static_runtime] if static_runtime is not None else []
    if host_clock:
        preloaded.append(str(folder / HOST_CLOCK))
    if preloaded:
        variables["LD_PRELOAD"] = ":".join(preloaded)
    if operators:
        variables["PYTHONPATH"] = str(files("manyscale") / "cuda" / "startup")
    return variables


def nvtx_variable(folder: Path) -> dict[str, str]:
    """What makes NVTX load the simulator's tool."""
    tool = folder / NVTX_TOOL
    return {"NVTX_INJECTION64_PATH": str(tool)} if tool.exists() else {}


def put_first(variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """These variables with what an environment has after them."""
    return {
        name: f"{value}:{environment[name]}" if environment.get(name) else value
        for name, value in variables.items()
    }


def find_static_runtime(path: Path) -> str | None:
    """The simulator's library for the runtime in a stripped program; None if none that is installed is in it."""
    interposer = library_folder() / INTERPOSER
    if not interposer.exists():
        return None
    find = ctypes.CDLL(str(interposer)).manyscale_find_runtime
    find.restype = ctypes.c_char_p
    archives = ":".join(filter(None, (static_archives(path), os.environ.get(STATIC_ARCHIVES))))
    found: bytes | None = find(os.fsencode(path), os.fsencode(archives))
    return None if found is None else found.decode()


@functools.cache
def static_archives(program: Path | None = None) -> str:
    """The runtimes for linking on this computer: of toolkits, and of packages of Python, also those of a program that
    is a Python, or beside a library."""
    found = {str(archive.resolve()) for archive in _archives(program)}
    return ":".join(sorted(path for path in found if ":" not in path))


def _archives(program: Path | None) -> Iterator[Path]:
    toolkits = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    if compiler := shutil.which("nvcc"):
        toolkits.append(Path(compiler).resolve().parents[1])
    toolkits += [*Path("/usr/local").glob("cuda*"), *Path("/opt").glob("cuda*"), Path("/usr")]
    candidates = [toolkit / folder / _ARCHIVE for toolkit in toolkits for folder in _TOOLKIT_FOLDERS]
    yield from (file for file in candidates if file.is_file())
    for folder in (*map(Path, sys.path), *(_packages_of(program) if program is not None else ())):
        yield from folder.glob(f"nvidia/*/lib/{_ARCHIVE}")


def _packages_of(program: Path) -> Iterator[Path]:
    """The folders of the packages that a Python, or a library of a package, is installed with."""
    if program.name.startswith("python"):
        yield from program.parents[1].glob("lib/python*/site-packages")
    yield from (folder for folder in program.parents if folder.name in ("site-packages", "dist-packages"))
