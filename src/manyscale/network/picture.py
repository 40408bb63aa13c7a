# SPDX-License-Identifier: Apache-2.0
"""A network for the eye: its switches and links as SVG, coloured by how busy they were."""

from __future__ import annotations

import html
import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyscale.errors import InputError

WIDTH = 1000
MARGIN = 40
_LEGEND = 70
# From idle to always busy.
_COLOURS = ((0.0, (222, 226, 230)), (0.25, (116, 169, 207)), (0.5, (255, 212, 59)), (0.75, (253, 126, 20)))
_BUSY = (201, 42, 42)
MOST_LINES = 60_000

Point = tuple[float, float]


@dataclass(frozen=True)
class LinkLoad:
    """How busy the links between two ends were: the share of time of the busiest direction of the busiest link."""

    a: int
    b: int
    busy: float
    label: str = ""


def draw(
    title: str, positions: Mapping[int, Point], links: Sequence[LinkLoad], at_nodes: Mapping[int, float]
) -> str:
    """SVG of switches at positions (in units of their own), links between them and the load of links to nodes."""
    if len(links) > MOST_LINES:
        raise InputError(f"a picture of {len(links):,} links would show nothing; the most is {MOST_LINES:,}")
    placed, height = _scaled(positions)
    most = _top_of_scale([*(link.busy for link in links), *at_nodes.values()])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + _LEGEND:.0f}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="16">{html.escape(title)}</text>',
    ]
    for link in sorted(links, key=lambda one: one.busy):  # busy ones on top
        (x1, y1), (x2, y2) = placed[link.a], placed[link.b]
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour(link.busy / most)}" '
            f'stroke-width="{1 + 2.5 * link.busy / most:.2f}"><title>{html.escape(link.label)}</title></line>'
        )
    radius = min(max(WIDTH / (3 * max(len(placed), 1) ** 0.5) / 4, 2.5), 12.0)
    for switch, (x, y) in placed.items():
        load = at_nodes.get(switch)
        fill = colour(load / most) if load is not None else "white"
        words = f"switch {switch}" + (f", links to its nodes {load:.0%} busy" if load is not None else "")
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" stroke="#495057">'
            f"<title>{words}</title></circle>"
        )
    parts += _legend(height, most)
    return "\n".join([*parts, "</svg>", ""])


def colour(share: float) -> str:
    """The colour of a share of time."""
    stops = [*_COLOURS, (1.0, _BUSY)]
    wanted = min(max(share, 0.0), 1.0)
    for (low, first), (high, second) in itertools.pairwise(stops):
        if wanted <= high:
            part = (wanted - low) / (high - low)
            mixed = [round(a + part * (b - a)) for a, b in zip(first, second, strict=True)]
            return "#" + "".join(f"{value:02x}" for value in mixed)
    raise AssertionError("a share is at most 1")


def layered(levels: Sequence[Sequence[int]]) -> dict[int, Point]:
    """Switches in rows, the first at the bottom."""
    positions = {}
    for row, switches in enumerate(levels):
        for index, switch in enumerate(switches):
            positions[switch] = ((index + 0.5) / len(switches), -0.5 * row)
    return positions


def box(extents: Sequence[int]) -> dict[int, Point]:
    """Switches of a torus or mesh: the first two axes across and down, planes of further ones beside each other."""
    planes = math.prod(extents[2:])
    across = math.ceil(math.sqrt(planes))
    width = extents[0] + 1
    height = (extents[1] if len(extents) > 1 else 1) + 1
    positions = {}
    for switch in range(math.prod(extents)):
        coordinates, left = [], switch
        for extent in extents:
            coordinates.append(left % extent)
            left //= extent
        second = coordinates[1] if len(coordinates) > 1 else 0
        plane = switch // math.prod(extents[:2])
        # A little off the raster, so that links along one line do not hide each other.
        positions[switch] = (
            plane % across * width + coordinates[0] + 0.12 * second,
            plane // across * height + second + 0.12 * coordinates[0],
        )
    return positions


def groups(count: int, size: int) -> dict[int, Point]:
    """Groups of switches around a circle, each a small circle."""
    positions = {}
    for group in range(count):
        angle = 2 * math.pi * group / count
        centre = (math.cos(angle), math.sin(angle))
        radius = min(0.8 * math.pi / max(count, 3), 0.4)
        for index in range(size):
            turn = angle + 2 * math.pi * index / size
            positions[group * size + index] = (
                centre[0] + radius * math.cos(turn),
                centre[1] + radius * math.sin(turn),
            )
    return positions


def levels_of(
    switches: Sequence[int], with_nodes: Sequence[int], links: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Switches by their distance from those that have nodes."""
    beside = defaultdict(list)
    for a, b in links:
        beside[a].append(b)
        beside[b].append(a)
    seen = set(with_nodes)
    levels = [sorted(seen)]
    while True:
        found = sorted({other for switch in levels[-1] for other in beside[switch]} - seen)
        if not found:
            break
        seen |= set(found)
        levels.append(found)
    lonely = sorted(set(switches) - seen)
    return [level for level in [*levels, lonely] if level]


def _scaled(positions: Mapping[int, Point]) -> tuple[dict[int, Point], float]:
    if not positions:
        return {}, 100.0
    xs, ys = zip(*positions.values(), strict=True)
    span = max(max(xs) - min(xs), 1e-9)
    scale = (WIDTH - 2 * MARGIN) / max(span, (max(ys) - min(ys)) * 0.6)
    left = (WIDTH - scale * span) / 2
    placed = {
        switch: (left + scale * (x - min(xs)), MARGIN + 20 + scale * (y - min(ys)))
        for switch, (x, y) in positions.items()
    }
    return placed, MARGIN + 20 + scale * (max(ys) - min(ys)) + MARGIN


def _top_of_scale(loads: Sequence[float]) -> float:
    """The load at the top of the colours: the first of a few round ones that none exceeds."""
    most = max(loads, default=0.0)
    return next((top for top in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if most <= top), 1.0)


def _legend(height: float, most: float) -> list[str]:
    parts = []
    for step in range(101):
        parts.append(
            f'<rect x="{MARGIN + 3 * step}" y="{height:.0f}" width="3.2" height="14" fill="{colour(step / 100)}"/>'
        )
    words = (
        (0, "idle"),
        (150, f"busy {100 * most / 2:g}% of the time"),
        (300, "always busy" if most == 1 else f"{most:.0%}"),
    )
    parts += [
        f'<text x="{MARGIN + x}" y="{height + 32:.0f}" text-anchor="{anchor}">{text}</text>'
        for (x, text), anchor in zip(words, ("start", "middle", "start"), strict=True)
    ]
    return parts
