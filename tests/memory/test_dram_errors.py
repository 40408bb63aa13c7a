# SPDX-License-Identifier: Apache-2.0
"""What a memory channel cannot be is said clearly when it is added; what it cannot do, when it is asked."""

from __future__ import annotations

from typing import Any

import pytest
import tomlkit

from manyscale import System
from manyscale.errors import InputError, ManyscaleError
from manyscale.machine.dram import DramChannel, dram_parameters, dram_standard, list_dram_standards
from manyscale.machine.presets import presets_folder
from memory.dram_driver import ATOMIC, drive

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"backend": "quantum"}, "there is no backend 'quantum'; known: simple, banked, timing"),
        ({"banks": 0}, "banks"),
        ({"banks": 3}, "banks must be a power of two, not 3"),
        ({"bank_groups": 6}, "bank_groups must be a power of two, not 6"),
        ({"ranks": 3}, "ranks must be a power of two, not 3"),
        ({"rows": 1000}, "rows must be a power of two, not 1000"),
        ({"row_bytes": "3000B"}, "row_bytes must be a power of two, not 3000"),
        ({"burst_bytes": "96B"}, "burst_bytes must be a power of two, not 96"),
        ({"row_bytes": "32B"}, r"row_bytes \(32\) is less than burst_bytes \(64\)"),
        ({"ranks": 64, "banks": 8}, "at most 256 banks"),
        ({"write_low": 50}, r"write_low \(50\) must be below write_high \(48\)"),
        ({"write_high": 65}, r"write_high \(65\) is more than write_queue \(64\) holds"),
        ({"trc": 20}, r"trc \(20\) is less than tras \(39\)"),
        ({"tccd_s": 8}, r"tccd_s \(8\) is more than tccd_l \(6\)"),
        ({"trefi": 400}, r"trefi \(400\) leaves no time between refreshes"),
        ({"mapping": "row:rank:bank:column"}, "bankgroup has 0 bits, but its size makes 2"),
        ({"mapping": "row:rank:bank:bankgrp:column"}, "unknown field 'bankgrp'"),
        ({"mapping": "row:rank:bank:bankgroup:column:column"}, "column comes twice"),
        ({"mapping": "row:rank:bank:bankgroup:column:column9"}, "column has 9 bits"),
        ({"mapping": ""}, "unknown field ''"),
        ({"interleave_channels": 2, "interleave_bytes": "32B"}, "interleave_bytes"),
        ({"interleave_channels": 2, "interleave_bytes": "100B"}, "interleave_bytes must be a power of two"),
        ({"clock": "0Hz"}, "clock"),
        ({"starvation_limits": 5}, "did you mean 'starvation_limit'"),
    ],
)
@pytest.mark.parametrize("backend", ["timing", "banked"])
def test_a_bad_parameter_is_an_error_that_names_it(
    parameters: dict[str, Any], message: str, backend: str
) -> None:
    with pytest.raises(InputError, match=message):
        System("dram").add("memory.dram", "dram", **{"backend": backend, **parameters})


@pytest.mark.parametrize("backend", ["simple", "banked", "timing"])
def test_other_requests_are_errors_that_name_op_and_address(backend: str) -> None:
    with pytest.raises(
        ManyscaleError, match="dram got 'atomic' for address 4096; memory takes read and write"
    ):
        drive([(0, {"op": ATOMIC, "address": 4096, "sectors": 1})], backend=backend)
    with pytest.raises(ManyscaleError, match="dram got a read of no sectors for address 64"):
        drive([(0, {"op": 0, "address": 64, "sectors": 0})], backend=backend)


@pytest.mark.parametrize("name", list_dram_standards())
def test_every_number_of_a_standard_has_a_source_and_makes_a_channel(name: str) -> None:
    standard = dram_standard(name)
    assert standard.name == name
    assert set(standard.sources) == set(DramChannel.model_fields)
    for parameter, source in standard.sources.items():
        assert len(source) > 10, f"{name}: {parameter} has no source"
    text = (presets_folder() / "dram" / f"{name}.toml").read_text(encoding="utf-8")
    assert set(tomlkit.parse(text)) == {"name", "description", "dram"}
    system = System("dram")
    dram = system.add("memory.dram", "dram", **dram_parameters(name))
    assert dram.spec.clock == standard.channel.clock


def test_the_standards_have_their_well_known_bandwidths() -> None:
    found = {name: round(dram_standard(name).channel.bandwidth / 1e9, 1) for name in list_dram_standards()}
    assert found == {
        "ddr4-2400": 19.2,
        "ddr4-2666": 21.3,
        "gddr5x-1080ti": 44.0,
        "gddr6": 28.0,
        "gddr6x": 38.0,
        "hbm2-a100": 19.4,
        "hbm2-p100": 22.9,
        "hbm2-titanv": 27.2,
        "hbm2-v100": 28.1,
        "hbm2e": 25.6,
    }
    assert 32 * dram_standard("hbm2-v100").channel.bandwidth == pytest.approx(
        898e9, rel=0.001
    )  # V100: 900 GB/s
    assert 32 * dram_standard("hbm2-v100").channel.capacity == 16 * 2**30


def test_an_unknown_standard_says_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no DRAM standard named 'ddr4-2401'; did you mean 'ddr4-2400'\?"):
        dram_standard("ddr4-2401")
