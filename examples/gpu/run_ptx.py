# SPDX-License-Identifier: Apache-2.0
"""A kernel in PTX, executed without a GPU and compared with numpy."""

import numpy as np

from manyscale import gpu

PTX = """
.version 7.0
.target sm_70
.address_size 64

// out[i] = a * x[i] + y[i]
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)
{
  .reg .pred %outside;
  .reg .b32 %i, %n, %block, %threads, %thread;
  .reg .b64 %x, %y, %out, %offset;
  .reg .f32 %a, %xi, %yi;

  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %i, %block, %threads, %thread;
  ld.param.u32 %n, [n];
  setp.ge.u32 %outside, %i, %n;
  @%outside bra DONE;

  mul.wide.u32 %offset, %i, 4;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.u64 %out, [out];
  add.u64 %x, %x, %offset;
  add.u64 %y, %y, %offset;
  add.u64 %out, %out, %offset;
  ld.param.f32 %a, [a];
  ld.global.f32 %xi, [%x];
  ld.global.f32 %yi, [%y];
  fma.rn.f32 %yi, %a, %xi, %yi;
  st.global.f32 [%out], %yi;
DONE:
  ret;
}
"""

device = gpu.Device()
saxpy = device.load(PTX)["saxpy"]

n = 10_000
random = np.random.default_rng(0)
x, y = random.random((2, n), np.float32)
out = device.zeros(n)
launch = saxpy[(n + 255) // 256, 256](2.5, device.array(x), device.array(y), out, n)

# The kernel rounds once, in its fused multiply-add; in double precision so does this.
expected = (2.5 * x.astype(np.float64) + y).astype(np.float32)
print(f"{launch.warp_instructions} warp instructions, {launch.thread_instructions} thread instructions")
print(f"elements that differ from numpy's: {np.count_nonzero(out.numpy() != expected)} of {n}")
