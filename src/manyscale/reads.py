# SPDX-License-Identifier: Apache-2.0
"""Which parameters of a Spec were read, so that one that nothing reads can be refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyscale.spec import Spec


class Reads(set[str]):
    """Names of parameters that were read; copies of a Spec share them, and Specs that differ in them are equal."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Reads)


def watch(spec: Spec) -> None:
    """From now on it is remembered which parameters of a Spec, and of the sections in it, are read."""
    for section in sections(spec).values():
        section._reads = Reads()


def sections(spec: Spec, prefix: str = "") -> dict[str, Spec]:
    """A Spec and the Specs within it by their paths, which end with a dot but for the first."""
    found = {prefix: spec}
    for name, value in vars(spec).items():
        if hasattr(type(value), "model_fields"):
            found |= sections(value, f"{prefix}{name}.")
    return found


def unread(spec: Spec, paths: Iterable[str]) -> list[str]:
    """Those of some dotted paths that were not read since the Spec has been watched."""
    found = sections(spec)

    def was_read(path: str) -> bool:
        section, _, name = path.rpartition(".")
        owner = found.get(f"{section}." if section else "")
        return owner is None or owner._reads is None or name in owner._reads

    return [path for path in paths if not was_read(path)]
