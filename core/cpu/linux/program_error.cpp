// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/program_error.hpp"

#include <array>
#include <charconv>

namespace manyscale::cpu {

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::string ProgramError::message(const Failure& failure) {
  return "process " + std::to_string(failure.process) + ", thread " + std::to_string(failure.thread) +
         ", pc " + hexadecimal(failure.pc) + ": " + failure.what;
}

}  // namespace manyscale::cpu
