# SPDX-License-Identifier: Apache-2.0
"""Loads a machine from a preset or a file, with inheritance, overrides and the source of each value."""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manyscale.errors import InputError
from manyscale.machine.description import Machine
from manyscale.machine.ini import looks_like_ini, read_ini
from manyscale.machine.presets import list_presets, preset_path, presets_folder
from manyscale.machine.renamed import current
from manyscale.machine.statements import (
    Layer,
    Statement,
    Tree,
    inherited,
    leaves,
    merge,
    origin_at,
    state,
    values,
)
from manyscale.machine.toml_tree import toml_tree, value_tree
from manyscale.reads import unread, watch
from manyscale.spec import Spec, build, refusal
from manyscale.toml_text import toml_value
from manyscale.units import shown

LARGEST_FILE = 2**20  # bytes; a machine file has a few thousand
COMMAND_LINE = "command line"
DEFAULT = "default"
"""The source of a value that no machine file states."""
_INI_SUFFIXES = (".ini", ".cfg")
_FILE_SUFFIXES = (".toml", *_INI_SUFFIXES)
_PATH = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


KERNELS = "GPU kernels"
CUDA = "CUDA programs"
PROGRAMS = "programs on simulated cores"
TRAFFIC = "memory traffic"
JOBS = "MPI jobs"
_READERS = {
    "cpu": (PROGRAMS,),
    "memory": (PROGRAMS, TRAFFIC),
    "gpu": (KERNELS, CUDA),
    "link": (KERNELS, CUDA),
    "cuda": (CUDA,),
    "network": (JOBS,),
}
_COMMANDS = {
    KERNELS: "manyscale gpu run",
    CUDA: "manyscale cuda",
    PROGRAMS: "manyscale cpu run, record and replay",
    TRAFFIC: "manyscale mem run",
    JOBS: "manyscale net run",
}


def _readers(path: str, run: str) -> str:
    """Who reads a parameter, in words."""
    section = path.partition(".")[0]
    readers = _READERS.get(section, ())
    if not readers:
        return f"[{section}] describes the machine, and no run simulates it"
    if run in readers:
        return "it is for information, or another one replaces it"
    return " and ".join(f"runs of {reader} ({_COMMANDS[reader]})" for reader in readers) + " do"


@dataclass(frozen=True)
class ResolvedMachine:
    """A checked machine, the source of each of its values, and what its file said of a workload."""

    machine: Machine
    sources: dict[str, str]
    workload: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    """Parameters that the user changed, by path: on the command line, or in a file of theirs that inherits another.
    The text says where."""
    own: frozenset[str] = frozenset()
    """Parameters that a file of the user's states; a preset describes more than any one run simulates."""

    def check_read(self, run: str) -> None:
        """Refuses changes of parameters that nothing has read so far, and reports others of the user's file.

        To be called when a run has made a system of the machine. `run` says what it simulates, such as "MPI jobs".
        """
        refused = [
            f"{self.changed[path]}: {path}: nothing in a run of {run} reads this parameter; {_readers(path, run)}"
            for path in unread(self.machine, self.changed)
        ]
        if refused:
            raise refusal(refused)
        if unused := self.unused(self.own):
            _report(f"{self.machine.name or 'the machine'}: a run of {run} does not use {', '.join(unused)}")

    def unused(self, among: Collection[str] | None = None) -> list[str]:
        """Parameters that the machine states and nothing has read so far: a section of such as one, "[cpu]"."""
        stated = [path for path, source in self.sources.items() if "." in path and source != DEFAULT]
        paths = unread(self.machine, stated)
        found: dict[str, None] = {}
        for path in paths if among is None else [path for path in paths if path in among]:
            sections = [path[:index] for index, letter in enumerate(path) if letter == "."]
            whole = (
                section
                for section in sections
                if all(one in paths for one in stated if one.startswith(f"{section}."))
            )
            section = next(whole, None)
            found[path if section is None else f"[{section}]"] = None
        return list(found)


@functools.lru_cache(maxsize=1024)
def _report(text: str) -> None:
    """Once in a process, since a sweep loads a machine thousands of times."""
    logging.getLogger("manyscale").warning(text)


def resolve_machine(
    machine: str | os.PathLike[str] | Machine | ResolvedMachine, changes: Sequence[str] = ()
) -> ResolvedMachine:
    """A machine with its sources: the one given, or that of a preset's name or a file, with changes."""
    if not isinstance(machine, Machine | ResolvedMachine):
        return load_machine(os.fspath(machine), changes)
    if changes:
        raise InputError("changes are made when a machine is loaded: give its name or file, not the machine")
    return machine if isinstance(machine, ResolvedMachine) else ResolvedMachine(machine, {})


def load_machine(name_or_path: str | Path, overrides: Sequence[str] = ()) -> ResolvedMachine:
    """The machine of a preset's name or a file (TOML or INI), with overrides such as "gpu.clock=1.5GHz"."""
    path = _locate(str(name_or_path), Path())
    own = _read(path)
    tree = own.tree
    if "name" not in tree:
        tree = {"name": Statement(path.stem, "file name", str(path)), **tree}
    workload = own.workload
    is_preset = path.parent == presets_folder()
    mine = {} if is_preset else dict(leaves(tree))
    changed: dict[str, str] = {}

    def note_changes(below: Tree) -> None:
        for name, statement in leaves(below):
            if name in mine and mine[name].value != statement.value:
                changed[name] = mine[name].origin

    tree = _with_inherited_sections(tree, path, note_changes)
    for ancestor_path, ancestor in _ancestors(path, own):
        whole = _with_inherited_sections(ancestor.tree, ancestor_path)
        note_changes(whole)
        tree = merge(inherited(whole, ancestor_path.stem), tree)
        workload = {**ancestor.workload, **workload}
    overriding = _override_tree(overrides)
    changed |= {name: statement.origin for name, statement in leaves(overriding)}
    _check_paths(overriding, tree)
    tree = merge(tree, overriding)
    final = tree
    machine = build(Machine, values(final), lambda location: origin_at(final, location, str(path)))
    origins = {name: statement.source for name, statement in leaves(tree)}
    sources = {name: origins.get(name, DEFAULT) for name in _stated_paths(machine)}
    watch(machine)
    unwatched = ("name", "description")
    stated = {name: where for name, where in changed.items() if name not in unwatched}
    return ResolvedMachine(machine, sources, workload, stated, frozenset(mine))


def _stated_paths(spec: Spec, prefix: str = "") -> Iterator[str]:
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if isinstance(value, Spec):
            yield from _stated_paths(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name


def _locate(name: str, beside: Path) -> Path:
    """The file of a preset, or of a path relative to the folder `beside`."""
    if name in list_presets():
        return preset_path(name)
    path = beside / name
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a name that the file system cannot have
        exists = False
    if exists:
        return path
    if path.suffix in _FILE_SUFFIXES or "/" in name:
        raise InputError(f"there is no file {shown(str(path))}")
    return preset_path(name)


def _ancestors(path: Path, layer: Layer) -> Iterator[tuple[Path, Layer]]:
    chain = [path]
    while layer.inherits is not None:
        try:
            path = _locate(layer.inherits, path.parent)
        except InputError as error:
            raise InputError(f"{chain[-1]}: inherits: {error}") from None
        if path.resolve() in [earlier.resolve() for earlier in chain]:
            names = " -> ".join(str(earlier) for earlier in [*chain, path])
            raise InputError(f"{chain[0]}: machines inherit in a circle: {names}")
        chain.append(path)
        layer = _read(path)
        yield path, layer


def _with_inherited_sections(
    tree: Tree,
    path: Path,
    watch_below: Callable[[Tree], None] = lambda below: None,
    chain: tuple[Path, ...] = (),
) -> Tree:
    """The tree of a file in which sections that say `inherits` have what the same section of that machine states.

    `watch_below` is called with what is inherited, under its own path in an otherwise empty tree.
    """
    chain = (*chain, path.resolve())

    def fill(section: Tree, at: tuple[str, ...]) -> Tree:
        filled: Tree = {
            name: fill(item, (*at, name)) if isinstance(item, dict) else item
            for name, item in section.items()
            if name != "inherits"
        }
        parent = section.get("inherits")
        if parent is None:
            return filled
        where = ".".join((*at, "inherits"))
        if not isinstance(parent, Statement) or not isinstance(parent.value, str):
            raise InputError(f'{path}: {where}: expected the name or file of a machine, such as "v100"')
        try:
            other = _locate(parent.value, path.parent)
        except InputError as error:
            raise InputError(f"{path}: {where}: {error}") from None
        if other.resolve() in chain:
            names = " -> ".join(str(earlier) for earlier in (*chain, other))
            raise InputError(f"{path}: {where}: machines inherit in a circle: {names}")
        below: Statement | Tree | None = machine_tree(other, chain)
        for name in at:
            below = below.get(name) if isinstance(below, dict) else None
        if not isinstance(below, dict):
            raise InputError(f"{path}: {where}: {parent.value} has no section [{'.'.join(at)}]")
        placed: Tree = {}
        state(placed, list(at), below)
        watch_below(placed)
        return merge(inherited(below, other.stem), filled)

    return fill(tree, ())


def machine_tree(path: Path, chain: tuple[Path, ...] = ()) -> Tree:
    """What a file states and inherits, as a whole or by section."""
    own = _read(path)
    tree = _with_inherited_sections(own.tree, path, chain=chain)
    for ancestor_path, ancestor in _ancestors(path, own):
        whole = _with_inherited_sections(ancestor.tree, ancestor_path, chain=chain)
        tree = merge(inherited(whole, ancestor_path.stem), tree)
    return tree


def _read(path: Path) -> Layer:
    try:
        known = path.stat()
    except OSError:
        return _parsed(path)
    return _parsed_once(path, known.st_mtime_ns, known.st_size)


@functools.lru_cache(maxsize=64)
def _parsed_once(path: Path, changed: int, size: int) -> Layer:
    """Most of the time of loading goes into parsing, and a sweep loads one file thousands of times."""
    return _parsed(path)


def _parsed(path: Path) -> Layer:
    text = read_machine_text(path)
    if path.suffix in _INI_SUFFIXES or (path.suffix != ".toml" and looks_like_ini(text)):
        return read_ini(text, str(path))
    return _read_toml(text, path)


def read_machine_text(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a machine file")
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise InputError(f"{path} is larger than {LARGEST_FILE // 2**20}MiB; that is no machine file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start})") from None


def _read_toml(text: str, path: Path) -> Layer:
    try:
        tree = toml_tree(text, str(path), path.name)
    except (ValueError, RecursionError) as error:
        line, column = getattr(error, "line", None), getattr(error, "col", None)
        if line is None or column is None:
            raise InputError(f"{path} is not valid TOML: {error}") from None
        reason = re.sub(r" at line \d+ col \d+$", "", str(error))
        raise InputError(f"{path}, line {line}, column {column + 1}: {reason}") from None
    parent = tree.pop("inherits", None)
    if parent is None:
        return Layer(tree)
    if not isinstance(parent, Statement) or not isinstance(parent.value, str):
        raise InputError(f'{path}: inherits: expected the name or file of a machine, such as "v100"')
    return Layer(tree, parent.value)


def _override_tree(overrides: Iterable[str]) -> Tree:
    tree: Tree = {}
    for override in overrides:
        path, equals, text = override.partition("=")
        path = path.strip()
        if not equals or not _PATH.fullmatch(path):
            raise InputError(f"--set {shown(override)}: expected path=value, such as gpu.clock=1.5GHz")
        state(
            tree,
            [current(name) for name in path.split(".")],
            _override_statements(text.strip(), f"--set {path}"),
        )
    return tree


def _check_paths(overriding: Tree, tree: Tree) -> None:
    """Refuses overrides of what no machine has, and names what may be meant."""
    from manyscale.machine.suggestions import is_parameter, suggestion

    unknown = [(name, statement) for name, statement in leaves(overriding) if not is_parameter(name)]
    if unknown:
        stated = dict(leaves(tree))
        raise refusal(
            [
                f"{statement.origin}: there is no such parameter; {suggestion(name, stated)}"
                for name, statement in unknown
            ]
        )


def _override_statements(text: str, origin: str) -> Statement | Tree:
    value = toml_value(text)
    if isinstance(value, dict):
        return value_tree(value, origin, COMMAND_LINE)
    return Statement(value, COMMAND_LINE, origin)
