# SPDX-License-Identifier: Apache-2.0
# A: read-modify-writes of both sizes, and load-reserved with store-conditional.
.include "common.inc"
edges_table

.macro operate name
  sd a0, 0(s5)
  \name a2, a1, (s5)
  ld a3, 0(s5)
  mix a2
  mix a3
.endm

.macro body
  lla s5, cell
  .irp name, amoswap.d, amoadd.d, amoxor.d, amoand.d, amoor.d, amomin.d, amomax.d, amominu.d, amomaxu.d
  operate \name
  .endr
  .irp name, amoswap.w, amoadd.w.aq, amoxor.w.rl, amoand.w, amoor.w, amomin.w, amomax.w, amominu.w, amomaxu.w.aqrl
  operate \name
  .endr
.endm

start
  for_pairs edges, edge_count, body
  lla s5, cell
  li s6, 100
1:
  lr.d.aq a0, (s5)
  addi a0, a0, 7
  sc.d.rl a1, a0, (s5)
  bnez a1, 1b
  addi s6, s6, -1
  bnez s6, 1b
  ld a0, 0(s5)
  mix a0
  lr.w a0, (s5)
  sc.w a1, a0, (s5)
  mix a1
  li a0, 5
  sc.w a1, a0, (s5)  # no reservation any more
  snez a1, a1
  mix a1
  lr.w a0, (s5)
  addi s7, s5, 8
  sc.w a1, a0, (s7)  # another address
  snez a1, a1
  mix a1
  ld a0, 0(s5)
  mix a0
finish
  .data
  .balign 8
cell:
  .dword 0, 0
