# SPDX-License-Identifier: Apache-2.0
"""Checks the direction of the core's includes: a folder of `core/` may include only the folders below it.

Run by `make lint`. Folders (`cpu/stream`, `gpu/sm`, …) must form no include cycle. Also checks that the core includes
nothing of Python and that every source has its licence line.
"""

from __future__ import annotations

import graphlib
import re
import sys
from pathlib import Path

# What each folder of core/ may include besides itself.
ALLOWED: dict[str, set[str]] = {
    "cluster": {"engine", "memory", "cpu", "network"},
    "cpu": {"engine", "memory"},
    "engine": set(),
    "gpu": {"engine", "memory"},
    "memory": {"engine"},
    "mpi": {"engine", "network"},
    "network": {"engine"},
    "synthetic": {"engine"},
}

# What a folder within one of these must not include: programs are executed without a notion of time, and cores know
# neither instruction sets nor operating systems nor files.
FORBIDDEN: dict[str, set[str]] = {
    "gpu/sass": {"engine", "memory", "gpu/ptx", "gpu/exec", "gpu/lower", "gpu/sm"},
    "cpu/virtual_memory": {"engine", "memory"},
    "cpu/stream": {"memory", "cpu/core", "cpu/trace", "cpu/riscv", "cpu/linux"},
    "cpu/riscv": {"engine", "memory", "cpu/core", "cpu/trace"},
    "cpu/linux": {"memory", "cpu/core", "cpu/trace"},
    "cpu/core": {"cpu/riscv", "cpu/linux", "cpu/trace"},
    "cpu/trace": {"cpu/riscv", "cpu/linux"},
    "cpu/replay": {"cpu/riscv", "cpu/linux", "cpu/virtual_memory"},
}

_INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
_LICENCE = "SPDX-License-Identifier: Apache-2.0"


def include_problems(core: Path) -> list[str]:
    """What is wrong with the includes below `core`, one sentence each."""
    problems = []
    for path in sorted([*core.rglob("*.hpp"), *core.rglob("*.cpp")]):
        folder = path.relative_to(core).parts[0]
        if folder not in ALLOWED:
            problems.append(f"{path}: folder '{folder}' has no entry in tools/check_includes.py")
            continue
        for quote, target in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            if "nanobind" in target or target == "Python.h":
                problems.append(f"{path}: the core includes {target}, but it has no Python in it")
            elif quote == '"':
                layer = target.split("/")[0]
                if not (core / target).is_file():
                    problems.append(f'{path}: "{target}" is not a path from core/')
                elif layer != folder and layer not in ALLOWED[folder]:
                    problems.append(f"{path}: '{folder}' must not include '{layer}' ({target})")
                else:
                    inner = "/".join(path.relative_to(core).parts[:2])
                    refused = FORBIDDEN.get(inner, set()) & {layer, "/".join(target.split("/")[:2])}
                    problems += [
                        f"{path}: '{inner}' must not include '{other}' ({target})" for other in refused
                    ]
    return problems


def folder_of(path: str) -> str:
    """The folder of a path from core/, of two levels at most: `cpu/stream` of `cpu/stream/record.hpp`."""
    return "/".join(path.split("/")[:-1][:2])


def folder_includes(core: Path) -> dict[str, set[str]]:
    """The other folders that each folder below `core` includes."""
    includes: dict[str, set[str]] = {}
    for path in sorted([*core.rglob("*.hpp"), *core.rglob("*.cpp")]):
        folder = folder_of(path.relative_to(core).as_posix())
        targets = {
            folder_of(target)
            for quote, target in _INCLUDE.findall(path.read_text(encoding="utf-8"))
            if quote == '"' and (core / target).is_file()
        }
        includes.setdefault(folder, set()).update(targets - {folder})
    return includes


def cycle_problems(core: Path) -> list[str]:
    """An include cycle of folders below `core`, as a sentence."""
    try:
        graphlib.TopologicalSorter(folder_includes(core)).prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        return [f"{core}: folders include each other in a cycle: {cycle}"]
    return []


def licence_problems(root: Path) -> list[str]:
    """The sources without a licence line in their first lines."""
    folders = ("core", "bindings", "runtime", "src", "tests", "benchmarks", "examples", "tools")
    sources = [
        path
        for folder in folders
        for pattern in ("*.py", "*.hpp", "*.cpp", "*.h", "*.c")
        for path in (root / folder).rglob(pattern)
    ]
    return [
        f"{path}: no line '{_LICENCE}' at its top"
        for path in sorted(sources)
        if _LICENCE not in path.read_text(encoding="utf-8")[:300]
    ]


def main() -> int:
    """Prints the problems and returns 1 if there are any."""
    root = Path(__file__).resolve().parent.parent
    core = root / "core"
    problems = include_problems(core) + cycle_problems(core) + licence_problems(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
