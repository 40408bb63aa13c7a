// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "cpu/riscv/compressed.hpp"
#include "cpu/riscv/instruction.hpp"

namespace manyscale::cpu::riscv {

namespace {

// Rows by opcode (bits 6:2), so that only a few have to be compared.
using Buckets = std::array<std::vector<const Row*>, 32>;

Buckets sort_rows() {
  Buckets buckets;
  for (const Row& row : instruction_rows()) buckets[row.encoding.match >> 2 & 31].push_back(&row);
  return buckets;
}

std::int64_t sign_extend(std::uint32_t value, unsigned bits) {
  return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

std::uint32_t field(std::uint32_t bits, unsigned high, unsigned low) {
  return bits >> low & ((1U << (high - low + 1)) - 1);
}

std::int64_t immediate_of(std::uint32_t bits, Immediate immediate) {
  switch (immediate) {
    case Immediate::none:
      return 0;
    case Immediate::i:
      return sign_extend(field(bits, 31, 20), 12);
    case Immediate::s:
      return sign_extend(field(bits, 31, 25) << 5 | field(bits, 11, 7), 12);
    case Immediate::b:
      return sign_extend(field(bits, 31, 31) << 12 | field(bits, 7, 7) << 11 | field(bits, 30, 25) << 5 |
                             field(bits, 11, 8) << 1,
                         13);
    case Immediate::u:
      return static_cast<std::int32_t>(bits & 0xfffff000);
    case Immediate::j:
      return sign_extend(field(bits, 31, 31) << 20 | field(bits, 19, 12) << 12 | field(bits, 20, 20) << 11 |
                             field(bits, 30, 21) << 1,
                         21);
    case Immediate::shift5:
      return field(bits, 24, 20);
    case Immediate::shift6:
      return field(bits, 25, 20);
    case Immediate::csr:
      return field(bits, 31, 20);
  }
  return 0;
}

bool matches(std::uint32_t bits, const Encoding& encoding) {
  return (bits & encoding.mask) == encoding.match;
}

}  // namespace

Instruction decode(std::uint32_t bits) {
  static const Buckets buckets = sort_rows();
  Instruction instruction;
  if (is_compressed(bits)) {
    bits &= 0xffff;
    instruction.bits = bits;
    instruction.length = 2;
    bits = expand_compressed(static_cast<std::uint16_t>(bits));
    if (bits == 0) return instruction;
  } else {
    instruction.bits = bits;
  }
  for (const Row* row : buckets[bits >> 2 & 31]) {
    if (!matches(bits, row->encoding)) continue;
    const Shape& shape = *row->shape;
    instruction.rounding = field(bits, 14, 12);
    if (shape.rounds && (instruction.rounding == 5 || instruction.rounding == 6)) return instruction;
    instruction.row = row;
    instruction.rd = field(bits, 11, 7);
    instruction.rs1 = field(bits, 19, 15);
    instruction.rs2 = field(bits, 24, 20);
    instruction.rs3 = field(bits, 31, 27);
    instruction.immediate = immediate_of(bits, shape.immediate);
    return instruction;
  }
  for (const UnsupportedRow& row : unsupported_rows()) {
    if (matches(bits, row.encoding)) instruction.unsupported = row.extension;
  }
  return instruction;
}

}  // namespace manyscale::cpu::riscv
