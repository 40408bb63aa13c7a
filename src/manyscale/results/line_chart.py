# SPDX-License-Identifier: Apache-2.0
"""Line charts as SVG, for studies that vary one thing."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

from manyscale.errors import InputError

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 170, 40, 50
_LETTER = 6.6  # how wide one is on average
_COLOURS = ("#1971c2", "#e8590c", "#2f9e44", "#9c36b5", "#c2255c", "#0b7285", "#f08c00", "#495057")

Points = Sequence[tuple[float, float]]


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, Points],
    *,
    log_x: bool = True,
    log_y: bool = False,
) -> str:
    """An SVG with a line for each name; axes are logarithmic where asked for."""
    points = [point for line in lines.values() for point in line]
    if not points:
        raise InputError("a chart needs at least one point")
    if (log_x and min(x for x, _ in points) <= 0) or (log_y and min(y for _, y in points) <= 0):
        raise InputError("a logarithmic axis needs values above 0")
    x_axis = _Axis([x for x, _ in points], log_x, _LEFT, _WIDTH - _RIGHT)
    y_axis = _Axis([y for _, y in points] + ([] if log_y else [0.0]), log_y, _HEIGHT - _BOTTOM, _TOP)
    # Long names of lines make the picture wider, and not its axes shorter.
    width = _WIDTH + max(0, math.ceil(_LETTER * max(map(len, lines)) + 44 - _RIGHT))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{html.escape(title)}</text>',
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">'
        f"{html.escape(x_label)}</text>",
        f'<text transform="translate(16 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y_label)}</text>",
    ]
    for value in sorted({x for x, _ in points}) if len({x for x, _ in points}) <= 14 else x_axis.ticks():
        x = x_axis.position(value)
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#e9ecef"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    for value in y_axis.ticks():
        y = y_axis.position(value)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#e9ecef"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for index, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        dash = ' stroke-dasharray="5 3"' if index >= len(_COLOURS) else ""
        drawn = [(x_axis.position(x), y_axis.position(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in drawn]
        height = _TOP + 14 + 18 * index
        left = _WIDTH - _RIGHT + 14
        parts.append(
            f'<line x1="{left}" y1="{height - 4}" x2="{left + 18}" y2="{height - 4}" stroke="{colour}" '
            f'stroke-width="2"{dash}/><text x="{left + 24}" y="{height}">{html.escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Values to positions between two ends of the picture."""

    def __init__(self, values: Sequence[float], logarithmic: bool, begin: float, end: float) -> None:
        self._logarithmic = logarithmic
        self._low, self._high = self._scaled(min(values)), self._scaled(max(values))
        if self._high - self._low < 1e-12:
            self._high = self._low + 1
        if not logarithmic:
            self._high += 0.05 * (self._high - self._low)
        self._begin, self._end = begin, end

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self._logarithmic else value

    def position(self, value: float) -> float:
        share = (self._scaled(value) - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)

    def ticks(self) -> list[float]:
        if self._logarithmic:
            # Whole powers of ten, or with 2 and 5 times each, or with all digits: the fewest that say enough.
            for digits in ((1,), (1, 2, 5), tuple(range(1, 10))):
                powers = range(math.floor(self._low), math.floor(self._high) + 1)
                values = [digit * 10.0**power for power in powers for digit in digits]
                inside = [value for value in values if self._low <= math.log10(value) <= self._high]
                if len(inside) >= 3:
                    return inside
            return inside if len(inside) > 1 else [10**self._low, 10**self._high]
        step = 10 ** math.floor(math.log10((self._high - self._low) / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if (self._high - self._low) / (factor * step) <= 6)
        first = math.ceil(self._low / step)
        return [number * step for number in range(first, math.floor(self._high / step) + 1)]
