# SPDX-License-Identifier: Apache-2.0
"""What is compared: the quantities of a launch, as a profiler measures them and as the simulator counts them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyscale.results.names import readable

if TYPE_CHECKING:
    from manyscale.cuda import LaunchRecord

SECTOR_BYTES = 32
_SECOND = 10**15
_TEMPLATE = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Quantity:
    """A quantity of a launch. Shares are compared by their difference, all others by their ratio."""

    name: str
    title: str
    unit: str
    share: bool = False
    counter: bool = True  # it can explain a difference in time


QUANTITIES = (
    Quantity("cycles", "cycles", "cycle", counter=False),
    Quantity("seconds", "time", "s", counter=False),
    Quantity("warp_instructions", "instructions", "1"),
    Quantity("achieved_occupancy", "occupancy", "%", share=True),
    Quantity(
        "l1_hit_rate", "L1 hit rate", "%", share=True, counter=False
    ),  # here of loads, in ncu of stores too
    Quantity("l2_hit_rate", "L2 hit rate", "%", share=True),
    Quantity("dram_sectors", "DRAM sectors", "1"),
    Quantity("dram_bandwidth", "DRAM bandwidth", "B/s", counter=False),
    Quantity("registers", "registers", "1"),
)
BY_NAME = {quantity.name: quantity for quantity in QUANTITIES}


@dataclass(frozen=True)
class LaunchValues:
    """A launch with those of its quantities that are known: shares from 0 to 1, bandwidths in bytes a second."""

    kernel: str  # "" where the source has no names
    values: Mapping[str, float] = field(default_factory=dict)
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    number: int | None = None  # of the launch in its program, from 0 on, where the source says so

    @property
    def base(self) -> str:
        """The name of the kernel without return type, name spaces, template arguments and parameters."""
        return base_name(self.kernel)


def base_name(kernel: str) -> str:
    """The bare name of a kernel, however a tool writes it.

    >>> base_name("void space::add<float, (int)4>(float*, int)")
    'add'
    """
    text = readable(kernel.strip())
    before = None
    while before != text:
        before, text = text, _TEMPLATE.sub("", text)
    text = text.replace("(anonymous namespace)::", "").partition("(")[0]
    words = text.split()
    return words[-1].rpartition("::")[2] if words else ""


def simulated(record: LaunchRecord) -> LaunchValues:
    """A launch of a simulated program."""
    seconds = (record.end - record.begin) / _SECOND
    values: dict[str, float | None] = {
        "cycles": record.cycles,
        "seconds": seconds,
        # As on hardware, instructions are those of SASS: of PTX, what it was lowered to.
        "warp_instructions": record.warp_instructions if record.isa == "sass" else record.issued_instructions,
        "achieved_occupancy": record.achieved_occupancy,
        "l1_hit_rate": record.l1_hit_rate,
        "l2_hit_rate": record.l2_hit_rate,
        "dram_sectors": record.dram_bytes / SECTOR_BYTES,
        "dram_bandwidth": record.dram_bytes / seconds if seconds else None,
        "registers": record.registers,
    }
    known = {name: float(value) for name, value in values.items() if value is not None}
    return LaunchValues(record.name, known, record.grid, record.block)
