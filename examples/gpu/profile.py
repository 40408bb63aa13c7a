# SPDX-License-Identifier: Apache-2.0
"""Why is a kernel slow? Transposes a matrix in two ways on a simulated V100, and looks at their profiles.

The simple kernel writes columns: the 32 threads of a warp touch 32 sectors of memory and use 4 of the 32 bytes of each.
The tiled one turns tiles around in shared memory, so that it reads and writes rows.
"""

import numpy as np

from manyscale import gpu

PTX = """
.version 7.0
.target sm_70
.address_size 64

.visible .entry simple(.param .u64 from, .param .u64 to, .param .u32 n)
{
  .reg .b32 %r<10>; .reg .b64 %from, %to, %d<3>; .reg .f32 %value;
  ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
  mad.lo.u32 %r6, %r4, 32, %r2;  // column
  mad.lo.u32 %r7, %r5, 32, %r3;  // row
  mad.lo.u32 %r8, %r7, %r1, %r6; mad.wide.u32 %d1, %r8, 4, %from;
  mad.lo.u32 %r9, %r6, %r1, %r7; mad.wide.u32 %d2, %r9, 4, %to;
  ld.global.f32 %value, [%d1];
  st.global.f32 [%d2], %value;
  ret;
}

.visible .entry tiled(.param .u64 from, .param .u64 to, .param .u32 n)
{
  .reg .b32 %r<16>; .reg .b64 %from, %to, %d<3>; .reg .f32 %value;
  .shared .align 4 .f32 tile[1056];  // rows of 33 words, so that columns are in different banks
  ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
  mad.lo.u32 %r6, %r4, 32, %r2; mad.lo.u32 %r7, %r5, 32, %r3;
  mad.lo.u32 %r8, %r7, %r1, %r6; mad.wide.u32 %d1, %r8, 4, %from;
  mov.u32 %r9, tile;
  mad.lo.u32 %r10, %r3, 33, %r2; mad.lo.u32 %r10, %r10, 4, %r9;
  mad.lo.u32 %r11, %r2, 33, %r3; mad.lo.u32 %r11, %r11, 4, %r9;
  ld.global.f32 %value, [%d1];
  st.shared.f32 [%r10], %value;
  bar.sync 0;
  ld.shared.f32 %value, [%r11];
  mad.lo.u32 %r12, %r5, 32, %r2; mad.lo.u32 %r13, %r4, 32, %r3;
  mad.lo.u32 %r14, %r13, %r1, %r12; mad.wide.u32 %d2, %r14, 4, %to;
  st.global.f32 [%d2], %value;
  ret;
}
"""

N = 512
matrix = np.arange(N * N, dtype=np.float32).reshape(N, N)
device = gpu.TimedDevice("v100")
module = device.load(PTX)
profiles = []
for name in ("simple", "tiled"):
    turned = device.zeros((N, N))
    launch = module[name][(N // 32, N // 32), (32, 32)](device.array(matrix), turned, N)
    assert (turned.numpy() == matrix.T).all()
    profile = launch.profile
    profiles.append(profile)
    print(f"{name}: {profile.metrics['duration']}, limited by {profile.limit}")
    for line in profile.hot_lines(2).iter_rows(named=True):
        print(
            f"  {line['percent']:4.1f}% of warp cycles: {line['location']}, {line['text']} ({line['reason']})"
        )

simple, tiled = (profile["sectors_per_request"] for profile in profiles)
print(f"sectors per request: {simple:g} of the simple kernel, {tiled:g} of the tiled one")
print(f"data between SMs and L2: {profiles[0].metrics['l2_bytes']} and {profiles[1].metrics['l2_bytes']}")
