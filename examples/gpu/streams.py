# SPDX-License-Identifier: Apache-2.0
"""Copies and kernels at the same time: a long array goes through the GPU in pieces, in one stream and in three.

Run it with: python examples/gpu/streams.py
"""

import numpy as np

from manyscale import gpu
from manyscale.gpu.stream import Activity

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry powers(.param .u64 x, .param .f32 factor, .param .u32 turns)
{
 .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .f32 %f<3>;
 ld.param.u64 %d1,[x]; ld.param.f32 %f1,[factor]; ld.param.u32 %r4,[turns];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r1,%r1,%r2,%r3;
 mul.wide.s32 %d2,%r1,4; add.s64 %d3,%d1,%d2;
 ld.global.f32 %f2,[%d3];
AGAIN:
 mul.f32 %f2,%f2,%f1; sub.s32 %r4,%r4,1; setp.gt.s32 %p,%r4,0;
 @%p bra AGAIN;
 st.global.f32 [%d3],%f2;
 ret;
}
"""
PIECES, SIZE, TURNS = 6, 1 << 14, 300
values = np.arange(PIECES * SIZE, dtype=np.float32).reshape(PIECES, SIZE) % 1000


def run(streams: int) -> list[Activity]:
    """Sends all pieces through the GPU and gives what happened when."""
    device = gpu.TimedDevice("v100")
    kernel = device.load(PTX)["powers"]
    queues = [device.stream() for _ in range(streams)]
    arrays = [device.empty(SIZE) for _ in range(streams)]
    results = np.empty_like(values)
    for piece in range(PIECES):
        stream, array = queues[piece % streams], arrays[piece % streams]
        array.copy_from(values[piece], stream=stream)
        kernel[SIZE // 256, 256, 0, stream](array, 1.0009766, TURNS)
        array.copy_to(results[piece], stream=stream)
    device.synchronize()
    expected = values.copy()
    for _ in range(TURNS):
        expected *= np.float32(1.0009766)
    print(
        f"{streams} stream{'s' if streams > 1 else ''}: the values are exact:",
        "yes" if (results == expected).all() else "no",
    )
    return device.timeline()


def draw(activities: list[Activity]) -> None:
    """One line for each activity, its time drawn to scale."""
    first, last = activities[0].begin, max(activity.end for activity in activities)
    for activity in sorted(activities, key=lambda activity: activity.begin):
        begin, end = (round(60 * (time - first) / (last - first)) for time in (activity.begin, activity.end))
        print(f"  {activity.stream} {activity.what:30} {' ' * begin}{'#' * max(end - begin, 1)}")
    print(f"  {(last - first) * 1e6:.1f} us in all")


alone = run(streams=1)
draw(alone)
together = run(streams=3)
draw(together)
ratio = alone[-1].end / together[-1].end
print(f"three streams are {ratio:.1f} times as fast as one")
