# SPDX-License-Identifier: Apache-2.0
"""A command that waits for its cycle is planned again when a burst arrives that can go before it."""

from __future__ import annotations

import pytest
from test_dram_timing import LATER, Channel

from memory.dram_driver import read

pytestmark = pytest.mark.core


def edge(channel: Channel, time: int) -> int:
    """The first cycle at or after a time."""
    return -(-time // channel.period)


def test_a_hit_in_another_bank_goes_before_a_planned_activate() -> None:
    """Bank 0 is precharged and waits tRP; meanwhile a burst for the open row of bank 1 takes tCL + burst."""
    channel = Channel()
    other_bank, other_row = channel.bank, channel.row
    second = LATER + 3 * channel.period
    done = channel.drive(
        [
            (0, read(0)),
            (0, read(other_bank)),
            (LATER, read(other_row)),
            (second, read(other_bank + channel.burst)),
        ],
        backend="timing",
    )
    assert channel.p["trp"] > 4, "else there is nothing to go before"
    assert done.at(other_bank + channel.burst) == (edge(channel, second) + channel.hit) * channel.period
    assert done.at(other_row) == (edge(channel, LATER) + channel.conflict) * channel.period


def test_a_hit_goes_before_the_planned_precharge_of_its_row() -> None:
    """A row stays open for tRAS. A burst for it that arrives meanwhile does not wait for the row to be opened again."""
    channel = Channel()
    begin = edge(channel, LATER)
    first, second = (LATER + (channel.p["trcd"] + more) * channel.period for more in (2, 4))
    done = channel.drive(
        [(LATER, read(0)), (first, read(channel.row)), (second, read(channel.burst))], backend="timing"
    )
    assert edge(channel, second) < begin + channel.p["tras"], "the precharge has not been issued"
    expected = max(edge(channel, second), begin + channel.p["trcd"] + channel.p["tccd_l"])
    assert done.at(channel.burst) == (expected + channel.hit) * channel.period
    assert done.cycles("PRE") > [expected]
    counts = [done.stat(name) for name in ("row_hits", "row_misses", "row_conflicts")]
    assert counts == [1, 1, 1]
