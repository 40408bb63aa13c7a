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
from manyscale.results import load

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
    printed = shown = None  # by the last block of Python, or of commands
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
            if block.language == "text" and block.follows and shown is not None:
                check_shown(block.text, shown, where)
            printed = shown = None
            if block.language == "sh" and not block.skipped:
                shown = run_commands(block.text, where)
    check_numbers(page)


def write_files(page: Path) -> None:
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")


def run_commands(text: str, where: str) -> str:
    """Runs the commands of Manyscale in a block, and gives what they print; other programs are not run."""
    output = ""
    for line in text.replace("\\\n", " ").splitlines():
        for command in re.split(r"&&", line):
            words = shlex.split(command, comments=True)
            if words[:1] != ["manyscale"]:
                continue
            complaint, printed = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaint):
                code = main(words[1:])
            complaint.seek(0)
            assert code == 0, f"{where}: {command.strip()}\n{complaint.read()}"
            printed.seek(0)
            output += printed.read()
    return output


def check_shown(text: str, output: str, where: str) -> None:
    """Each line that a page shows is one of the output, but for those of the host's clock and the page's own …"""
    lines = {_flat(line) for line in output.splitlines()}
    for line in text.splitlines():
        flat = _flat(line)
        if flat and not flat.startswith(("executed ", "directory ", "…")):
            assert flat in lines, f"{where}: the command does not print: {line}\n{output}"


def _flat(line: str) -> str:
    """Without the lines of tables, which depend on the width of a terminal."""
    flat = " ".join(re.sub(r"[│┃┏┓┗┛┡┩┳┻╇┴━─└┘┬╈]", " ", line).split())
    return re.sub(r"^(simulated \S+) in .*", r"\1", flat)  # how long that took depends on the host


_CHECKED = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?)(?P<unit>\s?[a-zA-Z%/]*)<!-- = (?P<value>.*?) -->")
_CLAIM = re.compile(r"\d[\d.,]*(?:\s?(?:fs|ps|ns|us|ms|s|cycles|seconds|minutes|times|faults)\b|%)")
# Pages on which every number with such a unit in a sentence is checked; the others state what was measured once.
_HELD = ("docs/tutorials/", "docs/how-to/")


def check_numbers(page: Path) -> None:
    """Numbers in sentences with a comment such as `0.92 ms<!-- = 1e3 * run("runs/tree")["simulated_seconds"] -->`.

    The comment is what the number is, in the unit beside it; it must round to what is written.
    """

    def run(directory: str) -> dict[str, float]:
        return {name: entry["value"] for name, entry in load(directory).headline.items()}

    text = prose(page)
    for claim in _CHECKED.finditer(text):
        value = float(eval(claim["value"], {"run": run, "__builtins__": {}}))
        digits = len(claim["number"].partition(".")[2])
        written = float(claim["number"].replace(",", ""))
        assert written == pytest.approx(value, abs=0.501 * 10**-digits), f"{page.name}: {claim[0]} is {value}"
    if str(page.relative_to(ROOT)).startswith(_HELD):
        unchecked = [claim[0] for claim in _CLAIM.finditer(_CHECKED.sub("", text))]
        assert not unchecked, f"{page.name}: numbers without a comment that says what they are"


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
