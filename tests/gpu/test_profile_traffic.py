# SPDX-License-Identifier: Apache-2.0
"""Traffic in L2 and memory belongs to the launch or copy that caused it, also when they are queued or overlap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bound_kernels import BOUNDS, Bound, source

from manyscale import gpu, load_machine
from traffic_support import WatchedCommands, check_profile, check_sums, check_traffic, watch

pytestmark = pytest.mark.core

SMALL = ("gpu.sm_count=4", "gpu.l2_slices=4")
WARPS = 16 * 8
READ = "ld.volatile.global.u32 %x1,[%a];"


def device(*changes: str, threads: int = 1) -> tuple[gpu.TimedDevice, WatchedCommands]:
    on = gpu.TimedDevice(load_machine("v100-sst", [*SMALL, *changes]).machine, threads=threads, isa="ptx")
    return on, watch(on)


class Queue:
    """A kernel on a device of its own, launched into streams."""

    def __init__(self, bound: Bound, threads: int = 1) -> None:
        self.bound = bound
        self.device, self.watched = device(*bound.changes, threads=threads)
        self.kernel = self.device.load(bound.source)["k"]
        self.launches: list[gpu.QueuedLaunch] = []
        self.copies: list[gpu.QueuedCopy] = []

    def array(self) -> gpu.DeviceArray:
        return self.device.zeros(self.bound.words, np.uint32)

    def launch(self, data: gpu.DeviceArray, stream: gpu.Stream) -> None:
        bound = self.bound
        self.launches.append(self.kernel[bound.grid, bound.block, 0, stream](data, bound.times))

    def profiles(self) -> list[gpu.KernelProfile]:
        self.device.synchronize()
        return [queued.result.profile for queued in self.launches]


def alone(queue: Queue) -> None:
    queue.launch(queue.array(), queue.device.stream())


def queued(queue: Queue) -> None:
    data, stream = queue.array(), queue.device.stream()
    for _ in range(8):
        queue.launch(data, stream)


def in_streams(queue: Queue) -> None:
    for data, stream in [(queue.array(), queue.device.stream()) for _ in range(3)]:
        for _ in range(2):
            queue.launch(data, stream)


def with_copies(queue: Queue) -> None:
    """A kernel between copies of its stream, while others run beside it."""
    data, other = queue.array(), queue.array()
    stream, beside = queue.device.stream(), queue.device.stream()
    host = np.zeros(queue.bound.words, np.uint32)
    queue.copies.append(other.copy_from(host, stream=beside))
    for _ in range(2):
        queue.launch(data, stream)
        queue.copies.append(data.copy_from(host, stream=stream))
        queue.copies.append(other.copy_from(data, stream=stream))
        queue.copies.append(other.copy_to(host, stream=beside))
    queue.launch(data, stream)
    queue.copies.append(data.fill(1, stream=stream))


WAYS: dict[str, Callable[[Queue], None]] = {
    "alone": alone,
    "queued": queued,
    "in streams": in_streams,
    "with copies": with_copies,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BOUNDS)
def test_profiles_are_those_of_their_launches_and_all_adds_up(name: str, way: str) -> None:
    queue = Queue(BOUNDS[name])
    WAYS[way](queue)
    for profile in queue.profiles():
        check_profile(profile)
    for copy in queue.copies:
        assert copy.traffic is not None
        check_traffic(copy.traffic)
        assert copy.l2_bytes >= queue.bound.words * 4
    check_sums(queue.device, queue.watched)


@pytest.mark.parametrize("name", ["dram", "l2", "latency"])
def test_traffic_of_each_launch_is_the_same_on_two_threads(name: str) -> None:
    def taken(threads: int) -> list[tuple[dict[str, int], ...]]:
        queue = Queue(BOUNDS[name], threads)
        in_streams(queue)
        with_copies(queue)
        queue.device.synchronize()
        return [
            (ended.traffic.l2, ended.traffic.crossbar, ended.traffic.dram) for ended in queue.watched.ended
        ]

    assert taken(1) == taken(2)


def read_kernel(on: gpu.TimedDevice) -> gpu.Kernel:
    """Each of 128 warps reads its own 128 bytes."""
    return on.load(source(READ))["k"]


@pytest.mark.parametrize("times", [1, 4, 8])
def test_a_launch_in_a_queue_has_its_own_traffic_only(times: int) -> None:
    """The first of the queue reads from memory, the others find all in the L2."""
    on, _ = device()
    data, kernel, stream = on.zeros(1 << 12, np.uint32), read_kernel(on), on.stream()
    launches = [kernel[16, 256, 0, stream](data, 1) for _ in range(times)]
    profiles = [launch.result.profile for launch in launches]
    assert [profile["l2_bytes"] for profile in profiles] == [128 * WARPS] * times
    assert [profile["dram_read_bytes"] for profile in profiles] == [128 * WARPS] + [0] * (times - 1)
    assert [profile["l2_hit_rate"] for profile in profiles] == [0] + [100] * (times - 1)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_kernel_in_a_queue_has_the_profile_that_it_has_alone(name: str) -> None:
    """Launched three times with and without waiting in between: the n-th finds the same in the L2 both times."""
    bound = BOUNDS[name]
    queue = Queue(bound)
    data, stream = queue.array(), queue.device.stream()
    for _ in range(3):
        queue.launch(data, stream)
    waiting = Queue(bound)
    data, stream = waiting.array(), waiting.device.stream()
    for _ in range(3):
        waiting.launch(data, stream)
        waiting.device.synchronize()
    for one, other in zip(queue.profiles(), waiting.profiles(), strict=True):
        for what in ("l2_bytes", "dram_read_bytes", "dram_write_bytes", "warp_instructions"):
            assert one[what] == pytest.approx(other[what], rel=0.01, abs=1024), what
        for what in ("l2_utilization", "dram_utilization", "l2_hit_rate", "issue_slots_busy"):
            assert one[what] == pytest.approx(other[what], abs=2), what


def test_a_copy_behind_a_kernel_has_its_own_traffic() -> None:
    """The copy reads what the kernel has brought to the L2, and a part that is in memory only."""
    on, _ = device()
    size = 1 << 14
    data, kernel, stream = on.zeros(size, np.uint32), read_kernel(on), on.stream()
    launch = kernel[16, 256, 0, stream](data, 1)
    copy = data.copy_to(np.empty(size, np.uint32), stream=stream)
    assert launch.result.profile["l2_bytes"] == launch.result.profile["dram_read_bytes"] == 128 * WARPS
    assert copy is not None
    assert (copy.l2_bytes, copy.dram_bytes) == (4 * size, 4 * size - 128 * WARPS)


def test_kernels_at_the_same_time_have_their_own_traffic() -> None:
    """Two kernels in two streams read an array each, while a copy writes a third."""
    on, watched = device()
    kernel = read_kernel(on)
    arrays = [on.zeros(1 << 12, np.uint32) for _ in range(3)]
    launches = [kernel[16, 256, 0, on.stream()](data, 1) for data in arrays[:2]]
    copy = arrays[2].copy_from(np.ones(1 << 12, np.uint32), stream=on.stream())
    on.synchronize()
    first, second = (launch.result.profile for launch in launches)
    assert max(first.counts.begun, second.counts.begun) < min(first.counts.ended, second.counts.ended)
    for profile in (first, second):
        assert profile.counts.sm["l1_misses"] == 4 * WARPS
        assert profile["l2_bytes"] == profile["dram_read_bytes"] == 128 * WARPS
    assert copy is not None
    assert (copy.l2_bytes, copy.dram_bytes) == (1 << 14, 0)
    check_sums(on, watched)


def test_a_line_that_is_written_back_belongs_to_the_access_that_made_it_leave() -> None:
    """A kernel leaves as much dirty as the L2 holds; a second that only reads has to write most of it back."""
    on, watched = device("gpu.l2_slice_capacity=64KiB")
    words = 4 * 65536 // 4  # of the L2
    written, read = on.zeros(words, np.uint32), on.zeros(words, np.uint32)
    text = source("st.global.u32 [%a],%i;"), source(READ)
    stream = on.stream()
    writer, reader = (
        on.load(one)["k"][words // 256, 256, 0, stream](data, 1)
        for one, data in zip(text, (written, read), strict=True)
    )
    writes = writer.result.profile["dram_write_bytes"]
    written_back = reader.result.profile["dram_write_bytes"]
    assert isinstance(writes, int) and isinstance(written_back, int)  # noqa: PT018
    assert reader.result.profile["dram_read_bytes"] == 4 * words
    assert written_back > words
    assert writes + written_back <= 4 * words
    check_sums(on, watched)


def test_numbers_of_launches_and_copies_are_used_again() -> None:
    on, watched = device()
    data, kernel, stream = on.zeros(1 << 12, np.uint32), read_kernel(on), on.stream()
    for _ in range(20):
        launches = [kernel[16, 256, 0, stream](data, 1) for _ in range(3)]
        data.fill(1, stream=stream)
        launches[-1].synchronize()  # the fill may still run
    on.synchronize()
    assert len(watched.ended) == 80
    assert watched.origins <= 12
    check_sums(on, watched)


def test_what_is_on_its_way_to_memory_when_a_kernel_has_ended_belongs_to_nobody_else() -> None:
    """The run is left at the end of each kernel, when some of its writes are not yet in their rows."""
    on, watched = device("gpu.l2_slice_capacity=16KiB")
    data = on.zeros(1 << 15, np.uint32)
    kernel = on.load(source("st.global.u32 [%a],%i;"))["k"]
    stream = on.stream()
    for _ in range(6):
        kernel[128, 256, 0, stream](data, 1).synchronize()
    on.synchronize()
    check_sums(on, watched)
    for ended in watched.ended:
        check_traffic(ended.traffic)
        rows = sum(ended.traffic.dram[name] for name in ("row_hits", "row_misses", "row_conflicts"))
        assert 32 * rows <= ended.traffic.dram_bytes  # none has rows of another
