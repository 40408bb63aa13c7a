# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs, read back and made small: a picture has room for some thousands of intervals, not for millions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale.errors import RunError
from manyscale.report.charts import Lane, Lanes, Lines

_MOST_BYTES = 1 << 30
_MOST_LANES = 48
_MOST_INTERVALS = 64_000  # in all lanes together
_MOST_IN_LANE = 2_000
_MOST_LEVELS = 1_000  # points of a counter
_MOST_COUNTERS = 12

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Timeline:
    """Spans and counters of a run; times in femtoseconds of simulated time."""

    tracks: list[tuple[str, int, bool]]  # name, place of the parent, whether it is a counter
    names: list[str]
    begin: Integers
    end: Integers
    track: npt.NDArray[np.int32]
    name: npt.NDArray[np.int32]
    level_time: Integers
    level_value: npt.NDArray[np.float64]
    level_track: npt.NDArray[np.int32]

    @property
    def events(self) -> int:
        """Spans and changes of counters."""
        return len(self.begin) + len(self.level_time)

    def track_name(self, place: int) -> str:
        name, parent, _ = self.tracks[place]
        return f"{self.tracks[parent][0]}: {name}" if 0 <= parent < len(self.tracks) else name

    def lanes(self, title: str) -> tuple[Lanes, int] | None:
        """The spans as lanes, of too many tracks the busiest, and how many tracks are left out."""
        if not len(self.begin):
            return None
        begin, end = int(self.begin.min()), int(self.end.max())
        unit, scale = _time_unit(end - begin)
        busy = np.bincount(self.track, weights=self.end - self.begin + 1, minlength=len(self.tracks))
        used = np.flatnonzero(np.bincount(self.track, minlength=len(self.tracks)))
        # A component's own track before those that it needs besides.
        first = sorted(used, key=lambda place: (self.tracks[place][1] >= 0, -busy[place]))
        chosen = sorted(first[:_MOST_LANES])
        columns = min(_MOST_IN_LANE, max(200, _MOST_INTERVALS // max(len(chosen), 1) // 2))
        order, names = self._names_by_time()
        lanes = [
            self._lane(int(place), begin, max(end - begin, 1), columns, scale, order) for place in chosen
        ]
        return Lanes(title, unit, names, lanes), len(used) - len(chosen)

    def _names_by_time(self) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Names that are used, those that lasted longest first, and the new place of each name."""
        lasted = np.bincount(self.name, weights=self.end - self.begin + 1, minlength=len(self.names))
        by_time = [int(place) for place in np.argsort(-lasted, kind="stable") if lasted[place] > 0]
        order = np.zeros(len(self.names), np.int32)
        order[by_time] = np.arange(len(by_time), dtype=np.int32)
        return order, [self.names[place] for place in by_time]

    def _lane(
        self, place: int, first: int, length: int, columns: int, scale: float, order: npt.NDArray[np.int32]
    ) -> Lane:
        """Spans that are wider than a column as they are, the others as columns that say how busy they were."""
        chosen = self.track == place
        begin, end, name = self.begin[chosen] - first, self.end[chosen] - first, order[self.name[chosen]]
        width = max(length // columns, 1)
        wide = end - begin >= width
        if len(begin) <= columns:
            wide[:] = True
        begins, ends, whats = begin[wide], end[wide], name[wide]
        shares = np.ones(len(begins))
        narrow = ~wide
        if narrow.any():
            column = np.minimum((begin[narrow] + end[narrow]) // 2 // width, columns)
            key = column * (int(name.max()) + 1) + name[narrow]
            keys, inverse = np.unique(key, return_inverse=True)
            time = np.bincount(inverse, weights=end[narrow] - begin[narrow])
            of_column, of_name = np.divmod(keys, int(name.max()) + 1)
            # Of a column, the name that took most of it, and what all of them took.
            order_of_time = np.lexsort((-time, of_column))
            columns_used, head = np.unique(of_column[order_of_time], return_index=True)
            busiest = of_name[order_of_time][head]
            busy = np.bincount(of_column, weights=time)[columns_used]
            begins = np.concatenate([begins, columns_used * width])
            ends = np.concatenate([ends, (columns_used + 1) * width])
            whats = np.concatenate([whats, busiest])
            shares = np.concatenate([shares, np.clip(busy / width, 0.02, 1)])
        by_time = np.argsort(begins, kind="stable")
        return Lane(
            self.track_name(place),
            (begins[by_time] * scale).tolist(),
            (ends[by_time] * scale).tolist(),
            whats[by_time].tolist(),
            shares[by_time].round(2).tolist() if narrow.any() else None,
        )

    def counters(self) -> list[Lines]:
        """Counters over time, a chart for each name, its lines those of the busiest components."""
        if not len(self.level_time):
            return []
        first = int(self.level_time.min())
        unit, scale = _time_unit(int(self.level_time.max()) - first)
        charts: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for place in np.unique(self.level_track):
            name, parent, _ = self.tracks[place]
            chosen = self.level_track == place
            time, value = self.level_time[chosen] - first, self.level_value[chosen]
            lines = charts.setdefault(name, {})
            if len(lines) >= _MOST_COUNTERS:
                continue
            owner = self.tracks[parent][0] if 0 <= parent < len(self.tracks) else name
            lines[owner] = _thinned(time * scale, value)
        return [
            Lines(name, f"time in {unit}", name, lines, steps=True)
            for name, lines in list(charts.items())[:_MOST_COUNTERS]
        ]


def read_timeline(path: Path) -> Timeline:
    """The timeline in a file that a run has written."""
    from manyscale import _core

    try:
        if path.stat().st_size > _MOST_BYTES:
            raise RunError(f"{path.name} is larger than {_MOST_BYTES >> 30} GiB and was left out")
        found: dict[str, Any] = _core.read_timeline(path.read_bytes())
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise RunError(f"{path.name} is broken: {error}") from None
    told = re.search(rb"1 ns shown = (\d{1,12}) fs", found["process"])
    tick = int(told[1]) if told else 10**6
    tracks = [(_text(name), int(parent), bool(counter)) for name, parent, counter in found["tracks"]]
    begin, end, time = (
        np.frombuffer(found[name], np.int64) * tick for name in ("span_begin", "span_end", "level_time")
    )
    track, name, level_track = (
        np.frombuffer(found[name], np.int32) for name in ("span_track", "span_name", "level_track")
    )
    value = np.nan_to_num(np.frombuffer(found["level_value"], np.float64))
    # A span that never ended, or a time beyond what femtoseconds can say, is of a broken file.
    sound = (begin >= 0) & (end >= begin)
    names = [_text(each) for each in found["names"]]
    return Timeline(
        tracks, names, begin[sound], end[sound], track[sound], name[sound], time, value, level_track
    )


def _text(name: bytes) -> str:
    return name.decode(errors="replace")


def _time_unit(length: int) -> tuple[str, float]:
    """The unit in which a time in femtoseconds reads well, and the factor to it."""
    for unit, size in (("s", 10**15), ("ms", 10**12), ("us", 10**9)):
        if length >= 2 * size:
            return unit, 1 / size
    return "ns", 1e-6


def _thinned(time: npt.NDArray[np.float64], value: npt.NDArray[np.float64]) -> list[tuple[float, float]]:
    """Of too many points, the lowest and the highest of each stretch, so that no peak is lost."""
    if len(time) <= _MOST_LEVELS:
        return list(zip(time.tolist(), value.tolist(), strict=True))
    kept: set[int] = {0, len(time) - 1}
    for part in np.array_split(np.arange(len(time)), _MOST_LEVELS // 2):
        kept.add(int(part[np.argmin(value[part])]))
        kept.add(int(part[np.argmax(value[part])]))
    places = sorted(kept)
    return list(zip(time[places].tolist(), value[places].tolist(), strict=True))
