# SPDX-License-Identifier: Apache-2.0
"""A program of which only the trace is known: its name, and the source locations of its regions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from manyscale.cpu.program import Program
from manyscale.cpu.symbols import SourceLocation, Symbols

if TYPE_CHECKING:
    from manyscale.cpu.trace import Trace


class RecordedLocations(Symbols):
    """The source locations that a trace holds; of others only the address is known."""

    def __init__(self, locations: dict[int, SourceLocation]) -> None:
        super().__init__(b"")
        self._locations = locations

    def locate(self, address: int) -> SourceLocation:
        """What is known of an address."""
        return self._locations.get(address) or SourceLocation(address)


@dataclass(frozen=True)
class TracedProgram(Program):
    """Stands for the program in the results of a replay; it cannot be run."""

    locations: dict[int, SourceLocation] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, trace: Trace) -> TracedProgram:
        """The program that a trace was recorded of."""
        facts = trace.header.program
        locations = {region.pc: region.location for region in trace.regions}
        return cls(facts.name, facts.arguments, facts.environment, ranks=facts.ranks, locations=locations)

    @cached_property
    def symbols(self) -> Symbols:
        """The source locations of its regions."""
        return RecordedLocations(self.locations)
