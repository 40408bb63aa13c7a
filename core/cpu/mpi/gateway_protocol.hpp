// SPDX-License-Identifier: Apache-2.0
// Messages between a running program and its node's gateway to other nodes: whose bell was rung. The
// bytes themselves are in the program's shared memory (rank_rings.hpp), which the gateway reads and writes.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::cpu {

// A rank of the program rang the bell of a rank on another node: there is something to carry to it.
struct BellRang {
  std::uint32_t rank = 0;
};

// Something came for a rank of the program: it is woken if it sleeps.
struct BellRings {
  std::uint32_t rank = 0;
};

struct GatewayProtocol {
  static constexpr std::string_view name = "gateway";
  static constexpr std::array<std::string_view, 2> roles{"program", "gateway"};
  using First = BellRang;
  using Second = BellRings;
};

}  // namespace manyscale::cpu
