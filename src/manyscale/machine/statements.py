# SPDX-License-Identifier: Apache-2.0
"""What files and command lines state about a machine, before it is checked: values with their sources.

Layers of statements are merged, later over earlier, so each value keeps the source of the layer it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Union

from manyscale.spec import Location


@dataclass(frozen=True)
class Statement:
    """One stated value, the text of its source, and where it was written, for error messages."""

    value: Any
    source: str
    origin: str


Tree = dict[str, Union[Statement, "Tree"]]


@dataclass(frozen=True)
class Layer:
    """What one file states: about a machine, the machine it starts from, and what it says of a workload."""

    tree: Tree
    inherits: str | None = None
    workload: dict[str, str] = field(default_factory=dict)


def merge(below: Tree, above: Tree) -> Tree:
    """Both trees in one; where both state a value, that of `above`."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(value, dict) and isinstance(under, dict):
            merged[name] = merge(under, value)
        else:
            merged[name] = value
    return merged


def values(tree: Tree) -> dict[str, Any]:
    """The plain values of a tree."""
    return {name: values(item) if isinstance(item, dict) else item.value for name, item in tree.items()}


def leaves(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Statement]]:
    """Every statement with its dotted path."""
    for name, item in tree.items():
        if isinstance(item, dict):
            yield from leaves(item, f"{prefix}{name}.")
        else:
            yield prefix + name, item


def inherited(tree: Tree, ancestor: str) -> Tree:
    """The tree with sources that say from which machine they were inherited."""
    result: Tree = {}
    for name, item in tree.items():
        if isinstance(item, dict):
            result[name] = inherited(item, ancestor)
        else:
            result[name] = replace(item, source=f"{item.source} (inherited from {ancestor})")
    return result


def origin_at(tree: Tree, location: Location, otherwise: str) -> str:
    """Where the statement at a location was written, or the first one below it."""
    item: Statement | Tree | None = tree
    for part in location:
        if not isinstance(item, dict):
            break
        item = item.get(str(part))
    if isinstance(item, dict):
        item = next((statement for _, statement in leaves(item)), None) if item is not tree else None
    return item.origin if isinstance(item, Statement) else otherwise


def state(tree: Tree, path: list[str], statement: Statement | Tree) -> None:
    """Puts a statement, or a tree of them, at a path of a tree, over whatever was there."""
    for name in path[:-1]:
        below = tree.get(name)
        if not isinstance(below, dict):
            below = tree[name] = {}
        tree = below
    tree[path[-1]] = statement
