# SPDX-License-Identifier: Apache-2.0
"""What the pages show is true: their Python and their commands run, their C++ compiles, their links lead somewhere."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from docs_pages import ROOT, blocks, page_of, prose
from manyscale.cli.app import app
from update_docs_outputs import (
    CHECKED,
    PICTURE,
    PageError,
    is_held,
    run_page,
    selected,
    value_of,
    without_host,
)

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:core|bindings|src|docs|examples|tests|benchmarks|machines|tools)/[\w./-]*)`")


@page_of
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where it fails because a model has changed, `python tools/update_docs_outputs.py` writes what it gives now."""
    monkeypatch.chdir(tmp_path)
    for each in run_page(page, tmp_path):
        where = f"{page.name}, line {each.block.line}: python tools/update_docs_outputs.py rewrites it"
        if each.expected is not None:
            assert without_host(each.block.text) == without_host(each.expected), where
        else:
            assert not is_held(page), f"{where}: a comment has to say which lines of the output it shows"
            check_lines(each.block.text, each.output, where)
    check_numbers(page)
    for picture in PICTURE.finditer(page.read_text(encoding="utf-8")):
        assert (tmp_path / picture["page"]).is_file(), (
            f"{page.name}: the commands do not write {picture['page']}"
        )
        size = (page.parent / picture["file"]).stat().st_size
        assert 1000 < size < 150_000, f"{picture['file']}: {size} bytes"


def check_lines(text: str, output: str, where: str) -> None:
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


_CLAIM = re.compile(r"\d[\d.,]*(?:\s?(?:fs|ps|ns|us|ms|s|cycles|seconds|minutes|times|faults)\b|%)")
# Pages on which every number with such a unit in a sentence is checked; the others state what was measured once.
_NUMBERED = ("docs/tutorials/", "docs/how-to/")


def check_numbers(page: Path) -> None:
    """Numbers in sentences with a comment such as `0.92 ms<!-- = 1e3 * run("runs/tree")["simulated_seconds"] -->`.

    The comment is what the number is, in the unit beside it; it must round to what is written.
    """
    text = prose(page)
    for claim in CHECKED.finditer(text):
        value = value_of(claim["value"])
        digits = len(claim["number"].partition(".")[2])
        written = float(claim["number"].replace(",", ""))
        assert written == pytest.approx(value, abs=0.501 * 10**-digits), f"{page.name}: {claim[0]} is {value}"
    if str(page.relative_to(ROOT)).startswith(_NUMBERED):
        unchecked = [claim[0] for claim in _CLAIM.finditer(CHECKED.sub("", PICTURE.sub("", text)))]
        assert not unchecked, f"{page.name}: numbers without a comment that says what they are"


def test_an_output_is_shown_in_parts():
    output = "a 1\nb 2\nc 3\nd 4\ne 5\n"
    assert selected(output, "", "") == "a 1\nb 2\nc 3\nd 4\ne 5"
    assert selected(output, '"a", "c"', "") == "a 1\n…\nc 3"
    assert selected(output, '"b".."c"', "") == "b 2\nc 3"
    assert selected(output, '"a", "d"..', "") == "a 1\n…\nd 4\ne 5"
    for wrong in ('"z"', '"c", "a"', "a", '"a" "b"'):
        with pytest.raises(PageError):
            selected(output, wrong, "")


def test_only_the_speed_of_the_host_may_differ():
    was, now = (
        "simulated  4.2us in 0.8 s on 1 thread (5M messages/s)",
        "simulated  4.2us in 12 s on 1 thread (9.1k messages/s)",
    )
    assert without_host(was) == without_host(now)
    assert without_host(was) != without_host(was.replace("4.2us", "4.3us"))


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
    missing = []
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            missing.append(str(target))
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            missing.append(f"{target}#{anchor}")
    missing += [path for path in _PATH.findall(text) if not (ROOT / path).exists()]
    assert not missing


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    plain = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading)) for heading in plain}


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
