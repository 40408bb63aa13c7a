# SPDX-License-Identifier: Apache-2.0
"""Bars of stacked parts as SVG: what cycles were spent on, of several runs side by side."""

from __future__ import annotations

import html
from collections.abc import Mapping

from manyscale.errors import InputError

_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 400, 70, 170, 40, 50
_BAR, _GAP = 44, 18
_COLOURS = (
    "#ced4da", "#adb5bd", "#868e96", "#e03131", "#f08c00", "#f59f00", "#d0ebff", "#74c0fc", "#339af0",
    "#1971c2", "#0b7285", "#1864ab", "#9c36b5", "#c2255c", "#2f9e44", "#8ce99a", "#f1f3f5",
)  # fmt: skip


def stack_chart(title: str, y_label: str, bars: Mapping[str, Mapping[str, float]]) -> str:
    """An SVG with a bar for each name, whose parts are stacked in their order; parts that no bar has are left out."""
    parts = list(dict.fromkeys(part for bar in bars.values() for part in bar))
    totals = {name: sum(bar.values()) for name, bar in bars.items()}
    if not totals or max(totals.values()) <= 0:
        raise InputError("a chart needs at least one bar that is not empty")
    if min(value for bar in bars.values() for value in bar.values()) < 0:
        raise InputError("a part of a bar cannot be below 0")
    width = _LEFT + len(bars) * (_BAR + _GAP) + _RIGHT
    scale = (_HEIGHT - _TOP - _BOTTOM) / max(totals.values())
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{html.escape(title)}</text>',
        f'<text transform="translate(16 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y_label)}</text>",
    ]
    for quarter in range(5):
        value = max(totals.values()) * quarter / 4
        y = _HEIGHT - _BOTTOM - value * scale
        drawn.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{width - _RIGHT}" y2="{y:.1f}" stroke="#e9ecef"/>')
        drawn.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for index, (name, bar) in enumerate(bars.items()):
        x, y = _LEFT + _GAP / 2 + index * (_BAR + _GAP), float(_HEIGHT - _BOTTOM)
        for part, value in bar.items():
            height = value * scale
            y -= height
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.2f}" width="{_BAR}" height="{height:.2f}" fill="{_colour(parts, part)}">'
                f"<title>{html.escape(f'{name}: {part} {value:.4g}')}</title></rect>"
            )
        drawn.append(
            f'<text x="{x + _BAR / 2:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{html.escape(name)}</text>'
        )
    shown = [part for part in parts if any(bar.get(part, 0.0) > 0 for bar in bars.values())]
    for index, part in enumerate(reversed(shown)):
        y = _TOP + 14 + 18 * index
        drawn.append(
            f'<rect x="{width - _RIGHT + 14}" y="{y - 10}" width="12" height="12" fill="{_colour(parts, part)}"/>'
            f'<text x="{width - _RIGHT + 32}" y="{y}">{html.escape(part)}</text>'
        )
    return "\n".join([*drawn, "</svg>", ""])


def _colour(parts: list[str], part: str) -> str:
    return _COLOURS[parts.index(part) % len(_COLOURS)]
