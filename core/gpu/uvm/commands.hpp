// SPDX-License-Identifier: Apache-2.0
// Host commands on ranges of managed memory in stream order, and the protocol between scheduler and UVM
// driver for them.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::gpu {

enum class RangeCommandKind : std::uint8_t {
  prefetch_to_device,
  prefetch_to_host,
  host_read,   // the host reads the pages: those on the device migrate back
  host_write,  // the same, and copies on the device are invalidated
};

// A command on consecutive pages.
struct RangeStart {
  std::uint64_t command = 0;     // returned with RangeEnd
  std::uint64_t first_page = 0;  // address / 4096
  std::uint32_t pages = 0;
  RangeCommandKind kind = RangeCommandKind::prefetch_to_device;
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
