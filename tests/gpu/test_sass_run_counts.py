# SPDX-License-Identifier: Apache-2.0
"""The warp instructions that test programs execute: of what PTX is lowered to, beside those of real SASS.

The counts of SASS are kept (fixtures/make_sass_run_counts.py makes them). Programs that wait for one
another in loops are left out: how often they go round depends on time, and an atomic operation that the machine does
by comparing and swapping is one instruction of PTX.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))
from make_sass_run_counts import COUNTS, executed, programs

pytestmark = pytest.mark.core

WAITING = {
    "test_all_blocks_wait_for_each_other",
    "test_atomics_on_floats",
    "test_atomics_on_shared_memory",
    "test_atomics_on_words",
    "test_lookback_scan",
    "test_producer_and_consumer",
    "test_scoped_atomics",
    "test_spin_locks",
    "test_ticket_lock",
    "test_two_locks_per_thread",
}


@pytest.fixture(scope="module")
def counted() -> list[tuple[str, Counter[str], Counter[str]]]:
    """Of each program its name and the warp instructions by class: lowered, and as SASS."""
    kept = json.loads(COUNTS.read_text())
    rows = []
    for name, test, path in programs():
        if name in kept and name not in WAITING:
            ours = executed("ptx", test, path)
            assert ours is not None, name
            rows.append((name, ours, Counter(kept[name])))
    return rows


def test_as_many_instructions_are_executed_as_in_sass(counted) -> None:
    """In all, and of each class."""
    ours, theirs = Counter(), Counter()
    for _, lowered, real in counted:
        ours += lowered
        theirs += real
    assert len(counted) > 70
    assert abs(ours.total() / theirs.total() - 1) < 0.05
    errors = {name: ours[name] / count - 1 for name, count in theirs.items()}
    assert set(errors) >= {"alu", "fma", "fp64", "xu", "lsu", "cbu", "tensor", "other"}
    assert {name: round(error, 3) for name, error in errors.items() if abs(error) > 0.15} == {}


def test_most_programs_execute_as_many_instructions(counted) -> None:
    errors = [abs(lowered.total() / real.total() - 1) for _, lowered, real in counted]
    assert sum(errors) / len(errors) < 0.10
    assert sum(error <= 0.15 for error in errors) / len(errors) > 0.75
