# SPDX-License-Identifier: Apache-2.0
"""The models of the core, each with a Spec made from the core's own table of parameters."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from manyscale import _core
from manyscale.errors import InputError, nearest
from manyscale.plugins import plugins
from manyscale.spec import Spec
from manyscale.spec_table import spec_from_table


@dataclass(frozen=True)
class PortInfo:
    """A port as a model declares it."""

    name: str
    protocol: str
    role: str
    links: str
    doc: str


@dataclass(frozen=True)
class StatisticInfo:
    """A statistic as a model declares it."""

    name: str
    kind: str
    unit: str
    doc: str


@dataclass(frozen=True)
class ModelInfo:
    """A model of the core: its name, what it stands for, and its parameters."""

    name: str
    doc: str
    table: list[dict[str, Any]] = field(repr=False)
    """Its parameters as the core declares them."""

    @functools.cached_property
    def spec(self) -> type[Spec]:
        """Its parameters as a Spec."""
        return spec_from_table(self.name, self.doc, self.table)

    def ports(self) -> list[PortInfo]:
        """The ports of an instance with default parameters."""
        return [
            PortInfo(port.name, port.protocol, port.role, port.links, port.doc)
            for port in self._sample()[1].ports
        ]

    def statistics(self) -> list[StatisticInfo]:
        """The statistics of an instance with default parameters."""
        return [StatisticInfo(*statistic) for statistic in self._sample()[1].statistics]

    def _sample(self) -> tuple[_core.Simulation, _core.Component]:
        simulation = _core.Simulation()
        return simulation, simulation.add_model(self.name, "sample", {})


@functools.cache
def models() -> dict[str, ModelInfo]:
    """All models of the core by name."""
    return {name: ModelInfo(name, entry.doc, entry.parameters) for name, entry in plugins("model").items()}


def model(name: str) -> ModelInfo:
    """The model of that name; a misspelt one is an error that names the nearest."""
    try:
        return models()[name]
    except KeyError:
        raise InputError(f"there is no model named '{name}'; {nearest(name, models())}") from None
