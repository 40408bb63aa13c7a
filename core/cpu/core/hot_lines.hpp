// SPDX-License-Identifier: Apache-2.0
// Where a core's cycles went, by the address of the oldest instruction at the time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/core/cpi_stack.hpp"
#include "memory/flat_map.hpp"

namespace manyscale::cpu {

class HotLines {
 public:
  struct Line {
    std::uint64_t pc = 0;
    std::int64_t instructions = 0;
    std::int64_t misses = 0;  // loads and atomics that the L1 cache did not serve
    CpiStack stack{};
  };

  Line& at(std::uint64_t pc) { return lines_[pc]; }
  // All of them, by address.
  std::vector<Line> lines() const {
    std::vector<Line> all;
    lines_.for_each([&](std::uint64_t pc, const Line& line) {
      all.push_back(line);
      all.back().pc = pc;
    });
    std::sort(all.begin(), all.end(), [](const Line& a, const Line& b) { return a.pc < b.pc; });
    return all;
  }

 private:
  memory::FlatMap<Line> lines_;
};

}  // namespace manyscale::cpu
