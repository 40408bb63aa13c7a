// SPDX-License-Identifier: Apache-2.0
// Addresses as messages show them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

namespace manyscale::gpu {

inline std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace manyscale::gpu
