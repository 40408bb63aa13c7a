# SPDX-License-Identifier: Apache-2.0
"""Processors beside what is published: what the small programs measure, within what the page says."""

from __future__ import annotations

import pytest

from manyscale.validation import cpu

pytestmark = pytest.mark.core

BROADWELL = "broadwell"


@pytest.mark.parametrize(("footprint", "cycles"), [("16KiB", 4), ("128KiB", 12), ("4MiB", 48)])
def test_a_load_takes_what_was_measured(footprint: str, cycles: int) -> None:
    assert cpu.chase(BROADWELL, footprint, loads=10_000) == pytest.approx(cycles, rel=0.03)


def test_memory_takes_what_was_measured_and_two_loads_at_a_time_less_than_twice_that() -> None:
    one, two = (1e9 * cpu.cold_chase(BROADWELL, two=several, loads=2000) for several in (False, True))
    assert one == pytest.approx(57, rel=0.05)
    assert one < two < 1.5 * one


def test_a_wrong_branch_costs_what_is_published() -> None:
    assert cpu.mispredict(BROADWELL, branches=5_000) == pytest.approx(16, rel=0.1)


def test_operations_take_their_latency_and_no_unit_takes_more_than_it_can() -> None:
    rows = cpu.operation_rows(BROADWELL, cpu.BROADWELL, "LLVM")
    assert len(rows) == 15
    for row in rows:
        assert abs(row.error_percent) < 15, (row.name, row.error_percent)
        if "throughput" in row.name:
            assert row.simulated <= row.reference * 1.001, row.name


def test_snipers_nehalem_adds_up_as_in_sniper() -> None:
    rows = cpu.nehalem_rows()
    assert len(rows) == 5
    for row in rows:
        assert abs(row.error_percent) < 10, (row.name, row.error_percent)


def test_more_processes_move_more_until_the_channels_are_full() -> None:
    one, eight = cpu.triad(BROADWELL, 1, "512KiB"), cpu.triad(BROADWELL, 8, "512KiB")
    assert one < eight
    assert eight < 4 * 19.2e9  # what the four channels of a socket can move
