// SPDX-License-Identifier: Apache-2.0
// What the host does with managed memory in the order of streams, and what the scheduler and unified memory
// say to each other about it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::gpu {

// A run of pages that something is done with.
struct RangeStart {
  enum class Kind : std::uint8_t {
    prefetch_to_device,
    prefetch_to_host,
    host_read,   // the host reads all of the pages: those it lacks come back
    host_write,  // the same, and the device's copies are no longer valid
  };

  std::uint64_t command = 0;     // given back at the end
  std::uint64_t first_page = 0;  // address / 4096
  std::uint32_t pages = 0;
  Kind kind = Kind::prefetch_to_device;
};

struct RangeEnd {
  std::uint64_t command = 0;
};

struct RangeProtocol {
  static constexpr std::string_view name = "range";
  static constexpr std::array<std::string_view, 2> roles{"scheduler", "memory"};
  using First = RangeStart;
  using Second = RangeEnd;
};

}  // namespace manyscale::gpu
