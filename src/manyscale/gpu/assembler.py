# SPDX-License-Identifier: Apache-2.0
"""ptxas, NVIDIA's assembler: PTX to cubins whose line tables name the line of PTX of each SASS instruction.

It needs no GPU, and comes with the package on the platforms that it exists for. Cubins are kept in the user's cache
folder (see `cubin_cache`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from manyscale.errors import InputError
from manyscale.guard import temporary_folder

from . import cubin_cache

OLDEST_ARCHITECTURE = 70  # the first whose SASS is read
NEWEST_ARCHITECTURE = 90

_PACKAGE = "nvidia-cuda-nvcc-cu12"
_INSTALL = f"pip install {_PACKAGE} brings one (ptxas of CUDA 12), or put ptxas on the PATH"
_ARCHITECTURE = re.compile(r"(?:sm|compute)_(\d+)([af]?)")
_TARGET = re.compile(rb"^([ \t]*\.target[ \t]+)sm_(\d+)[af]?([^\n]*)", re.MULTILINE)
_VERSION = re.compile(rb"^([ \t]*\.version[ \t]+)\d+\.\d+", re.MULTILINE)
_KNOWN_VERSION = re.compile(r"Unsupported \.version .*current version is '(\d+\.\d+)'")
_RELEASE = re.compile(r"\bV(\d+(?:\.\d+)+)")
# Increased whenever the input of the assembler changes, so that older results are not used.
_INPUT_VERSION = 2
ANY_ASSEMBLER = "any"
NO_ASSEMBLER = "none"


class NoAssemblerError(InputError):
    """ptxas is not installed."""


class OtherAssemblerError(InputError):
    """The machine states another version of ptxas than the one that is installed."""


class AssemblyError(InputError):
    """The assembler refuses the module for this GPU."""


def assemble(ptx: bytes, name: str, architecture: str) -> bytes:
    """The cubin of a module of PTX for an architecture such as "sm_70", with a line table of the lines of PTX.

    `name` is the module's name in messages. A module that was written for a newer GPU or a newer version of PTX is
    assembled as one for this GPU, as long as it uses no feature that is missing there.
    """
    number, suffix = _architecture(architecture, name)
    assembler = find_assembler()
    if assembler is None:
        raise NoAssemblerError(f"{name}: SASS needs an assembler; {_INSTALL}")
    options = (f"-arch=sm_{number}{suffix}", "-lineinfo")
    key = cubin_cache.key(ptx, (_INPUT_VERSION, options, assembler_version()))
    kept = cubin_cache.read(key)
    if kept is None:
        kept = _run(assembler, options, _for_architecture(with_line_marks(ptx), number, suffix))
        cubin_cache.write(key, kept)
    if isinstance(kept, str):
        raise AssemblyError(f"{name}: the assembler refuses it ({' '.join(options)}):\n{kept}")
    return kept


def find_assembler() -> Path | None:
    """The assembler: the one that came as a Python package, else the one on the PATH; None if there is neither."""
    found = _packaged_assembler()
    if found is not None:
        return found
    command = shutil.which("ptxas")
    return None if command is None else Path(command)


def assembler_version() -> str | None:
    """The version of the assembler, such as "12.9.86"; None: there is no assembler."""
    assembler = find_assembler()
    if assembler is None:
        return None
    if assembler == _packaged_assembler():
        with contextlib.suppress(ValueError):  # its folder says so; quicker than starting it
            return _packaged_version(assembler)
    about = assembler.stat()
    return _version_of(assembler, about.st_size, about.st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _packaged_version(assembler: Path) -> str:
    name = "nvidia_cuda_nvcc_cu12" if assembler.parents[1].name == "cuda_nvcc" else "nvidia_cuda_nvcc"
    (package,) = assembler.parents[3].glob(f"{name}-*.dist-info")
    return package.name.removesuffix(".dist-info").partition("-")[2]


@functools.lru_cache(maxsize=8)
def _version_of(assembler: Path, size: int, changed: int) -> str:
    done = subprocess.run([str(assembler), "--version"], capture_output=True, text=True, check=False)
    found = _RELEASE.search(done.stdout)
    return found[1] if found else "unknown"


def require_version(wanted: str, name: str) -> None:
    """Refuses to assemble a module with another version of ptxas than the machine states ("any": each is right)."""
    if wanted == ANY_ASSEMBLER:
        return
    if wanted == NO_ASSEMBLER:
        raise NoAssemblerError(
            f'{name}: the machine states that there is no assembler: gpu.assembler = "none"'
        )
    there = assembler_version()
    if there != wanted:
        found = "none is installed" if there is None else f"ptxas {there} is installed"
        raise OtherAssemblerError(
            f"{name}: the machine states ptxas {wanted} (gpu.assembler), and {found}, whose SASS may take other times; "
            f"pip install {_PACKAGE}=={wanted}, or take another with --set gpu.assembler=any"
        )


def can_assemble_for(architecture: str | None) -> bool:
    """Whether SASS of that architecture can be read."""
    found = _ARCHITECTURE.fullmatch(architecture or "")
    return found is not None and OLDEST_ARCHITECTURE <= int(found[1]) <= NEWEST_ARCHITECTURE


@functools.lru_cache(maxsize=1)
def _packaged_assembler() -> Path | None:
    with contextlib.suppress(ImportError):
        package = importlib.util.find_spec("nvidia")
        for folder in () if package is None else package.submodule_search_locations or ():
            for inner in ("cuda_nvcc", "cu13"):
                candidate = Path(folder) / inner / "bin" / "ptxas"
                if os.access(candidate, os.X_OK):
                    return candidate
    return None


def _architecture(wanted: str, name: str) -> tuple[int, str]:
    found = _ARCHITECTURE.fullmatch(wanted)
    if found is None:
        raise InputError(f"{name}: {wanted!r} is not a GPU architecture; write it like sm_80")
    number = int(found[1])
    if not OLDEST_ARCHITECTURE <= number <= NEWEST_ARCHITECTURE:
        raise InputError(
            f"{name}: SASS of sm_{number} cannot be read; "
            f"sm_{OLDEST_ARCHITECTURE} to sm_{NEWEST_ARCHITECTURE} can"
        )
    return number, found[2]


def _for_architecture(ptx: bytes, number: int, suffix: str) -> bytes:
    """The module with a target that is not beyond this GPU, and without full debugging (which hinders optimisation)."""

    def lowered(found: re.Match[bytes]) -> bytes:
        target = b"%ssm_%d%s" % (found[1], min(int(found[2]), number), suffix.encode())
        return target + re.sub(rb",[ \t]*debug\b", b"", found[3])

    return _TARGET.sub(lowered, ptx, count=1)


def _run(assembler: Path, options: tuple[str, ...], ptx: bytes) -> bytes | str:
    """The cubin, or the reasons of the assembler for making none."""
    done, made = _attempt(assembler, options, ptx)
    older = _KNOWN_VERSION.search(done)
    if made is None and older is not None:
        done, made = _attempt(assembler, options, _VERSION.sub(rb"\g<1>" + older[1].encode(), ptx, count=1))
    if made is None:
        return "\n".join(line for line in done.splitlines() if line.strip()) or "it gave no reason"
    return made


def _attempt(assembler: Path, options: tuple[str, ...], ptx: bytes) -> tuple[str, bytes | None]:
    """The messages of the assembler and the cubin, None if it failed."""
    with temporary_folder() as folder:
        source, result = folder / "module.ptx", folder / "module.cubin"
        source.write_bytes(ptx)
        done = subprocess.run(
            [str(assembler), *options, "-o", str(result), str(source)],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        messages = (done.stderr + done.stdout).replace(f"{folder}/", "")
        if done.returncode != 0 or not result.is_file():
            return messages, None
        return messages, result.read_bytes()


# Tokens of PTX, as far as finding the starts of instructions needs them.
_TOKEN = re.compile(
    rb"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
       | (?P<string>"[^"\n]*")
       | (?P<word>[.%$@!A-Za-z_][\w.$%@!]*)
       | (?P<mark>[{};:()])
       | (?P<other>[^\s{};:()"A-Za-z_.%$@!]+|.)""",
    re.VERBOSE | re.DOTALL,
)


def with_line_marks(ptx: bytes) -> bytes:
    """The module with a `.loc` of its own line before each instruction, in place of the line marks it came with."""
    out: list[bytes] = []
    copied = 0
    for start, end, line in _marks(ptx):
        out.append(ptx[copied:start])
        copied = end
        if line is not None:
            out.append(b"\n.loc 1 %d 0\n" % line)
    out.append(ptx[copied:])
    marked = b"".join(out)
    # The file that all marks name goes after the three directives that must come first.
    header_end = 0
    for found in re.finditer(rb"^[ \t]*\.(?:version|target|address_size)\b[^\n]*\n", marked, re.MULTILINE):
        header_end = found.end()
    return marked[:header_end] + b'.file 1 "module.ptx"\n' + marked[header_end:]


def _marks(ptx: bytes) -> Iterator[tuple[int, int, int | None]]:
    """Pieces to change: (start, end, line) with a line for a mark that goes there, None for text that goes away."""
    depth = 0  # of braces within a function's body
    in_function = False  # between `.entry` or `.func` and its body or semicolon
    fresh = True  # a statement begins here
    line, counted = 1, 0
    tokens = _TOKEN.finditer(ptx)
    for token in tokens:
        kind, text, start = token.lastgroup, token.group(), token.start()
        if kind == "blank":
            continue
        if kind == "mark":
            if text == b"{" and (depth > 0 or in_function):
                # Braces within a statement hold the registers of a vector.
                if fresh or depth == 0:
                    depth += 1
                    fresh = True
                    in_function = False
                continue
            if text == b"}" and fresh and depth > 0:
                depth -= 1
            elif text == b";":
                fresh = True
                in_function = False
            continue
        if not fresh and not (depth == 0 and kind == "word"):
            continue
        if text in (b".file", b".loc"):
            end = ptx.find(b"\n", start)
            yield start, len(ptx) if end < 0 else end, None
            _skip_to(tokens, len(ptx) if end < 0 else end)
        elif depth == 0:
            if text in (b".entry", b".func"):
                in_function = True
            elif text == b".section":
                end = ptx.find(b"}", start)
                yield start, len(ptx) if end < 0 else end + 1, None
                _skip_to(tokens, len(ptx) if end < 0 else end + 1)
            fresh = False
        elif kind == "word" and _is_label(ptx, token.end()):
            next(tokens)
        else:
            fresh = False
            if not text.startswith(b"."):
                line += ptx.count(b"\n", counted, start)
                counted = start
                yield start, start, line


def _is_label(ptx: bytes, end: int) -> bool:
    """Whether the word that ends there is one; two colons belong to a name such as `.shared::cta`."""
    return ptx[end : end + 1] == b":" and ptx[end + 1 : end + 2] != b":"


def _skip_to(tokens: Iterator[re.Match[bytes]], end: int) -> None:
    for token in tokens:
        if token.end() >= end:
            return
