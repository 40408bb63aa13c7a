# SPDX-License-Identifier: Apache-2.0
"""DRAM standards: the organisation and timings of one channel, for `memory.dram`, from `machines/dram/`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError, nearest
from manyscale.machine.model_specs import required_of
from manyscale.machine.presets import presets_folder
from manyscale.machine.statements import leaves, values
from manyscale.machine.toml_tree import toml_tree
from manyscale.spec import Spec, build, dump

_ORGANISATION = (
    *("clock", "ranks", "bank_groups", "banks", "rows", "row_bytes"),
    *("burst_bytes", "burst_cycles", "separate_row_bus"),
)
_TIMINGS = (
    *("trcd", "trcd_write", "trp", "tras", "trc", "tcl", "tcwl", "tccd_s", "tccd_l", "trrd_s", "trrd_l"),
    *("tfaw", "twtr_s", "twtr_l", "trtp", "twr", "turnaround", "trtrs", "trfc", "trefi"),
)


if TYPE_CHECKING:
    _StatedByStandard = Spec
else:
    _StatedByStandard = required_of(
        "StatedByStandard", "What a standard states.", "memory.dram", (*_ORGANISATION, *_TIMINGS)
    )


class DramChannel(_StatedByStandard):
    """One channel of a DRAM standard: how it is organised, and its JEDEC timings in cycles of its command clock.

    The parameters are those of `memory.dram` that a standard decides.
    """

    @property
    def bandwidth(self) -> float:
        """What the data bus carries at most, in bytes per second."""
        stated: Any = self
        return float(stated.burst_bytes / stated.burst_cycles * stated.clock)

    @property
    def capacity(self) -> int:
        """Bytes of the channel."""
        stated: Any = self
        return int(stated.ranks * stated.bank_groups * stated.banks * stated.rows * stated.row_bytes)


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
    tree = toml_tree(path.read_text(encoding="utf-8"), str(path), "")
    document = values(tree)
    channel = build(DramChannel, document["dram"], str(path))
    sources = {
        name.removeprefix("dram."): statement.source
        for name, statement in leaves(tree)
        if name.startswith("dram.")
    }
    return DramStandard(str(document["name"]), str(document["description"]), channel, sources)


def dram_parameters(name: str) -> dict[str, Any]:
    """The parameters that make a `memory.dram` a channel of that standard."""
    return dram_standard(name).parameters()
