// SPDX-License-Identifier: Apache-2.0
// What the tests of the RISC-V front end share: instructions from their names, and small programs in memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cpu/riscv/instruction.hpp"
#include "cpu/riscv/interpreter.hpp"
#include "test_checks.hpp"

namespace manyscale::test {

using namespace manyscale::cpu;
using namespace manyscale::cpu::riscv;

// Registers by their number, for instructions.
inline constexpr std::uint32_t zero = 0, ra = 1, sp = 2, t0 = 5, a0 = 10, a1 = 11, a2 = 12, a3 = 13;

inline const Row& row_named(std::string_view name) {
  for (const Row& row : instruction_rows()) {
    if (row.name == name) return row;
  }
  throw std::logic_error("no instruction " + std::string(name));
}

// An instruction of three registers, or fewer.
inline std::uint32_t encode(std::string_view name, std::uint32_t rd = 0, std::uint32_t rs1 = 0,
                            std::uint32_t rs2 = 0) {
  return row_named(name).encoding.match | rd << 7 | rs1 << 15 | rs2 << 20;
}
// Of immediates: as in addi and loads, in stores, and in branches.
inline std::uint32_t encode_i(std::string_view name, std::uint32_t rd, std::uint32_t rs1,
                              std::int32_t immediate) {
  return encode(name, rd, rs1) | static_cast<std::uint32_t>(immediate) << 20;
}
inline std::uint32_t encode_s(std::string_view name, std::uint32_t rs2, std::uint32_t rs1,
                              std::int32_t immediate) {
  const auto bits = static_cast<std::uint32_t>(immediate);
  return encode(name, bits & 31, rs1, rs2) | (bits >> 5 & 127) << 25;
}
inline std::uint32_t encode_b(std::string_view name, std::uint32_t rs1, std::uint32_t rs2,
                              std::int32_t offset) {
  const auto bits = static_cast<std::uint32_t>(offset);
  return encode(name, 0, rs1, rs2) | (bits >> 11 & 1) << 7 | (bits >> 1 & 15) << 8 | (bits >> 5 & 63) << 25 |
         (bits >> 12 & 1) << 31;
}

// A process with a page of code, two of data and nothing behind them.
struct TestProcess {
  static constexpr std::uint64_t code = 0x10000, data = 0x20000, data_end = data + 2 * page_bytes;

  explicit TestProcess(const std::vector<std::uint32_t>& words = {}, std::uint64_t limit = 1 << 20)
      : memory(0, limit), interpreter(memory) {
    memory.map(code, page_bytes, Permission::read | Permission::write | Permission::execute);
    memory.map(data, 2 * page_bytes, Permission::read | Permission::write);
    put(words);
  }
  void put(const std::vector<std::uint32_t>& words) {
    memory.copy_in(code, words.data(), 4 * words.size());
    hart.pc = code;
  }

  AddressSpace memory;
  Interpreter interpreter;
  Hart hart;
};

inline std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
  return text;
}

inline void check_bits(std::uint64_t found, std::uint64_t expected, const std::string& what) {
  check(found == expected, what + ": " + hexadecimal(found) + " instead of " + hexadecimal(expected));
}

}  // namespace manyscale::test
