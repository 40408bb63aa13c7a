# SPDX-License-Identifier: Apache-2.0
"""A UVM prefetcher of one's own, in Python: the chunk of 64 KiB around each page fault and the one that follows.

The class registers itself under a name, which is then a value of `gpu.uvm.prefetcher` like any other. `two_chunks.cpp`
in this folder is the same in C++: `manyscale.plugins.load_plugin` compiles and loads it.
"""

import numpy as np

from manyscale import gpu
from manyscale.plugins import register

CHUNK = 16  # pages of 64 KiB


@register("UVM prefetcher", "my_two_chunks", "Prefetches two chunks of 64 KiB.")
class TwoChunks:
    """Keeps no state: two chunks from the beginning of the one with the fault."""

    def choose(self, residency, faults):
        for fault in faults:
            first = fault // CHUNK * CHUNK
            yield from range(first, min(first + 2 * CHUNK, residency.pages))


COPY = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y)
{
 .reg .b32 %r<5>; .reg .b64 %d<6>; .reg .f32 %f<2>;
 ld.param.u64 %d1,[x]; ld.param.u64 %d4,[y];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r4,%r1,%r2,%r3;
 mul.wide.s32 %d2,%r4,4; add.s64 %d3,%d1,%d2; add.s64 %d5,%d4,%d2;
 ld.global.f32 %f1,[%d3]; st.global.f32 [%d5],%f1;
 ret;
}
"""


def run(prefetcher: str) -> tuple[float, dict[str, int]]:
    """Microseconds of a kernel that reads and writes 2 MiB of managed memory, and the statistics of it."""
    device = gpu.TimedDevice("gtx1080ti", changes=[f"gpu.uvm.prefetcher={prefetcher}"])
    x, y = device.managed(262144), device.managed(262144)
    x[:], y[:] = np.ones(262144), np.zeros(262144)
    launch = device.load(COPY)["copy"][1024, 256](x, y)
    return launch.seconds * 1e6, device.uvm.statistics()


times = {}
for name in ("none", "sequential_local", "my_two_chunks"):
    times[name], counts = run(name)
    print(f"{name:18}{times[name]:8.0f} us, {counts['fault_batches']} fault batches")
print("my_two_chunks is faster than none:", "yes" if times["my_two_chunks"] < times["none"] else "no")
