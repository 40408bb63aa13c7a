# SPDX-License-Identifier: Apache-2.0
"""One kernel with unified memory on a GTX 1080 Ti: pages that come on demand, pages that were sent ahead, and neither.

The kernel adds two vectors of a megabyte each, from a page of the host's at a time.
"""

import numpy as np

from manyscale import gpu

TRIAD = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry triad(.param .u64 x, .param .u64 y, .param .u64 z)
{
 .reg .b32 %r<5>; .reg .b64 %d<8>; .reg .f32 %f<4>;
 ld.param.u64 %d1,[x]; ld.param.u64 %d2,[y]; ld.param.u64 %d3,[z];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r4,%r1,%r2,%r3;
 mul.wide.s32 %d4,%r4,4; add.s64 %d5,%d1,%d4; add.s64 %d6,%d2,%d4; add.s64 %d7,%d3,%d4;
 ld.global.f32 %f1,[%d5]; ld.global.f32 %f2,[%d6]; fma.rn.f32 %f3,%f1,0f40400000,%f2; st.global.f32 [%d7],%f3;
 ret;
}
"""
COUNT = 1 << 18

values = np.arange(COUNT, dtype=np.float32)
times = {}
for how in ("ordinary memory", "sent ahead", "on demand"):
    device = gpu.TimedDevice("gtx1080ti")
    triad = device.load(TRIAD)["triad"]
    if how == "ordinary memory":
        x, y, z = device.array(values), device.array(values), device.zeros(COUNT)
    else:
        x, y, z = (device.managed(COUNT) for _ in range(3))
        x[:], y[:] = values, values
    if how == "sent ahead":
        for array in (x, y, z):
            array.prefetch()
    launch = triad[COUNT // 256, 256](x, y, z)
    times[how] = launch.seconds
    assert np.array_equal(z.numpy(), 4 * values)
    counts = device.uvm.statistics()
    print(
        f"{how:16}{launch.seconds * 1e6:8.1f} us, {counts['faults']:3} page faults "
        f"in {counts['fault_batches']} batches, {counts['transfers_to_device']:2} transfers to the device"
    )
print(f"on demand takes {times['on demand'] / times['ordinary memory']:.0f} times as long as ordinary memory")
near = times["sent ahead"] < 1.5 * times["ordinary memory"]
print("pages that were sent ahead cost the kernel next to nothing:", "yes" if near else "no")
