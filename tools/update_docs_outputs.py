# SPDX-License-Identifier: Apache-2.0
"""Runs the commands and Python of pages again, and rewrites what the pages show of it.

    .venv/bin/python tools/update_docs_outputs.py [PAGE ...]    README, tutorials and how-to pages, or those named
    .venv/bin/python tools/update_docs_outputs.py --pictures    take their pictures again, too; needs Chromium

A ```text block after a ```python block is what that prints; one after a ```sh block with a comment before it is a part
of what the commands print to standard output:

    <!-- output -->                            all of it
    <!-- output: "simulated", "duration" -->   the lines with these words, "…" for those between
    <!-- output: "What limits it".. -->        from there to the end
    <!-- output: "cause".."base" -->           from a line to another

Numbers in sentences are expressions in the comments behind them (tests/test_docs.py). A picture
`<!-- picture: runs/saxpy/report.html#roofline 1000x600 -->` shows a page that the commands have written, from its top
or from a section on. Tests run the pages in the same way and compare.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from docs_pages import PAGES, Block, blocks  # type: ignore[import-not-found] # noqa: E402

WIDTH, WIDE = "100", "160"  # characters of a terminal on these pages, and on reference pages
# Pages that go on with a file of another.
_BEFORE = {"docs/tutorials/unified-memory.md": "docs/tutorials/gpu-kernel.md"}
# Pages that say what every block of output is, and what every number in a sentence is.
HELD = ("README.md", "docs/tutorials/", "docs/how-to/")
CHECKED = re.compile(
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?P<unit>\s?[a-zA-Z%/]*)(?P<comment><!-- = (?P<value>.*?) -->)"
)
PICTURE = re.compile(
    r"<!-- picture: (?P<page>[^#\s]+)(?:#(?P<anchor>\S+))? (?P<width>\d+)x(?P<height>\d+) -->\s*"
    r"!\[[^\]]*\]\((?P<file>[^)]+)\)"
)
_SELECTOR = re.compile(r'"(?P<first>[^"]*)"(?P<range>\.\.(?:"(?P<last>[^"]*)")?)?\s*(?:,\s*|$)')
_HOST = (  # what depends on the host's speed
    (re.compile(r"\bin \d[\d.e-]* s\b"), "in # s"),
    (re.compile(r"\(\d[\d.]*[kMG]? [\w ]+/s\)"), "(#/s)"),
    (re.compile(r"^(executed\b.*?) *\d[\d.]*[kMG]? .*"), r"\1 #"),
)


class PageError(Exception):
    """A page that shows something that is not so."""


@dataclass
class Shown:
    """A block of text of a page, and what it must be; None for a block that shows lines of an output."""

    block: Block
    expected: str | None
    output: str


def is_held(page: Path) -> bool:
    """Whether everything that the page shows is checked."""
    return str(page.relative_to(ROOT)).startswith(HELD)


def run_page(page: Path, folder: Path) -> list[Shown]:
    """Runs a page's Python and commands in a folder, which must be the working directory; says what it must show."""
    for name in ("examples", "src"):
        (folder / name).symlink_to(ROOT / name)
    if before := _BEFORE.get(str(page.relative_to(ROOT))):
        _write_files(ROOT / before)
    _write_files(page)
    namespace = {"__name__": "page"}
    shown: list[Shown] = []
    printed: tuple[str, str] | None = None  # the language of the block before, and what it printed
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.language == "text" and block.follows and printed is not None:
            language, output = printed
            expected = None
            if language == "python":
                expected = output.rstrip()
            elif block.output is not None:
                expected = selected(output, block.output, where)
            shown.append(Shown(block, expected, output))
            continue
        printed = None
        if block.language == "python" and not block.skipped:
            # Line numbers of the page in tracebacks.
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                exec(code, namespace)
            printed = ("python", text.getvalue())
        elif block.language == "sh" and not block.skipped:
            printed = ("sh", _run_commands(block.text, where, WIDTH if is_held(page) else WIDE))
    return shown


def _write_files(page: Path) -> None:
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")


def _run_commands(text: str, where: str, width: str) -> str:
    """Runs the commands of Manyscale in a block, and gives what they print; other programs are not run."""
    from manyscale.cli.app import main

    output = ""
    for line in text.replace("\\\n", " ").splitlines():
        for command in re.split(r"&&", line):
            words = shlex.split(command, comments=True)
            if words[:1] != ["manyscale"]:
                continue
            complaint, printed = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
            with _terminal(width), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaint):
                code = main(words[1:])
            complaint.seek(0)
            if code != 0:
                raise PageError(f"{where}: {command.strip()}\n{complaint.read()}")
            printed.seek(0)
            output += printed.read()
    return output


@contextlib.contextmanager
def _terminal(width: str) -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = width
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def selected(output: str, selector: str, where: str) -> str:
    """The lines of an output that a comment selects."""
    lines = [line.rstrip() for line in output.rstrip().splitlines()]
    if not selector:
        return "\n".join(lines)
    found: list[str] = []
    at = 0  # the first line that is not shown yet
    end = 0
    while end < len(selector):
        match = _SELECTOR.match(selector, end)
        if match is None:
            raise PageError(f"{where}: not a selection of lines: {selector[end:]}")
        end = match.end()
        first = _find(lines, match["first"], at, where)
        last = first
        if match["range"]:
            last = len(lines) - 1 if match["last"] is None else _find(lines, match["last"], first, where)
        if first > at and found:
            found.append("…")
        found += lines[first : last + 1]
        at = last + 1
    return "\n".join(found)


def _find(lines: list[str], word: str, start: int, where: str) -> int:
    for number in range(start, len(lines)):
        if word in lines[number]:
            return number
    raise PageError(
        f"{where}: no line of the output has '{word}' (after the one before)\n" + "\n".join(lines)
    )


def without_host(text: str) -> str:
    """A text without what depends on the host's speed."""
    lines = []
    timed = False  # the table has a last column of times of the host
    for line in text.rstrip().splitlines():
        timed = "wall s" in line or (timed and line[:1] in "┃┡│└")
        if timed and line.startswith("│"):
            line = line.rstrip("│ ").rpartition("│")[0]
        for pattern, instead in _HOST:
            line = pattern.sub(instead, line)
        lines.append(line.rstrip())
    return "\n".join(lines)


def value_of(expression: str) -> float:
    """What the comment behind a number says: of `run(…)`, the headline numbers of a run directory, or of
    `validation(…)`, the errors below a table of docs/validation.md."""
    from manyscale.results import load

    def run(directory: str) -> dict[str, float]:
        return {name: entry["value"] for name, entry in load(directory).headline.items()}

    return float(eval(expression, {"run": run, "validation": _validation, "__builtins__": {}}))


def _validation(table: str, kernels: str = "", use: str = "[a-z ]+") -> dict[str, float]:
    """Mean and largest absolute error of a table in percent, as its headline has them.

    `kernels`: as PTX or as SASS, where it has both; `use`: of its test or its calibrated rows.
    """
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(table)}:.*?^(\d+ rows; .*?)$", text, re.M | re.S)
    if found is None:
        raise PageError(f"docs/validation.md has no table '{table}'")
    errors = re.search(
        rf"{f'as {kernels}: ' if kernels else 'rows; '}absolute error (?:of [^:]*?; )??of \d+ {use} rows "
        r"mean ([\d.]+)%, max ([\d.]+)%",
        found[1],
    )
    if errors is None:
        raise PageError(f"docs/validation.md: no such errors below the table '{table}': {found[1]}")
    return {"mean": float(errors[1]), "max": float(errors[2])}


def _renumbered(match: re.Match[str]) -> str:
    digits = len(match["number"].partition(".")[2])
    return f"{value_of(match['value']):,.{digits}f}{match['unit']}{match['comment']}"


def updated(page: Path, shown: list[Shown]) -> str:
    """The text of a page with what its blocks and numbers must be."""
    text = page.read_text(encoding="utf-8")
    for each in reversed(shown):
        if each.expected is None or without_host(each.expected) == without_host(each.block.text):
            continue
        begin, end = each.block.span
        indent = each.block.indent
        new = "".join(f"{indent}{line}".rstrip() + "\n" for line in each.expected.splitlines())
        text = text[:begin] + new + text[end:]
    return CHECKED.sub(_renumbered, text)


def take_pictures(page: Path) -> list[Path]:
    """Pictures of pages that the commands of a page have written into the working directory."""
    import report_screenshots

    sys.path.insert(0, str(ROOT / "tests" / "report"))
    from browser import Browser  # type: ignore[import-not-found]

    written = []
    for match in PICTURE.finditer(page.read_text(encoding="utf-8")):
        width, height = int(match["width"]), int(match["height"])
        browser: Any
        with Browser(width, height) as browser:
            browser.resize(width, height)
            browser.open(Path(match["page"]))
            top = 0.0
            if match["anchor"]:
                top = float(report_screenshots.opened(browser, match["anchor"])[0])
            data = report_screenshots.shot(browser, width, top, height)
        file = page.parent / match["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        written.append(file)
    return written


def main() -> None:
    """Rewrites the pages that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="such as README.md")
    parser.add_argument("--pictures", action="store_true", help="take the pictures of the pages again, too")
    options = parser.parse_args()
    before = Path.cwd()
    for page in [path.resolve() for path in options.pages] or [page for page in PAGES if is_held(page)]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text = updated(page, run_page(page, Path(folder)))
                if text != page.read_text(encoding="utf-8"):
                    page.write_text(text, encoding="utf-8")
                    print(f"{page.relative_to(ROOT)}: rewritten", flush=True)
                if options.pictures:
                    for file in take_pictures(page):
                        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB", flush=True)
            finally:
                os.chdir(before)


if __name__ == "__main__":
    main()
