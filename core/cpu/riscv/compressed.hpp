// SPDX-License-Identifier: Apache-2.0
// Compressed instructions (C of RV64GC): each stands for one ordinary instruction.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace manyscale::cpu::riscv {

struct CompressedRow {
  std::string_view name;
  std::uint16_t mask, match;
  std::uint32_t (*expand)(std::uint32_t bits);  // 0 if the operands are reserved
};

std::span<const CompressedRow> compressed_rows();

// The 32-bit instruction that does the same; 0 if it is illegal.
std::uint32_t expand_compressed(std::uint16_t bits);

}  // namespace manyscale::cpu::riscv
