// SPDX-License-Identifier: Apache-2.0
#include "cpu/riscv/compressed.hpp"

#include <array>

namespace manyscale::cpu::riscv {

namespace {

using Bits = std::uint32_t;

// Bits high..low of the instruction, moved to where they count.
constexpr Bits take(Bits bits, unsigned high, unsigned low, unsigned to) {
  return (bits >> low & ((1U << (high - low + 1)) - 1)) << to;
}
constexpr Bits sign_extend(Bits value, unsigned bits) {
  return static_cast<Bits>(static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits));
}

// Register fields: the long ones, and the short ones that name x8 to x15.
constexpr Bits rd(Bits c) {
  return take(c, 11, 7, 0);
}
constexpr Bits rs2(Bits c) {
  return take(c, 6, 2, 0);
}
constexpr Bits short_high(Bits c) {
  return take(c, 9, 7, 0) + 8;
}
constexpr Bits short_low(Bits c) {
  return take(c, 4, 2, 0) + 8;
}

// Immediates, named by what they are for.
constexpr Bits six(Bits c) {
  return take(c, 12, 12, 5) | take(c, 6, 2, 0);
}
constexpr Bits signed_six(Bits c) {
  return sign_extend(six(c), 6);
}
constexpr Bits words(Bits c) {
  return take(c, 12, 10, 3) | take(c, 6, 6, 2) | take(c, 5, 5, 6);
}
constexpr Bits doubles(Bits c) {
  return take(c, 12, 10, 3) | take(c, 6, 5, 6);
}
constexpr Bits stack_load_words(Bits c) {
  return take(c, 12, 12, 5) | take(c, 6, 4, 2) | take(c, 3, 2, 6);
}
constexpr Bits stack_load_doubles(Bits c) {
  return take(c, 12, 12, 5) | take(c, 6, 5, 3) | take(c, 4, 2, 6);
}
constexpr Bits stack_store_words(Bits c) {
  return take(c, 12, 9, 2) | take(c, 8, 7, 6);
}
constexpr Bits stack_store_doubles(Bits c) {
  return take(c, 12, 10, 3) | take(c, 9, 7, 6);
}
constexpr Bits stack_address(Bits c) {
  return take(c, 12, 11, 4) | take(c, 10, 7, 6) | take(c, 6, 6, 2) | take(c, 5, 5, 3);
}
constexpr Bits stack_adjustment(Bits c) {
  return sign_extend(
      take(c, 12, 12, 9) | take(c, 6, 6, 4) | take(c, 5, 5, 6) | take(c, 4, 3, 7) | take(c, 2, 2, 5), 10);
}
constexpr Bits jump_offset(Bits c) {
  return sign_extend(take(c, 12, 12, 11) | take(c, 11, 11, 4) | take(c, 10, 9, 8) | take(c, 8, 8, 10) |
                         take(c, 7, 7, 6) | take(c, 6, 6, 7) | take(c, 5, 3, 1) | take(c, 2, 2, 5),
                     12);
}
constexpr Bits branch_offset(Bits c) {
  return sign_extend(
      take(c, 12, 12, 8) | take(c, 11, 10, 3) | take(c, 6, 5, 6) | take(c, 4, 3, 1) | take(c, 2, 2, 5), 9);
}

// Ordinary instructions from their fields; `base` holds opcode, funct3 and what else is fixed.
constexpr Bits i_type(Bits base, Bits to, Bits from, Bits immediate) {
  return base | to << 7 | from << 15 | immediate << 20;
}
constexpr Bits r_type(Bits base, Bits to, Bits first, Bits second) {
  return base | to << 7 | first << 15 | second << 20;
}
constexpr Bits s_type(Bits base, Bits address, Bits value, Bits immediate) {
  return base | address << 15 | value << 20 | take(immediate, 4, 0, 7) | take(immediate, 11, 5, 25);
}
constexpr Bits branch(Bits base, Bits c) {
  const Bits offset = branch_offset(c);
  return base | short_high(c) << 15 | take(offset, 4, 1, 8) | take(offset, 11, 11, 7) |
         take(offset, 10, 5, 25) | take(offset, 12, 12, 31);
}

constexpr Bits addi = 0x13, addiw = 0x1b, andi = 0x7013, slli = 0x1013, srli = 0x5013, srai = 0x40005013;
constexpr Bits add = 0x33, sub = 0x40000033, exclusive_or = 0x4033, inclusive_or = 0x6033, both = 0x7033;
constexpr Bits addw = 0x3b, subw = 0x4000003b, lui = 0x37, jal = 0x6f, jalr = 0x67, beq = 0x63, bne = 0x1063;
constexpr Bits lw = 0x2003, ld = 0x3003, fld = 0x3007, sw = 0x2023, sd = 0x3023, fsd = 0x3027;
constexpr Bits stack = 2, link = 1;

constexpr Bits on_short(Bits base, Bits c) {
  return r_type(base, short_high(c), short_high(c), short_low(c));
}

// Where two rows match, the first counts. Reserved operands give 0; hints are ordinary instructions on x0.
constexpr auto rows = std::to_array<CompressedRow>({
    {"c.addi4spn", 0xe003, 0x0000,
     [](Bits c) { return stack_address(c) == 0 ? 0 : i_type(addi, short_low(c), stack, stack_address(c)); }},
    {"c.fld", 0xe003, 0x2000, [](Bits c) { return i_type(fld, short_low(c), short_high(c), doubles(c)); }},
    {"c.lw", 0xe003, 0x4000, [](Bits c) { return i_type(lw, short_low(c), short_high(c), words(c)); }},
    {"c.ld", 0xe003, 0x6000, [](Bits c) { return i_type(ld, short_low(c), short_high(c), doubles(c)); }},
    {"c.fsd", 0xe003, 0xa000, [](Bits c) { return s_type(fsd, short_high(c), short_low(c), doubles(c)); }},
    {"c.sw", 0xe003, 0xc000, [](Bits c) { return s_type(sw, short_high(c), short_low(c), words(c)); }},
    {"c.sd", 0xe003, 0xe000, [](Bits c) { return s_type(sd, short_high(c), short_low(c), doubles(c)); }},
    {"c.addi", 0xe003, 0x0001, [](Bits c) { return i_type(addi, rd(c), rd(c), signed_six(c)); }},
    {"c.addiw", 0xe003, 0x2001,
     [](Bits c) { return rd(c) == 0 ? 0 : i_type(addiw, rd(c), rd(c), signed_six(c)); }},
    {"c.li", 0xe003, 0x4001, [](Bits c) { return i_type(addi, rd(c), 0, signed_six(c)); }},
    {"c.addi16sp", 0xef83, 0x6101,
     [](Bits c) { return stack_adjustment(c) == 0 ? 0 : i_type(addi, stack, stack, stack_adjustment(c)); }},
    {"c.lui", 0xe003, 0x6001,
     [](Bits c) { return six(c) == 0 ? 0 : lui | rd(c) << 7 | signed_six(c) << 12; }},
    {"c.srli", 0xec03, 0x8001, [](Bits c) { return i_type(srli, short_high(c), short_high(c), six(c)); }},
    {"c.srai", 0xec03, 0x8401, [](Bits c) { return i_type(srai, short_high(c), short_high(c), six(c)); }},
    {"c.andi", 0xec03, 0x8801,
     [](Bits c) { return i_type(andi, short_high(c), short_high(c), signed_six(c)); }},
    {"c.sub", 0xfc63, 0x8c01, [](Bits c) { return on_short(sub, c); }},
    {"c.xor", 0xfc63, 0x8c21, [](Bits c) { return on_short(exclusive_or, c); }},
    {"c.or", 0xfc63, 0x8c41, [](Bits c) { return on_short(inclusive_or, c); }},
    {"c.and", 0xfc63, 0x8c61, [](Bits c) { return on_short(both, c); }},
    {"c.subw", 0xfc63, 0x9c01, [](Bits c) { return on_short(subw, c); }},
    {"c.addw", 0xfc63, 0x9c21, [](Bits c) { return on_short(addw, c); }},
    {"c.j", 0xe003, 0xa001,
     [](Bits c) {
       const Bits offset = jump_offset(c);
       return jal | take(offset, 10, 1, 21) | take(offset, 11, 11, 20) | take(offset, 19, 12, 12) |
              take(offset, 20, 20, 31);
     }},
    {"c.beqz", 0xe003, 0xc001, [](Bits c) { return branch(beq, c); }},
    {"c.bnez", 0xe003, 0xe001, [](Bits c) { return branch(bne, c); }},
    {"c.slli", 0xe003, 0x0002, [](Bits c) { return i_type(slli, rd(c), rd(c), six(c)); }},
    {"c.fldsp", 0xe003, 0x2002, [](Bits c) { return i_type(fld, rd(c), stack, stack_load_doubles(c)); }},
    {"c.lwsp", 0xe003, 0x4002,
     [](Bits c) { return rd(c) == 0 ? 0 : i_type(lw, rd(c), stack, stack_load_words(c)); }},
    {"c.ldsp", 0xe003, 0x6002,
     [](Bits c) { return rd(c) == 0 ? 0 : i_type(ld, rd(c), stack, stack_load_doubles(c)); }},
    {"c.jr", 0xf07f, 0x8002, [](Bits c) { return rd(c) == 0 ? 0 : i_type(jalr, 0, rd(c), 0); }},
    {"c.mv", 0xf003, 0x8002, [](Bits c) { return r_type(add, rd(c), 0, rs2(c)); }},
    {"c.ebreak", 0xffff, 0x9002, [](Bits) { return Bits{0x00100073}; }},
    {"c.jalr", 0xf07f, 0x9002, [](Bits c) { return i_type(jalr, link, rd(c), 0); }},
    {"c.add", 0xf003, 0x9002, [](Bits c) { return r_type(add, rd(c), rd(c), rs2(c)); }},
    {"c.fsdsp", 0xe003, 0xa002, [](Bits c) { return s_type(fsd, stack, rs2(c), stack_store_doubles(c)); }},
    {"c.swsp", 0xe003, 0xc002, [](Bits c) { return s_type(sw, stack, rs2(c), stack_store_words(c)); }},
    {"c.sdsp", 0xe003, 0xe002, [](Bits c) { return s_type(sd, stack, rs2(c), stack_store_doubles(c)); }},
});

}  // namespace

std::span<const CompressedRow> compressed_rows() {
  return rows;
}

std::uint32_t expand_compressed(std::uint16_t bits) {
  for (const CompressedRow& row : rows) {
    if ((bits & row.mask) == row.match) return row.expand(bits);
  }
  return 0;
}

}  // namespace manyscale::cpu::riscv
