# SPDX-License-Identifier: Apache-2.0
"""GOAL schedules, the text format of LogGOPSim: read, checked, written, and made into programs.

A schedule has, for each rank, operations (`calc` in nanoseconds, `send`, `recv`) and what each requires of the
others of its rank. Numbers of processors and NICs (`cpu`, `nic`) are read, but a rank here has one of each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from manyscale.errors import InputError
from manyscale.network.skeleton import MOST_RANKS
from manyscale.results.files import FileKind, as_text, write_file
from manyscale.units import shown

CALC, SEND, RECV = "calc", "send", "recv"
ANYONE = -1  # as GOAL writes any source and any tag
MOST_OPERATIONS = 20_000_000
LARGEST_MESSAGE = 2**48  # bytes
LONGEST_CALC = 9 * 10**12  # nanoseconds: simulated time ends at 9,223 s
LARGEST_TAG = 2**31 - 1
LONGEST_LINE = 1000

_LABEL = r"(?:([A-Za-z][A-Za-z0-9_]*)\s*:\s*)?"
_RESOURCES = r"(?:\s+cpu\s+\d+)?(?:\s+nic\s+\d+)?"
_CALC = re.compile(rf"{_LABEL}calc\s+(\d+){_RESOURCES}")
_MESSAGE = re.compile(
    rf"{_LABEL}(send|recv)\s+(\d+)\s*b\s+(to|from)\s+(-?\d+)(?:\s+tag\s+(-?\d+))?{_RESOURCES}"
)
_NEEDS = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s+(i?requires)\s+([A-Za-z][A-Za-z0-9_]*)")
_RANK = re.compile(r"rank\s+(\d+)\s*\{\s*")
_RANKS = re.compile(r"num_ranks\s+(\d+)\s*")
GOAL = FileKind(
    "a GOAL schedule", lambda head: re.search(rb"^\s*num_ranks\s+\d", head, re.MULTILINE) is not None
)


@dataclass
class GoalRank:
    """The operations of one rank, in columns, and what they require: pairs of (operation, required one)."""

    kinds: list[str] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)  # nanoseconds or bytes
    peers: list[int] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    requires: list[tuple[int, int]] = field(default_factory=list)  # begins after the other has ended
    follows: list[tuple[int, int]] = field(default_factory=list)  # begins after the other has begun

    def add(self, kind: str, amount: int, peer: int = ANYONE, tag: int = 0) -> int:
        """One more operation; its number in the rank."""
        self.kinds.append(kind)
        self.amounts.append(amount)
        self.peers.append(peer)
        self.tags.append(tag)
        return len(self.kinds) - 1


@dataclass
class GoalSchedule:
    """A schedule of all ranks; a rank that is not listed does nothing."""

    ranks: int
    by_rank: dict[int, GoalRank] = field(default_factory=dict)
    name: str = "goal"

    def rank(self, number: int) -> GoalRank:
        """The operations of a rank, to look at or to add to."""
        return self.by_rank.setdefault(number, GoalRank())

    @property
    def messages(self) -> int:
        """Sends of all ranks."""
        return sum(part.kinds.count(SEND) for part in self.by_rank.values())


def read_goal(path: str | os.PathLike[str]) -> GoalSchedule:
    """The schedule in a file of GOAL text; a mistake in it is an error that names its line."""
    file = Path(path)
    try:
        with file.open(encoding="utf-8", errors="strict") as lines:
            return parse_goal(lines, str(file), file.stem)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text: {error.reason} at byte {error.start}") from None


def parse_goal(lines: Iterable[str], where: str = "GOAL text", name: str = "goal") -> GoalSchedule:
    """The schedule that some lines of GOAL text describe."""
    return _Parser(where, name).parse(lines)


class _Parser:
    def __init__(self, where: str, name: str) -> None:
        self._where = where
        self._name = name
        self._schedule: GoalSchedule | None = None
        self._rank = -1  # the one whose braces are open
        self._opened = 0
        self._labels: dict[str, int] = {}
        self._line = 0
        self._operations = 0

    def parse(self, lines: Iterable[str]) -> GoalSchedule:
        for number, text in self._without_comments(lines):
            self._line = number
            statement = text.strip()
            if statement and self._rank >= 0 and "}" not in statement:  # nearly all lines
                self._inside(statement)
                continue
            while statement:
                statement = self._statement(statement).strip()
        if self._rank >= 0:
            self._line = self._opened
            raise self._wrong(f"the braces of rank {self._rank} are never closed")
        if self._schedule is None:
            raise InputError(f"{self._where}: it does not say num_ranks, with which a schedule begins")
        return self._schedule

    def _without_comments(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        inside = False
        for number, line in enumerate(lines, start=1):
            self._line = number
            if len(line) > LONGEST_LINE:
                raise self._wrong(
                    f"it has {len(line)} letters; a line of a schedule has at most {LONGEST_LINE}"
                )
            if not inside and "/" not in line:
                yield number, line
                continue
            text = line
            kept = ""
            while text:
                if inside:
                    _, found, text = text.partition("*/")
                    inside = not found
                    continue
                begin = min((at for at in (text.find("//"), text.find("/*")) if at >= 0), default=-1)
                if begin < 0:
                    kept += text
                    break
                kept += text[:begin]
                if text.startswith("//", begin):
                    break
                inside, text = True, text[begin + 2 :]
            yield number, kept

    def _statement(self, text: str) -> str:
        """Takes one statement; what is left of the line."""
        if self._rank < 0:
            return self._outside(text)
        if text.startswith("}"):
            self._rank = -1
            return text[1:]
        text, closing, rest = text.partition("}")
        self._inside(text.strip())
        return closing + rest

    def _outside(self, text: str) -> str:
        if match := _RANKS.match(text):
            if self._schedule is not None:
                raise self._wrong("num_ranks is said twice")
            ranks = self._number(match[1], MOST_RANKS, "the number of ranks")
            if ranks < 1:
                raise self._wrong("a schedule has at least 1 rank")
            self._schedule = GoalSchedule(ranks, name=self._name)
            return text[match.end() :]
        if match := _RANK.match(text):
            if self._schedule is None:
                raise self._wrong("num_ranks must come before the first rank")
            rank = self._number(match[1], MOST_RANKS, "the rank")
            if rank >= self._schedule.ranks:
                raise self._wrong(f"there is no rank {rank}; num_ranks is {self._schedule.ranks}")
            if rank in self._schedule.by_rank:
                raise self._wrong(f"rank {rank} is described twice")
            self._schedule.rank(rank)
            self._rank, self._opened, self._labels = rank, self._line, {}
            return text[match.end() :]
        raise self._wrong(f"expected 'num_ranks N' or 'rank N {{', got {shown(text)}")

    def _inside(self, text: str) -> None:
        assert self._schedule is not None
        part = self._schedule.by_rank[self._rank]
        if match := _MESSAGE.fullmatch(text):
            label, kind, amount, way, peer, tag = match.groups()
            if (kind == SEND) != (way == "to"):
                raise self._wrong(f"expected 'send … to' or 'recv … from', got {shown(text)}")
            whom, mark = self._peer(kind, peer), self._tag(kind, tag)
            self._add(part, label, kind, self._number(amount, LARGEST_MESSAGE, "the bytes"), whom, mark)
        elif match := _CALC.fullmatch(text):
            self._add(part, match[1], CALC, self._number(match[2], LONGEST_CALC, "the time"), ANYONE, 0)
        elif match := _NEEDS.fullmatch(text):
            pair = (self._labelled(match[1]), self._labelled(match[3]))
            if pair[0] == pair[1]:
                raise self._wrong(f"'{match[1]}' requires itself")
            (part.requires if match[2] == "requires" else part.follows).append(pair)
        else:
            raise self._wrong(
                "expected 'label: calc N', 'label: send Nb to R [tag T]', 'label: recv Nb from R [tag T]', "
                f"'label requires label' or '}}', got {shown(text)}"
            )

    def _add(self, part: GoalRank, label: str | None, kind: str, amount: int, peer: int, tag: int) -> None:
        self._operations += 1
        if self._operations > MOST_OPERATIONS:
            raise self._wrong(f"a schedule has at most {MOST_OPERATIONS:,} operations")
        number = part.add(kind, amount, peer, tag)
        if label is not None:
            if label in self._labels:
                raise self._wrong(f"the label '{label}' is used twice in rank {self._rank}")
            self._labels[label] = number

    def _labelled(self, label: str) -> int:
        if label not in self._labels:
            raise self._wrong(f"there is no label {shown(label)} in rank {self._rank} so far")
        return self._labels[label]

    def _peer(self, kind: str, text: str) -> int:
        assert self._schedule is not None
        if text == "-1" and kind == RECV:
            return ANYONE
        peer = -1 if text.startswith("-") else self._number(text, MOST_RANKS, "the peer")
        if not 0 <= peer < self._schedule.ranks:
            raise self._wrong(f"there is no rank {text[:20]}; num_ranks is {self._schedule.ranks}")
        return peer

    def _tag(self, kind: str, text: str | None) -> int:
        if text is None:
            return 0
        if text == "-1" and kind == RECV:
            return ANYONE
        if text.startswith("-"):
            raise self._wrong(f"the tag is {text[:20]}; only a recv may have -1, for any tag")
        return self._number(text, LARGEST_TAG, "the tag")

    def _number(self, digits: str, most: int, what: str) -> int:
        if len(digits) > 20 or int(digits) > most:
            raise self._wrong(f"{what} is {digits[:20]}; it must be at most {most:,}")
        return int(digits)

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{self._where}, line {self._line}: {what}")


def write_goal(schedule: GoalSchedule, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Writes a schedule as GOAL text; over another schedule only with `force`."""
    write_file(path, as_text(lambda file: goal_text(schedule, file)), GOAL, force=force)


def goal_text(schedule: GoalSchedule, file: IO[str]) -> None:
    """The text of a schedule."""
    file.write(f"num_ranks {schedule.ranks}\n")
    for number in range(schedule.ranks):
        part = schedule.by_rank.get(number, GoalRank())
        file.write(f"\nrank {number} {{\n")
        for index, kind in enumerate(part.kinds):
            file.write(f"l{index + 1}: {_words(kind, part, index)}\n")
        for word, pairs in (("requires", part.requires), ("irequires", part.follows)):
            for later, earlier in pairs:
                file.write(f"l{later + 1} {word} l{earlier + 1}\n")
        file.write("}\n")


def _words(kind: str, part: GoalRank, index: int) -> str:
    if kind == CALC:
        return f"calc {part.amounts[index]}"
    way = "to" if kind == SEND else "from"
    return f"{kind} {part.amounts[index]}b {way} {part.peers[index]} tag {part.tags[index]}"
