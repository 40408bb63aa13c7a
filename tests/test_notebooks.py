# SPDX-License-Identifier: Apache-2.0
"""The cells of the notebooks run, and print what the notebooks show.

python tests/test_notebooks.py        # stores what they print now
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
_LINK = re.compile(r"\]\(([^)#\s]+)")


def cells(notebook: Path, kind: str) -> list[dict[str, Any]]:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def executed(notebook: Path) -> list[str]:
    """What each cell of code prints."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    printed = []
    for number, cell in enumerate(cells(notebook, "code"), 1):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), namespace)
        printed.append(output.getvalue())
    return printed


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_prints_what_it_shows(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = [
        "".join("".join(output.get("text", "")) for output in cell["outputs"])
        for cell in cells(notebook, "code")
    ]
    assert executed(notebook) == shown
    assert all(shown)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_the_links_of_a_notebook_lead_somewhere(notebook):
    for cell in cells(notebook, "markdown"):
        for link in _LINK.findall("".join(cell["source"])):
            assert link.startswith("http") or (notebook.parent / link).exists(), link


def test_there_is_a_notebook():
    assert NOTEBOOKS


def main() -> None:
    """Stores what the cells print."""
    for notebook in NOTEBOOKS:
        content = json.loads(notebook.read_text(encoding="utf-8"))
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        for number, (cell, text) in enumerate(zip(code, executed(notebook), strict=True), 1):
            stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
            cell |= {"execution_count": number, "outputs": [stream] if text else []}
        notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
