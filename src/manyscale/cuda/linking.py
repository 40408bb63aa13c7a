# SPDX-License-Identifier: Apache-2.0
"""Linking of PTX modules: programs made of several files that share device functions and variables (-rdc=true).

The modules become one text. Local names that two modules have are renamed; of several `.weak` or `.common` definitions,
the first is kept. Link-time optimisation is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.S)
_STRING = rb'"(?:[^"\\\n]|\\.)*"'
_WORD = rb"[A-Za-z_$%][A-Za-z0-9_$]*"
_TOKEN = re.compile(_STRING + rb"|" + rb"\.?" + _WORD + rb"|[{}();=\[\]<>,]|[^\s{}();=\[\]<>,\"]+")
_NAME = re.compile(_STRING + rb"|(?<![A-Za-z0-9_$%.])([A-Za-z_$%][A-Za-z0-9_$]*)")
_VERSION = re.compile(rb"^\s*\.version\s+(\d+)\.(\d+)", re.M)
_TARGET = re.compile(rb"^\s*\.target\s+([^\n;]+)", re.M)
_ARCHITECTURE = re.compile(rb"sm_(\d+)")
_FILE = re.compile(rb"(\.file\s+)(\d+)(?=\s)")
_LOC = re.compile(rb"(\.loc\s+)(\d+)(?=\s)|(\bfunction_name\s+[^,;\n]+,\s*inlined_at\s+)(\d+)(?=\s)")
_LINKAGES = (b".visible", b".extern", b".weak", b".common")
_SPACES = (b".global", b".const", b".shared", b".local", b".tex")
_HEADERS = (b".version", b".target", b".address_size")
_CALLED_FROM_DEVICE = b"cudaCDP2"  # of the device runtime: kernels that launch kernels


@dataclass
class Definition:
    """One top-level statement of a module: a variable, a function, or something else that has no name."""

    text: bytes
    name: bytes = b""
    linkage: bytes = b""  # b"" for local
    is_function: bool = False
    is_entry: bool = False
    has_body: bool = False


@dataclass
class ModuleText:
    """A module divided into its top-level statements."""

    definitions: list[Definition] = field(default_factory=list)
    version: tuple[int, int] = (0, 0)
    target: bytes = b""


def link(texts: Sequence[bytes]) -> bytes:
    """One module out of several."""
    modules = [split(text) for text in texts]
    modules = [module for module in modules if not _is_device_runtime(module)] or modules
    if len(modules) == 1 and len(texts) == 1:
        return texts[0]
    newest = max(modules, key=lambda module: module.version)
    target = max((module.target for module in modules), key=_architecture)
    parts = [b".version %d.%d\n.target %s\n.address_size 64\n" % (*newest.version, target)]
    kept: set[bytes] = set()  # names that have a definition
    declared: set[bytes] = set()
    private = _clashing(modules)
    files = 0
    for number, module in enumerate(modules):
        renamed = {name: b"%s__module_%d" % (name, number) for name in private.get(number, ())}
        most = 0
        for definition in module.definitions:
            if definition.name and definition.name not in renamed and definition.linkage:
                defines = definition.has_body or (
                    not definition.is_function and definition.linkage != b".extern"
                )
                if defines and definition.name in kept:
                    continue
                if not defines and definition.name in declared | kept:
                    continue
                (kept if defines else declared).add(definition.name)
            text = _renamed(definition.text, renamed)
            text, largest = _renumbered(text, files)
            most = max(most, largest)
            parts.append(text)
        files += most
    return b"\n".join(parts) + b"\n"


def _is_device_runtime(module: ModuleText) -> bool:
    """Whether it is of libcudadevrt, which nvcc adds to each program with relocatable code."""
    return any(
        definition.name.startswith(_CALLED_FROM_DEVICE) or definition.name.startswith(b"__cudaCDP2")
        for definition in module.definitions
        if definition.has_body
    ) or any(
        definition.is_entry and definition.name.startswith(b"__cdp_") for definition in module.definitions
    )


def _architecture(target: bytes) -> int:
    found = _ARCHITECTURE.search(target)
    return int(found[1]) if found else 0


def _clashing(modules: Sequence[ModuleText]) -> dict[int, set[bytes]]:
    """Local names that another module has too, by module."""
    users: dict[bytes, set[int]] = {}
    for number, module in enumerate(modules):
        for definition in module.definitions:
            if definition.name:
                users.setdefault(definition.name, set()).add(number)
    private: dict[int, set[bytes]] = {}
    for number, module in enumerate(modules):
        for definition in module.definitions:
            if definition.name and not definition.linkage and len(users[definition.name]) > 1:
                private.setdefault(number, set()).add(definition.name)
    return private


def _renamed(text: bytes, names: dict[bytes, bytes]) -> bytes:
    if not names:
        return text
    return _NAME.sub(lambda found: names.get(found[1], found[0]) if found[1] else found[0], text)


def _renumbered(text: bytes, offset: int) -> tuple[bytes, int]:
    """Renumbers the source files of a module after those of others; returns the largest number, too."""
    numbers = [int(found[2]) for found in _FILE.finditer(text)]
    if offset:
        text = _FILE.sub(lambda found: found[1] + b"%d" % (int(found[2]) + offset), text)
        text = _LOC.sub(
            lambda found: (found[1] or found[3]) + b"%d" % (int(found[2] or found[4]) + offset), text
        )
    return text, max(numbers, default=0)


def split(text: bytes) -> ModuleText:
    """Divides the text of a module into its top-level statements."""
    text = _COMMENT.sub(b" ", text)
    module = ModuleText()
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version:
        module.version = (int(version[1]), int(version[2]))
    if target:
        module.target = target[1].strip()
    begin: int | None = None
    depth = 0
    words: list[bytes] = []
    ends_with_line = False
    line_end = 0
    for found in _TOKEN.finditer(text):
        token, at = found[0], found.start()
        if begin is not None and ends_with_line and at >= line_end:
            _add(module, text[begin:line_end], words, False)
            begin = None
        if begin is None:
            begin, words = at, []
            ends_with_line = token in _HEADERS or token in (b".file", b".loc", b".pragma", b".section")
            line_end = text.find(b"\n", at)
            line_end = len(text) if line_end < 0 else line_end
            if token == b".section":  # it has braces and no names
                ends_with_line = False
        if depth == 0:
            words.append(token)
        if token == b"{":
            depth += 1
        elif token == b"}":
            depth -= 1
            if depth <= 0 and b"=" not in words:
                _add(module, text[begin : found.end()], words, True)
                begin, depth = None, 0
        elif token == b";" and depth == 0 and not ends_with_line:
            _add(module, text[begin : found.end()], words, False)
            begin = None
    if begin is not None:
        _add(module, text[begin : line_end if ends_with_line else len(text)], words, False)
    return module


def _add(module: ModuleText, text: bytes, words: Sequence[bytes], has_body: bool) -> None:
    first = words[0]
    if first in _HEADERS:
        return
    definition = Definition(text)
    linkage = next((word for word in words[:2] if word in _LINKAGES), b"")
    if b".entry" in words or b".func" in words:
        definition.is_entry = b".entry" in words
        definition.is_function, definition.has_body = True, has_body
        after = words[words.index(b".entry" if definition.is_entry else b".func") + 1 :]
        definition.name = _function_name(after)
        definition.linkage = linkage or (b".visible" if definition.is_entry else b"")
    elif any(word in _SPACES for word in words):
        definition.linkage = linkage
        definition.name = _variable_name(words)
    module.definitions.append(definition)


def _function_name(words: Sequence[bytes]) -> bytes:
    """The name behind the result, which stands in parentheses before it."""
    depth = 0
    for word in words:
        if word == b"(":
            depth += 1
        elif word == b")":
            depth -= 1
        elif depth == 0 and not word.startswith(b"."):
            return word
    return b""


def _variable_name(words: Sequence[bytes]) -> bytes:
    """The last word before the extents, the value or the end."""
    name, skip = b"", 0
    for word in words:
        if word == b"(":
            skip += 1
        elif word == b")":
            skip -= 1
        elif word in (b"[", b"=", b";"):
            break
        elif not skip and re.fullmatch(_WORD, word):
            name = word
    return name
