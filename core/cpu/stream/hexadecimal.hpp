// SPDX-License-Identifier: Apache-2.0
// Addresses as text in error messages.
#pragma once
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace manyscale::cpu {

// "0x" and the hexadecimal digits of the number.
inline std::string hexadecimal(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace manyscale::cpu
