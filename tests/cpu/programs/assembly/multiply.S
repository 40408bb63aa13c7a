# SPDX-License-Identifier: Apache-2.0
# M: multiplication and division, with divisors of 0 and quotients that overflow.
.include "common.inc"
edges_table

.macro body
  .irp name, mul, mulh, mulhsu, mulhu, div, divu, rem, remu, mulw, divw, divuw, remw, remuw
  \name a2, a0, a1
  mix a2
  .endr
.endm

start
  for_pairs edges, edge_count, body
finish
