// SPDX-License-Identifier: Apache-2.0
// Constant cache of an SM, in front of the L1 that it shares with instructions.
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
        lines_(static_cast<std::uint64_t>(spec.constant_size), line_bytes_,
               static_cast<std::uint64_t>(spec.constant_ways)) {}

  // Latency of a constant that is there.
  Cycle hit_latency() const { return hit_latency_; }
  // A load of a constant, which both caches hold afterwards: its latency if one of them has it, and that of
  // both where it has to come from the L2.
  struct Found {
    Cycle latency = 0;
    bool missed = false;
  };
  Found look_up(std::uint64_t address, InstructionCaches& behind) {
    const std::uint64_t line = address / line_bytes_ * line_bytes_;
    if (lines_.look_up(line, 1) != 0) return {hit_latency_, false};
    lines_.fill(line, 1);
    return {l15_latency_, !behind.find_constant(address)};
  }

 private:
  std::uint64_t line_bytes_;
  Cycle hit_latency_;
  Cycle l15_latency_;
  L1Cache lines_;
};

}  // namespace manyscale::gpu
