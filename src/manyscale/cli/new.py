# SPDX-License-Identifier: Apache-2.0
"""Commands that begin something new: a model or another plug-in, in Python or in C++."""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from manyscale.cli.console import say
from manyscale.cli.options import Quiet
from manyscale.errors import InputError
from manyscale.results.files import FileGroup, FileKind

commands = typer.Typer(name="new", help="Begin something new, from a template that works.")

_TEMPLATES = Path(__file__).with_name("templates")
_CHECKOUT = Path(__file__).resolve().parents[3]
# Longer names would not fit the lines of the templates.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,27}")
_LAYER = re.compile(r"[a-z][a-z0-9_]{0,11}")


class Language(str, Enum):
    """What a model can be written in."""

    python = "python"
    cpp = "c++"


@commands.command()
def model(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Such as ring_buffer; the class is RingBuffer.")
    ],
    language: Annotated[
        Language, typer.Option("--language", "-l", help="Python to try an idea, C++ for speed.")
    ] = Language.python,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            metavar="DIR",
            help="Where to write: for Python any folder (without it, this one), for C++ a checkout of "
            "Manyscale (without it, the one that is installed).",
        ),
    ] = None,
    layer: Annotated[
        str, typer.Option("--layer", help="For C++: the folder of core/ that the model belongs to.")
    ] = "synthetic",
    quiet: Quiet = False,
) -> None:
    """Write a small model that works, and its test, to build on."""
    words = {"name": name, "Name": _class_name(name), "layer": layer}
    if language is Language.python:
        folder = into or Path()
        _check_python_name(name, words["Name"])
        files = {folder / f"{name}.py": "model.py.txt", folder / f"test_{name}.py": "test_model.py.txt"}
        hint = f"Try it: python {folder / name}.py; pytest {folder / f'test_{name}.py'}"
    else:
        root = into or _CHECKOUT
        _check_cpp_name(name, words["Name"], layer, root)
        source, test = root / "core" / layer / name / name, root / "tests" / layer / f"test_{name}.py"
        files = {
            source.with_suffix(".hpp"): "model.hpp.txt",
            source.with_suffix(".cpp"): "model.cpp.txt",
            test: "test_native_model.py.txt",
        }
        hint = f"Try it: make install; manyscale models show {layer}.{name}; pytest {test}"
    _write({path: _filled(template, words) for path, template in files.items()})
    for path in files:
        say(f"Wrote {path}", quiet=quiet)
    say(hint, quiet=quiet)


Name = Annotated[str, typer.Argument(metavar="NAME", help="Such as my_policy; the class is MyPolicy.")]
Folder = Annotated[
    Path | None, typer.Option("--into", metavar="DIR", help="Where to write; without it, this folder.")
]


@commands.command()
def topology(name: Name, into: Folder = None, quiet: Quiet = False) -> None:
    """Write a topology in C++ that works, outside the tree, to build on."""
    _plugin("topology", name, Language.cpp, into, quiet)


@commands.command()
def routing(name: Name, into: Folder = None, quiet: Quiet = False) -> None:
    """Write a routing algorithm in C++ that works, outside the tree, to build on."""
    _plugin("routing", name, Language.cpp, into, quiet)


@commands.command()
def mpi_library(name: Name, into: Folder = None, quiet: Quiet = False) -> None:
    """Write an MPI library's choice of collective algorithms in C++, outside the tree, to build on."""
    _plugin("mpi_library", name, Language.cpp, into, quiet)


@commands.command()
def collective(name: Name, into: Folder = None, quiet: Quiet = False) -> None:
    """Write an algorithm of a collective operation in C++ that works, outside the tree, to build on."""
    _plugin("collective", name, Language.cpp, into, quiet)


@commands.command()
def replacement(
    name: Name,
    language: Annotated[Language, typer.Option("--language", "-l", help="C++ is fast.")] = Language.cpp,
    into: Folder = None,
    quiet: Quiet = False,
) -> None:
    """Write a replacement policy of caches that works, outside the tree, to build on."""
    _plugin("replacement", name, language, into, quiet)


@commands.command()
def prefetcher(
    name: Name,
    language: Annotated[Language, typer.Option("--language", "-l", help="C++ is fast.")] = Language.cpp,
    into: Folder = None,
    quiet: Quiet = False,
) -> None:
    """Write a prefetcher of caches that works, outside the tree, to build on."""
    _plugin("prefetcher", name, language, into, quiet)


def _plugin(template: str, name: str, language: Language, into: Path | None, quiet: bool) -> None:
    words = {"name": name, "Name": _class_name(name)}
    if language is Language.python:
        _check_python_name(name, words["Name"])
    suffix = "py" if language is Language.python else "cpp"
    path = (into or Path()) / f"{name}.{suffix}"
    _write({path: _filled(f"{template}.{suffix}.txt", words)})
    say(f"Wrote {path}", quiet=quiet)
    say(f"Try it: MANYSCALE_PLUGINS={path} manyscale plugins", quiet=quiet)


def _class_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"'{name[:60]}' is no name for a model: use letters, digits and _, a letter first, at most 28, "
            "such as ring_buffer"
        )
    return "".join(word[0].upper() + word[1:] for word in name.split("_") if word)


def _check_python_name(name: str, class_name: str) -> None:
    if keyword.iskeyword(name) or keyword.iskeyword(class_name):
        raise InputError(f"'{name}' is a word of Python itself; choose another, such as my_{name}")
    if name in sys.stdlib_module_names or name in ("manyscale", "pytest"):
        raise InputError(f"{name}.py would hide the module '{name}'; choose another, such as my_{name}")


def _check_cpp_name(name: str, class_name: str, layer: str, root: Path) -> None:
    core = root / "core"
    if not (core / "engine" / "component.hpp").is_file():
        raise InputError(
            f"a model in C++ is part of the core, and {root} is no checkout of Manyscale: "
            "clone the repository and give --into CHECKOUT, or write the model in Python, anywhere"
        )
    if not _LAYER.fullmatch(layer):
        raise InputError(
            f"'{layer[:60]}' is no name for a layer: use small letters, digits and _, at most 12"
        )
    if (core / layer / name).exists():
        raise InputError(f"{core / layer / name} exists already; choose another name")
    taken = re.compile(rf"^\s*(?:class|struct|enum class|using) {class_name}\b", re.MULTILINE)
    for header in sorted([*core.glob("engine/*.hpp"), *core.glob(f"{layer}/**/*.hpp")]):
        if taken.search(header.read_text(encoding="utf-8")):
            raise InputError(
                f"the class would be {class_name}, which {header} has already; choose another name"
            )


def _filled(template: str, words: Mapping[str, str]) -> str:
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def _write(files: Mapping[Path, str]) -> None:
    """Writes all files or, if one of them exists, none."""
    for path in files:
        if path.exists():
            raise InputError(f"{path} exists already; choose another name or delete it")
    folder = Path(os.path.commonpath([path.parent for path in files]))
    with FileGroup(folder, FileKind.magic("a source file", b"")) as group:
        for path, text in files.items():
            group.add(str(path.relative_to(folder)), lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
