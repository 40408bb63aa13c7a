# SPDX-License-Identifier: Apache-2.0
"""A file that assigns the tasks of a trace to cores: a line for each task; a core executes its tasks in this order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from manyscale.errors import InputError
from manyscale.results.files import FileKind, write_file

TaskAssignments = Sequence[tuple[int, int]]
MOST_FILE_BYTES = 1 << 28
_ASSIGNMENTS = FileKind("a list of tasks and cores", lambda head: head[:1].isdigit() or head[:1] == b"#")
_MOST_TASK, _MOST_CORE = 2**63 - 1, 2**16 - 1


def read_task_assignments(path: str | os.PathLike[str]) -> list[tuple[int, int]]:
    """Pairs of task and core, as the lines of a file have them: "3 0", "3,0" or "3: 0"; # begins a comment."""
    file = Path(path)
    try:
        if file.is_file() and file.stat().st_size > MOST_FILE_BYTES:
            raise InputError(f"{file}: a list of tasks has at most {MOST_FILE_BYTES >> 20} MiB")
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    assignments: list[tuple[int, int]] = []
    seen: set[int] = set()
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").replace(":", " ").split()
        if not words:
            continue
        if len(words) != 2 or not all(word.isascii() and word.isdigit() and len(word) < 20 for word in words):
            raise InputError(
                f"{file}, line {number}: '{line.strip()[:80]}' is no task and core, such as '3 0'"
            )
        task, core = int(words[0]), int(words[1])
        if task > _MOST_TASK or core > _MOST_CORE:
            raise InputError(f"{file}, line {number}: task {task} on core {core} is out of bounds")
        if task in seen:
            raise InputError(f"{file}, line {number}: task {task} was given a core before")
        seen.add(task)
        assignments.append((task, core))
    return assignments


def write_task_assignments(
    path: str | os.PathLike[str], assignments: TaskAssignments, *, force: bool = False
) -> None:
    """Writes such a file; over another one only with `force`."""
    text = "".join(f"{task} {core}\n" for task, core in assignments)
    write_file(path, lambda file: file.write(text.encode()), _ASSIGNMENTS, force=force)
