# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: with the unit that fits."""

from __future__ import annotations

import math

from manyscale.units import BANDWIDTH, BYTES, TIME, humanize

_SECOND = 10**15  # femtoseconds
_COUNTED = (
    "core",
    "cycle",
    "event",
    "hop",
    "instruction",
    "line",
    "message",
    "packet",
    "rank",
    "request",
    "token",
)
_LONG = 9_000.0  # seconds: simulated time ends there, the host's need not


def shown(value: float | None, unit: str = "1") -> str:
    """A number with its unit.

    >>> shown(7.2e-05, "s"), shown(2097152, "B"), shown(1234567, "cycle"), shown(12.345, "%")
    ('72us', '2MiB', '1,234,567 cycles', '12.3%')
    """
    if value is None or not math.isfinite(value):
        return "none"
    if unit == "s" and abs(value) < _LONG:
        return humanize(round(value * _SECOND), TIME)
    if unit == "fs" and abs(value) < 2**63:
        return humanize(round(value), TIME)
    if unit == "B":
        return humanize(round(value), BYTES)
    if unit == "B/s":
        return humanize(round(value), BANDWIDTH)
    if unit == "%":
        return f"{value:.1f}%"
    if unit == "flop/s":
        return f"{value / 1e9:,.4g} Gflop/s"
    whole = value == int(value) and abs(value) < 2**53
    text = f"{int(value):,}" if whole else f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:,.4g}"
    if unit in ("1", ""):
        return text
    return f"{text} {unit}s" if unit.rpartition(" ")[2] in _COUNTED and value != 1 else f"{text} {unit}"


def share(part: float, whole: float) -> float:
    """What part of a whole, from 0 to 1; 0 of nothing."""
    return part / whole if whole else 0.0
