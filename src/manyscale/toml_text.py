# SPDX-License-Identifier: Apache-2.0
"""TOML text of plain data, written directly: files that we make ourselves can be large.

Files of machines are read with tomlkit, which keeps their comments; what needs none is read by `parse`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# TOML's basic strings have the escapes of JSON and allow all other characters as they are, except one.
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_DELETE = "\x7f"


def parse(text: str) -> dict[str, Any]:
    """The data of TOML text; a ValueError that names line and column if it is none."""
    if sys.version_info >= (3, 11):  # many times as quick
        import tomllib

        return tomllib.loads(text)
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def lines(
    data: Mapping[str, Any], path: str = "", comments: Mapping[str, str] | None = None, prefix: str = ""
) -> Iterator[str]:
    """The lines of a table: its own values, then its tables, each after a heading below `path`.

    `comments` holds the text behind a value by its dotted path, which begins with `prefix`.
    """
    tables = []
    for name, value in data.items():
        if isinstance(value, dict):
            tables.append((name, value))
            continue
        comment = comments.get(prefix + name, "") if comments else ""
        yield f"{key(name)} = {inline(value)}" + (f" # {comment}" if comment else "")
    for name, table in tables:
        inner = f"{path}.{key(name)}" if path else key(name)
        # A table of nothing but tables is known by theirs.
        if not table or not all(isinstance(value, dict) for value in table.values()):
            yield ""
            yield f"[{inner}]"
        yield from lines(table, inner, comments, f"{prefix}{name}.")


def key(name: str) -> str:
    """A name as it stands before the equals sign."""
    return name if _BARE_KEY.fullmatch(name) else inline(name)


def inline(value: object) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return _quoted(value).replace(_DELETE, "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{key(name)} = {inline(entry)}" for name, entry in value.items())
        return f"{{{inner}}}"
    raise TypeError(f"TOML has no {type(value).__name__}")


def toml_value(text: str) -> Any:
    """A value as people write it on a command line: TOML, or a bare word such as 1.5GHz."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.value(text.strip()).unwrap()
    except (TOMLKitError, ValueError, RecursionError):
        return text.strip()
