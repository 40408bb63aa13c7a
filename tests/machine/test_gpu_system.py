# SPDX-License-Identifier: Apache-2.0
"""The [gpu] section: what is built from it, what each of its numbers changes, and groups of SMs on threads."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import gpu, identical
from manyscale.errors import InputError
from manyscale.machine import load_machine
from manyscale.machine.gpu_system import MemoryWiring, build_gpu

pytestmark = pytest.mark.core

SMALL = ("gpu.sm_count=8", "gpu.l2_slices=4", "gpu.memory.channels_per_stack=1")
MODELS = ("titanv", "gv100", "p100", "a100", "v100", "sst-gpu-listing1")

HEAD = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 data)
{
 .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<4>;
 ld.param.u64 %d1,[data];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r1,%r1,%r2,%r3;
 mul.wide.u32 %d2,%r1,16; add.s64 %d3,%d1,%d2;
"""
# 400 dependent products and sums of each thread; one store at the end keeps them alive.
COMPUTE = (
    HEAD
    + "mov.f32 %f1,0f3F000000; mov.f32 %f2,0f3F000000;"
    + "fma.rn.f32 %f1,%f1,%f2,%f1;" * 400
    + "setp.eq.f32 %p,%f1,0f3F800000; @%p st.global.f32 [%d3],%f1; ret; }"
)
# Each thread reads 16 bytes; what is read is zero, so nothing is stored.
READ = (
    HEAD
    + "ld.global.v4.u32 {%r4,%r5,%r6,%r7},[%d3]; or.b32 %r4,%r4,%r5; or.b32 %r6,%r6,%r7; or.b32 %r4,%r4,%r6;"
    + "setp.eq.u32 %p,%r4,1; @%p st.global.u32 [%d3],%r4; ret; }"
)
EMPTY = HEAD + "ret; }"
THREADS = 256


def device(*changes, machine="v100", **options):
    return gpu.TimedDevice(load_machine(machine, [*SMALL, *changes]).machine, allow_newer=True, **options)


def time_of(source, blocks, *changes, launches=1):
    """Seconds and cycles of the last of some equal launches, without those of a launch that does nothing."""
    on = device(*changes)
    data = on.zeros(blocks * THREADS * 4, np.uint32)
    kernel, empty = on.load(source)["k"], on.load(EMPTY)["k"]
    empty[1, 1](data)  # fills the instruction caches
    least = empty[1, 1](data)
    for _ in range(launches):
        whole = kernel[blocks, THREADS](data)
    return whole.seconds - least.seconds, whole.cycles - least.cycles, on.result


@pytest.mark.parametrize(
    ("slices", "channels", "of_first", "of_last", "consecutive"),
    [
        (4, 4, [0], [3], 128),  # one each
        (8, 4, [0], [3], 256),  # two neighbours share a channel, and take consecutive lines
        (4, 8, [0, 1], [6, 7], 128),  # two channels each
        (3, 2, [0, 1], [0, 1], 128),  # all reach all
        (6, 4, [0, 1], [2, 3], 128),  # two clusters of three slices and two channels
    ],
)
def test_slices_and_channels_are_stated_apart(slices, channels, of_first, of_last, consecutive):
    wiring = MemoryWiring(slices, channels, 128)
    assert list(wiring.channels_of(0)) == of_first
    assert list(wiring.channels_of(slices - 1)) == of_last
    assert wiring.channel_interleave == consecutive
    changes = (f"gpu.l2_slices={slices}", "gpu.memory.stacks=1", f"gpu.memory.channels_per_stack={channels}")
    parts = build_gpu(load_machine("v100", [*SMALL, *changes]).machine)
    links = {(link.a, link.b) for link in parts.system.links if link.a.endswith(".memory")}
    reached = {b.split(".")[0] for a, b in links if a == "slice[0].memory"}
    assert reached == {f"channel[{index}]" for index in of_first}
    assert sum(name.startswith("channel") for name in parts.system.components) == channels


@pytest.mark.parametrize(("slices", "channels"), [(4, 4), (8, 4), (4, 8), (3, 2), (12, 8)])
def test_all_channels_take_their_share(slices, channels):
    """Reading 512 KiB: no channel has more than 1.5 times its share of the lines, and none is left out."""
    changes = (f"gpu.l2_slices={slices}", "gpu.memory.stacks=1", f"gpu.memory.channels_per_stack={channels}")
    blocks = 128
    *_, result = time_of(READ, blocks, *changes)
    lines = [result.value(f"channel[{index}]", "reads") for index in range(channels)]
    assert sum(lines) == pytest.approx(blocks * THREADS * 16 / 128, rel=0.01)
    assert max(lines) <= 1.5 * sum(lines) / channels
    assert min(lines) > 0


def test_half_the_sms_take_twice_as_long_to_compute():
    _, eight, _ = time_of(COMPUTE, 64)
    _, four, _ = time_of(COMPUTE, 64, "gpu.sm_count=4")
    assert four / eight == pytest.approx(2, rel=0.05), (four, eight)


def test_the_clock_changes_the_time_and_not_the_cycles_of_computing():
    seconds, cycles, _ = time_of(COMPUTE, 64)
    faster, as_many, _ = time_of(COMPUTE, 64, "gpu.clock=3060MHz")
    assert seconds / faster == pytest.approx(2, rel=0.05)
    assert as_many == pytest.approx(cycles, rel=0.05)


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        ("gpu.memory.clock=1754MHz", 2),  # twice the standard's 877 MHz
        ("gpu.memory.stacks=8", 2),  # 8 channels for the 4 slices
        ("gpu.memory.channel.burst_cycles=2", 0.5),
    ],
)
def test_reading_memory_follows_its_clock_its_channels_and_its_bus(change, factor):
    """1 MiB over 4 channels of 28 GB/s: 9.3 us if nothing else limits; what is changed changes that in proportion."""
    blocks, peak, enough = 256, 4 * 28.064e9, "gpu.l2.cache.outstanding_misses=256"
    seconds, *_ = time_of(READ, blocks, enough)
    changed, *_ = time_of(READ, blocks, enough, change)
    least = blocks * THREADS * 16 / peak
    assert least < seconds < 1.35 * least, seconds
    assert seconds / changed == pytest.approx(factor, rel=0.25), (seconds, changed)


def test_more_slices_of_the_l2_read_faster_what_they_hold():
    """The second reading of 64 KiB finds all of it in L2; 4 slices move it faster than one, 8 faster still."""
    wide = ("gpu.memory.channels_per_stack=2",)
    one, two, eight = (
        time_of(READ, 16, *wide, f"gpu.l2_slices={slices}", launches=2)[1] for slices in (1, 2, 8)
    )
    assert one > 1.3 * two > 1.3 * eight, (one, two, eight)


@pytest.mark.parametrize(("capacity", "fits"), [("16KiB", False), ("64KiB", True)])
def test_the_size_of_the_l2_decides_what_stays(capacity, fits):
    """128 KiB read twice: the second time they come from 4 slices of 64 KiB, and not from 4 of 16 KiB."""
    blocks = 32
    lines = blocks * THREADS * 16 / 128
    *_, result = time_of(READ, blocks, f"gpu.l2_slice_capacity={capacity}", launches=2)
    read = sum(result.value(f"channel[{index}]", "reads") for index in range(4))
    assert read == pytest.approx(lines if fits else 2 * lines, rel=0.05)


def test_the_crossbar_takes_clock_and_traversal_from_bandwidth_and_latency():
    machine = load_machine("sst-gpu-listing1", [*SMALL, "gpu.crossbar.latency=2.1ns"]).machine
    spec = build_gpu(machine).system.components["crossbar"].spec
    assert (spec.clock, spec.flit, spec.traversal) == (937_500_000, 40, 2)  # 1.97 cycles, rounded up


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("gpu.memory.channels=5", "gpu.memory.channels: 5 channels are not 4 stacks x 1 channels_per_stack"),
        ("gpu.memory.standard=hbm9", "gpu.memory.standard: there is no DRAM standard named 'hbm9'"),
        ("gpu.memory.channel.clock=1GHz", "gpu.memory.channel.clock: state the clock of all channels"),
        (
            "gpu.sm_count=99999999999",
            "gpu.sm_count: 99999999999 are more than the 4096 that can be simulated",
        ),
        ("gpu.memory.stacks=99999", "gpu.memory.channels: 99999 are more than the 4096"),
        ("gpu.sm_groups=9", "gpu.sm_groups: 9 groups are more than the 8 SMs"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, message):
    with pytest.raises(InputError) as caught:
        device(change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "own: gpu: there is no section [gpu]"),
        ("[gpu]\nclock = '1GHz'", "own: gpu.sm_count: is not stated"),
        (
            "inherits = 'v100'\nname = 'own'\n[gpu.memory]\nstandard = 'hbm'",
            "own: gpu.memory.standard: there is no",
        ),
    ],
)
def test_a_machine_that_lacks_something_says_what(text, message, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        gpu.TimedDevice(str(file))
    assert message in str(caught.value)


@pytest.mark.parametrize("machine", MODELS)
def test_every_gpu_preset_runs_kernels(machine):
    on = gpu.TimedDevice(load_machine(machine).machine)
    data = on.array(np.zeros(4 * 4 * THREADS, np.uint32))
    assert on.load(READ)["k"][4, THREADS](data).cycles > 1000


def test_sm_groups_are_partitions_with_their_slices_and_channels():
    parts = build_gpu(load_machine("v100", [*SMALL, "gpu.sm_groups=2"]).machine)
    names = list(parts.system.components)
    clusters = dict(zip(names, parts.system.simulation.clusters()[0], strict=True))
    first = {"scheduler", *(f"sm[{i}]" for i in range(4)), "slice[0]", "slice[1]", "channel[0]", "channel[1]"}
    second = {*(f"sm[{i}]" for i in range(4, 8)), "slice[2]", "slice[3]", "channel[2]", "channel[3]"}
    assert len({clusters[name] for name in first}) == len({clusters[name] for name in second}) == 1
    assert clusters["sm[0]"] != clusters["sm[7]"]
    assert clusters["crossbar"] not in (clusters["sm[0]"], clusters["sm[7]"])


def test_neither_groups_nor_threads_show_in_results():
    """1, 2, 4 and any number of groups on 1, 2 and 4 threads: the same statistics of every component, to the bit.

    How long a window of the engine is follows from the links that the groups cut, so their number may differ.
    """
    results = []
    for groups in ([], ["gpu.sm_groups=1"], ["gpu.sm_groups=2"], ["gpu.sm_groups=3"], ["gpu.sm_groups=4"]):
        same_groups = []
        for threads in (1, 2, 4):
            on = device(*groups, threads=threads)
            data = on.zeros(64 * THREADS * 4, np.uint32)
            launch = on.load(READ)["k"][64, THREADS](data)
            same_groups.append(on.result)
            results.append((launch.cycles, on.result))
        assert all(identical(same_groups[0], result) for result in same_groups[1:])
    assert len({cycles for cycles, _ in results}) == 1
    for _, result in results[1:]:
        result.headline["windows"] = results[0][1].headline["windows"]
    assert all(identical(results[0][1], result) for _, result in results[1:])
