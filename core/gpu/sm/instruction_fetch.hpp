// SPDX-License-Identifier: Apache-2.0
// Instruction caches of an SM: an L0 of each sub-core with a stream buffer, and the L1 behind them, which
// holds constants too. A miss of the L0 fills the stream buffer with the lines that follow; one that is used
// lets it fetch a further one. Leaves out: the traffic at the L2, and that sub-cores share the way to the L1.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/sm/l1_cache.hpp"
#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

class InstructionCaches {
 public:
  explicit InstructionCaches(const SmSpec& spec)
      : line_bytes_(static_cast<std::uint64_t>(spec.instruction_line)),
        prefetched_lines_(static_cast<std::size_t>(spec.prefetched_lines)),
        fetch_interval_(spec.fetch_interval),
        l0_miss_latency_(spec.l0_miss_latency),
        l1_miss_latency_(spec.l1_miss_latency),
        l1_(cache(spec, spec.l1_instructions)) {
    for (std::int64_t i = 0; i < spec.sub_cores; ++i)
      front_ends_.push_back({cache(spec, spec.l0_instructions), {}, {}});
  }

  std::uint64_t line_bytes() const { return line_bytes_; }
  // Cycles after `now` until a sub-core has a line of instructions; 0: its L0 has it.
  Cycle fetch(std::size_t sub_core, std::uint64_t line, Cycle now, SmStatistics& statistics) {
    FrontEnd& front = front_ends_[sub_core];
    if (front.l0.look_up(line, 1) != 0) return std::max<Cycle>(0, front.arriving.ready(line, now) - now);
    front.l0.fill(line, 1);
    std::vector<Line>& stream = front.stream;
    const auto found = std::ranges::find(stream, line, &Line::address);
    Cycle ready = 0;
    if (found != stream.end()) {
      ready = found->ready;
      ++statistics.fetch_prefetched;
      stream.erase(stream.begin(), found + 1);
    } else {
      ++statistics.fetch_l0_misses;
      if (l1_.look_up(line, 1) == 0) ++statistics.fetch_l1_misses;
      ready = read_l1(line, now);
      stream.clear();
    }
    front.arriving.add(line, ready, now);
    prefetch(stream, line, ready, now);
    return std::max<Cycle>(0, ready - now);
  }
  // Holds these instructions, the last of them if there are too many, as after a run of the same kernel.
  void warm(std::uint64_t address, std::uint64_t bytes) {
    for (std::uint64_t line = address / line_bytes_ * line_bytes_; line < address + bytes;
         line += line_bytes_) {
      l1_.fill(line, 1);
      for (FrontEnd& front : front_ends_) front.l0.fill(line, 1);
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

  struct Line {
    std::uint64_t address = 0;
    Cycle ready = 0;
  };
  // Lines of a cache that are still on their way.
  class Arriving {
   public:
    // When a line is there; 0 if it is not on its way.
    Cycle ready(std::uint64_t line, Cycle now) const {
      if (last_ <= now) return 0;
      const auto found = std::ranges::find(lines_, line, &Line::address);
      return found == lines_.end() ? 0 : found->ready;
    }
    void add(std::uint64_t line, Cycle ready, Cycle now) {
      std::erase_if(lines_, [&](const Line& old) { return old.ready <= now; });
      if (ready > now) lines_.push_back({line, ready});
      last_ = std::max(last_, ready);
    }

   private:
    std::vector<Line> lines_;
    Cycle last_ = 0;  // when all are there
  };
  // Of a sub-core.
  struct FrontEnd {
    L1Cache l0;
    Arriving arriving;
    std::vector<Line> stream;  // buffer of lines behind the last that missed, on their way or there
  };

  // When a line is there that the L1 is asked for.
  Cycle read_l1(std::uint64_t line, Cycle now) {
    if (l1_.look_up(line, 1) != 0) return std::max(now + l0_miss_latency_, arriving_.ready(line, now));
    l1_.fill(line, 1);
    arriving_.add(line, now + l1_miss_latency_, now);
    return now + l1_miss_latency_;
  }
  // Asks at `now` for the lines that follow one, which is there at `ready`, until the stream buffer is full.
  void prefetch(std::vector<Line>& stream, std::uint64_t line, Cycle ready, Cycle now) {
    if (!stream.empty()) {
      line = stream.back().address;
      ready = stream.back().ready;
    }
    while (stream.size() < prefetched_lines_) {
      line += line_bytes_;
      ready = std::max(read_l1(line, now), ready + fetch_interval_);
      stream.push_back({line, ready});
    }
  }

  static L1Cache cache(const SmSpec& spec, std::int64_t bytes) {
    return {static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(spec.instruction_line),
            static_cast<std::uint64_t>(spec.instruction_ways)};
  }

  std::uint64_t line_bytes_;
  std::size_t prefetched_lines_;
  Cycle fetch_interval_;
  Cycle l0_miss_latency_;
  Cycle l1_miss_latency_;
  std::vector<FrontEnd> front_ends_;  // by sub-core
  L1Cache l1_;
  Arriving arriving_;  // in the L1
};

}  // namespace manyscale::gpu
