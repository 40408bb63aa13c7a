# SPDX-License-Identifier: Apache-2.0
"""What TOML text states about a machine: values with their sources, which are the comments on their lines.

Tables of plain values, as presets are, are read line by line. Other text is read by tomlkit, which knows all of TOML
and takes a hundred times as long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from manyscale.machine.renamed import current
from manyscale.machine.statements import Statement, Tree, merge

if TYPE_CHECKING:
    from tomlkit.container import Container

_KEY = "[A-Za-z0-9_-]+"
_VALUE = r'"[^"\\]*"|[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|true|false'
_HEADING = re.compile(rf"\[({_KEY}(?:\.{_KEY})*)\][ \t]*(?:#.*)?")
_STATEMENT = re.compile(rf"({_KEY})[ \t]*=[ \t]*(?:({_VALUE})|\{{([^{{}}\"#]*)\}})[ \t]*(?:#(.*))?")
_WITHIN = re.compile(rf"[ \t]*({_KEY})[ \t]*=[ \t]*({_VALUE})[ \t]*")
_UNUSUAL = re.compile(r"[^\n\t -~\x80-\U0010ffff]|[\x80-\x9f]")  # control characters


def toml_tree(text: str, origin: str, source: str) -> Tree:
    """The statements of TOML text, whose source is `source` where a line has no comment; a ValueError if it is none."""
    plain = plain_tree(text, origin, source)
    if plain is not None:
        return plain
    import tomlkit
    from tomlkit.exceptions import ParseError, TOMLKitError

    try:
        return container_tree(tomlkit.parse(text), origin, source)
    except ParseError:
        raise  # a ValueError with the line and column
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def plain_tree(text: str, origin: str, source: str) -> Tree | None:
    """The same of text that has nothing but tables, values on a line of their own and tables of such values; None if
    there is more, or something may be wrong."""
    if _UNUSUAL.search(text):
        return None
    tree: Tree = {}
    table, headings, closed = tree, set(), set()  # closed: tables on a line, which nothing can be added to
    for line in map(str.strip, text.split("\n")):
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            heading = _HEADING.fullmatch(line)
            if heading is None or heading[1] in headings:
                return None
            headings.add(heading[1])
            table = tree
            for name in map(current, heading[1].split(".")):
                inner = table.setdefault(name, {})
                if not isinstance(inner, dict) or id(inner) in closed:
                    return None
                table = inner
            continue
        statement = _STATEMENT.fullmatch(line)
        if statement is None or (name := current(statement[1])) in table:
            return None
        own = (statement[4] or "").lstrip("#").strip() or source
        if statement[2] is not None:
            table[name] = Statement(_plain_value(statement[2]), own, origin)
            continue
        inline = _plain_inline(statement[3], own, origin)
        if inline is None:
            return None
        closed.add(id(inline))
        table[name] = inline
    return tree


def _plain_value(text: str) -> str | int | float | bool:
    if text[0] == '"':
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text)


def _plain_inline(text: str, source: str, origin: str) -> Tree | None:
    """The statements between the braces of a table on one line."""
    tree: Tree = {}
    for part in text.split(",") if text.strip() else ():
        within = _WITHIN.fullmatch(part)
        if within is None or (name := current(within[1])) in tree:
            return None
        tree[name] = Statement(_plain_value(within[2]), source, origin)
    return tree


def container_tree(container: Container, origin: str, source: str) -> Tree:
    """Statements of a table of tomlkit; a value's source is the comment on its line, else `source`."""
    from tomlkit.items import InlineTable, Table

    tree: Tree = {}
    # The body is walked, not the mapping: only its items carry comments, and a table may come in pieces.
    for key, item in container.body:
        if key is None:
            continue
        own = item.trivia.comment.lstrip("#").strip() or source
        name = current(key.key)
        if isinstance(item, InlineTable):
            tree = merge(tree, {name: container_tree(item.value, origin, own)})
        elif isinstance(item, Table):
            tree = merge(tree, {name: container_tree(item.value, origin, source)})
        else:
            tree[name] = Statement(item.unwrap(), own, origin)
    return tree


def value_tree(value: dict[str, Any], origin: str, source: str) -> Tree:
    """The statements of plain data."""
    return {
        current(name): value_tree(item, origin, source)
        if isinstance(item, dict)
        else Statement(item, source, origin)
        for name, item in value.items()
    }
