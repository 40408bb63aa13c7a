# SPDX-License-Identifier: Apache-2.0
"""A machine for the eye: its parts in layers, from those that compute to memory, as SVG in the colours of the page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH, _LEFT, _BOX, _GAP = 900, 230, 34, 26
_MOST_DRAWN = 24
_MORE = 100  # room to say that there are more
_FILLS = {
    "compute": "#0072b2",
    "cache": "#009e73",
    "wires": "#8c8c8c",
    "memory": "#e69f00",
    "host": "#cc79a7",
}


@dataclass(frozen=True)
class Layer:
    """Equal parts beside each other: how many, what they are, and what is worth knowing of one."""

    kind: str  # of _FILLS
    count: int
    what: str
    details: Sequence[str] = ()


def layers_of(machine: Mapping[str, Any], simulated: Mapping[str, int]) -> list[Layer]:
    """The parts of a machine that a run has simulated; `simulated` counts components by the start of their names."""
    if "network" in machine:
        return _network(machine)
    if simulated.get("sm") and isinstance(machine.get("gpu"), Mapping):
        return _gpu(machine, simulated)
    if simulated.get("core"):
        return _cores(machine, simulated)
    return []


def machine_picture(layers: Sequence[Layer]) -> str:
    """The layers from top to bottom, each joined to the next."""
    height = len(layers) * (_BOX + _GAP) + 10
    drawn = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="the machine" '
        'font-family="system-ui, sans-serif" font-size="12" style="max-width:900px">'
    ]
    for row, layer in enumerate(layers):
        top = row * (_BOX + _GAP) + 5
        if row + 1 < len(layers):
            middle = _LEFT + (_WIDTH - _LEFT) / 2
            drawn.append(
                f'<line x1="{middle}" y1="{top + _BOX}" x2="{middle}" y2="{top + _BOX + _GAP}" '
                'stroke="var(--faint)" stroke-width="2"/>'
            )
        shown = min(layer.count, _MOST_DRAWN)
        room = _WIDTH - _LEFT - 4 - (_MORE if layer.count > shown else 0)
        width = room / max(shown, 1)
        for box in range(shown):
            drawn.append(
                f'<rect x="{_LEFT + box * width + 1:.1f}" y="{top}" width="{width - 2:.1f}" height="{_BOX}" rx="3" '
                f'fill="{_FILLS[layer.kind]}" fill-opacity="0.85"/>'
            )
        title = f"{layer.count:,} {layer.what}" if layer.count > 1 else layer.what
        drawn.append(
            f'<text x="0" y="{top + 14}" fill="var(--text)" font-weight="600">{html.escape(title)}</text>'
        )
        drawn.append(
            f'<text x="0" y="{top + 30}" fill="var(--faint)">{html.escape(", ".join(layer.details))}</text>'
        )
        if layer.count > _MOST_DRAWN:
            drawn.append(
                f'<text x="{_WIDTH - 4}" y="{top + 22}" text-anchor="end" fill="var(--text)">'
                f"… {layer.count:,} in all</text>"
            )
    return "".join([*drawn, "</svg>"])


def _gpu(machine: Mapping[str, Any], simulated: Mapping[str, int]) -> list[Layer]:
    gpu = _part(machine, "gpu")
    layers = []
    if simulated.get("uvm"):
        layers.append(
            Layer("host", 1, "host memory and driver", _stated(_part(gpu, "uvm"), "prefetcher", "eviction"))
        )
    sm = _part(gpu, "sm")
    layers.append(Layer("compute", simulated["sm"], "SMs", [*_stated(gpu, "clock"), *_stated(sm, "warps")]))
    if simulated.get("crossbar"):
        layers.append(Layer("wires", 1, "crossbar", _stated(_part(gpu, "crossbar"), "clock")))
    if simulated.get("slice"):
        size = _stated(gpu, "l2_slice_capacity")
        layers.append(
            Layer("cache", simulated["slice"], "L2 slices", [*size, *_stated(_part(gpu, "l2"), "clock")])
        )
    if simulated.get("channel"):
        memory = _part(gpu, "memory")
        layers.append(
            Layer("memory", simulated["channel"], "memory channels", _stated(memory, "standard", "capacity"))
        )
    return layers


def _cores(machine: Mapping[str, Any], simulated: Mapping[str, int]) -> list[Layer]:
    memory, cpu = _part(machine, "memory"), _part(machine, "cpu")
    clock = _stated(cpu, "clock") or _stated(_part(memory, "core"), "clock")
    layers = [Layer("compute", simulated["core"], "cores" if simulated["core"] > 1 else "core", clock)]
    for level in ("l1", "l2"):
        cache = _part(memory, level)
        if cache:
            details = [*_stated(cache, "size"), *(f"{ways} ways" for ways in _stated(cache, "ways"))]
            layers.append(Layer("cache", simulated["core"], f"{level.upper()} of each core", details))
    if simulated.get("interconnect"):
        layers.append(Layer("wires", 1, "interconnect", _stated(_part(memory, "interconnect"), "clock")))
    if simulated.get("slice"):
        cache = _part(_part(memory, "shared"), "cache")
        layers.append(Layer("cache", simulated["slice"], "shared slices", _stated(cache, "size")))
    if simulated.get("channel"):
        dram = _part(memory, "dram")
        layers.append(Layer("memory", simulated["channel"], "DRAM channels", _stated(dram, "clock")))
    return layers


def _network(machine: Mapping[str, Any]) -> list[Layer]:
    network = _part(machine, "network")
    topology, link = _part(network, "topology"), _part(network, "link")
    nodes = topology.get("nodes")
    count = nodes if isinstance(nodes, int) and nodes > 0 else 1
    kind = str(topology.get("kind", "network"))
    shape = f" {topology['shape']}" if topology.get("shape") else ""
    return [
        Layer("compute", count, "nodes", [f"{network.get('fidelity', '?')} fidelity"]),
        Layer("wires", count, "links to switches", _stated(link, "bandwidth", "latency")),
        Layer("cache", 1, f"{kind}{shape}", _stated(_part(network, "switch"), "latency", "buffer")),
    ]


def _part(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, Mapping) else {}


def _stated(table: Mapping[str, Any], *names: str) -> list[str]:
    return [str(table[name]) for name in names if name in table]
