# SPDX-License-Identifier: Apache-2.0
"""An eviction policy of one's own, in Python: the block of 2 MiB that migrated to the device first leaves first.

The class registers itself under a name, which is then a value of `gpu.uvm.eviction` like any other. `fifo_block.cpp`
in this folder is the same in C++: `manyscale.plugins.load_plugin` compiles and loads it.
"""

import numpy as np

from manyscale import gpu
from manyscale.plugins import register

BLOCK = 512  # pages of 2 MiB


@register("eviction policy", "my_fifo_block", "Evicts the oldest block of 2 MiB.")
class FifoBlock:
    """Keeps the resident blocks in the order of their first page, with their number of pages."""

    def __init__(self, reserved_share):
        self.resident = {}

    def grow(self, pages):
        pass

    def arrived(self, page):
        self.resident[page // BLOCK] = self.resident.get(page // BLOCK, 0) + 1

    def used(self, page, accesses):
        pass

    def left(self, page):
        self.resident[page // BLOCK] -= 1
        if not self.resident[page // BLOCK]:
            del self.resident[page // BLOCK]

    def choose(self, residency, spare_preferred):
        for block in self.resident:
            pages = range(block * BLOCK, (block + 1) * BLOCK)
            if victims := [page for page in pages if residency.can_evict(page, spare_preferred)]:
                return victims
        return []


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


def run(eviction: str) -> tuple[float, dict[str, int]]:
    """Microseconds of two kernels that need twice the memory that there is, and the statistics of them."""
    device = gpu.TimedDevice("gtx1080ti", changes=["gpu.uvm.frames=page", f"gpu.uvm.eviction={eviction}"])
    x, y = device.managed(1 << 20), device.managed(1 << 20)
    x[:], y[:] = np.ones(1 << 20), np.zeros(1 << 20)
    device.uvm.capacity = 4 << 20
    copy = device.load(COPY)["copy"]
    seconds = sum(copy[4096, 256](x, y).seconds for _ in range(2))
    return seconds * 1e6, device.uvm.statistics()


evicted = []
for name in ("lru_page", "lru_block", "my_fifo_block"):
    time, counts = run(name)
    evicted.append(counts["pages_evicted"])
    print(
        f"{name:14}{time:8.0f} us, {counts['pages_evicted']} pages evicted, {counts['thrashed_pages']} thrashed"
    )
print("every policy evicts:", "yes" if all(evicted) else "no")
