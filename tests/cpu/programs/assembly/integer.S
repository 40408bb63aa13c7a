# SPDX-License-Identifier: Apache-2.0
# RV64I: arithmetic, shifts, comparisons, loads and stores of all sizes, jumps.
.include "common.inc"
edges_table

.macro operate name
  \name a2, a0, a1
  mix a2
.endm

.macro body
  .irp name, add, sub, sll, slt, sltu, xor, srl, sra, or, and, addw, subw, sllw, srlw, sraw
  operate \name
  .endr
  .irp name, beq, bne, blt, bge, bltu, bgeu
  li a2, 3
  \name a0, a1, 9f
  li a2, 5
9:
  mix a2
  .endr
.endm

start
  .option norvc
  for_pairs edges, edge_count, body
  lla s1, edges
  li s2, edge_count
1:
  ld a0, 0(s1)
  .irp value, -2048, -1, 0, 1, 1365, 2047
  .irp name, addi, slti, sltiu, xori, ori, andi, addiw
  \name a2, a0, \value
  mix a2
  .endr
  .endr
  .irp amount, 0, 1, 31
  .irp name, slli, srli, srai, slliw, srliw, sraiw
  \name a2, a0, \amount
  mix a2
  .endr
  .endr
  slli a2, a0, 63
  mix a2
  srai a2, a0, 40
  mix a2
  addi s1, s1, 8
  addi s2, s2, -1
  bnez s2, 1b
  lla s1, edges + 72
  lla s2, room
  .irp offset, 0, 1, 3, 7, 8
  .irp name, lb, lbu, lh, lhu, lw, lwu, ld
  \name a2, \offset(s1)
  mix a2
  .endr
  .irp name, sb, sh, sw, sd
  \name a2, \offset(s2)
  ld a3, 0(s2)
  mix a3
  ld a3, 8(s2)
  mix a3
  .endr
  .endr
  lui a2, 0xfffff
  mix a2
  auipc a2, 0
  auipc a3, 1
  sub a2, a3, a2
  mix a2
  jal a2, 3f
  nop
3:
  lla a3, 4f
  addi a3, a3, 1  # the lowest bit does not count
  jalr a4, 0(a3)
  nop
4:
  sub a2, a4, a2
  mix a2
  li a2, 77
  add x0, a2, a2
  mix x0
  fence rw, rw
  fence.i
finish
  .data
  .balign 8
room:
  .skip 32
