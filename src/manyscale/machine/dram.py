# SPDX-License-Identifier: Apache-2.0
"""DRAM standards: the organisation and timings of one channel, for `memory.dram`, from `machines/dram/`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tomlkit

from manyscale.errors import InputError, nearest
from manyscale.machine.presets import presets_folder
from manyscale.spec import Bytes, Count, Cycles, Frequency, Spec, build, dump, parameter


class DramChannel(Spec):
    """One channel of a DRAM standard: how it is organised, and its JEDEC timings in cycles of its command clock."""

    clock: Frequency = parameter(doc="command clock", minimum="1Hz")
    ranks: Count = parameter(doc="ranks of the channel", minimum=1)
    bank_groups: Count = parameter(doc="bank groups of a rank", minimum=1)
    banks: Count = parameter(doc="banks of a bank group", minimum=1)
    rows: Count = parameter(doc="rows of a bank", minimum=1)
    row_bytes: Bytes = parameter(doc="bytes of a row over all devices", minimum="32B")
    burst_bytes: Bytes = parameter(doc="bytes that a column command moves", minimum="32B")
    burst_cycles: Cycles = parameter(doc="cycles that a burst takes on the data bus", minimum=1)
    separate_row_bus: bool = parameter(doc="row and column commands have a bus each")
    trcd: Cycles = parameter(doc="activate to read", minimum=1)
    trcd_write: Cycles = parameter(doc="activate to write", minimum=1)
    trp: Cycles = parameter(doc="precharge to activate", minimum=1)
    tras: Cycles = parameter(doc="activate to precharge", minimum=1)
    trc: Cycles = parameter(doc="activate to activate of one bank", minimum=1)
    tcl: Cycles = parameter(doc="read to first data", minimum=1)
    tcwl: Cycles = parameter(doc="write to first data", minimum=1)
    tccd_s: Cycles = parameter(doc="column to column, other bank group", minimum=1)
    tccd_l: Cycles = parameter(doc="column to column, same bank group", minimum=1)
    trrd_s: Cycles = parameter(doc="activate to activate, other bank group", minimum=1)
    trrd_l: Cycles = parameter(doc="activate to activate, same bank group", minimum=1)
    tfaw: Cycles = parameter(doc="window that holds at most four activates of a rank", minimum=1)
    twtr_s: Cycles = parameter(doc="end of write data to read, other bank group", minimum=0)
    twtr_l: Cycles = parameter(doc="end of write data to read, same bank group", minimum=0)
    trtp: Cycles = parameter(doc="read to precharge", minimum=1)
    twr: Cycles = parameter(doc="end of write data to precharge", minimum=0)
    turnaround: Cycles = parameter(doc="idle cycles on the data bus between read and write", minimum=0)
    trtrs: Cycles = parameter(doc="idle cycles on the data bus between two ranks", minimum=0)
    trfc: Cycles = parameter(doc="time of a refresh", minimum=1)
    trefi: Cycles = parameter(doc="interval of refreshes of a rank", minimum=0)

    @property
    def bandwidth(self) -> float:
        """What the data bus carries at most, in bytes per second."""
        return self.burst_bytes / self.burst_cycles * self.clock

    @property
    def capacity(self) -> int:
        """Bytes of the channel."""
        return self.ranks * self.bank_groups * self.banks * self.rows * self.row_bytes


@dataclass(frozen=True)
class DramStandard:
    """A standard's channel, what it is, and the source of each of its numbers."""

    name: str
    description: str
    channel: DramChannel
    sources: dict[str, str]

    def parameters(self) -> dict[str, Any]:
        """Parameters for `System.add("memory.dram", ...)`, with units."""
        return dump(self.channel)


def list_dram_standards() -> list[str]:
    """The names of all DRAM standards, sorted."""
    return sorted(path.stem for path in (presets_folder() / "dram").glob("*.toml"))


@functools.cache
def dram_standard(name: str) -> DramStandard:
    """The standard of that name, such as "ddr4-2400"; a misspelt one is an error that says the nearest."""
    names = list_dram_standards()
    if name not in names:
        raise InputError(f"there is no DRAM standard named '{name[:60]}'; {nearest(name, names)}")
    path = presets_folder() / "dram" / f"{name}.toml"
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    section = document["dram"]
    sources = {
        key.key: item.trivia.comment.lstrip("#").strip()
        for key, item in section.value.body
        if key is not None
    }
    channel = build(DramChannel, document.unwrap()["dram"], str(path))
    return DramStandard(str(document["name"]), str(document["description"]), channel, sources)


def dram_parameters(name: str) -> dict[str, Any]:
    """The parameters that make a `memory.dram` a channel of that standard."""
    return dram_standard(name).parameters()
