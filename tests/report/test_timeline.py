# SPDX-License-Identifier: Apache-2.0
"""Timelines are read back as they were written, and made small without losing where time went."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import System
from manyscale.errors import RunError
from manyscale.report.timeline import Timeline, read_timeline

pytestmark = pytest.mark.core


def made(begin, end, track=None, name=None, tracks=1, names=1) -> Timeline:
    begin, end = np.array(begin, np.int64), np.array(end, np.int64)
    zeros = np.zeros(len(begin), np.int32)
    empty = np.zeros(0, np.int64)
    return Timeline(
        [(f"t{k}", -1, False) for k in range(tracks)],
        [f"n{k}" for k in range(names)],
        begin,
        end,
        zeros if track is None else np.array(track, np.int32),
        zeros if name is None else np.array(name, np.int32),
        empty,
        empty.astype(float),
        empty.astype(np.int32),
    )


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    system = System("line")
    first = system.add("synthetic.relay", "first", clock="1GHz", tokens=100, hops=1)
    last = system.add("synthetic.relay", "last", clock="1GHz", slots=2)
    system.connect(first.output, last.input, latency="2ns")
    out = tmp_path_factory.mktemp("run") / "run"
    result = system.run(out=out, timeline=True)
    return out / "timeline.pftrace", result


def test_spans_and_counters_come_back(trace):
    path, result = trace
    timeline = read_timeline(path)
    spans = {}
    for track, name in zip(timeline.track, timeline.name, strict=True):
        key = (timeline.track_name(track), timeline.names[name])
        spans[key] = spans.get(key, 0) + 1
    assert spans[("first", "pass")] == 100
    assert spans[("last", "retire")] == 100
    assert timeline.end.max() <= result.now
    assert (timeline.end - timeline.begin == 10**6).all()  # a cycle of 1 GHz each
    held = timeline.level_value[timeline.level_track == timeline.level_track[0]]
    assert (held[0], held[-1]) == (100, 1)  # tokens at its beginning, and before the last leaves


def test_broken_files_are_errors_and_nothing_worse(trace, tmp_path):
    whole = trace[0].read_bytes()
    rng = np.random.default_rng(1)
    broken = 0
    for _ in range(200):
        data = bytearray(whole[: rng.integers(1, len(whole))])
        for byte in rng.integers(0, len(data), 4):
            data[byte] = rng.integers(0, 256)
        file = tmp_path / "broken.pftrace"
        file.write_bytes(data)
        try:
            timeline = read_timeline(file)
            timeline.lanes("x")
        except RunError as error:
            broken += "at byte" in str(error)
    assert broken > 50


def test_a_few_spans_stay_as_they_are():
    lanes = made([0, 10**9], [5 * 10**8, 4 * 10**9]).lanes("Spans")
    assert lanes.unit == "us"
    assert (lanes.lanes[0].begin, lanes.lanes[0].end) == ([0, 1], [0.5, 4])
    assert lanes.lanes[0].share is None


def test_a_million_spans_become_few_and_keep_the_time_that_was_busy():
    count = 10**6
    begin = np.arange(count, dtype=np.int64) * 10_000
    timeline = made(begin, begin + 2_500, name=np.arange(count) % 2, names=2)
    lane = timeline.lanes("Spans").lanes[0]
    assert len(lane.begin) <= 4_000
    busy = sum(
        (end - start) * share for start, end, share in zip(lane.begin, lane.end, lane.share, strict=True)
    )
    assert busy / (count * 10_000 * 1e-9) == pytest.approx(0.25, rel=0.03)


def test_a_long_span_among_short_ones_stays_whole():
    short = np.arange(5_000, dtype=np.int64) * 1_000_000
    begin, end = np.append(short, 10**10), np.append(short + 1_000, 2 * 10**10)
    names = np.append(np.zeros(5_000, int), 1)
    timeline = made(begin, end, name=names, names=2)
    lanes = timeline.lanes("Spans")
    long = [
        (start, stop)
        for start, stop, what in zip(
            lanes.lanes[0].begin, lanes.lanes[0].end, lanes.lanes[0].what, strict=True
        )
        if lanes.names[what] == "n1"
    ]
    assert long == [(10, 20)]


def test_all_tracks_are_there_in_groups_by_kind():
    tracks = 200
    begin = np.zeros(tracks, np.int64)
    end = np.arange(1, tracks + 1, dtype=np.int64) * 10**6
    timeline = made(begin, end, track=np.arange(tracks), tracks=tracks)
    timeline.tracks[:] = [(f"sm[{k}]", -1, False) for k in range(150)] + [
        (f"slice[{k}]", -1, False) for k in range(50)
    ]
    lanes = timeline.lanes("Spans")
    assert [lane.name for lane in lanes.lanes] == [name for name, _, _ in timeline.tracks]
    assert {lane.kind for lane in lanes.lanes} == {"sm", "slice"}


def test_spans_and_counters_share_an_axis_that_begins_at_0():
    timeline = Timeline(
        [("c", -1, False), ("level", 0, True)],
        ["n"],
        np.array([5 * 10**9]),
        np.array([6 * 10**9]),
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
        np.array([10**9, 8 * 10**9]),
        np.array([3.0, 0.0]),
        np.ones(2, np.int32),
    )
    lanes = timeline.lanes("Spans")
    assert lanes.extent == (0, 8)
    assert lanes.lanes[0].begin == [5]
    assert lanes.lanes[1].level == [(1, 3), (8, 0)]


def test_a_counter_keeps_its_peaks():
    count = 100_000
    value = np.zeros(count)
    value[54_321] = 7.0
    empty = np.zeros(0, np.int64)
    timeline = Timeline(
        [("c", -1, False), ("level", 0, True)],
        [],
        empty,
        empty,
        empty.astype(np.int32),
        empty.astype(np.int32),
        np.arange(count, dtype=np.int64) * 10**6,
        value,
        np.ones(count, np.int32),
    )
    (lane,) = timeline.lanes("Spans").lanes
    points = lane.level
    assert lane.name == "c: level"
    assert len(points) <= 1_100
    assert max(y for _, y in points) == 7.0
