# SPDX-License-Identifier: Apache-2.0
"""A program of which only the trace is known: its name, and the places of its regions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from manyscale.cpu.program import Program
from manyscale.cpu.symbols import Place, Symbols

if TYPE_CHECKING:
    from manyscale.cpu.trace import Trace


class KnownPlaces(Symbols):
    """The places that a trace has kept; of others only the address is known."""

    def __init__(self, places: dict[int, Place]) -> None:
        super().__init__(b"")
        self._places = places

    def place(self, address: int) -> Place:
        """What is known of an address."""
        return self._places.get(address) or Place(address)


@dataclass(frozen=True)
class TracedProgram(Program):
    """Stands for the program in the results of a replay; it cannot be run."""

    places: dict[int, Place] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, trace: Trace) -> TracedProgram:
        """The program that a trace was recorded of."""
        facts = trace.header.program
        places = {region.pc: region.place for region in trace.regions}
        return cls(facts.name, facts.arguments, facts.environment, ranks=facts.ranks, places=places)

    @cached_property
    def symbols(self) -> Symbols:
        """The places of its regions."""
        return KnownPlaces(self.places)
