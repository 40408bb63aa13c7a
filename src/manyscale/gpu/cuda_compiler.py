# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ to PTX: by nvcc if it is there, otherwise by NVRTC, a library that comes as a Python package.

Neither needs a GPU. Nothing is written outside of a temporary folder.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manyscale.errors import InputError
from manyscale.guard import temporary_folder

DEFAULT_TARGET = "sm_80"

_INVALID_OPTION = 5  # nvrtcResult: of our options, only the architecture may not be supported

_TARGET = re.compile(r"(?:sm|compute)_(\d+[af]?)")
_OPTIONS = ("-std=c++17", "-lineinfo")
_INSTALL = "pip install 'manyscale[cuda]' brings a compiler (NVRTC), or put nvcc on the PATH"

# Within the folder `nvidia` of Python's packages: the library and the folders of its headers. CUDA 12 goes first, since
# it still supports GPUs before Turing.
_NVRTC = {
    "cuda_nvrtc/lib/libnvrtc.so.12": tuple(
        f"{package}/include" for package in ("cuda_runtime", "cuda_cccl", "cuda_nvcc", "curand")
    ),
    "cu13/lib/libnvrtc.so.13": ("cu13/include", "cu13/include/cccl"),
}

# NVRTC does not have the headers of the host, but has most of what kernels want of them built in. `namespace std` gets
# the names of `cuda::std`.
_STANDARD = "#pragma once\n#include <cuda/std/{0}>\nnamespace std {{ using namespace cuda::std; }}\n"
_SUBSTITUTES = {
    **dict.fromkeys(("cassert", "cstdio", "cstdlib", "cstring", "iostream"), ""),
    **dict.fromkeys(("assert.h", "stdio.h", "stdlib.h", "string.h"), ""),
    **{f"{name}.h": f"#include <cuda/std/c{name}>\n" for name in ("float", "limits", "stddef", "stdint")},
    **{name: f"#include <cuda/std/{name}>\n" for name in ("cfloat", "climits")},
    **{
        name: _STANDARD.format(name)
        for name in ("array", "cmath", "cstddef", "cstdint", "limits", "tuple", "type_traits", "utility")
    },
    "math.h": "#include <cmath>\n",
}


class NoCompilerError(InputError):
    """No compiler of CUDA C++ is installed."""


class _UnableError(Exception):
    """A compiler that does not work here, or does not support the target; another may."""


def compile_cuda(text: bytes, name: str, folder: Path | None, target: str | None) -> bytes:
    """The PTX of CUDA C++ source; what does not compile is an `InputError` with the messages of the compiler.

    `name` is the file's; `folder` is where it and its headers lie, None if there is only the text; `target` is a GPU
    such as "sm_90".
    """
    architecture = _architecture(target, name)
    reasons: list[str] = []
    for compiler in _compilers():
        try:
            return compiler.compile(text, name, folder, architecture)
        except _UnableError as error:
            reasons.append(str(error))
    if not reasons:
        raise NoCompilerError(f"{name}: this is CUDA C++; {_INSTALL}")
    if _find_nvrtc() is None:
        reasons.append("pip install 'manyscale[cuda]' brings a compiler with other targets (NVRTC)")
    raise InputError(f"{name}: " + "\n".join(reasons))


def _architecture(target: str | None, name: str) -> str:
    found = _TARGET.fullmatch(target or DEFAULT_TARGET)
    if found is None:
        raise InputError(f"{name}: {target!r} is not a target; write it like {DEFAULT_TARGET}")
    return f"compute_{found[1]}"


def _compilers() -> Iterator[_Nvcc | _Nvrtc]:
    command = shutil.which("nvcc")
    if command is not None:
        yield _Nvcc(command)
    nvrtc = _find_nvrtc()
    if nvrtc is not None:
        yield nvrtc


class _Nvcc:
    """The compiler driver of a CUDA toolkit."""

    def __init__(self, command: str) -> None:
        self._command = command

    def compile(self, text: bytes, name: str, folder: Path | None, architecture: str) -> bytes:
        with temporary_folder() as temporary:
            out = temporary / "out.ptx"
            if folder is None:
                (temporary / name).write_bytes(text)
            arguments = [
                self._command,
                "-ptx",
                f"-arch={architecture}",
                *_OPTIONS,
                "-I.",
                "-o",
                str(out),
                name,
            ]
            done = subprocess.run(
                arguments,
                cwd=folder or temporary,
                env=_plain_environment() | {"TMPDIR": str(temporary)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            log = (done.stderr + done.stdout).replace(f"{temporary}/", "").strip()
            if done.returncode == 0:
                return out.read_bytes()
        if "nvcc fatal" in log:
            raise _UnableError(f"nvcc cannot compile it for {architecture}:\n{log}")
        raise InputError(f"{name} does not compile:\n{log}")


def _plain_environment() -> dict[str, str]:
    """Without what is loaded into other programs: a compiler is not simulated, and crashes with a sanitizer in it."""
    return {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "LD_AUDIT")}


class _Nvrtc:
    """The run-time compiler, which compiles device code only."""

    def __init__(self, library: ctypes.CDLL, includes: Sequence[Path]) -> None:
        self._library = library
        self._includes = includes

    def compile(self, text: bytes, name: str, folder: Path | None, architecture: str) -> bytes:
        folders = [*([] if folder is None else [folder]), *self._includes]
        options = [f"--gpu-architecture={architecture}", *_OPTIONS, *(f"-I{path}" for path in folders)]
        program = ctypes.c_void_p()
        created = self._library.nvrtcCreateProgram(
            ctypes.byref(program),
            text,
            name.encode(),
            len(_SUBSTITUTES),
            _strings(_SUBSTITUTES.values()),
            _strings(_SUBSTITUTES),
        )
        if created:
            raise _UnableError(f"NVRTC cannot begin: {self._error(created)}")
        try:
            failed = self._library.nvrtcCompileProgram(program, len(options), _strings(options))
            if failed:
                raise self._failure(failed, self._text("ProgramLog", program), name, folder, architecture)
            return self._text("PTX", program)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _failure(
        self, code: int, log: bytes, name: str, folder: Path | None, architecture: str
    ) -> InputError | _UnableError:
        message = log.decode(errors="replace").strip()
        for path in (folder, *self._includes):
            message = message.replace(f"{path}/", "")
        if code == _INVALID_OPTION:
            return _UnableError(
                f"NVRTC cannot compile it for {architecture}; it does not support this target"
            )
        if "JIT mode" in message:
            message += "\nNVRTC compiles what runs on the device only; for a file with host code, put nvcc on the PATH"
        return InputError(f"{name} does not compile:\n{message or self._error(code)}")

    def _text(self, kind: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        getattr(self._library, f"nvrtcGet{kind}")(program, buffer)
        return buffer.value

    def _error(self, code: int) -> str:
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return str(self._library.nvrtcGetErrorString(code).decode())


def _strings(values: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [value.encode() for value in values]
    return (ctypes.c_char_p * len(encoded))(*encoded)


@functools.cache
def _find_nvrtc() -> _Nvrtc | None:
    """NVRTC among the packages of this Python, with the headers that lie beside it."""
    found = importlib.util.find_spec("nvidia")
    packages = [Path(package) for package in (found.submodule_search_locations or [] if found else [])]
    for library, headers in _NVRTC.items():
        for package in packages:
            try:
                loaded = ctypes.CDLL(str(package / library))
            except OSError:
                continue
            folders = [package / name for package in packages for name in headers]
            return _Nvrtc(loaded, [folder for folder in folders if folder.is_dir()])
    return None
