# SPDX-License-Identifier: Apache-2.0
"""Links over time for the eye: a line for each link, coloured by its load, and by what waited for it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from manyscale.network.picture import MARGIN, WIDTH, colour
from manyscale.units import BYTES, TIME, humanize

MOST_LINKS = 40  # the busiest ones
_NAMES = 210  # width of the names of links
_LINE = 14
_FEMTOSECONDS = 10**15


@dataclass(frozen=True)
class LinkTimes:
    """A link over time: for each interval in which something happened its number, load and mean queue in bytes."""

    name: str
    intervals: Sequence[tuple[int, float, float]]


def draw_load(title: str, links: Sequence[LinkTimes], interval: float) -> str:
    """SVG with load (share of the bandwidth) above and queues (relative to the longest) below; seconds an interval."""
    shown = links[:MOST_LINKS]
    count = 1 + max((index for link in shown for index, _, _ in link.intervals), default=0)
    longest = max((queue for link in shown for _, _, queue in link.intervals), default=0.0)
    wide = (WIDTH - MARGIN - _NAMES) / count
    block = _LINE * len(shown)
    height = 2 * block + 130
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="16">{html.escape(title)}</text>',
    ]
    headings = (
        "load: share of the bandwidth, grey 0 to red 1",
        f"queue: what waits for the link, red is {humanize(round(longest), BYTES)}",
    )
    for part, heading in enumerate(headings):
        top = 60 + part * (block + 40)
        parts.append(f'<text x="{_NAMES}" y="{top - 6}" font-size="13">{heading}</text>')
        for index, link in enumerate(shown):
            y = top + _LINE * index
            parts.append(
                f'<text x="{_NAMES - 6}" y="{y + 11}" text-anchor="end">{html.escape(link.name)}</text>'
            )
            for number, load, queue in link.intervals:
                share = load if part == 0 else queue / max(longest, 1e-9)
                if share > 0:
                    parts.append(
                        f'<rect x="{_NAMES + wide * number:.2f}" y="{y}" width="{wide:.2f}" height="{_LINE - 1}" '
                        f'fill="{colour(share)}"/>'
                    )
    end = humanize(round(count * interval * _FEMTOSECONDS), TIME)
    parts.append(f'<text x="{_NAMES}" y="{height - 12}">0</text>')
    parts.append(f'<text x="{WIDTH - MARGIN}" y="{height - 12}" text-anchor="end">{end}</text>')
    return "\n".join([*parts, "</svg>", ""])
