# SPDX-License-Identifier: Apache-2.0
"""A barrier is missing: the sum may be right all the same, but `Device(check=True)` finds the race.

A block adds up 64 numbers in shared memory, in a tree. Between two steps of the tree all threads must wait for each
other.
"""

import numpy as np

from manyscale import gpu

PTX = """
.version 7.0
.target sm_70
.address_size 64

.visible .entry sum(.param .u64 values, .param .u64 total)
{
  .shared .align 4 .b32 partial[64];
  .reg .pred %idle, %more, %other;
  .reg .b32 %thread, %step, %here, %there, %mine, %its;
  .reg .b64 %values, %total;

  mov.u32 %thread, %tid.x;
  ld.param.u64 %values, [values];
  mad.wide.u32 %values, %thread, 4, %values;
  ld.global.u32 %mine, [%values];
  mov.u32 %here, partial;
  mad.lo.u32 %here, %thread, 4, %here;
  st.shared.u32 [%here], %mine;
  mov.u32 %step, 32;
HALVE:
  BARRIER
  setp.ge.u32 %idle, %thread, %step;
  @%idle bra NEXT;
  mad.lo.u32 %there, %step, 4, %here;
  ld.shared.u32 %its, [%there];
  add.u32 %mine, %mine, %its;
  st.shared.u32 [%here], %mine;
NEXT:
  shr.u32 %step, %step, 1;
  setp.ne.u32 %more, %step, 0;
  @%more bra HALVE;
  setp.ne.u32 %other, %thread, 0;
  ld.param.u64 %total, [total];
  @!%other st.global.u32 [%total], %mine;
  ret;
}
"""

values = np.arange(64, dtype=np.int32)
for barrier in ("bar.sync 0;", ""):
    device = gpu.Device(check=True)
    total = device.zeros(1, np.int32)
    launch = device.load(PTX.replace("BARRIER", barrier))["sum"][1, 64](device.array(values), total)
    print("with the barrier:" if barrier else "without the barrier:", len(launch.warnings), "warnings")
    for warning in launch.warnings:
        print(warning)
