# SPDX-License-Identifier: Apache-2.0
"""Streams of a device with time: their order, kernels and copies at the same time, priorities, events, the host."""

import gc
import itertools
import time

import numpy as np
import psutil
import pytest

from manyscale import InputError, KernelError, gpu, identical, load_machine

pytestmark = pytest.mark.core

# Each block takes an SM for itself: half of its shared memory and more.
SPIN = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 turns)
{
 .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;
 .shared .align 4 .b8 room[49500];
 ld.param.u64 %d1,[out]; ld.param.u32 %r1,[turns]; mov.u32 %r2,0; st.shared.u32 [room],%r2;
AGAIN:
 add.s32 %r2,%r2,1; setp.lt.s32 %p,%r2,%r1;
 @%p bra AGAIN;
 mov.u32 %r3,%ctaid.x; mov.u32 %r4,%ntid.x; mov.u32 %r5,%tid.x; mad.lo.s32 %r3,%r3,%r4,%r5;
 mul.wide.u32 %d2,%r3,4; add.s64 %d3,%d1,%d2;
 ld.global.u32 %r3,[%d3]; add.s32 %r2,%r2,%r3; st.global.u32 [%d3],%r2;
 ret;
}
.visible .entry empty() { ret; }
"""
SAY = """
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 written) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 words[3] = {72, 105, 0};
.visible .entry say()
{
 .reg .b64 %d<2>;
 .param .b64 first; .param .b64 second; .param .b32 written;
 mov.u64 %d1, words; cvta.global.u64 %d1, %d1;
 st.param.b64 [first], %d1; mov.u64 %d1, 0; st.param.b64 [second], %d1;
 call (written), vprintf, (first, second);
 ret;
}
"""
TURNS = 300


def device(*changes, **options):
    machine = load_machine("v100", ["gpu.sm_count=4", "gpu.l2_slices=4", *changes]).machine
    return gpu.TimedDevice(machine, allow_newer=True, **options)


def spin(on):
    return on.load(SPIN)["spin"]


def alone(blocks=2, turns=TURNS):
    """Seconds of the kernel when nothing else runs."""
    on = device()
    return spin(on)[blocks, 32](on.zeros(32 * blocks, np.uint32), turns).seconds


def test_two_kernels_that_fill_half_of_the_sms_run_at_the_same_time():
    on = device()
    kernel = spin(on)
    outs = [on.zeros(64, np.uint32) for _ in range(2)]
    first, second = (kernel[2, 32, 0, on.stream()](out, TURNS) for out in outs)
    assert not first.done
    on.synchronize()
    assert first.begin == second.begin
    for queued, out in zip((first, second), outs, strict=True):
        assert queued.seconds == pytest.approx(alone(), rel=0.02)
        assert (out.numpy() == TURNS).all()
        assert queued.result.occupancy == 1 / 64


def test_what_is_in_one_stream_keeps_its_order():
    on = device()
    stream, kernel = on.stream(), spin(on)
    out, result = on.empty(64, np.uint32), np.zeros(64, np.uint32)
    out.copy_from(np.arange(64), stream=stream)
    kernel[2, 32, 0, stream](out, TURNS)
    kernel[2, 32, 0, stream](out, 1)
    out.copy_to(result, stream=stream)
    on.synchronize()
    assert (result == np.arange(64) + TURNS + 1).all()
    activities = on.timeline()
    assert [activity.what for activity in activities] == [
        "copy 256 B to the device",
        "spin",
        "spin",
        "copy 256 B to the host",
    ]
    for before, after in itertools.pairwise(activities):
        assert after.begin == before.end
        assert after.stream == before.stream == stream.number


@pytest.mark.parametrize(("ahead", "saved"), [(0, 0), (500, 500), (5000, 2027)])
def test_a_kernel_is_prepared_while_the_one_before_it_runs(ahead, saved):
    """Behind a kernel that runs longer than a launch takes, what is prepared ahead is saved, at most the launch."""
    on = device(f"gpu.scheduler.launch_ahead={ahead}", "gpu.scheduler.kernel_latency=2027")
    module = on.load(SPIN)
    stream = on.stream()
    out = on.zeros(64, np.uint32)
    first = module["spin"][1, 32, 0, stream](out, 4 * TURNS)
    second = module["empty"][1, 32, 0, stream]()
    between = stream.record()
    third = module["empty"][1, 32, 0, stream]()
    on.synchronize()
    cycle = 1 / 1530e6
    kernels = {kernel.begin: kernel for kernel in on.timeline()}
    begun, ended = zip(*[(kernel.begin, kernel.end) for _, kernel in sorted(kernels.items())], strict=True)
    assert list(begun[1:]) == list(ended[:2])
    assert between.time == ended[1]
    alone = third.seconds  # behind a record nothing is prepared
    assert (alone - second.seconds) / cycle == pytest.approx(saved, abs=2)
    assert second.result.cycles == pytest.approx(alone / cycle, abs=2), "cycles are those of a kernel alone"
    assert third.result.cycles == pytest.approx(alone / cycle, abs=2)
    assert first.result.cycles > 2027


def test_a_copy_and_a_kernel_overlap():
    """Together they take as long as the longer of the two takes alone."""
    size = 60 * 4096
    copy_alone = device().zeros(size, np.uint8).copy_from(np.zeros(size, np.uint8)).seconds
    on = device()
    kernel = spin(on)[4, 32, 0, on.stream()](on.zeros(128, np.uint32), TURNS)
    copy = on.zeros(size, np.uint8).copy_from(np.zeros(size, np.uint8), stream=on.stream())
    on.synchronize()
    assert copy.begin == kernel.begin
    assert copy.seconds == pytest.approx(copy_alone, rel=0.01)
    assert kernel.seconds == pytest.approx(alone(4), rel=0.02)


@pytest.mark.parametrize("priorities", [(0, -1), (0, 0), (-1, 0)])
def test_blocks_of_the_more_urgent_kernel_start_first(priorities):
    """Twelve blocks on four SMs take three rounds; four of a kernel that is queued at the same moment but second take
    the first round if they are more urgent, else the fourth."""
    on = device("gpu.scheduler.kernel_latency=0")
    kernel = spin(on)
    first = kernel[12, 32, 0, on.stream(priorities[0])](on.zeros(384, np.uint32), 10 * TURNS)
    second = kernel[4, 32, 0, on.stream(priorities[1])](on.zeros(128, np.uint32), 10 * TURNS)
    round_trip = alone(4, 10 * TURNS) - 2400 / 1.312e9
    rounds = (second.end - first.begin) / round_trip
    assert rounds == pytest.approx(1 if priorities[1] < 0 else 4, rel=0.05)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_kernel_overtakes_an_earlier_one_that_finds_no_room_only_by_parameter(in_order):
    """The first kernel leaves too little shared memory for the second, but enough for the third."""
    on = device(f"gpu.scheduler.in_order={str(in_order).lower()}")
    kernel = spin(on)
    first = kernel[4, 32, 0, on.stream()](on.zeros(128, np.uint32), 10 * TURNS)
    second = kernel[4, 32, 0, on.stream()](on.zeros(128, np.uint32), TURNS)
    third = on.load(SPIN)["empty"][1, 32, 0, on.stream()]()
    assert second.end > first.end
    assert (third.end > first.end) == in_order


def test_no_more_kernels_than_the_machine_allows_run_at_the_same_time():
    on = device("gpu.scheduler.concurrent_kernels=1")
    first, second = (spin(on)[1, 32, 0, on.stream()](on.zeros(32, np.uint32), TURNS) for _ in range(2))
    assert second.begin >= first.end - 260 / 1.312e9  # its blocks have ended, its end is on the way


def test_events_have_times_and_let_streams_wait():
    on = device()
    kernel, one, other = spin(on), on.stream(), on.stream()
    before = one.record()
    first = kernel[2, 32, 0, one](on.zeros(64, np.uint32), TURNS)
    after = one.record()
    after.wait(other)
    second = kernel[2, 32, 0, other](on.zeros(64, np.uint32), TURNS)
    assert before.elapsed(after) == first.seconds
    assert after.time == first.end
    assert second.begin == first.end
    third = on.stream()
    third.wait(after)  # it has been for long
    third.synchronize()


def test_waiting_for_one_stream_leaves_others_under_way():
    on = device()
    kernel, short, long = spin(on), on.stream(), on.stream()
    soon = kernel[2, 32, 0, short](on.zeros(64, np.uint32), 1)
    late = kernel[2, 32, 0, long](on.zeros(64, np.uint32), 10 * TURNS)
    short.synchronize()
    assert soon.done
    assert not late.done
    next_one = kernel[2, 32, 0, short](on.zeros(64, np.uint32), 1)
    assert next_one.end < late.end
    assert late.seconds == pytest.approx(alone(2, 10 * TURNS), rel=0.01)


def test_without_a_stream_all_that_is_queued_comes_first():
    on = device()
    kernel, out = spin(on), on.zeros(64, np.uint32)
    queued = kernel[2, 32, 0, on.stream()](out, TURNS)
    launch = kernel[2, 32](out, 1)
    assert queued.done
    assert launch.cycles > 0
    assert (out.numpy() == TURNS + 1).all()
    kernel[2, 32, 0, on.stream()](out, TURNS)
    assert (out.numpy() == 2 * TURNS + 1).all()  # looking at it waits
    kernel[2, 32, 0, on.stream()](out, TURNS)
    out.set(np.zeros(64))  # and so does changing it
    assert (out.numpy() == 0).all()


def test_arguments_live_until_their_kernel_has_ended():
    on = device()
    queued = spin(on)[2, 32, 0, on.stream()](on.zeros(64, np.uint32), TURNS)
    gc.collect()
    assert queued.result.cycles > 0
    assert queued.arguments == ()


def test_what_queued_kernels_print_is_shown_when_they_have_ended(capsys):
    on = device()
    queued = on.load(SAY)["say"][1, 1, 0, on.stream()]()
    assert capsys.readouterr().out == ""
    on.synchronize()
    assert capsys.readouterr().out == "Hi"
    assert queued.result.printed == queued.printed == "Hi"


def program(threads, shared_memory):
    """Two streams with copies and kernels; `shared_memory`: on the same array, in an order that only time decides."""
    on = device(threads=threads)
    kernel, streams = spin(on), [on.stream(), on.stream(-1)]
    arrays = [on.zeros(128, np.uint32)] * 2 if shared_memory else [on.zeros(128, np.uint32) for _ in range(2)]
    results = [np.zeros(128, np.uint32) for _ in range(2)]
    for number, (stream, array, result) in enumerate(zip(streams, arrays, results, strict=True)):
        array.copy_from(np.arange(128) * (number + 1), stream=stream)
        for turns in (TURNS, 7 + number):
            kernel[4, 32, 0, stream](array, turns)
        array.copy_to(result, stream=stream)
        array.fill(number, stream=stream)
    on.synchronize()
    return results, [array.numpy() for array in arrays], on.timeline(), on.result


@pytest.mark.parametrize("shared_memory", [False, True])
def test_threads_do_not_show(shared_memory):
    (results, arrays, activities, statistics), *others = (
        program(threads, shared_memory) for threads in (1, 2, 4)
    )
    if not shared_memory:
        for number, result in enumerate(results):
            assert (result == np.arange(128) * (number + 1) + TURNS + 7 + number).all()
    for other in others:
        assert np.array_equal(results, other[0])
        assert np.array_equal(arrays, other[1])
        assert activities == other[2]
        assert identical(statistics, other[3])
        assert (other[3].threads > 1) == (not shared_memory)


def test_a_device_whose_kernel_failed_stays_failed():
    on = device()
    spin(on)[4, 32, 0, on.stream()](on.zeros(1, np.uint32), 1)
    with pytest.raises(KernelError, match=r"kernel spin, CTA \(0, 0, 0\), thread"):
        on.synchronize()
    with pytest.raises(KernelError, match="make a new one"):
        on.load(SPIN)["empty"][1, 1]()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda on: on.stream("high"), "priority of a stream is a whole number"),
        (
            lambda on: on.load(SPIN)["empty"][1, 1, 0, "first"],
            "the fourth index is a stream of the same device",
        ),
        (lambda on: on.load(SPIN)["empty"][1, 1, 0, device().stream()], "a stream of the same device"),
        (lambda on: on.stream().wait(device().stream().record()), "an event of its own device"),
        (
            lambda on: on.load(SPIN)["spin"][1, 1, 50000, on.stream()](on.zeros(1), 1),
            "more registers, threads or shared memory than an SM has",
        ),
    ],
)
def test_wrong_uses_are_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        wrong(device())


def test_the_number_of_no_stream_is_refused():
    on = device()
    assert on.load(SPIN)["empty"][1, 1, 0, None]().cycles > 0


@pytest.mark.long
def test_ten_thousand_launches_take_linear_time_and_no_memory():
    on = device()
    empty, stream, process = on.load(SPIN)["empty"], on.stream(), psutil.Process()

    def seconds(count):
        begin = time.process_time()
        for _ in range(count):
            empty[1, 32, 0, stream]()
        on.synchronize()
        return time.process_time() - begin

    few = seconds(1000)
    seconds(8000)
    before = process.memory_info().rss
    many = seconds(8000)
    assert many / few < 32  # were it quadratic, 64
    # An entry in the table of launches and a line of the timeline are left of each.
    assert process.memory_info().rss - before < 8000 * 1024
