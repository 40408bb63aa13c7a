# SPDX-License-Identifier: Apache-2.0
"""A system for the eye: as text and as Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale import units
from manyscale.system.component import NativeComponent

if TYPE_CHECKING:
    from manyscale.system.system import AnyComponent, System


def model_name(component: AnyComponent) -> str:
    """The name of a component's model: the core's, or the Python class's."""
    return component.model if isinstance(component, NativeComponent) else type(component).__name__


def describe(system: System) -> str:
    """The components with their parameters and the links with their latencies, one a line."""
    lines = [f"{system.name}: {len(system.components)} components, {len(system.links)} links"]
    for component in system.components.values():
        parameters = ", ".join(f"{name}={value}" for name, value in system.parameters(component).items())
        lines.append(f"  {component.name}: {model_name(component)}({parameters})")
    for link in system.links:
        lines.append(f"  {link.a} -- {units.format(link.latency, units.TIME)} -- {link.b}")
    lookahead = system.lookahead
    if lookahead is not None:
        lines.append(f"  lookahead {units.format(lookahead, units.TIME)}")
    return "\n".join(lines)


def to_dot(system: System) -> str:
    """Graphviz text: clusters that always share a thread are drawn together."""
    clusters: dict[int, list[AnyComponent]] = {}
    for component, cluster in zip(system.components.values(), system.simulation.clusters()[0], strict=True):
        clusters.setdefault(cluster, []).append(component)
    lines = [
        f"graph {_quoted(system.name)} {{",
        "  node [shape=box, fontname=sans];",
        "  edge [fontname=sans];",
    ]
    for cluster, members in clusters.items():
        lines.append(f"  subgraph cluster_{cluster} {{")
        lines.append("    style=dotted;")
        for member in members:
            label = f"{member.name}\n{model_name(member)}"
            lines.append(f"    {_quoted(member.name)} [label={_quoted(label)}];")
        lines.append("  }")
    for link in system.links:
        (a, a_port), (b, b_port) = (end.rsplit(".", 1) for end in (link.a, link.b))
        label = units.format(link.latency, units.TIME)
        lines.append(
            f"  {_quoted(a)} -- {_quoted(b)} "
            f"[label={_quoted(label)}, taillabel={_quoted(a_port)}, headlabel={_quoted(b_port)}];"
        )
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
