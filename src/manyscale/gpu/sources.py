# SPDX-License-Identifier: Apache-2.0
"""Sources of PTX: files, text, CUDA C++ that is compiled, kernels of Triton and Numba.

Triton and Numba are recognised by what their objects offer; neither is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyscale.errors import InputError

from .cuda_compiler import compile_cuda

_PTX_TEXT = re.compile(r"^\s*\.version\s", re.M)
_CUDA_TEXT = re.compile(r"\b__(global|device)__\b")
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"\n]*)"', re.M)
_LONGEST_PATH = 4096
_ELF = b"\x7fELF"


def ptx_of(source: Any, *, target: str | None = None) -> tuple[bytes, str]:
    """The PTX text of a source, and a name for it in messages.

    `source` is the path of a file with PTX or, named `.cu`, with CUDA C++; a text of either; a kernel compiled by
    Triton; or a kernel compiled by Numba, or what `numba.cuda.compile_ptx` returns. `target` says what CUDA C++ is
    compiled for.
    """
    if isinstance(source, bytes):
        return source, "<ptx>"
    if isinstance(source, str) and _is_text(source):
        if is_cuda_source(source):
            return _without_folders(compile_cuda(source.encode(), "source.cu", None, target)), "source.ptx"
        return source.encode(), "<ptx>"
    if isinstance(source, str | os.PathLike):
        return _from_file(Path(source), target)
    return _from_front_end(source)


def is_cuda_source(source: Any) -> bool:
    """Whether a source is CUDA C++: a file named `.cu`, or text."""
    if isinstance(source, str) and _is_text(source):
        return bool(_CUDA_TEXT.search(source)) and not _PTX_TEXT.search(source)
    return isinstance(source, str | os.PathLike) and Path(source).suffix == ".cu"


def code_files(source: Any, ptx: bytes, name: str) -> dict[str, bytes]:
    """A module's PTX, and its CUDA C++ where that is the source, as files of a run directory."""
    stem = name.removesuffix(".ptx").strip("<>") or "module"
    files = {f"ptx/{stem.replace('/', '-')}.ptx": ptx}
    if is_cuda_source(source):
        is_path = not (isinstance(source, str) and _is_text(source))
        files[f"sources/{Path(source).name if is_path else 'source.cu'}"] = (
            Path(source).read_bytes() if is_path else source.encode()
        )
    return files


def cubin_of(source: Any) -> tuple[bytes, str] | None:
    """The contents and the name of a source that is a cubin; None if it is something else."""
    if isinstance(source, bytes):
        return (source, "<cubin>") if source.startswith(_ELF) else None
    if isinstance(source, str | os.PathLike) and not (isinstance(source, str) and _is_text(source)):
        path = Path(source)
        try:
            with path.open("rb") as file:
                if file.read(len(_ELF)) != _ELF:
                    return None
            return path.read_bytes(), path.name
        except OSError:
            return None
    return None


def _is_text(source: str) -> bool:
    return not source or "\n" in source or bool(_PTX_TEXT.search(source)) or len(source) > _LONGEST_PATH


def _from_file(path: Path, target: str | None) -> tuple[bytes, str]:
    if not path.is_file():
        raise InputError(
            f"{path}: there is no such file" if not path.is_dir() else f"{path}: this is a folder"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if path.suffix == ".cu":
        ptx = compile_cuda(data, path.name, path.resolve().parent, target)
        return _without_folders(
            ptx
        ), f"{path.stem}.ptx"  # so that messages distinguish lines of PTX and of the source
    if b"\0" in data:
        raise InputError(f"{path.name}: this is not text; give a file with PTX, or CUDA C++ named .cu")
    return data, path.name


def _from_front_end(source: Any) -> tuple[bytes, str]:
    """The PTX of a kernel that Triton or Numba has compiled."""
    ptx, name = None, ""
    kind = type(source).__module__.partition(".")[0]
    name = getattr(source, "__name__", None) or getattr(source, "name", None) or ""
    if isinstance(source, tuple) and source and isinstance(source[0], str):
        ptx, kind = source[0], "numba"
    elif isinstance(asm := getattr(source, "asm", None), Mapping) and "ptx" in asm:
        ptx = asm["ptx"]
    elif callable(inspect := getattr(source, "inspect_asm", None)):
        ptx = _only_signature(inspect(), name)
    elif kind == "triton":
        raise InputError("a Triton kernel must be compiled first: give what triton.compile(…) returns")
    if not isinstance(ptx, str | bytes):
        raise InputError(
            f"{type(source).__name__} is no source of PTX; give the path of a .ptx or .cu file, PTX or CUDA C++ text, "
            "a kernel compiled by Triton or Numba, or what numba.cuda.compile_ptx returns"
        )
    text = ptx if isinstance(ptx, bytes) else ptx.encode()
    return _without_folders(text), "<" + f"{kind} {name}".strip() + ">"


def _only_signature(found: Any, name: str) -> Any:
    """Numba has a text for each signature that a kernel was compiled for."""
    if not isinstance(found, Mapping):
        return found
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise InputError(
            f"the Numba kernel {name} is not compiled for any signature yet; without a GPU, "
            "numba.cuda.compile_ptx(function, signature, cc=(8, 0)) compiles it"
        )
    signatures = ", ".join(str(signature) for signature in found)
    raise InputError(
        f"the Numba kernel {name} is compiled for several signatures ({signatures}); "
        "choose one with kernel.inspect_asm(signature)"
    )


def _without_folders(ptx: bytes) -> bytes:
    """The PTX with names of source files for messages: without folders of the host."""
    text = ptx.decode("utf-8", "surrogateescape")
    shortened = _FILE.sub(lambda found: f'{found[1]}"{Path(found[2]).name}"', text)
    return shortened.encode("utf-8", "surrogateescape")
