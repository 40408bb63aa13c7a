// SPDX-License-Identifier: Apache-2.0
#include "cpu/riscv/code_listing.hpp"

#include <cstring>

#include "cpu/riscv/instruction.hpp"
#include "cpu/riscv/interpreter.hpp"

namespace manyscale::cpu::riscv {

namespace {

// Calls visit(bits, address) for each whole instruction.
template <class Visit>
void for_each_instruction(std::span<const std::uint8_t> code, std::uint64_t address, Visit&& visit) {
  for (std::size_t at = 0; at + 2 <= code.size();) {
    std::uint16_t low = 0, high = 0;
    std::memcpy(&low, code.data() + at, 2);
    const bool compressed = is_compressed(low);
    if (!compressed) {
      if (at + 4 > code.size()) return;
      std::memcpy(&high, code.data() + at + 2, 2);
    }
    visit(static_cast<std::uint32_t>(high) << 16 | low, address + at);
    at += compressed ? 2 : 4;
  }
}

}  // namespace

std::vector<ListedInstruction> list_code(std::span<const std::uint8_t> code, std::uint64_t address) {
  std::vector<ListedInstruction> list;
  for_each_instruction(code, address, [&](std::uint32_t bits, std::uint64_t pc) {
    list.push_back({pc, bits, disassemble(bits, pc)});
  });
  return list;
}

std::vector<UnsupportedInstruction> find_unsupported(std::span<const std::uint8_t> code,
                                                     std::uint64_t address) {
  std::vector<UnsupportedInstruction> list;
  for_each_instruction(code, address, [&](std::uint32_t bits, std::uint64_t pc) {
    const Instruction instruction = decode(bits);
    if (instruction.unsupported.empty()) return;
    list.push_back({pc, disassemble(bits, pc),
                    "the extension " + std::string(instruction.unsupported) + " is not executed"});
  });
  return list;
}

}  // namespace manyscale::cpu::riscv
