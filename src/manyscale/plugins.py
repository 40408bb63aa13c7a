# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: models and policies that are found by name, in the core, in Python files and in C++ files outside the tree.

Each kind (`model`, `topology`, `prefetcher`, …) has a registry in the core; lists of names come from there. The
environment variable MANYSCALE_PLUGINS names files to load with the package, separated by ":".
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from manyscale import _core
from manyscale.errors import InputError, nearest

VARIABLE = "MANYSCALE_PLUGINS"
_FLAGS = [
    "-std=c++20",
    "-O3",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-include",
    "engine/plugin_export.hpp",
]
_Class = TypeVar("_Class", bound=type)
_loaded: set[str] = set()
_of_python: list[tuple[str, str]] = []


@dataclass(frozen=True)
class Plugin:
    """A plug-in as it registered itself."""

    kind: str
    name: str
    doc: str
    parameters: list[dict[str, Any]]


def kinds() -> list[str]:
    """The kinds of plug-ins there are."""
    return list(_core.plugins())


def plugins(kind: str) -> dict[str, Plugin]:
    """All plug-ins of a kind by name."""
    known = _core.plugins()
    if kind not in known:
        raise InputError(f"there is no kind of plug-in '{kind[:60]}'; {nearest(kind, known)}")
    return {
        name: Plugin(kind, name, entry["doc"], entry["parameters"]) for name, entry in known[kind].items()
    }


def find(kind: str, name: str) -> Plugin:
    """The plug-in of that name; a misspelt one is an error that names the nearest."""
    known = plugins(kind)
    if name not in known:
        raise InputError(f"there is no {kind} '{name[:60]}'; {nearest(name, known)}")
    return known[name]


def register(kind: str, name: str, doc: str) -> Callable[[_Class], _Class]:
    """Decorates a Python class that is a plug-in, such as a prefetcher or a replacement policy."""

    def add(plugin: _Class) -> _Class:
        _core.register_python_plugin(kind, name, doc, plugin)
        _of_python.append((kind, name))
        return plugin

    return add


def python_kinds() -> list[str]:
    """The kinds of plug-ins that can be written in Python."""
    return list(_core.python_plugin_kinds())


def load_plugin(path: str | os.PathLike[str]) -> None:
    """Loads the plug-ins of a file: Python (.py), C++ (.cpp, compiled when it is new) or a shared library (.so).

    A topology with parameters must be loaded before the first machine; MANYSCALE_PLUGINS does that.
    """
    file = Path(path).resolve()
    if str(file) in _loaded:
        return
    if not file.is_file():
        raise InputError(f"there is no plug-in file {path}")
    try:
        if file.suffix == ".py":
            _import(file)
        elif file.suffix == ".cpp":
            _core.load_plugin_library(str(compile_library([file])))
        else:
            _core.load_plugin_library(str(file))
    except (RuntimeError, ValueError) as error:  # what the core says against it
        raise InputError(f"{path}: {error}") from None
    _loaded.add(str(file))


def include_directory() -> Path:
    """The headers of the core, which plug-ins in C++ include."""
    beside = Path(_core.__file__).parent
    return (beside.parents[1] if beside.parent.name == "isa" else beside) / "include"


def compile_library(sources: list[Path]) -> Path:
    """Compiles plug-ins in C++ to a shared library; one that was compiled before is taken from the cache."""
    compiler = os.environ.get("CXX") or "c++"
    if shutil.which(compiler) is None:
        raise InputError(f"a plug-in in C++ needs a compiler, and there is no '{compiler}'; set CXX")
    headers = include_directory()
    digest = hashlib.sha256()
    for file in [*sources, *sorted(headers.rglob("*.hpp"))]:
        digest.update(str(file).encode() + b"\0" + file.read_bytes() + b"\0")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    digest.update(" ".join(_FLAGS).encode() + version)
    library = _cache() / f"{sources[0].stem}-{digest.hexdigest()[:24]}.so"
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder, library.name)
        command = [compiler, *_FLAGS, f"-I{headers}", *map(str, sources), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"{sources[0]} does not compile:\n{done.stderr.strip()}")
        made.rename(library)
    return library


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home, "manyscale", "plugins")


def _import(file: Path) -> None:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    spec.loader.exec_module(module)


@atexit.register
def _remove_python_plugins() -> None:
    """The core outlives the interpreter, so it must not keep objects of it."""
    for kind, name in _of_python:
        _core.remove_plugin(kind, name)
    _of_python.clear()


for _file in filter(None, os.environ.get(VARIABLE, "").split(":")):
    load_plugin(_file)
