# SPDX-License-Identifier: Apache-2.0
"""Kernels for tests of the server, in PTX."""

from __future__ import annotations

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"

_INDEX = """
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;"""
_REGISTERS = """
  .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<5>; .reg .pred %p<3>;"""

KERNELS = (
    HEAD
    + """
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .f32 factor = 0f40000000;
.global .align 1 .b8 words[7] = {104, 101, 108, 108, 111, 10, 0};

.visible .entry empty() { ret; }

.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n) {"""
    + _REGISTERS
    + """
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];"""
    + _INDEX
    + """
  setp.ge.u32 %p1, %r5, %r1; @%p1 ret;
  mul.wide.u32 %rd3, %r5, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; ld.const.f32 %f3, [factor];
  fma.rn.f32 %f2, %f1, %f3, %f2; st.global.f32 [%rd2], %f2; ret;
}

.visible .entry count(.param .u64 out) {"""
    + _REGISTERS
    + """
  atom.global.add.u32 %r1, [counter], 1; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1; ret;
}

.visible .entry hello() {"""
    + _REGISTERS
    + """
  { .param .b64 a; .param .b64 b; .param .b32 c;
    mov.u64 %rd1, words; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;
    st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; call (c), vprintf, (a, b); }
  ret;
}

.visible .entry wild() {"""
    + _REGISTERS
    + """
  mov.u64 %rd1, 64; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1; ret;
}

.visible .entry gives_up() { trap; ret; }

.visible .entry spin(.param .u32 times) {"""
    + _REGISTERS
    + """
  ld.param.u32 %r1, [times]; mov.u32 %r2, 0;
again:  // with a barrier, or ptxas leaves the loop out
  bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra again;
  ret;
}

.visible .entry large_shared(.param .u64 out) .maxntid 64, 1, 1 {"""
    + _REGISTERS
    + """
  .shared .align 4 .b8 room[4096];
  mov.u32 %r1, %dynamic_smem_size; st.shared.u32 [room], %r1; ld.shared.u32 %r2, [room];
  ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r2; ret;
}

.visible .entry meet(.param .u64 out) {"""
    + _REGISTERS
    + """
  // A barrier of the whole grid, as cooperative groups make it: each CTA adds one at the workspace.
  mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1};
  setp.eq.u64 %p1, %rd1, 0; @%p1 trap;
  mov.u32 %r3, %nctaid.x;
  atom.add.release.gpu.u32 %r4, [%rd1+4], 1;
wait:
  ld.acquire.gpu.u32 %r5, [%rd1+4]; setp.lt.u32 %p1, %r5, %r3; @%p1 bra wait;
  ld.param.u64 %rd2, [out]; atom.global.add.u32 %r6, [%rd2], 1; ret;
}

.visible .entry texel(.param .u64 texture, .param .u64 out) {"""
    + _REGISTERS
    + """
  ld.param.u64 %rd1, [texture]; ld.param.u64 %rd2, [out];
  mov.f32 %f1, 0f40200000; mov.f32 %f2, 0f3FC00000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f1, %f2}, [%rd1, {%f1, %f2}];
  st.global.f32 [%rd2], %f3; ret;
}
"""
)

NAMES = (*("empty", "add", "count", "hello", "wild", "gives_up", "spin", "large_shared", "meet", "texel"),)
