# SPDX-License-Identifier: Apache-2.0
"""The network section of a machine: topology, links, switches, NICs, routing, and the MPI library of its nodes.

Parameters of the core's models are taken from the core's own tables. Added here are faults, a file for any graph, and a
topology that fits a number of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale import _core, plugins
from manyscale.errors import InputError
from manyscale.spec import Count, Ratio, Spec, parameter
from manyscale.spec_table import spec_from_table, table_values

FIDELITIES = ("packet", "train", "flow", "ideal")

if TYPE_CHECKING:  # what the core's tables make at run time
    from manyscale.machine.core_specs import Fabric, Mpi
else:
    _tables = _core.network_tables()
    Fabric = spec_from_table("Fabric", "A network.", _tables["network"])
    Mpi = spec_from_table("Mpi", "The MPI library of each node.", _tables["mpi"])


class Fault(Spec):
    """Links between two switches, or all links of one, that are down or slow."""

    a: Count = parameter(doc="a switch", minimum=0)
    b: Count | None = parameter(
        None, doc="the switch at the other end; not stated: all links of a", minimum=0
    )
    link: Count | None = parameter(None, doc="which of several links; not stated: all of them", minimum=0)
    speed: Ratio = parameter(
        0.0, doc="share of the bandwidth that is left; 0: down", minimum=0.0, maximum=1.0
    )


class Network(Fabric):
    """The network between nodes, and the MPI library that uses it."""

    mpi: Mpi = parameter(Mpi(), doc="MPI library of each node")
    graph: str | None = parameter(None, doc="file of switches, links and nodes, for the topology 'graph'")
    faults: list[Fault] | None = parameter(None, doc="links that are down or slow")


_OWN = ("mpi", "graph", "faults")


def core_values(network: Network) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the core is told of a network and of its MPI library: plain numbers by the names of its tables."""
    return table_values(network, without=_OWN), table_values(network.mpi)


def capacity(network: Network) -> int | None:
    """How many nodes can be attached to a topology; None if that has no limit or a file says it."""
    return described_topology(network)["capacity"]  # type: ignore[no-any-return]


def described_topology(network: Network) -> dict[str, Any]:
    """What the core computes of a topology: its `capacity`, and how a picture arranges it (`box` or `group`)."""
    try:
        return _core.describe_topology(core_values(network)[0])
    except (ValueError, _core.SimulationError) as error:
        raise InputError(str(error)) from None


def topology_for(kind: str, nodes: int, ports: int = 48) -> dict[str, Any]:
    """Parameters of a topology of a kind with room for so many nodes, of switches with so many ports."""
    plugins.find("topology", kind)
    if nodes < 1:
        raise InputError(f"a network has at least 1 node, not {nodes}")
    try:
        return {"kind": kind, **_core.fit_topology(kind, nodes, ports)}
    except _core.SimulationError as error:
        raise InputError(str(error)) from None
    except TypeError:  # it does not fit into a number of the core
        raise InputError(f"a network has no {nodes:,} nodes") from None
