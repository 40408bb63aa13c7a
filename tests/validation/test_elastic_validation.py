# SPDX-License-Identifier: Apache-2.0
"""Replays beside detailed runs: small programs within what the page says, and machines in the right order."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyscale.validation import elastic
from manyscale.validation.rows import Row

pytestmark = pytest.mark.core


@pytest.mark.parametrize(("name", "size"), [("matrix", 32), ("black_scholes", 512), ("canneal", 512)])
def test_a_replay_takes_as_long_as_the_program(name: str, size: int, tmp_path: Path) -> None:
    slow = elastic.Setting("memory of 90 ns", ("memory.dram.latency=90ns",))
    rows = elastic.program_rows(name, tmp_path, (elastic.SAME, slow), size)
    same, slower, order = rows
    assert abs(same.error_percent) < 8, same
    assert abs(slower.error_percent) < 12, slower
    assert (order.simulated, order.reference) == (1, 1)


def test_the_order_counts_only_machines_that_differ() -> None:
    def row(simulated: float, reference: float) -> Row:
        return Row("", simulated, reference, "us", "")

    assert elastic.ranking_rows("p", [row(1, 100), row(2, 100.5)]) == []
    (wrong,) = elastic.ranking_rows("p", [row(3, 100), row(2, 150), row(4, 200)])
    assert (wrong.simulated, wrong.reference) == (2, 3)
