# SPDX-License-Identifier: Apache-2.0
"""The collection of CUDA programs as a whole: each has fixtures for at least two targets, and a test that runs it."""

from __future__ import annotations

import re

import pytest
from programs_support import FIXTURES, PROGRAMS

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.cu"))
MOST_BYTES = 4_000_000


@pytest.mark.parametrize("name", NAMES)
def test_program_has_the_fixtures_it_names(name: str) -> None:
    first, second = (PROGRAMS / f"{name}.cu").read_text().splitlines()[:2]
    assert first == "// SPDX-License-Identifier: Apache-2.0"
    wanted = second.removeprefix("// fixtures:").split()
    assert len(wanted) >= 2
    assert sorted(wanted) == sorted(path.parent.name for path in FIXTURES.glob(f"sm_*/{name}.ptx"))


def test_every_program_is_run_by_a_test() -> None:
    tests = "".join(path.read_text() for path in PROGRAMS.parent.glob("test_programs_*.py"))
    assert sorted(set(re.findall(r'^@program\("(\w+)"', tests, re.MULTILINE))) == NAMES


def test_fixtures_are_of_programs_and_small() -> None:
    paths = list(FIXTURES.glob("sm_*/*.ptx"))
    assert {path.stem for path in paths} == set(NAMES)
    assert sum(path.stat().st_size for path in paths) < MOST_BYTES
