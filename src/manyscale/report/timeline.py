# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs, read back and made small: a picture shows some thousands of intervals, not for millions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale.errors import RunError
from manyscale.report.charts import Lane, Lanes

_MOST_BYTES = 1 << 30
_MOST_LANES = 4_096
_MOST_INTERVALS = 64_000  # in all lanes together
_MOST_IN_LANE = 2_000
_MOST_LEVELS = 1_000  # points of a counter
_ALL_LEVELS = 48_000  # of all counters together

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Timeline:
    """Spans and counters of a run; times in femtoseconds of simulated time."""

    tracks: list[tuple[str, int, bool]]  # name, index of the parent, whether it is a counter
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

    def track_name(self, track: int) -> str:
        """The name of a track, after that of the component it belongs to."""
        name, parent, _ = self.tracks[track]
        return f"{self.tracks[parent][0]}: {name}" if 0 <= parent < len(self.tracks) else name

    @property
    def end_of_all(self) -> int:
        """When the last span ended, or the last counter changed."""
        return max(int(self.end.max(initial=0)), int(self.level_time.max(initial=0)), 1)

    def lanes(self, title: str) -> Lanes | None:
        """All tracks over one axis of time from 0: those of spans, in groups by kind, then counters."""
        unit, scale = _time_unit(self.end_of_all)
        used = np.flatnonzero(np.bincount(self.track, minlength=len(self.tracks)))[:_MOST_LANES]
        # A component's own track before those that it needs besides; tracks of a kind together.
        order = sorted(map(int, used), key=lambda track: self.tracks[track][1] >= 0)
        columns = min(_MOST_IN_LANE, max(60, _MOST_INTERVALS // max(len(order), 1) // 2))
        by_time, names = self._names_by_time()
        lanes = [self._lane(track, self.end_of_all, columns, scale, by_time) for track in order]
        lanes += self._levels(scale)
        return Lanes(title, unit, names, lanes, from_zero=True) if lanes else None

    def _levels(self, scale: float) -> list[Lane]:
        """Counters over time, each in a lane of its own."""
        tracks = np.unique(self.level_track)[:_MOST_LANES]
        points = max(40, min(_MOST_LEVELS, _ALL_LEVELS // max(len(tracks), 1)))
        found = []
        for track in map(int, tracks):
            chosen = self.level_track == track
            level = _thinned(self.level_time[chosen] * scale, self.level_value[chosen], points)
            name = self.track_name(track)
            found.append(Lane(name, kind=_kind(name), level=level))
        return found

    def _names_by_time(self) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Names that are used, those that lasted longest first, and the new index of each name."""
        lasted = np.bincount(self.name, weights=self.end - self.begin + 1, minlength=len(self.names))
        by_time = [int(name) for name in np.argsort(-lasted, kind="stable") if lasted[name] > 0]
        order = np.zeros(len(self.names), np.int32)
        order[by_time] = np.arange(len(by_time), dtype=np.int32)
        return order, [self.names[name] for name in by_time]

    def _lane(
        self, track: int, length: int, columns: int, scale: float, order: npt.NDArray[np.int32]
    ) -> Lane:
        """Spans that are wider than a column as they are, the others as columns that say how busy they were."""
        chosen = self.track == track
        begin, end, name = self.begin[chosen], self.end[chosen], order[self.name[chosen]]
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
            self.track_name(track),
            (begins[by_time] * scale).tolist(),
            (ends[by_time] * scale).tolist(),
            whats[by_time].tolist(),
            shares[by_time].round(2).tolist() if narrow.any() else None,
            kind=_kind(self.track_name(track)),
        )


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


def _kind(name: str) -> str:
    """What tracks have in common: their name without numbers."""
    return re.sub(r"\s*\[\d+\]|(?<=[a-z]) \d+\b", "", name)


def _thinned(
    time: npt.NDArray[np.float64], value: npt.NDArray[np.float64], most: int
) -> list[tuple[float, float]]:
    """Of too many points, the lowest and the highest of each stretch, so that no peak is lost."""
    if len(time) <= most:
        return list(zip(time.tolist(), value.tolist(), strict=True))
    kept: set[int] = {0, len(time) - 1}
    for part in np.array_split(np.arange(len(time)), most // 2):
        kept.add(int(part[np.argmin(value[part])]))
        kept.add(int(part[np.argmax(value[part])]))
    indices = sorted(kept)
    return list(zip(time[indices].tolist(), value[indices].tolist(), strict=True))
