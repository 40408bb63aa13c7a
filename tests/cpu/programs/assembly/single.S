# SPDX-License-Identifier: Apache-2.0
# F: single precision, each rounding mode, flags, NaN boxing.
.include "common.inc"

.macro body
  fmv.w.x fa0, a0
  fmv.w.x fa1, a1
  .irp name, fadd.s, fsub.s, fmul.s, fdiv.s
  .irp mode, rne, rtz, rdn, rup, rmm
  fsflags zero
  \name fa2, fa0, fa1, \mode
  mix_single fa2
  .endr
  .endr
  .irp name, fmin.s, fmax.s, fsgnj.s, fsgnjn.s, fsgnjx.s
  \name fa2, fa0, fa1
  mix_single fa2
  .endr
  .irp name, feq.s, flt.s, fle.s
  fsflags zero
  \name a2, fa0, fa1
  mix a2
  frflags a2
  mix a2
  .endr
  .irp name, fmadd.s, fmsub.s, fnmadd.s, fnmsub.s
  fsflags zero
  \name fa2, fa0, fa1, fa0
  mix_single fa2
  .endr
  fsqrt.s fa2, fa1
  mix_single fa2
  .irp name, fcvt.w.s, fcvt.wu.s, fcvt.l.s, fcvt.lu.s
  .irp mode, rne, rtz, rdn, rup, rmm
  fsflags zero
  \name a2, fa1, \mode
  mix a2
  frflags a2
  mix a2
  .endr
  .endr
  fclass.s a2, fa1
  mix a2
.endm

start
  for_pairs numbers, 14, body
  lla s1, numbers
  flw fa0, 0(s1)
  fmv.x.d a0, fa0
  mix a0
  li a0, 0x3f8000003f800000
  fmv.d.x fa0, a0  # not boxed: counts as a NaN
  fadd.s fa1, fa0, fa0
  mix_double fa1
  fclass.s a0, fa0
  mix a0
  li a0, -3
  .irp name, fcvt.s.w, fcvt.s.wu, fcvt.s.l, fcvt.s.lu
  .irp mode, rne, rtz, rdn, rup, rmm
  \name fa0, a0, \mode
  mix_single fa0
  .endr
  .endr
  .irp mode, 0, 1, 2, 3, 4
  fsrmi \mode
  fcvt.s.lu fa0, a0
  mix_single fa0
  frcsr a1
  mix a1
  .endr
finish
  .data
  .balign 8
numbers:
  .dword 0, 0x80000000, 0x3f800000, 0xbfc00000, 0x3dcccccd, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 1, 0x807fffff
  .dword 0x7f7fffff, 0x4f000000, 0x5f7fffff
