# SPDX-License-Identifier: Apache-2.0
"""Checks that sources and pages use the field's words: `tools/banned_words.toml` lists words to avoid, and better ones.

Run by `make lint`. `tools/banned_words_left.toml` holds how often each word still occurs in each top folder; the check
fails when a count rises. `python tools/check_words.py --update` lowers the counts to what is left and raises none.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import tomlkit

ROOT = Path(__file__).resolve().parents[1]
LIST = "tools/banned_words.toml"
LEFT = "tools/banned_words_left.toml"
DOCS = {".md"}
CODE = {".py", ".pyi", ".hpp", ".cpp", ".h", ".c", ".cu", ".cuh", ".ptx", ".S", ".inc", ".js", ".css", ".sh"}
CODE |= {".toml", ".yml", ".txt", ".cmake", ""}
# The lists themselves, their test, and the log of changes, which names old words.
SKIPPED = (
    LIST,
    LEFT,
    "CHANGELOG.md",
    "tools/statistic_renames.toml",
    "LICENSE",
    "tests/tools/test_check_words.py",
)

Counts = dict[str, dict[str, int]]  # by word, then by top folder


@dataclass(frozen=True)
class BannedWord:
    """A word to avoid: where it is looked for, and what to write instead."""

    name: str
    pattern: re.Pattern[str]
    exceptions: re.Pattern[str] | None  # phrases in which the word is right
    use: str
    where: str  # code, docs or all
    files: tuple[str, ...]  # shell patterns: only in these, or in all
    allowed: tuple[str, ...]  # shell patterns: files in which the word is right

    def applies_to(self, path: str) -> bool:
        """Whether the word is looked for in the file."""
        kind = "docs" if Path(path).suffix in DOCS else "code"
        if self.where not in ("all", kind) or any(fnmatch(path, pattern) for pattern in self.allowed):
            return False
        return not self.files or any(fnmatch(path, pattern) for pattern in self.files)

    def occurrences(self, text: str) -> Iterator[int]:
        """The line numbers of the word's occurrences in a text."""
        found = list(self.pattern.finditer(text))
        right = (
            [match.span() for match in self.exceptions.finditer(text)] if found and self.exceptions else []
        )
        for match in found:
            if not any(begin <= match.start() < end for begin, end in right):
                yield text.count("\n", 0, match.start()) + 1


def identifier_pattern(word: str) -> str:
    """A regular expression for a word alone or in a snake_case or CamelCase identifier, also in the plural."""
    lower, first, upper = word.lower(), word[0].upper() + word[1:].lower(), word.upper()
    # What comes before is checked behind the word: a pattern that begins with a letter is found many times as fast.
    return "|".join(
        (
            rf"{lower}(?<![A-Za-z]{lower})s?(?![A-Za-z])",
            rf"{first}(?<![A-Z]{first})s?(?![a-z])",
            rf"{upper}(?<![A-Za-z]{upper})S?(?![A-Za-z])",
        )
    )


def read_words(path: Path) -> list[BannedWord]:
    """The list of words. Each entry has a `word` or a `pattern` with a `name`."""
    words = []
    known = {"word", "pattern", "name", "except", "use", "where", "files", "allowed"}
    for entry in tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()["banned"]:
        if unknown := entry.keys() - known:
            raise ValueError(f"{path}: unknown keys {sorted(unknown)} in the entry {entry}")
        pattern = entry["pattern"] if "pattern" in entry else identifier_pattern(entry["word"])
        words.append(
            BannedWord(
                name=entry.get("name", entry.get("word")),
                pattern=re.compile(pattern),
                exceptions=re.compile(entry["except"], re.I) if "except" in entry else None,
                use=entry["use"],
                where=entry.get("where", "all"),
                files=tuple(entry.get("files", ())),
                allowed=tuple(entry.get("allowed", ())),
            )
        )
    return words


def tracked_files(root: Path) -> list[str]:
    """The text files that git tracks, those of a merge once each."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    names = sorted(set(listed.stdout.split("\0")) - {""})
    return [name for name in names if Path(name).suffix in DOCS | CODE and (root / name).is_file()]


def find(root: Path, words: list[BannedWord], files: list[str]) -> dict[str, list[tuple[str, int]]]:
    """The files and lines in which each word occurs."""
    found: dict[str, list[tuple[str, int]]] = {word.name: [] for word in words}
    for name in files:
        if name in SKIPPED:
            continue
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        for word in words:
            if word.applies_to(name):
                found[word.name] += [(name, line) for line in word.occurrences(text)]
    return found


def top_folder(path: str) -> str:
    """The first folder of a path; "." for files at the top."""
    return path.split("/")[0] if "/" in path else "."


def count(found: Mapping[str, list[tuple[str, int]]]) -> Counts:
    """The number of occurrences by word and top folder, without zeros."""
    counts: Counts = {}
    for word, occurrences in found.items():
        for path, _ in occurrences:
            folders = counts.setdefault(word, {})
            folders[top_folder(path)] = folders.get(top_folder(path), 0) + 1
    return counts


def read_counts(path: Path) -> Counts:
    """The counts that are allowed still."""
    read: dict[str, Any] = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap() if path.is_file() else {}
    return read


def lowered(allowed: Counts, counts: Counts) -> Counts:
    """The allowance after an update: no entry rises, and none is added."""
    smaller = {
        word: {folder: min(number, counts.get(word, {}).get(folder, 0)) for folder, number in folders.items()}
        for word, folders in allowed.items()
    }
    return {
        word: {folder: number for folder, number in folders.items() if number}
        for word, folders in smaller.items()
        if any(folders.values())
    }


def counts_text(counts: Counts) -> str:
    """The file of counts, a line for each word, so that edits of different words merge."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# Banned words that are left, by top folder: `python tools/check_words.py --update` lowers the counts.",
        "",
    ]
    for word, folders in sorted(counts.items()):
        inner = ", ".join(f'"{folder}" = {number}' for folder, number in sorted(folders.items()))
        lines.append(f'"{word}" = {{ {inner} }}')
    return "\n".join(lines) + "\n"


def problems(
    words: list[BannedWord], found: Mapping[str, list[tuple[str, int]]], allowed: Counts
) -> list[str]:
    """What is wrong: words that occur more often in a folder than they may, with the lines where they do."""
    wrong = []
    counts = count(found)
    for word in words:
        for folder, number in counts.get(word.name, {}).items():
            limit = allowed.get(word.name, {}).get(folder, 0)
            if number > limit:
                lines = [f"{path}:{line}" for path, line in found[word.name] if top_folder(path) == folder]
                shown = ", ".join(lines[:8]) + (", …" if len(lines) > 8 else "")
                wrong.append(
                    f"'{word.name}' occurs {number} times in {folder}/, allowed {limit}: use {word.use} ({shown})"
                )
    return wrong


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Prints the problems and returns 1 if there are any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="lower the counts to what is left")
    parser.add_argument("--show", metavar="WORD", help="print every line in which the word occurs")
    options = parser.parse_args(arguments)
    words = read_words(root / LIST)
    found = find(root, words, tracked_files(root))
    if options.show:
        if options.show not in found:
            parser.error(f"{LIST} has no word '{options.show}'")
        for path, line in found[options.show]:
            print(
                f"{path}:{line}: {(root / path).read_text(encoding='utf-8').splitlines()[line - 1].strip()}"
            )
        return 0
    allowed = read_counts(root / LEFT)
    if options.update:
        allowed = lowered(allowed, count(found))
        (root / LEFT).write_text(counts_text(allowed), encoding="utf-8")
    wrong = problems(words, found, allowed)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
