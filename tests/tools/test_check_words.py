# SPDX-License-Identifier: Apache-2.0
"""The check of words finds banned words in sentences and identifiers, and lets their counts only fall."""

import subprocess
from pathlib import Path

import pytest

import check_words

WORDS = """
[[banned]]
word = "feed"
use = "stream"
where = "code"
except = "line feed"
allowed = ["core/old.cpp"]

[[banned]]
name = "anew"
pattern = '(?i)\\banew\\b'
use = "again"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a list of two words and nothing that uses them."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/banned_words.toml").write_text(WORDS)
    add(tmp_path, "core/empty.cpp", "")
    return tmp_path


def add(tree: Path, name: str, text: str) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    subprocess.run(["git", "add", "--all"], cwd=tree, check=True)


def check(tree: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = check_words.main(list(arguments), root=tree)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["feed", "a feed.", "trace_feed", "TraceFeed x", "feeds_", "FEED", "FeedAnswer"]
)
def test_a_word_is_found_alone_and_in_identifiers(tree: Path, capsys, text: str):
    add(tree, "core/a.cpp", f"\n{text}\n")
    code, told = check(tree, capsys)
    assert code == 1
    assert "'feed' occurs 1 times in core/" in told
    assert "use stream" in told
    assert "core/a.cpp:2" in told


@pytest.mark.parametrize("text", ["feedback", "line feed", "Line feed", "refeed", "seaFeedle"])
def test_longer_words_and_exceptions_are_right(tree: Path, capsys, text: str):
    add(tree, "core/a.cpp", text)
    assert check(tree, capsys) == (0, "")


def test_a_word_counts_only_where_it_applies(tree: Path, capsys):
    add(tree, "docs/a.md", "feed")
    add(tree, "core/old.cpp", "feed")
    add(tree, "core/image.png", "feed")
    assert check(tree, capsys) == (0, "")
    add(tree, "docs/b.md", "Anew")
    assert check(tree, capsys)[0] == 1


def test_counts_may_fall_but_not_rise(tree: Path, capsys):
    left = tree / "tools/banned_words_left.toml"
    left.write_text('"feed" = { "core" = 2, "src" = 5 }\n')
    add(tree, "core/a.cpp", "feed feed")
    assert check(tree, capsys) == (0, "")
    add(tree, "core/b.cpp", "feed")
    code, told = check(tree, capsys)
    assert code == 1
    assert "occurs 3 times in core/, allowed 2" in told
    add(tree, "core/a.cpp", "")
    assert check(tree, capsys, "--update") == (0, "")
    assert check_words.read_counts(left) == {"feed": {"core": 1}}


def test_an_update_does_not_allow_more(tree: Path, capsys):
    add(tree, "core/a.cpp", "feed")
    assert check(tree, capsys, "--update")[0] == 1
    assert check_words.read_counts(tree / "tools/banned_words_left.toml") == {}


def test_the_list_of_this_repository_can_be_read():
    words = check_words.read_words(check_words.ROOT / check_words.LIST)
    assert len({word.name for word in words}) == len(words)
    allowed = check_words.read_counts(check_words.ROOT / check_words.LEFT)
    assert allowed.keys() <= {word.name for word in words}
