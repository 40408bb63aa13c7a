# SPDX-License-Identifier: Apache-2.0
"""Ways to damage a file: by its structure where it has one (JSON, TOML), else by its lines and bytes."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import tomlkit

from manyscale.results.integrity import SEAL, sealed

NUMBERS = (
    0,
    1,
    -1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    1.5,
    -0.0,
    1e308,
    1e-320,
)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    " ",
    "x",
    "0",
    "-1",
    "1e999",
    "nan",
    "é\u2028\U0001f600",
    "\x00",
    "../../etc",
    "a" * 5000,
    "9" * 5000,
)
BYTES = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xc3\x28",
    b"[" * 3000,
    b"{" * 3000,
    b'{"a":' * 3000,
    b"9" * 5000,
    b"\n\n",
    b"\r",
)
WORDS = (
    *(b"0", b"1", b"2", b"3", b"7", b"64", b"100", b"4096", b"65536", b"2147483647"),
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b"18446744073709551616",
    b"9" * 400,
    b"0x",
    b"}",
    b"{",
    b'"',
    b"=",
    b"\xe9",
)

Mutation = Callable[[bytes, random.Random], bytes]


def of_json(content: bytes, source: random.Random) -> bytes:
    """Another value, a missing or another key, or damaged bytes; a document with a checksum mostly gets a new one."""
    if source.random() < 0.25:
        return of_bytes(content, source)
    data = _changed(json.loads(content), source, NUMBERS + NOT_FINITE)
    if isinstance(data, dict) and SEAL in data and source.random() < 0.9:
        return sealed(data)
    return json.dumps(data).encode("utf-8", "surrogatepass")


def of_toml(content: bytes, source: random.Random) -> bytes:
    """The same for TOML, which has no null."""
    if source.random() < 0.3:
        return of_lines(content, source)
    data = _changed(tomlkit.parse(content.decode()).unwrap(), source, NUMBERS + NOT_FINITE, null=False)
    if not isinstance(data, dict):
        return str(data).encode("utf-8", "replace")
    return tomlkit.dumps(data).encode("utf-8", "replace")


def of_lines(content: bytes, source: random.Random) -> bytes:
    """Lines that are missing, doubled, exchanged or cut, and words that become others."""
    lines = content.split(b"\n")
    for _ in range(source.randint(1, 3)):
        at = _line(lines, source)
        what = source.randrange(6)
        if what == 0 and len(lines) > 1:
            del lines[at]
        elif what == 1:
            lines.insert(at, source.choice(lines))
        elif what == 2:
            lines[at] = lines[at][: source.randint(0, len(lines[at]))]
        elif what == 3:
            words = lines[at].split(b" ")
            words[source.randrange(len(words))] = source.choice(WORDS)
            lines[at] = b" ".join(words)
        elif what == 4:
            lines[at] = b"".join(
                source.choice(WORDS) if part.isdigit() and source.random() < 0.5 else part
                for part in _split_digits(lines[at])
            )
        else:
            return of_bytes(b"\n".join(lines), source)
    return b"\n".join(lines)


def _line(lines: list[bytes], source: random.Random) -> int:
    """Any line, or one of a kind that may be rare: lines that begin alike are of one kind."""
    if source.random() < 0.5:
        return source.randrange(len(lines))
    kinds: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines):
        kinds.setdefault(line.lstrip()[:5], []).append(number)
    return source.choice(kinds[source.choice(sorted(kinds))])


def of_bytes(content: bytes, source: random.Random) -> bytes:
    """Bits that are turned, pieces that are missing, doubled or put in, and an end that comes early."""
    changed = bytearray(content)
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(changed) + 1)
        length = source.choice((1, 1, 2, 4, 8, 64))
        what = source.randrange(6)
        if what == 0:
            del changed[at:]
        elif what == 1:
            del changed[at : at + length]
        elif what == 2:
            changed[at:at] = changed[at : at + length]
        elif what == 3:
            changed[at:at] = source.choice(BYTES)
        elif what == 4:
            changed[at : at + length] = source.choice((b"\x00", b"\xff", b"\x7f")) * length
        elif at < len(changed):
            changed[at] ^= 1 << source.randrange(8)
    return bytes(changed)


def _changed(data: Any, source: random.Random, numbers: tuple[Any, ...], null: bool = True) -> Any:
    root = [copy.deepcopy(data)]
    for _ in range(source.randint(1, 2)):
        entries = list(_entries(root))
        holder, key = source.choice(entries)
        what = source.randrange(8)
        if what == 0 and holder is not root:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[source.choice(TEXTS)] = holder.pop(key)
        elif what == 2 and isinstance(holder, dict):
            holder[source.choice(("name", "model", "self", "kind", "schema", "x" * 100))] = holder[key]
        elif what == 3:
            other, name = source.choice(entries)
            holder[key] = copy.deepcopy(other[name])
        elif what == 4:
            holder[key] = source.choice(([], {}, [[]], {"": 0}, [0], [holder[key]], {"value": 1}, _deep(60)))
        elif what >= 6:
            holder[key] = _of_its_type(holder[key], source)
        else:
            plain = (*numbers, *TEXTS, True, False, *((None,) if null else ()))
            holder[key] = source.choice(plain)
    return root[0]


def _of_its_type(value: Any, source: random.Random) -> Any:
    """Another value that a check of types lets through."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = value + source.choice((-1, 1, -2, 2, 7, 100))
        return source.choice((near, 2 * value, value // 2, -value, 0, 2**31, 2**53, 2**62))
    if isinstance(value, float):
        return source.choice((value * 2.0, value / 3.0, -value, 0.0, 1e-300, 1e300, *NOT_FINITE))
    if isinstance(value, list) and value:
        return source.choice((value[1:], value[:-1], value + value[:1], value[::-1], value * 2))
    return source.choice(TEXTS) if isinstance(value, str) else copy.deepcopy(value)


def _entries(holder: Any) -> Any:
    entries = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for key, value in entries:
        yield holder, key
        if isinstance(value, dict | list):
            yield from _entries(value)


def _deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _split_digits(line: bytes) -> list[bytes]:
    import re

    return re.split(rb"(\d+)", line)
