# SPDX-License-Identifier: Apache-2.0
"""Points of a study: every combination of the axes, each with a key that tells equal work from different work."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyscale.errors import InputError
from manyscale.studies.sweep.axes import Axis, AxisGroup
from manyscale.studies.sweep.functions import source_of
from manyscale.studies.sweep.quantities import canonical
from manyscale.studies.sweep.template import filled
from manyscale.studies.sweep.workload import RunRequest, WorkloadKind, hash_of_file

MOST_POINTS = 1_000_000

WORKLOAD = "workload."
VARIABLE = "let."
MACHINE = "machine"
SEED = "seed"


@dataclass(frozen=True)
class Point:
    """One run of a study: its index, the values of the axes there, and what is run."""

    index: int
    coordinates: Mapping[str, Any]
    repetition: int
    request: RunRequest
    key: str


@dataclass(frozen=True)
class Plan:
    """What is run at each point: the common part, and the axes that change it."""

    kind: WorkloadKind
    workload: Mapping[str, Any]
    machine: str | None
    changes: Mapping[str, Any]
    groups: Sequence[AxisGroup]
    repetitions: int
    seed: int
    threads: int
    version: str
    folder: Path
    _hashes: dict[str, str] = field(default_factory=dict)

    @property
    def axes(self) -> list[Axis]:
        """All axes, in the order in which they were given."""
        return [axis for group in self.groups for axis in group.axes]

    @property
    def count(self) -> int:
        """How many points there are."""
        return math.prod(group.length for group in self.groups) * self.repetitions

    def points(self) -> Iterator[Point]:
        """All points; the last axis changes fastest, and of it the repetitions."""
        if self.count > MOST_POINTS:
            raise InputError(f"the study has {self.count:,} points; at most {MOST_POINTS:,} can be run")
        for index in range(self.count):
            yield self._point(index)

    def _point(self, index: int) -> Point:
        rest, repetition = divmod(index, self.repetitions)
        coordinates: dict[str, Any] = {}
        for group in reversed(self.groups):
            rest, row = divmod(rest, group.length)
            coordinates |= {axis.name: axis.values[row] for axis in group.axes}
        ordered = {axis.name: coordinates[axis.name] for axis in self.axes}
        request = self._request(ordered, repetition)
        return Point(index, ordered, repetition, request, self._key(request))

    def _request(self, coordinates: Mapping[str, Any], repetition: int) -> RunRequest:
        workload: dict[str, Any] = dict(self.workload)
        changes: dict[str, Any] = dict(self.changes)
        machine, seed = self.machine, self.seed
        variables: dict[str, Any] = {}
        for name, value in coordinates.items():
            if name == MACHINE:
                machine = str(value)
            elif name == SEED:
                seed = value
            elif name.startswith(VARIABLE):
                variables[name.removeprefix(VARIABLE)] = value
            elif name.startswith(WORKLOAD):
                _put(workload, name.removeprefix(WORKLOAD).split("."), value)
            else:
                changes[name] = value
        workload = filled(workload, variables)
        changes = filled(changes, variables)
        if machine is not None:
            machine = _located_machine(str(filled(machine, variables)), self.folder)
        return RunRequest(
            self.kind.located(workload, self.folder),
            machine,
            [f"{name}={written(value)}" for name, value in changes.items()],
            seed + repetition,
            self.threads,
        )

    def _key(self, request: RunRequest) -> str:
        """A hash of all that decides what comes out: equal points have equal keys, in any study."""
        files = [self._content(path) for path in self.kind.files(request.workload)]
        if function := request.workload.get("function"):
            source = source_of(str(function))
            files.append("" if source is None else self._content(source))
        content = [
            self.version,
            self.kind.name,
            canonical(request.workload),
            self._machine_hash(request.machine),
            sorted(_canonical_change(change) for change in request.changes),
            request.seed,
            files,
        ]
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _content(self, path: Path) -> str:
        name = str(path)
        if name not in self._hashes:
            self._hashes[name] = hash_of_file(path) if path.exists() else f"name: {name}"
        return self._hashes[name]

    def _machine_hash(self, name: str | None) -> str:
        """The content of a machine, whatever its file is called and whatever it inherits from."""
        if name is None:
            return ""
        key = f"machine {name}"
        if key not in self._hashes:
            self._hashes[key] = _resolved_machine(name)
        return self._hashes[key]


def _resolved_machine(name: str) -> str:
    from manyscale.machine import load_machine, to_toml

    try:
        resolved = load_machine(name)
    except InputError:  # the point will say so when it is run
        return f"name: {name}"
    return hashlib.sha256(to_toml(resolved.machine, {}).encode()).hexdigest()


def _located_machine(name: str, folder: Path) -> str:
    """A machine's file in the study's folder by its whole path; a preset by its name."""
    path = folder / name
    is_file = path.suffix in (".toml", ".ini", ".cfg") or "/" in name
    return os.path.abspath(path) if is_file and path.is_file() else name


def _put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Puts a value into nested tables, without changing those that other points share."""
    name, rest = path[0], path[1:]
    if not rest:
        tree[name] = value
        return
    below = tree.get(name)
    tree[name] = dict(below) if isinstance(below, Mapping) else {}
    _put(tree[name], rest, value)


def written(value: Any) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(json.dumps(entry) for entry in value) + "]"
    return str(value)


@functools.lru_cache(maxsize=4096)
def _canonical_change(change: str) -> str:
    name, _, value = change.partition("=")
    return f"{name}={canonical(value)}"
