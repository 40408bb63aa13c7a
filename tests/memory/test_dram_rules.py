# SPDX-License-Identifier: Apache-2.0
"""No JEDEC rule is broken in a million commands, by a checker that is shown to find every kind of breach."""

from __future__ import annotations

from typing import Any

import pytest

from manyscale import _core
from manyscale.machine.dram import list_dram_standards
from memory.dram_driver import base_parameters
from memory.dram_rules import ACT, PRE, REF, REFSB, unpack, violations

pytestmark = pytest.mark.core

REQUESTS = 55_000  # about 100,000 commands each


def exercise(parameters: dict[str, Any], requests: int, **options: Any) -> Any:
    """A log of reads and writes with some locality, some pauses that outlast refreshes, and full queues."""
    wanted: dict[str, Any] = {
        "pattern": "mixed",
        "writes": 35,
        "outstanding": 80,
        "pause": 2 * 10**9,
        **options,
    }
    return unpack(
        _core.dram_exercise({**parameters, "log_commands": True}, requests=requests, **wanted)["commands"]
    )


@pytest.mark.parametrize("closed_page", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("standard", list_dram_standards())
def test_no_rule_is_broken(standard: str, closed_page: bool) -> None:
    parameters = base_parameters(
        standard,
        closed_page=closed_page,
        bank_xor=closed_page,
        mapping="row:column:rank:bank:bankgroup:column2",
    )
    log = exercise(parameters, REQUESTS, sectors=3 if parameters["burst_bytes"] == 64 else 1, seed=7)
    assert len(log) > 90_000
    assert (log[:, 1] == REF).sum() > 20
    assert violations(log, parameters) == {}


@pytest.mark.parametrize("standard", ["hbm2-v100", "ddr4-2400"])
def test_no_rule_is_broken_where_banks_are_refreshed_one_by_one(standard: str) -> None:
    parameters = base_parameters(
        standard, refresh_by_bank=True, refresh_offset=77, mapping="row:column:rank:bank:bankgroup:column2"
    )
    log = exercise(parameters, REQUESTS, seed=7)
    assert (log[:, 1] == REFSB).sum() > 20 * 16
    assert (log[:, 1] == REF).sum() == 0
    assert violations(log, parameters) == {}
    assert "tRFCSB" in violations(log, {**parameters, "trfc": parameters["trfc"] + 1})


# Every gate is binding somewhere in this system, so that shortening it shows.
TIGHT = {"trc": 60, "trcd_write": 16, "mapping": "row:column:rank:bank:bankgroup:column1"}
BREACHES = {
    "trcd": {"tRCD"},
    "trcd_write": {"tRCD of writes"},
    "trp": {"tRP"},
    "tras": {"tRAS"},
    "trc": {"tRC"},
    "trtp": {"tRTP"},
    "twr": {"tWR"},
    "trrd_s": {"tRRD_S"},
    "trrd_l": {"tRRD_L"},
    "tfaw": {"tFAW"},
    "tccd_l": {"tCCD_L"},
    "twtr_s": {"tWTR_S"},
    "twtr_l": {"tWTR_L"},
    "turnaround": {"turnaround"},
    "trtrs": {"tRTRS"},
    "trfc": {"tRFC"},
    "burst_cycles": {"data bus"},
}


@pytest.mark.parametrize("gate", BREACHES)
def test_the_checker_finds_a_gate_that_is_one_cycle_short(gate: str) -> None:
    parameters = base_parameters("ddr4-2400", **TIGHT)
    shorter = {**parameters, gate: parameters[gate] - 1}
    if gate == "burst_cycles":
        shorter["tccd_s"] -= 1
    log = exercise(shorter, 20_000, seed=3)
    assert violations(log, shorter) == {}
    assert BREACHES[gate] <= set(violations(log, parameters))


def test_the_checker_finds_a_single_command_moved_by_a_cycle() -> None:
    parameters = base_parameters("ddr4-2400")
    log = exercise(parameters, 2_000, seed=5).copy()
    assert violations(log, parameters) == {}
    precharges = [
        i
        for i in range(len(log) - 1)
        if log[i, 1] == PRE
        and any(
            log[j, 1] == ACT and log[j, 0] == log[i, 0] + parameters["trp"]
            for j in range(i, min(i + 40, len(log)))
        )
    ]
    one = precharges[len(precharges) // 2]
    log[one, 0] += 1
    assert "tRP" in violations(log, parameters)


def test_the_checker_finds_wrong_rows_and_refreshes() -> None:
    parameters = base_parameters("ddr4-2400")
    log = exercise(parameters, 2_000, seed=5)
    wrong = log.copy()
    wrong[log[:, 1] == ACT, 5] += 1
    assert "column of another row" in violations(wrong, parameters)
    assert "activate of an open bank" in violations(log[log[:, 1] != PRE], parameters)
    assert {"tREFI", "tREFI in the mean"} & set(
        violations(log[log[:, 1] != REF], {**parameters, "trefi": parameters["trefi"] // 10})
    )
