# SPDX-License-Identifier: Apache-2.0
"""Timelines, read back with Perfetto's own message definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

import manyscale as ms
from systems import make_phold, make_ring


def packets(path: Path) -> list[perfetto.TracePacket]:
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    return list(trace.packet)


class Worker(ms.Component):
    """Emits nested spans and a level."""

    alarm = ms.Timer()

    def start(self) -> None:
        self.alarm.after("5ns")

    @alarm
    def ring(self, payload: object) -> None:
        self.span("inner", "2ns", "3ns")
        self.span("outer", "1ns", "4ns")
        self.span("next", "4ns", "5ns")
        self.span("moment", "4ns", "4ns")
        self.span("beside", "1500ps", "2500ps", track=1)
        self.level("load", 0.5)


def test_spans_nest_and_counters_hold_their_values(tmp_path: Path) -> None:
    system = ms.System()
    system.add(Worker, "cpu.core[0]")
    system.run(out=tmp_path / "run", timeline=True)
    found = packets(tmp_path / "run" / "timeline.pftrace")
    names = {e.iid: e.name for p in found for e in p.interned_data.event_names}
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in found if p.HasField("track_descriptor")}
    assert "1 ns shown = 1000 fs simulated" in tracks[1].process.process_name
    track = perfetto.TrackEvent
    stacks: dict[int, list[str]] = {}
    spans: list[tuple[str, str, int]] = []
    last = 0
    for packet in found:
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last
        last = packet.timestamp
        event = packet.track_event
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == track.TYPE_SLICE_BEGIN:
            stack.append(names[event.name_iid])
            spans.append((tracks[event.track_uuid].name, "/".join(stack), packet.timestamp))
        elif event.type == track.TYPE_SLICE_END:
            stack.pop()
        elif event.type == track.TYPE_INSTANT:
            spans.append((tracks[event.track_uuid].name, names[event.name_iid], packet.timestamp))
        else:
            assert tracks[event.track_uuid].HasField("counter")
            assert (tracks[event.track_uuid].name, event.double_counter_value) == ("load", 0.5)
    assert all(not stack for stack in stacks.values())
    assert sorted(spans) == [
        ("cpu.core[0]", "moment", 4000),
        ("cpu.core[0]", "next", 4000),
        ("cpu.core[0]", "outer", 1000),
        ("cpu.core[0]", "outer/inner", 2000),
        ("track 1", "beside", 1500),
    ]


def test_a_model_of_the_core_emits_a_span_for_each_token(tmp_path: Path) -> None:
    result = make_ring(stages=3, hops=10).run(out=tmp_path / "run", timeline=True, threads=2)
    begins = [
        packet
        for packet in packets(tmp_path / "run" / "timeline.pftrace")
        if packet.track_event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN
    ]
    passed = sum(
        result.value(f"stage[{i}]", "passed") + result.value(f"stage[{i}]", "retired") for i in range(3)
    )
    assert len(begins) == passed == 33


def test_the_trace_is_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    for threads in (1, 2):
        make_phold().run(until="50ns", out=tmp_path / str(threads), timeline=True, threads=threads)
    one, two = (tmp_path / str(threads) / "timeline.pftrace" for threads in (1, 2))
    assert one.read_bytes() == two.read_bytes()


def test_a_timeline_changes_no_statistic(tmp_path: Path) -> None:
    with_timeline = make_phold().run(until="50ns", out=tmp_path / "run", timeline=True)
    assert with_timeline.stats.equals(make_phold().run(until="50ns").stats)


def test_without_asking_there_is_no_timeline(tmp_path: Path) -> None:
    make_phold().run(until="50ns", out=tmp_path / "run")
    assert not (tmp_path / "run" / "timeline.pftrace").exists()


def test_a_timeline_must_be_asked_for_before_the_first_run(tmp_path: Path) -> None:
    system = make_phold()
    system.run(until="1ns")
    with pytest.raises(ms.ManyscaleError, match="ask for a timeline before the first run"):
        system.run(until="2ns", out=tmp_path / "run", timeline=True)


def test_memory_shows_its_misses_and_lines_under_way(tmp_path: Path) -> None:
    """The counters on the timeline never pass the window and the MSHRs, and end at zero."""
    system = ms.System("memory")
    core = system.add("memory.generator", "core", pattern="random", accesses=500, footprint="16MiB", window=6)
    shared = system.add("memory.cache", "shared", cache={"line": "64B"})
    channel = system.add("memory.dram", "channel", backend="simple")
    system.connect(core.memory, shared.requesters, "1ns")
    system.connect(shared.memory, channel.requests, "5ns")
    system.run(out=tmp_path / "run", timeline=True)
    found = packets(tmp_path / "run" / "timeline.pftrace")
    names = {
        p.track_descriptor.uuid: p.track_descriptor.name for p in found if p.HasField("track_descriptor")
    }
    levels: dict[str, list[float]] = {}
    for packet in found:
        if packet.track_event.type == perfetto.TrackEvent.TYPE_COUNTER:
            levels.setdefault(names[packet.track_event.track_uuid], []).append(
                packet.track_event.double_counter_value
            )
    assert set(levels) == {"outstanding misses", "outstanding lines"}
    for values in levels.values():
        assert max(values) == 6
        assert values[-1] == 0
