// SPDX-License-Identifier: Apache-2.0
// What a device tells the engine that reads and writes memory for it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::memory {

// Consecutive bytes of physical memory that a device reads or writes.
struct Transfer {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  bool writes = false;
};

// Nothing is answered: devices do not wait for their transfers.
struct NoAnswer {};

struct DmaProtocol {
  static constexpr std::string_view name = "dma";
  static constexpr std::array<std::string_view, 2> roles{"device", "engine"};
  using First = Transfer;
  using Second = NoAnswer;
};

}  // namespace manyscale::memory
