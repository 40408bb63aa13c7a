// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses in error messages.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

namespace manyscale::gpu {

// "4096 bytes at 0x200000".
inline std::string bytes_at(std::uint64_t address, std::uint64_t bytes) {
  char text[80];
  std::snprintf(text, sizeof text, "%llu bytes at 0x%llx", static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(address));
  return text;
}

}  // namespace manyscale::gpu
