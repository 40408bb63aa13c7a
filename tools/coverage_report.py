# SPDX-License-Identifier: Apache-2.0
"""What `make coverage` has counted: tables as HTML in its folder, and the totals, printed and written into a page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

BEGIN, END = "<!-- coverage begin -->", "<!-- coverage end -->"
CPP = ("core", "bindings", "cudart")
PYTHON = "src/manyscale"


def run(*command: str) -> None:
    """Runs a module of Python's; its complaints are ours."""
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)


def cpp_lines(folder: Path) -> dict[str, tuple[int, int]]:
    """The lines of C++ that were run and that could be, by folder."""
    summary = folder / "cpp.json"
    filters = [option for name in CPP for option in ("--filter", f"{name}/")]
    # A header's template can be compiled with and without a line; branches of the compiler's own are not asked for.
    options = [
        "--merge-mode-functions=merge-use-line-max",
        "--gcov-ignore-errors=all",
        "--json-summary",
        str(summary),
    ]
    pages = ["--html-nested", str(folder / "cpp.html")]
    run("gcovr", "--root", ".", *filters, *options, *pages, str(folder / "build"))
    counted: dict[str, tuple[int, int]] = {}
    for file in json.loads(summary.read_text(encoding="utf-8"))["files"]:
        add(counted, file["filename"].partition("/")[0], file["line_covered"], file["line_total"])
    return counted


def python_lines(folder: Path) -> dict[str, tuple[int, int]]:
    """The lines of Python that were run and that could be."""
    run("coverage", "combine", "--quiet")
    run("coverage", "html", "--quiet", "--directory", str(folder / "python-html"))
    summary = folder / "python.json"
    run("coverage", "json", "--quiet", "-o", str(summary))
    totals = json.loads(summary.read_text(encoding="utf-8"))["totals"]
    return {PYTHON: (totals["covered_lines"], totals["num_statements"])}


def add(counted: dict[str, tuple[int, int]], name: str, covered: int, lines: int) -> None:
    """Adds to what a folder has."""
    before = counted.get(name, (0, 0))
    counted[name] = (before[0] + covered, before[1] + lines)


def table(counted: dict[str, tuple[int, int]]) -> str:
    """The totals as Markdown."""
    rows = ["| folder | lines | run by tests |", "|---|---|---|"]
    for name, (covered, lines) in counted.items():
        rows.append(f"| `{name}/` | {lines:,} | {100 * covered / max(lines, 1):.1f}% |")
    return "\n".join(rows)


def main() -> None:
    """The folder of the counts, and the page, if there is one to be written."""
    folder = Path(sys.argv[1])
    shown = table(cpp_lines(folder) | python_lines(folder))
    print(shown)
    for name in sys.argv[2:]:
        page = Path(name)
        text = page.read_text(encoding="utf-8")
        changed = re.sub(f"{BEGIN}.*?{END}", f"{BEGIN}\n{shown}\n{END}", text, flags=re.S)
        page.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
