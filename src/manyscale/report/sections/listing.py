# SPDX-License-Identifier: Apache-2.0
"""The annotated listing of kernels: source, PTX and SASS in order, with executions, stalls and bytes of each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manyscale.report.evidence import Evidence
from manyscale.report.sections.general import Parent

_MOST_KERNELS = 12
_MOST_LINES = 4_000  # of a pane
_MOST_SOURCE = 4 << 20  # bytes
_NEEDED = ("scope", "function", "text", "ptx_line", "issued", "threads", "cycles", "percent")
# Columns of operations.parquet are groups of stall reasons, by Nsight Compute's names.
_REASONS = {
    "issued": "Selected",
    "stall_memory": "Long Scoreboard, LG Throttle",
    "stall_shared": "Short Scoreboard, Barrier",
    "stall_execution": "Wait, Math Pipe Throttle",
    "stall_other": "No Instruction, Not Selected",
    "stall_fault": "Page Fault",
}


def listing(parent: Parent, evidence: Evidence) -> None:
    """Each kernel's code beside what it cost, the longest kernel first."""
    table = evidence.columns("operations", *_NEEDED)
    if table is None:
        return
    modules = ptx_modules(evidence)
    section = parent.section("Annotated listing")
    section.words(
        "Stalls: cycles of warps that issued the line or waited to, as a share of the kernel's. A click on a line "
        "marks what belongs to it in the other panes; a click on a column sorts."
    )
    kernels = evidence.longest_kernels() or table["scope"].unique(maintain_order=True).to_list()
    for kernel in kernels[:_MOST_KERNELS]:
        rows = table.filter(table["scope"] == kernel).to_dicts()
        if rows:
            folded = kernel != kernels[0]  # the longest one is what people look for
            part = section.section(evidence.titles.get(kernel, kernel), folded=folded)
            part.listing(panes(rows, modules, sources(evidence)))
    if len(kernels) > _MOST_KERNELS:
        section.words(f"The {_MOST_KERNELS} longest of {len(kernels):,} kernels; operations.parquet has all.")


def ptx_modules(evidence: Evidence) -> list[list[str]]:
    """The lines of the PTX modules that the run has kept."""
    names = sorted(name for name in evidence.run.files if name.startswith("ptx/") and name.endswith(".ptx"))
    texts = [evidence.text(name, _MOST_SOURCE) for name in names]
    return [text.splitlines() for text in texts if text is not None]


def sources(evidence: Evidence) -> dict[str, list[str]]:
    """The lines of the source files that the run has kept, by their names."""
    texts = {
        name.removeprefix("sources/"): evidence.text(name, _MOST_SOURCE)
        for name in evidence.run.files
        if name.startswith("sources/")
    }
    return {name: text.splitlines() for name, text in texts.items() if text is not None}


def panes(
    rows: list[dict[str, Any]], modules: list[list[str]], kept: Mapping[str, list[str]] | None = None
) -> list[dict[str, Any]]:
    """The panes that the rows of one kernel fill: source, PTX, SASS."""
    is_sass = any(str(row["text"])[:1].isupper() for row in rows)
    found = []
    located = [row for row in rows if row.get("source_line") and row.get("file")]
    if located:
        found.append(_pane("source", "Source", _source_rows(located, kept or {})))
    if any(row["ptx_line"] for row in rows):
        found.append(_pane("ptx", "PTX", _ptx_rows(rows, modules)))
    if is_sass:
        found.append(_pane("sass", "SASS", _sass_rows(rows)))
    return found


def _pane(kind: str, title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "title": title, "rows": rows[:_MOST_LINES]}


def _source_rows(rows: list[dict[str, Any]], kept: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    found = []
    files = list(dict.fromkeys(str(row["file"]) for row in rows))
    for file in files:
        by_line: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            if row["file"] == file:
                by_line.setdefault(int(row["source_line"]), []).append(row)
        text = kept.get(file.rpartition("/")[2]) or _source_text(file)
        lines = range(min(by_line) - 1, max(by_line) + 2) if text else sorted(by_line)
        name = file.rpartition("/")[2]
        for line in lines:
            inside = text is not None and 1 <= line <= len(text)
            if text is not None and not inside:
                continue
            words = text[line - 1] if text is not None else f"{name}, line {line}"
            label = f"{name}:{line}" if len(files) > 1 else str(line)
            found.append(_row(label, words, by_line.get(line, ()), source=f"{name}:{line}", ptx=None))
    return found


def _source_text(file: str) -> list[str] | None:
    """The lines of a source file where it can still be read."""
    path = Path(file)
    try:
        if path.is_file() and path.stat().st_size < _MOST_SOURCE:
            return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return None


def _ptx_rows(rows: list[dict[str, Any]], modules: list[list[str]]) -> list[dict[str, Any]]:
    by_line: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["ptx_line"]:
            by_line.setdefault(int(row["ptx_line"]), []).append(row)
    text = _module_of(str(rows[0]["function"]), by_line, modules)
    first, last = min(by_line), max(by_line)
    found = []
    for line in range(first, last + 1) if text is not None else sorted(by_line):
        own = by_line.get(line, ())
        words = text[line - 1] if text is not None else str(own[0]["text"]) if own else ""
        if not own and not re.search(r"[;:{}]", words):
            continue  # a comment, or the location of a line of the source
        found.append(_row(str(line), words.expandtabs(2), own, source=_source_key(own), ptx=line))
    return found


def _module_of(function: str, by_line: Mapping[int, Any], modules: list[list[str]]) -> list[str] | None:
    """The module in which the function is, and in which lines are what was executed."""
    for lines in modules:
        if len(lines) < max(by_line) or not any(
            re.search(rf"\b{re.escape(function)}\b", line) for line in lines
        ):
            continue
        hits = sum(
            str(own[0]["text"]).partition(".")[0].lower() in lines[line - 1].lower()
            for line, own in by_line.items()
        )
        if hits >= 0.8 * len(by_line):
            return lines
    return None


def _sass_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        _row(str(number), str(row["text"]), [row], source=_source_key([row]), ptx=row["ptx_line"] or None)
        for number, row in enumerate(rows)
    ]


def _source_key(rows: Iterable[dict[str, Any]]) -> str | None:
    for row in rows:
        if row.get("source_line") and row.get("file"):
            return f"{str(row['file']).rpartition('/')[2]}:{row['source_line']}"
    return None


def _row(
    line: str, text: str, rows: Iterable[dict[str, Any]], *, source: str | None, ptx: int | None
) -> dict[str, Any]:
    from manyscale.gpu.kernel_counts import bytes_accessed

    own = list(rows)
    sums = {name: sum(row.get(name) or 0 for row in own) for name in _REASONS}
    waits = {name: count for name, count in sums.items() if name != "issued"}
    main = max(waits, key=waits.__getitem__) if any(waits.values()) else "issued"
    executed = max((row.get("executed") or row.get("issued") or 0 for row in own), default=0)
    return {
        "line": line,
        "text": text,
        "executed": executed,
        "percent": sum(row.get("percent") or 0.0 for row in own),
        "reason": _REASONS[main] if any(sums.values()) else "",
        "bytes": sum(bytes_accessed(str(row["text"]), row.get("threads") or 0) for row in own),
        "source": source,
        "ptx": ptx,
    }
