// SPDX-License-Identifier: Apache-2.0
// An issue queue as far as dispatch sees it: how many entries are taken, and at which cycles some become
// free.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cpu/core/cycle_map.hpp"

namespace manyscale::cpu {

class IssueQueue {
 public:
  explicit IssueQueue(std::int64_t entries) : entries_(entries) {}

  // The first cycle from `from` on at which an entry is free; unknown if that depends on what is in flight.
  // It is not asked for an earlier cycle afterwards.
  Cycle earliest(Cycle from) {
    if (from > seen_) look_until(from);
    while (taken_ >= entries_) {
      const Cycle near = leaving_.next(seen_ + 1);
      const Cycle next = near == unknown && !far_.empty() ? far_.front().cycle : near;
      if (next == unknown) return unknown;
      look_until(next);
    }
    return seen_;
  }
  // So many may be more than there are entries for: they entered one after the other, and the next one waits.
  void enter(std::uint32_t count = 1) { taken_ += count; }
  // Some that entered issue at this cycle.
  void leave(Cycle cycle, std::uint32_t count = 1) {
    if (cycle <= seen_) {
      taken_ -= count;
      return;
    }
    if (cycle - seen_ < CycleMap::range) {
      leaving_.mark(cycle);
      counts_[CycleMap::slot(cycle)] += count;
    } else {
      far_.push_back({cycle, count});
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }

 private:
  struct Leaving {
    Cycle cycle;
    std::uint32_t count;
  };

  void look_until(Cycle cycle) {
    for (Cycle next = leaving_.next(seen_ + 1); next <= cycle; next = leaving_.next(next + 1)) {
      std::uint32_t& count = counts_[CycleMap::slot(next)];
      taken_ -= count;
      count = 0;
      leaving_.clear(next);
    }
    seen_ = cycle;
    while (!far_.empty() && far_.front().cycle - seen_ < CycleMap::range) {
      std::pop_heap(far_.begin(), far_.end(), later);
      leave(far_.back().cycle, far_.back().count);
      far_.pop_back();
    }
  }
  static bool later(const Leaving& a, const Leaving& b) { return a.cycle > b.cycle; }

  std::int64_t entries_;
  std::int64_t taken_ = 0;
  Cycle seen_ = 0;
  CycleMap leaving_;
  std::array<std::uint32_t, CycleMap::range> counts_{};
  std::vector<Leaving> far_;  // further away than that; a heap with the first on top
};

}  // namespace manyscale::cpu
