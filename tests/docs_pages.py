# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation, as tests see them.

A block with `<!-- not run -->` before it is left out. A ```text block whose first line is a comment with the name of a
file is that file; one right after a ```python block is what that block prints, and one with `<!-- output -->` before it
what the commands of the ```sh block before print (tools/update_docs_outputs.py).
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<skip><!-- not run -->\n+ *)?(?P<shows><!-- output(?:: (?P<output>[^\n]*))? -->\n+ *)?"
    r"```(?P<language>\w+)\n(?P<text>.*?)^ *```$",
    re.M | re.S,
)
_FILE = re.compile(r"(?://|#) ([\w./-]+\.\w+)$")

page_of = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    skipped: bool
    follows: bool  # nothing stands between the block before and this one
    output: str | None  # which lines of the commands before it shows; empty: all
    indent: str
    span: tuple[int, int]  # of the text on the page

    @property
    def file(self) -> str | None:
        """The name of the file that a block of text is."""
        found = _FILE.match(self.text.partition("\n")[0]) if self.language == "text" else None
        return found[1] if found else None


def blocks(page: Path) -> list[Block]:
    """All blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found = []
    end = 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        follows = end > 0 and not text[end : match.start()].strip()
        inner = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
        output = (match["output"] or "") if match["shows"] else None
        found.append(
            Block(
                match["language"],
                inner,
                line,
                bool(match["skip"]),
                follows,
                output,
                match["indent"],
                match.span("text"),
            )
        )
        end = match.end()
    return found


def prose(page: Path) -> str:
    """The page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))
