# SPDX-License-Identifier: Apache-2.0
"""Lanes of bars over time as SVG: what was busy when."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from manyscale.errors import InputError

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 820, 150, 20, 40, 50
_LANE, _GAP = 34, 12
_COLOURS = ("#1971c2", "#e8590c", "#2f9e44", "#9c36b5", "#c2255c", "#0b7285", "#f08c00", "#495057")

Bars = Sequence[tuple[float, float]]  # where each begins and ends


def lane_chart(title: str, x_label: str, lanes: Mapping[str, Bars]) -> str:
    """An SVG with a lane for each name, from the earliest begin of a bar to the latest end.

    Bars of a lane that are nearer than a tenth of a point of the picture are drawn as one.
    """
    bars = [bar for lane in lanes.values() for bar in lane]
    if not bars:
        raise InputError("a chart needs at least one bar")
    if any(end < begin for begin, end in bars):
        raise InputError("a bar ends after it begins")
    begin, end = min(first for first, _ in bars), max(last for _, last in bars)
    length = (end - begin) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / length
    bottom = _TOP + len(lanes) * (_LANE + _GAP)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + _BOTTOM}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{html.escape(title)}</text>',
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{bottom + 38}" text-anchor="middle">'
        f"{html.escape(x_label)}</text>",
    ]
    for quarter in range(5):
        x = _LEFT + quarter / 4 * (_WIDTH - _LEFT - _RIGHT)
        drawn.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#e9ecef"/>')
        drawn.append(
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{begin + quarter / 4 * length:.4g}</text>'
        )
    for index, (name, lane) in enumerate(lanes.items()):
        top = _TOP + index * (_LANE + _GAP) + _GAP / 2
        busy = _merged(lane, 0.0)
        share = sum(last - first for first, last in busy) / length
        drawn.append(
            f'<text x="{_LEFT - 8}" y="{top + 15:.1f}" text-anchor="end">{html.escape(name)}</text>'
            f'<text x="{_LEFT - 8}" y="{top + 29:.1f}" text-anchor="end" fill="#868e96">{share:.0%} of the time</text>'
        )
        colour = _COLOURS[index % len(_COLOURS)]
        for first, last in _merged(lane, 0.1 / scale):
            drawn.append(
                f'<rect x="{_LEFT + (first - begin) * scale:.2f}" y="{top:.1f}" '
                f'width="{max((last - first) * scale, 0.3):.2f}" height="{_LANE}" fill="{colour}"/>'
            )
    return "\n".join([*drawn, "</svg>", ""])


def _merged(lane: Bars, gap: float) -> list[tuple[float, float]]:
    """Bars in their order, those that overlap or are nearer than `gap` as one."""
    merged: list[tuple[float, float]] = []
    for first, last in sorted(lane):
        if merged and first <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
