// SPDX-License-Identifier: Apache-2.0
// Instruction caches of an SM: an L0 of each sub-core and the L1 behind them, which holds constants too. A
// miss fetches some consecutive lines. Leaves out: the stream buffer of the prefetcher, and the traffic at
// the L2.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/sm/l1_cache.hpp"
#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

class InstructionCaches {
 public:
  explicit InstructionCaches(const SmSpec& spec)
      : line_bytes_(static_cast<std::uint64_t>(spec.instruction_line)),
        fetched_lines_(static_cast<std::uint64_t>(spec.fetched_lines)),
        l0_miss_latency_(spec.l0_miss_latency),
        l1_miss_latency_(spec.l1_miss_latency),
        l1_(cache(spec, spec.l1_instructions)) {
    for (std::int64_t i = 0; i < spec.sub_cores; ++i) l0_.push_back(cache(spec, spec.l0_instructions));
  }

  std::uint64_t line_bytes() const { return line_bytes_; }
  // Cycles until a sub-core has a line of instructions; 0: its L0 has it.
  Cycle fetch(std::size_t sub_core, std::uint64_t line, SmStatistics& statistics) {
    L1Cache& l0 = l0_[sub_core];
    if (l0.look_up(line, 1) != 0) return 0;
    Cycle latency = l0_miss_latency_;
    ++statistics.fetch_l0_misses;
    if (l1_.look_up(line, 1) == 0) {
      latency = l1_miss_latency_;
      ++statistics.fetch_l1_misses;
    }
    for (std::uint64_t ahead = 0; ahead < fetched_lines_; ++ahead) {
      l0.fill(line + ahead * line_bytes_, 1);
      l1_.fill(line + ahead * line_bytes_, 1);
    }
    return latency;
  }
  // Holds these instructions, the last of them if there are too many, as after a run of the same kernel.
  void warm(std::uint64_t address, std::uint64_t bytes) {
    for (std::uint64_t line = address / line_bytes_ * line_bytes_; line < address + bytes;
         line += line_bytes_) {
      l1_.fill(line, 1);
      for (L1Cache& l0 : l0_) l0.fill(line, 1);
    }
  }
  // Whether the L1 has the line of a constant; it has it afterwards.
  bool find_constant(std::uint64_t address) {
    const std::uint64_t line = kConstantBase + address / line_bytes_ * line_bytes_;
    if (l1_.look_up(line, 1) != 0) return true;
    l1_.fill(line, 1);
    return false;
  }

 private:
  static constexpr std::uint64_t kConstantBase = std::uint64_t{1} << 52;  // beyond all instructions

  static L1Cache cache(const SmSpec& spec, std::int64_t bytes) {
    return {static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(spec.instruction_line),
            static_cast<std::uint64_t>(spec.instruction_ways)};
  }

  std::uint64_t line_bytes_;
  std::uint64_t fetched_lines_;
  Cycle l0_miss_latency_;
  Cycle l1_miss_latency_;
  std::vector<L1Cache> l0_;  // by sub-core
  L1Cache l1_;
};

}  // namespace manyscale::gpu
