# SPDX-License-Identifier: Apache-2.0
"""The models of the core, each with a Spec made from the core's own table of parameters."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from manyscale import _core
from manyscale.errors import InputError, nearest
from manyscale.plugins import plugins
from manyscale.spec import Spec, spec_from_table


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
    """A model of the core: its name, what it stands for, and what it can be told."""

    name: str
    doc: str
    spec: type[Spec]

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
    return {
        name: ModelInfo(name, entry.doc, spec_from_table(name, entry.doc, entry.parameters))
        for name, entry in plugins("model").items()
    }


def model(name: str) -> ModelInfo:
    """The model of that name; a misspelt one is an error that names the nearest."""
    try:
        return models()[name]
    except KeyError:
        raise InputError(f"there is no model named '{name}'; {nearest(name, models())}") from None
