// SPDX-License-Identifier: Apache-2.0
// Constant cache of an SM, in front of the L1 that it shares with instructions. Leaves out the traffic at the
// L2.
#pragma once
#include <cstdint>

#include "gpu/sm/instruction_fetch.hpp"

namespace manyscale::gpu {

class ConstantCache {
 public:
  explicit ConstantCache(const SmSpec& spec)
      : line_bytes_(static_cast<std::uint64_t>(spec.constant_line)),
        hit_latency_(spec.constant_latency),
        l15_latency_(spec.constant_l15_latency),
        miss_latency_(spec.constant_miss_latency),
        lines_(static_cast<std::uint64_t>(spec.constant_size), line_bytes_,
               static_cast<std::uint64_t>(spec.constant_ways)) {}

  // Latency of a constant that is there.
  Cycle hit_latency() const { return hit_latency_; }
  // Latency of a load of a constant, which is there afterwards.
  Cycle look_up(std::uint64_t address, InstructionCaches& behind) {
    const std::uint64_t line = address / line_bytes_ * line_bytes_;
    if (lines_.look_up(line, 1) != 0) return hit_latency_;
    lines_.fill(line, 1);
    return behind.find_constant(address) ? l15_latency_ : miss_latency_;
  }

 private:
  std::uint64_t line_bytes_;
  Cycle hit_latency_;
  Cycle l15_latency_;
  Cycle miss_latency_;
  L1Cache lines_;
};

}  // namespace manyscale::gpu
