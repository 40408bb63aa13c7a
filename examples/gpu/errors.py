# SPDX-License-Identifier: Apache-2.0
"""A kernel that writes behind the end of its array: the message says which thread did it, where, and to what.

The `.loc` lines are what nvcc writes with -lineinfo; with them the message names the line of the source as well.
"""

import sys

from manyscale import KernelError, gpu

PTX = """
.version 7.0
.target sm_70
.address_size 64
.file 1 "iota.cu"

.visible .entry iota(.param .u64 out)
{
  .reg .b32 %i, %block, %threads, %thread;
  .reg .b64 %out;

  .loc 1 2 11
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %i, %block, %threads, %thread;
  .loc 1 3 3
  ld.param.u64 %out, [out];
  mad.wide.u32 %out, %i, 4, %out;
  st.global.u32 [%out], %i;
  ret;
}
"""

device = gpu.Device()
iota = device.load(PTX)["iota"]
out = device.empty(1000, "int32")
try:
    iota[4, 256](out)  # 1024 threads, but 1000 elements, and nothing checks i < n
except KernelError as error:
    print(error)
    sys.exit(0)
sys.exit("the kernel ran although it is wrong")
