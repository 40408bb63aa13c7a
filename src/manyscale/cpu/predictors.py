# SPDX-License-Identifier: Apache-2.0
"""Branch predictors by name: those of the core, and further ones written in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from manyscale import _core
from manyscale.errors import InputError

_KIND = "branch predictor"


class Predictor(Protocol):
    """What a direction predictor of one core has to do."""

    def predict(self, pc: int) -> bool:
        """Whether the conditional branch at this address will be taken."""

    def update(self, pc: int, taken: bool) -> None:
        """Learns where that branch went."""


def predictors() -> dict[str, str]:
    """All branch predictors that `cpu.core.branch.kind` can name, with a sentence on each."""
    return {name: entry["doc"] for name, entry in _core.plugins()[_KIND].items()}


def register_predictor(name: str, factory: Callable[[], Predictor], doc: str = "") -> None:
    """Adds a branch predictor, so that machines of this process can name it; each core makes its own.

    A call into Python for each conditional branch makes it slow: it is there to try an idea. One in C++ is a source
    file like those in core/cpu/core/predictors, in the tree or in a library of plug-ins.
    """
    text = doc or (factory.__doc__ or "").strip().partition("\n")[0]
    try:
        _core.register_branch_predictor(name, text, factory)
    except ValueError as error:
        raise InputError(str(error)) from None


@contextlib.contextmanager
def registered_predictor(name: str, factory: Callable[[], Predictor], doc: str = "") -> Iterator[None]:
    """The same for a while: it is gone afterwards."""
    register_predictor(name, factory, doc)
    try:
        yield
    finally:
        _core.remove_plugin(_KIND, name)
