# SPDX-License-Identifier: Apache-2.0
# D: double precision, each rounding mode, flags, conversions between the formats.
.include "common.inc"

.macro mix_with_flags register
  mix_double \register
  frflags s10
  mix s10
  fsflags zero
.endm

.macro body
  fmv.d.x fa0, a0
  fmv.d.x fa1, a1
  .irp name, fadd.d, fsub.d, fmul.d, fdiv.d
  .irp mode, rne, rtz, rdn, rup, rmm
  \name fa2, fa0, fa1, \mode
  mix_with_flags fa2
  .endr
  .endr
  .irp name, fmin.d, fmax.d, fsgnj.d, fsgnjn.d, fsgnjx.d
  \name fa2, fa0, fa1
  mix_with_flags fa2
  .endr
  .irp name, feq.d, flt.d, fle.d
  \name a2, fa0, fa1
  mix a2
  frflags a2
  mix a2
  .endr
  .irp name, fmadd.d, fmsub.d, fnmadd.d, fnmsub.d
  \name fa2, fa0, fa1, fa1
  mix_with_flags fa2
  .endr
  .irp mode, rne, rtz, rdn, rup, rmm
  fsqrt.d fa2, fa1, \mode
  mix_with_flags fa2
  fcvt.s.d fa2, fa1, \mode
  mix_with_flags fa2
  fcvt.d.s fa3, fa2
  mix_with_flags fa3
  .irp name, fcvt.w.d, fcvt.wu.d, fcvt.l.d, fcvt.lu.d
  \name a2, fa1, \mode
  mix a2
  frflags a2
  mix a2
  fsflags zero
  .endr
  fcvt.d.l fa2, a1, \mode
  mix_with_flags fa2
  fcvt.d.lu fa2, a1, \mode
  mix_with_flags fa2
  .endr
  fcvt.d.w fa2, a1
  mix_with_flags fa2
  fcvt.d.wu fa2, a1
  mix_with_flags fa2
  fclass.d a2, fa1
  mix a2
.endm

start
  for_pairs numbers, 18, body
  lla s1, numbers
  lla s2, room
  fld fa0, 9(s1)
  fsd fa0, 1(s2)
  fsw fa0, 13(s2)
  ld a0, 0(s2)
  mix a0
  ld a0, 8(s2)
  mix a0
finish
  .data
  .balign 8
numbers:
  .dword 0, 0x8000000000000000, 0x3ff0000000000000, 0xbff8000000000000, 0x3fb999999999999a, 0x7ff0000000000000
  .dword 0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 1, 0x800fffffffffffff, 0x7fefffffffffffff
  .dword 0x41e0000000000000, 0xc1e0000000200000, 0x43e0000000000000, 0x36a0000000000000, 0x380fffffffffffff
  .dword 0x47efffffefffffff
room:
  .skip 32
