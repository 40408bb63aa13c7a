# SPDX-License-Identifier: Apache-2.0
"""The options of a `gpgpusim.config`, as text: which there are, and what they state of a machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from manyscale.machine.statements import Statement, Tree, state
from manyscale.units import shown

_MOST = 10**12  # of any number of a file
_TOKEN = re.compile(r'"(?P<quoted>[^"]*)"|(?P<open>")|#[^\n]*|(?P<word>[^\s"#]+)')
OPTION = re.compile(r"-[A-Za-z_][\w:.-]*")


@dataclass(frozen=True)
class Option:
    """An option of a file as it stands there."""

    name: str
    value: str
    line: int

    def __str__(self) -> str:
        value = self.value if len(self.value) <= 60 else f"{self.value[:57]}..."
        return f"-{self.name} {value}"


@dataclass
class OptionReader:
    """The options of a file, which of them were used, and what they state of a machine."""

    origin: str
    title: str
    options: dict[str, Option] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    tree: Tree = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Reads the options of a file; what is wrong is in `problems`."""
        line, at = 1, 0
        name, words, begun = "", list[str](), 1
        for token in _TOKEN.finditer(text):
            line, at = line + text.count("\n", at, token.start()), token.start()
            if token["open"]:
                self.problem(line, 'a text in quotes has no closing "')
                return
            word = token["word"] if token["quoted"] is None else token["quoted"]
            if word is None:
                continue
            if token["quoted"] is None and OPTION.fullmatch(word):
                self._finish(name, words, begun)
                name, words, begun = word[1:], [], line
            elif not name:
                self.problem(line, f"expected an option such as -gpgpu_n_clusters, got {shown(word)}")
                return
            else:
                words.append(word)
        self._finish(name, words, begun)

    def _finish(self, name: str, words: list[str], line: int) -> None:
        if not name:
            return
        if not words:
            self.problem(line, f"-{name[:60]} has no value")
        elif name in self.options and self.options[name].value != _spaced(words):
            self.problem(line, f"-{name[:60]} is stated twice, first in line {self.options[name].line}")
        else:
            self.options[name] = Option(name, _spaced(words), line)

    def problem(self, line: int, what: str) -> None:
        """Notes what is wrong in a line."""
        self.problems.append(f"{self.origin}, line {line}: {what}")

    def refuse(self, name: str, expected: str) -> None:
        """Notes an option whose value is not what is expected."""
        option = self.options[name]
        self.problem(option.line, f"-{name}: expected {expected}, got {shown(option.value)}")

    def text(self, name: str) -> str | None:
        """The value of an option, which is then used; None if it is not stated."""
        self.used.add(name)
        return self.options[name].value if name in self.options else None

    def wholes(self, name: str, separator: str = ",", least: int = 1) -> list[int]:
        """The whole numbers of a list, none if it is not stated."""
        text = self.text(name)
        if text is None:
            return []
        numbers = [int(part) if is_whole(part) else -1 for part in text.split(separator)]
        if any(not least <= number <= _MOST for number in numbers):
            self.refuse(name, f"whole numbers of at least {least}, with '{separator}' between them")
            return []
        return numbers

    def whole(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        """The whole number of an option, or the default if it is not stated."""
        text = self.text(name)
        if text is None:
            return default
        if not is_whole(text) or not least <= int(text) <= _MOST:
            self.refuse(name, f"a whole number of at least {least}")
            return None
        return int(text)

    def put(self, path: str, value: Any, *names: str, note: str = "", part: str = "") -> None:
        """States a parameter; its source is the options that it follows from, or the part of one."""
        stated = [self.options[name] for name in names if name in self.options]
        options = f"-{names[0]} {part}" if part else " ".join(map(str, stated))
        source = f"{self.title}: {options}{note and f' ({note})'}"
        origin = f"{self.origin}, line {stated[0].line}" if stated else self.origin
        state(self.tree, path.split("."), Statement(value, source, origin))

    def copy(self, path: str, name: str, *, unit: str = "", least: int = 1) -> None:
        """States a parameter that is the whole number of one option."""
        number = self.whole(name, least=least)
        if number is not None:
            self.put(path, f"{number}{unit}" if unit else number, name)


def _spaced(words: list[str]) -> str:
    """The words of a value with one space between them, also where a text in quotes has more, or new lines."""
    return " ".join(" ".join(words).split())


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of reasonable length."""
    return len(text) <= 18 and text.isascii() and text.isdigit()
