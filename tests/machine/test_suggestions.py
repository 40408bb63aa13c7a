# SPDX-License-Identifier: Apache-2.0
"""A misspelt path of a parameter is answered with those that it may mean."""

from __future__ import annotations

import pytest

from manyscale.errors import InputError
from manyscale.machine import load_machine
from manyscale.machine.suggestions import is_parameter, suggestion


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("dram.latency", "memory.dram.latency"),
        ("gpu.l1.size", "gpu.sm.l1.size"),
        ("sms", "gpu.sm_count"),
        ("gpu.dram.frequency", "gpu.memory.clock"),
        ("tlb.entries", "gpu.sm.tlb.entries"),
        ("uvm.prefetch", "gpu.uvm.prefetcher"),
        ("memory.l3.size", "memory.shared.cache.size"),
    ],
)
def test_the_whole_path_is_suggested(path, meant):
    assert is_parameter(meant)
    assert f"did you mean '{meant}'" in suggestion(path, load_machine("v100").sources)


def test_a_path_like_no_other_names_the_command_that_lists_them():
    with pytest.raises(InputError, match=r"--set nonsense: .* `manyscale machines parameters` lists all"):
        load_machine("v100", ["nonsense=3"])


def test_sections_are_paths_too():
    assert is_parameter("gpu.sm")
    assert not is_parameter("gpu.sm.l7")
