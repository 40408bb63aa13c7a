# SPDX-License-Identifier: Apache-2.0
"""Numbers and names as people read them: with the unit that fits, and without underscores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypedDict

_UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "s": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12)),
    "B": (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0)),
    "B/s": (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)),
    "flop/s": (("Tflop/s", 1e12), ("Gflop/s", 1e9), ("Mflop/s", 1e6), ("flop/s", 1.0)),
    "Hz": (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)),
}
SECONDS = {"fs": 1e-15, "ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3}
_UNCOUNTED = frozenset(("inst", "flop", "byte", "Hz", "W", "J"))  # words of units that have no plural
_CAPITALS = frozenset(
    [
        "api",
        "alu",
        "cbu",
        "cpi",
        "cpu",
        "cta",
        "ctas",
        "cuda",
        "dram",
        "fma",
        "gpu",
        "ipc",
        "l0",
        "l1",
        "l1i",
        "l1d",
        "l2",
        "l3",
        "lsu",
        "mpi",
        "mpki",
        "nic",
        "pcie",
        "ptx",
        "sass",
        "sm",
        "sms",
        "tlb",
        "uvm",
        "xu",
        "fp16",
        "fp32",
        "fp64",
    ]
)
_ROUNDED_UP = 0.9995  # of a unit: four digits of it make one


def shown(value: float | None, unit: str = "1") -> str:
    """A number with its unit, in four digits.

    >>> shown(7.2e-05, "s"), shown(2097152, "B"), shown(1234567, "cycle"), shown(12.345, "%"), shown(29360127, "fs")
    ('72 us', '2 MiB', '1,234,567 cycles', '12.3%', '29.36 ns')
    """
    if value is None or not math.isfinite(value):
        return "none"
    if unit in SECONDS:
        return shown(value * SECONDS[unit], "s")
    if unit == "%":
        return f"{value:.2f}%" if 0 < abs(value) < 1 else f"{value:.1f}%"
    if unit in _UNITS:
        return _scaled(value, unit)
    text = _plain(value)
    if unit in ("1", ""):
        return text
    return f"{text} {unit if value == 1 else _plural(unit)}"


def _plural(unit: str) -> str:
    """More than one of what is counted; units such as inst/cycle stay as they are."""
    word = unit.rpartition(" ")[2]
    is_plural = word.endswith("s") and not word.endswith("ss")
    if is_plural or word in _UNCOUNTED or not (word.isalpha() and word.islower()):
        return unit
    if word.endswith("y"):
        return f"{unit[:-1]}ies"
    return f"{unit}es" if word.endswith(("ss", "ch", "sh", "x")) else f"{unit}s"


def _scaled(value: float, unit: str) -> str:
    if not value:
        return f"0 {unit}"
    steps = _UNITS[unit]
    name, size = next((step for step in steps if abs(value) >= _ROUNDED_UP * step[1]), steps[-1])
    return f"{_plain(float(f'{value / size:.4g}'))} {name}"


def _plain(value: float) -> str:
    if value == int(value) and abs(value) < 2**53:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.4g}"
    if "e" not in text:
        return text
    digits, _, exponent = text.partition("e")
    return f"{digits}·10^{int(exponent)}"


def spoken(name: str) -> str:
    """What people call a number: capitals for what is written so, and no underscores.

    >>> spoken("dram_utilization"), spoken("l1_hit_rate"), spoken("simulated_seconds"), spoken("mean.us")
    ('DRAM utilization', 'L1 hit rate', 'simulated time', 'mean us')
    """
    words = [word for word in re.split(r"[_.\s]+", name) if word]
    if len(words) > 1 and words[-1] == "seconds":
        words[-1] = "time"
    return " ".join(
        word.upper().replace("CTAS", "CTAs").replace("SMS", "SMs") if word in _CAPITALS else word
        for word in words
    )


def share(part: float, whole: float) -> float:
    """What part of a whole, from 0 to 1; 0 of nothing."""
    return part / whole if whole else 0.0


def percent(part: float) -> str:
    """A share from 0 to 1 as a percentage that people read, never more than 100%.

    >>> percent(0.4567), percent(0.004), percent(1.0000001), percent(0), percent(1e-6)
    ('46%', '0.4%', '100%', '0%', '<0.1%')
    """
    bounded = min(max(part, 0.0), 1.0)
    if 0 < bounded < 0.0005:
        return "<0.1%"
    return f"{bounded:.1%}" if 0 < bounded < 0.01 else f"{bounded:.0%}"


_ENDINGS = {"_ns": "ns", "_us": "us", "_seconds": "s", "_bytes": "B", "_percent": "%"}
_WHOLE = {"bytes": "B", "percent": "%", "seconds": "s", "time": "s", "inclusive_time": "s"}


class Described(TypedDict):
    """What people call columns of a table, and what they are counted in: arguments of `Section.table`."""

    names: dict[str, str]
    units: dict[str, str]


def for_people(columns: Iterable[str], units: Mapping[str, str] | None = None) -> Described:
    """Names and units of a table's columns, from what the columns are called.

    >>> for_people(["begin_ns", "bytes", "ipc"])
    {'names': {'begin_ns': 'begin', 'bytes': 'bytes', 'ipc': 'IPC'}, 'units': {'begin_ns': 'ns', 'bytes': 'B'}}
    """
    names: dict[str, str] = {}
    found: dict[str, str] = {}
    for column in columns:
        ending = next((end for end in _ENDINGS if column.endswith(end) and column != end), None)
        names[column] = spoken(column.removesuffix(ending) if ending and ending != "_bytes" else column)
        unit = _WHOLE.get(column) or (_ENDINGS[ending] if ending else None)
        if unit:
            found[column] = unit
    return {"names": names, "units": found | dict(units or {})}


def scale_of(values: Iterable[float], unit: str) -> tuple[float, str]:
    """The factor and the unit in which an axis of these values reads well.

    >>> scale_of([2e-5, 3e-4], "s")
    (1000000.0, 'us')
    """
    if unit in SECONDS:
        factor, name = scale_of((value * SECONDS[unit] for value in values), "s")
        return factor * SECONDS[unit], name
    most = max((abs(value) for value in values), default=0.0)
    if unit not in _UNITS or not most:
        return 1.0, unit
    name, size = next((step for step in _UNITS[unit] if most >= step[1]), _UNITS[unit][-1])
    return 1 / size, name
