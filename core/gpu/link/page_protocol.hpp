// SPDX-License-Identifier: Apache-2.0
// Protocol of the link between host and device: transfers of pages, and notices of their end.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::gpu {

// A page, or several together, that is to cross the link between host and device.
struct PageMove {
  std::uint64_t page = 0;  // a number that the answer gives back
  std::uint32_t bytes = 0;
  bool to_host = false;
  bool between = false;  // a few bytes that pass between the packets of others instead of after them
  Time duration = 0;     // from the wires' being free to the end; 0: as bandwidth and latency of the link say
};

struct PageMoved {
  std::uint64_t page = 0;
};

struct PageProtocol {
  static constexpr std::string_view name = "page";
  static constexpr std::array<std::string_view, 2> roles{"engine", "link"};
  using First = PageMove;
  using Second = PageMoved;
};

}  // namespace manyscale::gpu
