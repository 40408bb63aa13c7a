# SPDX-License-Identifier: Apache-2.0
"""Large systems are saved, loaded and reported in time that grows with their size and is short for each component."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import manyscale as ms
from manyscale import System

pytestmark = pytest.mark.long


def ring(stages: int) -> System:
    """Relays that differ, so that nothing about one holds for the next."""
    system = System("large", seed=1)
    relays = [
        system.add("synthetic.relay", f"stage[{i}]", tokens=int(i == 0), hops=i + 1) for i in range(stages)
    ]
    for i in range(stages):
        system.connect(relays[i].output, relays[(i + 1) % stages].input, f"{500 + i}ps")
    return system


def seconds(act: Callable[[], object], rounds: int = 3) -> float:
    """Processor time of the quickest round."""
    spent = []
    for _ in range(rounds):
        began = time.process_time()
        act()
        spent.append(time.process_time() - began)
    return min(spent)


def test_a_component_is_saved_in_20_microseconds() -> None:
    system = ring(4000)
    assert seconds(system.to_toml) / 4000 < 20e-6


def test_what_was_saved_is_loaded_in_linear_time(tmp_path: Path) -> None:
    spent = {}
    for stages in (1000, 4000):
        path = tmp_path / f"{stages}.toml"
        system = ring(stages)
        system.save(path)
        assert System.load(path).to_toml() == system.to_toml()
        spent[stages] = seconds(lambda path=path: System.load(path), rounds=2)
    assert spent[4000] < 8 * spent[1000]  # were it quadratic, 16


def test_a_hundred_thousand_statistics_are_written_in_seconds(tmp_path: Path) -> None:
    """A tenth of a million statistics of a hundred thousand components, in half a tenth of a minute."""
    system = ring(10_000)
    began = time.process_time()
    system.run(until="1ns", out=tmp_path / "run")
    assert time.process_time() - began < 3
    assert ms.load(tmp_path / "run").stats.height > 100_000
