# SPDX-License-Identifier: Apache-2.0
# C: each compressed form; the text is only assembled if it fits.
.include "common.inc"

start
  .option rvc
  lla s1, room
  mv s8, sp
  lla sp, room
  li s2, 20
1:
  c.li a0, -17
  c.lui a1, 31
  c.addi a0, 13
  c.addiw a1, -9
  c.mv a2, a0
  c.add a2, a1
  c.slli a2, 7
  mix a2
  c.srli a2, 3
  mix a2
  c.srai a2, 11
  c.andi a2, -13
  mix a2
  c.sub a2, a0
  c.xor a2, a1
  c.or a2, a0
  c.and a2, a1
  mix a2
  c.addw a2, a0
  c.subw a2, a1
  mix a2
  c.sw a2, 12(s1)
  c.sd a1, 16(s1)
  c.lw a3, 12(s1)
  c.ld a4, 16(s1)
  mix a3
  mix a4
  c.swsp a2, 24(sp)
  c.sdsp a4, 32(sp)
  c.lwsp a3, 24(sp)
  c.ldsp a5, 32(sp)
  mix a3
  mix a5
  fcvt.d.l fa0, a2
  c.fsd fa0, 40(s1)
  c.fld fa1, 40(s1)
  c.fsdsp fa1, 48(sp)
  c.fldsp fa2, 48(sp)
  mix_double fa2
  c.addi4spn a0, sp, 16
  c.ld a0, 0(a0)
  mix a0
  c.addi16sp sp, 32
  c.addi16sp sp, -32
  c.ldsp a0, 16(sp)
  mix a0
  c.beqz a0, 2f
  c.addi a0, 1
2:
  c.bnez a0, 3f
  c.addi a0, 2
3:
  mix a0
  c.j 4f
  c.nop
  c.addi s0, 1
4:
  lla a0, 5f
  c.jalr a0
  c.addi s0, 3
5:
  sub a1, ra, a0
  mix a1
  lla a0, 6f
  c.jr a0
  c.addi s0, 5
6:
  addi s2, s2, -1
  beqz s2, 7f
  j 1b
7:
  mv sp, s8
finish
  .data
  .balign 16
room:
  .skip 128
