# SPDX-License-Identifier: Apache-2.0
"""The README followed to the letter, without the build: `make newcomer` does all of it in a fresh clone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from newcomer import ROOT, PageError, run, steps_of


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files of the repository as they are now, and the environment of the tests."""
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "README.md",
            "examples",
            "src",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a clone of the repository")
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clone" / name)
    if not (Path(sys.prefix) / "bin" / "activate").is_file():
        pytest.skip("the tests do not run in a virtual environment")
    (tmp_path / "clone" / ".venv").symlink_to(sys.prefix)
    (tmp_path / "home").mkdir()
    return tmp_path / "clone"


def test_the_readme_is_right_to_the_letter(clone: Path):
    run(clone / "README.md", clone, clone.parent / "home", installed=True)


def test_the_readme_installs_before_it_runs_anything():
    first, *rest = [step.block.text for step in steps_of(ROOT / "README.md")]
    assert first.startswith("make demo ")
    assert ". .venv/bin/activate" in first
    assert len(rest) >= 5
    assert not any("make " in text for text in rest)


@pytest.mark.parametrize(
    ("shown", "wrong"),
    [
        ("simulated 4.2us in 7.5 s\nlimit 3", None),
        ("simulated 4.3us in 0.8 s\nlimit 3", "printed was"),
        ("simulated 4.2us in 0.8 s", "printed was"),
    ],
)
def test_what_is_shown_must_be_printed(tmp_path: Path, shown: str, wrong: str | None):
    text = (
        f"```sh\necho simulated 4.2us in 0.8 s\necho limit 3\n```\n\n<!-- output -->\n```text\n{shown}\n```\n"
    )
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    if wrong is None:
        run(tmp_path / "README.md", tmp_path, tmp_path)
        return
    with pytest.raises(PageError, match=wrong):
        run(tmp_path / "README.md", tmp_path, tmp_path)


def test_a_command_that_fails_is_named(tmp_path: Path):
    text = "```sh\ntrue\n```\n\n```sh\necho no such file >&2\nfalse\n```\n\n```sh\ntouch reached\n```\n"
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    with pytest.raises(PageError, match=r"line 6: exit code 1(.|\n)*no such file"):
        run(tmp_path / "README.md", tmp_path, tmp_path)
    assert not (tmp_path / "reached").exists()


def test_the_environment_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere")
    text = (
        '```sh\necho "$HOME:${VIRTUAL_ENV-none}"\n```\n\n<!-- output -->\n```text\n'
        + f"{tmp_path}:none\n```\n"
    )
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    run(tmp_path / "README.md", tmp_path, tmp_path)
