# SPDX-License-Identifier: Apache-2.0
"""Heat maps as SVG: a value for each cell of a grid by its colour, with points on top of it."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyscale.errors import InputError

_WIDTH, _HEIGHT = 820, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 170, 40, 50
_LOW, _HIGH = (233, 236, 239), (24, 100, 171)  # colours of the ends of the scale
_SHADES = 16
_MARKS = ("#e03131", "#f08c00", "#212529", "#9c36b5")
_MOST_MARKS = 4000  # of one kind: a picture shows no more

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Extent:
    """What an axis spans, and what it is called."""

    label: str
    begin: float
    end: float


def heat_map(
    title: str,
    x: Extent,
    y: Extent,
    rows: Sequence[Sequence[float]],
    *,
    scale: str,
    highest: float | None = None,
    marks: Mapping[str, Points] | None = None,
) -> str:
    """An SVG of equal rows, the first at the top, from 0 (light) to `highest` (dark); without it, the largest value.

    `scale` says what the colour means; `marks` are named points in the units of the axes. A value that is not a
    number leaves its cell empty.
    """
    if not rows or not rows[0]:
        raise InputError("a heat map needs at least one row and one column")
    if any(len(row) != len(rows[0]) for row in rows):
        raise InputError("the rows of a heat map have equal lengths")
    if not (x.end > x.begin and y.end > y.begin):
        raise InputError("an axis of a heat map ends after it begins")
    finite = [value for row in rows for value in row if not math.isnan(value)]
    top = highest if highest is not None else max(finite, default=0.0)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{html.escape(title)}</text>',
        '<g shape-rendering="crispEdges">',
        *_cells(rows, top),
        "</g>",
        *_axes(x, y),
        *_legend(scale, top),
    ]
    for index, (name, points) in enumerate((marks or {}).items()):
        drawn += _points(x, y, points, _MARKS[index % len(_MARKS)])
        height = _TOP + 120 + 20 * index
        drawn.append(
            f'<circle cx="{_WIDTH - _RIGHT + 22}" cy="{height - 4}" r="3" fill="{_MARKS[index % len(_MARKS)]}"/>'
            f'<text x="{_WIDTH - _RIGHT + 34}" y="{height}">{html.escape(name)}</text>'
        )
    return "\n".join([*drawn, "</svg>", ""])


def _cells(rows: Sequence[Sequence[float]], top: float) -> list[str]:
    """A rectangle for each run of equal shades."""
    width = (_WIDTH - _LEFT - _RIGHT) / len(rows[0])
    height = (_HEIGHT - _TOP - _BOTTOM) / len(rows)
    drawn = []
    for index, row in enumerate(rows):
        begin = 0
        shades = [_shade(value, top) for value in row]
        for column in range(1, len(shades) + 1):
            if column < len(shades) and shades[column] == shades[begin]:
                continue
            if shades[begin] is not None:
                drawn.append(
                    f'<rect x="{_LEFT + begin * width:.2f}" y="{_TOP + index * height:.2f}" '
                    f'width="{(column - begin) * width:.2f}" height="{height + 0.05:.2f}" '
                    f'fill="{_colour(shades[begin] or 0)}"/>'
                )
            begin = column
    return drawn


def _shade(value: float, top: float) -> int | None:
    if math.isnan(value):
        return None
    return 0 if top <= 0 else min(_SHADES, max(0, math.ceil(_SHADES * value / top)))


def _colour(shade: int) -> str:
    parts = (round(low + (high - low) * shade / _SHADES) for low, high in zip(_LOW, _HIGH, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _axes(x: Extent, y: Extent) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    drawn = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{bottom - _TOP}" fill="none" stroke="#868e96"/>',
        f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{html.escape(x.label)}</text>',
        f'<text transform="translate(16 {(_TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y.label)}</text>",
    ]
    for quarter in range(5):
        share = quarter / 4
        value, position = x.begin + share * (x.end - x.begin), _LEFT + share * (right - _LEFT)
        drawn.append(f'<text x="{position:.1f}" y="{bottom + 16}" text-anchor="middle">{value:.4g}</text>')
        value, position = y.begin + share * (y.end - y.begin), _TOP + share * (bottom - _TOP)
        drawn.append(f'<text x="{_LEFT - 6}" y="{position + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    return drawn


def _legend(scale: str, top: float) -> list[str]:
    left = _WIDTH - _RIGHT + 14
    drawn = [f'<text x="{left}" y="{_TOP + 10}">{html.escape(scale)}</text>']
    for step in range(5):
        height = _TOP + 22 + 14 * step
        drawn.append(
            f'<rect x="{left}" y="{height}" width="14" height="14" fill="{_colour(_SHADES * step // 4)}"/>'
            f'<text x="{left + 20}" y="{height + 11}">{top * step / 4:.3g}</text>'
        )
    return drawn


def _points(x: Extent, y: Extent, points: Points, colour: str) -> list[str]:
    """Points as dots; of too many, evenly some."""
    step = -(-len(points) // _MOST_MARKS) or 1
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    drawn = []
    for across, down in points[::step]:
        horizontal = _LEFT + (across - x.begin) / (x.end - x.begin) * (right - _LEFT)
        vertical = _TOP + (down - y.begin) / (y.end - y.begin) * (bottom - _TOP)
        drawn.append(f'<circle cx="{horizontal:.1f}" cy="{vertical:.1f}" r="1.4" fill="{colour}"/>')
    return drawn
