// SPDX-License-Identifier: Apache-2.0
// Listings of machine instructions in memory or in a file, without executing them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace manyscale::cpu::riscv {

struct ListedInstruction {
  std::uint64_t address = 0;
  std::uint32_t bits = 0;
  std::string text{};
};

// The instructions of a piece of code that begins at an address; one that is cut off at the end is left out.
std::vector<ListedInstruction> list_code(std::span<const std::uint8_t> code, std::uint64_t address);

struct UnsupportedInstruction {
  std::uint64_t address = 0;
  std::string text{};
  std::string reason{};
};

// Those that belong to an extension that is not executed. What decodes to nothing at all is as likely to be
// data between functions, and is left to the run.
std::vector<UnsupportedInstruction> find_unsupported(std::span<const std::uint8_t> code,
                                                     std::uint64_t address);

}  // namespace manyscale::cpu::riscv
