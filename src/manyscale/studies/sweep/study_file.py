# SPDX-License-Identifier: Apache-2.0
"""Studies as files: study.toml."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyscale import toml_text
from manyscale.errors import InputError, nearest
from manyscale.studies.sweep.study import Study
from manyscale.toml_text import toml_value
from manyscale.units import shown

LARGEST_FILE = 2**20  # bytes
_KEYS = (
    "name",
    "description",
    "workload",
    "machine",
    "set",
    "axes",
    "zip",
    "repetitions",
    "seed",
    "metrics",
    "threads",
    "timeout",
    "folder",
)


def read_study(path: str | os.PathLike[str], changes: Sequence[str] = (), *, trusted: bool = False) -> Study:
    """The study in a file; changes are such as "gpu.clock=1GHz". A file of ours is trusted to hold a function."""
    file = Path(path)
    text = _read(file)
    data = _parsed(text, file)
    for key in data:
        if key not in _KEYS:
            raise InputError(f"{file}: a study has no '{key}'; {nearest(key, _KEYS)}")
    if "workload" not in data:
        raise InputError(f'{file}: it says no workload, such as [workload] kind = "network"')
    name = data.get("name", file.stem)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise InputError(f"{file}: name: expected letters, digits, dots and dashes, got {shown(name)}")
    folder = data.get("folder", str(file.parent))
    zipped = data.get("zip", [])
    if not isinstance(folder, str) or not isinstance(zipped, list):
        raise InputError(f"{file}: expected [[zip]] tables, and a folder as text")
    study = Study(
        _workload(data["workload"], file, trusted),
        name=name,
        machine=data.get("machine"),
        changes=_table(data.get("set", {}), f"{file}: set") | _changes(changes),
        axes=_table(data.get("axes", {}), f"{file}: axes"),
        zipped=[_table(group, f"{file}: zip") for group in zipped],
        repetitions=data.get("repetitions", 1),
        seed=data.get("seed", 0),
        metrics=data.get("metrics", ()),
        threads=data.get("threads", 1),
        timeout=data.get("timeout"),
        folder=folder,
        where=str(file),
    )
    study.source = text if "folder" in data and not changes else study_text(study)
    return study


def study_text(study: Study) -> str:
    """A study as TOML, from which the same points come, wherever the file lies."""
    plan = study.plan
    head: dict[str, Any] = {
        "name": study.name,
        "folder": os.path.abspath(plan.folder),
        "machine": plan.machine,
        "repetitions": plan.repetitions,
        "seed": plan.seed,
        "threads": plan.threads,
        "timeout": None if study.timeout is None else f"{study.timeout:g}s",
    }
    lines = [f"{name} = {_written(value)}" for name, value in head.items() if value is not None]
    lines += _section("[workload]", {"kind": study.kind.name, **plan.workload})
    lines += _section("[set]", plan.changes)
    crossed = [group.axes[0] for group in plan.groups if len(group.axes) == 1]
    lines += _section("[axes]", {axis.name: axis.values for axis in crossed})
    for group in plan.groups:
        if len(group.axes) > 1:
            lines += _section("[[zip]]", {axis.name: axis.values for axis in group.axes})
    lines += _section("[metrics]", {metric.name: metric.text for metric in study.metrics})
    return "\n".join(lines) + "\n"


def _section(title: str, entries: Mapping[str, Any]) -> list[str]:
    if not entries:
        return []
    return ["", title, *(f"{_key(name)} = {_written(value)}" for name, value in entries.items())]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _written(value: Any) -> str:
    """A value as TOML, whose texts, numbers and lists are JSON's; tables are in one line."""
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_key(str(name))} = {_written(entry)}" for name, entry in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(file: Path) -> str:
    if file.is_dir():
        raise InputError(f"{file} is a folder; give the file of the study, such as study.toml")
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {shown(str(file))}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST_FILE:
        raise InputError(f"{file} is larger than {LARGEST_FILE >> 20}MiB; that is no study")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text (byte {error.start})") from None


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return toml_text.parse(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid TOML: {error}") from None


def _workload(given: Any, file: Path, trusted: bool) -> dict[str, Any]:
    told = _table(given, f"{file}: workload")
    if not trusted and str(told.get("function", "")).startswith("sent:"):
        raise InputError(f"{file}: workload.function: write module:function")
    return told


def _table(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: expected a table of names and values, got {shown(given)}")
    return dict(given)


def _changes(texts: Sequence[str]) -> dict[str, Any]:
    changes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set {shown(text)}: expected path=value, such as gpu.clock=1.5GHz")
        changes[name.strip()] = toml_value(value)
    return changes
