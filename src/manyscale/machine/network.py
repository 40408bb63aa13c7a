# SPDX-License-Identifier: Apache-2.0
"""The network section of a machine: topology, links, switches, NICs, routing, and the MPI library of its nodes.

What the core can be told is taken from the core's own tables. Added here are faults, a file for any graph, and a
topology that fits a number of nodes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from manyscale import _core
from manyscale.errors import InputError, nearest
from manyscale.spec import Count, Ratio, Spec, parameter, spec_from_table, table_values

TOPOLOGIES = ("fat-tree", "torus", "mesh", "dragonfly", "switch", "graph")
FIDELITIES = ("packet", "train", "flow", "ideal")

if TYPE_CHECKING:  # what the core's tables make at run time
    _Fabric = Spec
    Mpi = Spec
else:
    _tables = _core.network_tables()
    _Fabric = spec_from_table("Fabric", "A network.", _tables["network"])
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


class Network(_Fabric):
    """The network between nodes, and the MPI library that uses it."""

    mpi: Mpi = parameter(Mpi(), doc="MPI library of each node")
    graph: str | None = parameter(None, doc="file of switches, links and nodes, for the topology 'graph'")
    faults: list[Fault] | None = parameter(None, doc="links that are down or slow")


_OWN = ("mpi", "graph", "faults")


def core_values(network: Network) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the core is told of a network and of its MPI library: plain numbers by the names of its tables."""
    values = table_values(network)
    fabric = {name: value for name, value in values.items() if name.partition(".")[0] not in _OWN}
    return fabric, table_values(network.mpi)


def places(network: Network) -> int | None:
    """How many nodes a topology has room for; None if that has no limit or a file says it."""
    topology: Any = network.topology  # type: ignore[attr-defined]
    kind = topology.kind
    if kind == "fat-tree":
        return math.prod(_numbers(part.split(",")[0]) for part in topology.shape.split(":"))
    if kind in ("torus", "mesh"):
        return math.prod(map(_numbers, topology.shape.split("x"))) * int(topology.nodes_per_switch)
    if kind == "dragonfly":
        groups = topology.groups or topology.group_switches * topology.global_links + 1
        return int(groups * topology.group_switches * topology.nodes_per_switch)
    return None


def _numbers(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0  # what is wrong with a shape, the core says


def topology_for(kind: str, nodes: int, ports: int = 48) -> dict[str, Any]:
    """Parameters of a topology of a kind with room for so many nodes, of switches with so many ports.

    Fat trees are not tapered. Tori and meshes have three dimensions and a node at each switch. Dragonflies are
    canonical: as many nodes as global links at each switch, and twice as many switches in a group.
    """
    if kind not in TOPOLOGIES:
        raise InputError(f"there is no topology '{kind[:60]}'; {nearest(kind, TOPOLOGIES)}")
    if nodes < 1:
        raise InputError(f"a network has at least 1 node, not {nodes}")
    if kind == "fat-tree":
        return {"kind": kind, "shape": _fat_tree(nodes, ports), "roots": 0}
    if kind in ("torus", "mesh"):
        return {"kind": kind, "shape": _box(nodes), "nodes_per_switch": 1, "links": "1"}
    if kind == "dragonfly":
        half = next(h for h in range(1, ports) if 2 * h * h * (2 * h * h + 1) >= nodes)
        groups = -(-nodes // (2 * half * half))
        return {
            "kind": kind,
            "nodes_per_switch": half,
            "group_switches": 2 * half,
            "global_links": half,
            "groups": min(max(groups, 2), 2 * half * half + 1),
            "links": "1",
        }
    return {"kind": kind}


def _fat_tree(nodes: int, ports: int) -> str:
    """From the leaves up: half of the ports down and half up, as many levels as are needed."""
    half = ports // 2
    levels, below = 2, half
    while below * ports < nodes:
        levels, below = levels + 1, below * half
    return ":".join([f"{half},{half}"] * (levels - 1) + [str(-(-nodes // below))])


def _box(nodes: int) -> str:
    """The smallest box with room for so many switches whose sides differ by at most one."""
    sides = [1, 1, 1]
    while math.prod(sides) < nodes:
        sides[sides.index(min(sides))] += 1
    return "x".join(map(str, sorted(sides, reverse=True)))
