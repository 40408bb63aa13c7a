# SPDX-License-Identifier: Apache-2.0
"""What a point of a study runs: the one interface of all kinds of runs, and the checking of their parameters."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from manyscale.errors import InputError, nearest
from manyscale.studies.sweep.metrics import Columns, Headline
from manyscale.units import shown

Shape = Literal["text", "whole", "ratio", "switch", "list", "table"]

_EXPECTED: Mapping[Shape, str] = {
    "text": "text",
    "whole": "a whole number",
    "ratio": "a number",
    "switch": "true or false",
    "list": "a list",
    "table": "a table of names and values",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kind of run."""

    name: str
    shape: Shape
    doc: str
    required: bool = False
    file: bool = False  # it names a file, or several, of which the content matters


@dataclass(frozen=True)
class RunRequest:
    """What one run needs: workload, machine with changes, seed, threads."""

    workload: Mapping[str, Any]
    machine: str | None
    changes: list[str]
    seed: int
    threads: int = 1


@dataclass(frozen=True)
class Outcome:
    """What came of a run: headline numbers with units, and its statistics if anybody asks for some."""

    headline: Headline
    columns: Callable[[], Columns] = field(default=lambda: _no_statistics())


@dataclass(frozen=True)
class WorkloadKind:
    """A kind of run: its parameters, and the function that does it."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    run: Callable[[RunRequest], Outcome]
    machine: str | None = None  # the one it takes if none is named
    takes_machine: bool = True
    free: bool = False  # takes any further parameters
    modules: tuple[str, ...] = ()  # worth importing before the first run

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((one for one in self.parameters if one.name == name), None)

    def check_name(self, path: str, where: str) -> None:
        """Whether there is a parameter for a path such as "nodes" or "param.bytes"."""
        name, _, rest = path.partition(".")
        found = self.parameter(name)
        if found is None and not self.free:
            known = [one.name for one in self.parameters]
            raise InputError(f"{where}: {self.name} has no parameter '{name}'; {nearest(name, known)}")
        if rest and found is not None and found.shape != "table":
            raise InputError(f"{where}: {self.name}.{name} is {_EXPECTED[found.shape]} and has no parts")

    def checked(self, workload: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The workload, if all that it needs is there and of the right shape."""
        self.check_present(workload, where)
        self.check_required(workload, where)
        return {name: self._shaped(name, value) for name, value in workload.items()}

    def check_present(self, workload: Mapping[str, Any], where: str) -> None:
        """Whether what is there is known and of the right shape; the rest may come from axes."""
        for name, value in workload.items():
            self.check_name(name, where)
            self._check_shape(name, value, where)

    def check_required(self, names: Container[str], where: str) -> None:
        """Whether all that it needs is there."""
        for one in self.parameters:
            if one.required and one.name not in names:
                raise InputError(f"{where}: {one.name} is required: {one.doc}")

    def _check_shape(self, name: str, value: Any, where: str) -> None:
        found = self.parameter(name)
        if found is not None and not _fits(value, found.shape):
            raise InputError(f"{where}.{name}: expected {_EXPECTED[found.shape]}, got {shown(value)}")

    def _shaped(self, name: str, value: Any) -> Any:
        """A value as the run takes it: a whole number may have been written as 4.0, or calculated."""
        found = self.parameter(name)
        return int(value) if found is not None and found.shape == "whole" else value

    def files(self, workload: Mapping[str, Any]) -> list[Path]:
        """The files whose content decides what comes out."""
        found: list[Path] = []
        for one in self.parameters:
            value = workload.get(one.name)
            if one.file and value is not None:
                found += [Path(entry) for entry in (value if isinstance(value, list) else [value])]
        return found

    def located(self, workload: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The workload with its files named from the root, since workers may be elsewhere."""
        moved = dict(workload)
        for one in self.parameters:
            value = moved.get(one.name)
            if one.file and value is not None:
                moved[one.name] = (
                    [_located(entry, folder) for entry in value]
                    if isinstance(value, list)
                    else _located(value, folder)
                )
        return moved


def hash_of_file(path: Path) -> str:
    """What tells the content of a file from any other; of one that cannot be read, that it cannot."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return digest.hexdigest()


def _located(name: Any, folder: Path) -> Any:
    """A file of the study's folder; what is not there stays as it is: a name of something built in."""
    if not isinstance(name, str):
        return name
    path = folder / name
    return os.path.abspath(path) if path.exists() else name


def _fits(value: Any, shape: Shape) -> bool:
    if isinstance(value, str) and "{" in value:
        return True  # a variable is put in later
    if shape == "text":
        return isinstance(value, str | int | float) and not isinstance(value, bool)
    if shape == "switch":
        return isinstance(value, bool)
    if shape == "list":
        return isinstance(value, list | tuple)
    if shape == "table":
        return isinstance(value, Mapping)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return shape == "ratio" or float(value).is_integer()


def _no_statistics() -> Columns:
    raise InputError("this kind of run has headline numbers only, and no statistics of components")
