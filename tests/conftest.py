# SPDX-License-Identifier: Apache-2.0
"""Shared by all tests."""

from __future__ import annotations

import logging

import pytest
from hypothesis import settings

settings.register_profile("manyscale", deadline=None, max_examples=100)
settings.load_profile("manyscale")


@pytest.fixture(autouse=True)
def _no_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print as wide as COLUMNS says; what the shell, or another test, has left there does not count."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _reports_are_on() -> None:
    """A command sets for its process whether the package reports; a command of another test does not count."""
    logging.getLogger("manyscale").setLevel(logging.NOTSET)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the engine and of systems touch the core."""
    for item in items:
        if item.path.parent.name in ("engine", "memory", "system"):
            item.add_marker(pytest.mark.core)
