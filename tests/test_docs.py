# SPDX-License-Identifier: Apache-2.0
"""What the pages show is true: their Python and their commands run, their C++ compiles, their links lead somewhere."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from docs_pages import ROOT, blocks, page_of, prose
from manyscale.cli.app import app, main

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:core|bindings|src|docs|examples|tests|benchmarks|machines|tools)/[\w./-]*)`")
# Files that pages take to be there.
_FILES = {
    "kernels.ptx": ROOT / "src/manyscale/cli/demo.ptx",
    "heat.xz": ROOT / "src/manyscale/cpu/samples/heat.xz",
}
# Pages that go on with a file of another.
_BEFORE = {"docs/tutorials/unified-memory.md": "docs/tutorials/gpu-kernel.md"}


@page_of
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, file in _FILES.items():
        shutil.copy(file, name)
    if before := _BEFORE.get(str(page.relative_to(ROOT))):
        write_files(ROOT / before)
    write_files(page)
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
            if block.language == "sh" and not block.skipped:
                run_commands(block.text, where)


def write_files(page: Path) -> None:
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")


def run_commands(text: str, where: str) -> None:
    """Runs the commands of Manyscale in a block; other programs, such as make, are not run."""
    for line in text.replace("\\\n", " ").splitlines():
        for command in re.split(r"&&", line):
            words = shlex.split(command, comments=True)
            if words[:1] != ["manyscale"]:
                continue
            complaint, unseen = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
            with contextlib.redirect_stdout(unseen), contextlib.redirect_stderr(complaint):
                code = main(words[1:])
            complaint.seek(0)
            assert code == 0, f"{where}: {command.strip()}\n{complaint.read()}"


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
    known = {"--help", "-h"}
    for parameter in command.params:
        known |= {*parameter.opts, *parameter.secondary_opts}  # the second are such as --no-…
    for word in words:
        if word == "--":
            break
        option = word.partition("=")[0]
        assert not option.startswith("-") or option in known, f"{where}: no option {option}"
