# SPDX-License-Identifier: Apache-2.0
"""What the pages show is true: their Python runs, their C++ compiles, their links and commands exist.

A ```text block right after a ```python block is what that block prints. A block with `<!-- not run -->`
before it is left out.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from manyscale.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^(?P<skip><!-- not run -->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:core|bindings|src|docs|examples|tests|benchmarks|machines|tools)/[\w./-]*)`")

page_of = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    skipped: bool
    follows: bool  # nothing stands between the block before and this one


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    end = 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        follows = end > 0 and not text[end : match.start()].strip()
        found.append(Block(match["language"], match["text"], line, bool(match["skip"]), follows))
        end = match.end()
    return found


def prose(page: Path) -> str:
    """The page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


@page_of
def test_python_blocks_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    printed = None
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.language == "python" and not block.skipped:
            # Line numbers of the page in tracebacks.
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code, namespace)
            printed = output.getvalue()
        elif block.language == "text" and block.follows and printed is not None:
            assert printed.rstrip() == block.text.rstrip(), where
        else:
            printed = None


@page_of
def test_cpp_blocks_compile(page: Path, tmp_path: Path):
    """Blocks whose first line names their file, such as `// core/…/x.cpp`, compile against the core."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    files = []
    for block in blocks(page):
        if block.language != "cpp" or block.skipped:
            continue
        heading, _, text = block.text.partition("\n")
        assert heading.startswith("// core/"), f"{page.name}, line {block.line}: no file name"
        path = tmp_path / heading.removeprefix("// ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        files.append(path)
    sources = [str(path) for path in files if path.suffix == ".cpp"]
    if not sources:
        return
    if compiler is None:
        pytest.skip("no C++ compiler")
    command = [*shlex.split(compiler), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(
        [*command, f"-I{tmp_path}/core", f"-I{ROOT}/core", *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@page_of
def test_links_and_paths_lead_to_files(page: Path):
    text = prose(page)
    targets = [page.parent / link.partition("#")[0] for link in _LINK.findall(text) if "://" not in link]
    targets += [ROOT / path for path in _PATH.findall(text)]
    missing = [str(target) for target in targets if not target.exists()]
    assert not missing


@page_of
def test_commands_exist(page: Path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in blocks(page):
        if block.language != "sh":
            continue
        for number, line in enumerate(block.text.replace("\\\n", " ").splitlines()):
            words = shlex.split(line, comments=True)
            where = f"{page.name}, line {block.line + number}: {line}"
            if words[:1] == ["manyscale"]:
                check_command(words[1:], where)
            elif words[:1] == ["make"]:
                for target in words[1:]:
                    assert re.search(rf"^{re.escape(target)}:", makefile, re.M), where


def check_command(words: list[str], where: str) -> None:
    """The words name a command of the app and only options that it has."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            assert command.invoke_without_command or words, f"{where}: a group without a command"
            break
        assert words[0] in command.commands, f"{where}: there is no command '{words[0]}'"
        command, words = command.commands[words[0]], words[1:]
    known = {"--help", "-h", *(option for parameter in command.params for option in parameter.opts)}
    for word in words:
        if word == "--":
            break
        option = word.partition("=")[0]
        assert not option.startswith("-") or option in known, f"{where}: no option {option}"
