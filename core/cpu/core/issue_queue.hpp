// SPDX-License-Identifier: Apache-2.0
// An issue queue as far as dispatch sees it: how many places are taken, and at which cycles some become free.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpu/core/cycle_map.hpp"

namespace manyscale::cpu {

class IssueQueue {
 public:
  explicit IssueQueue(std::int64_t places) : places_(places) {}

  // The first cycle from `from` on at which a place is free; unknown if that depends on what is under way.
  // It is not asked for an earlier cycle afterwards.
  Cycle earliest(Cycle from) {
    if (from > seen_) look_until(from);
    if (taken_ < places_) return seen_;
    const Cycle near = leaving_.next(seen_ + 1);
    const Cycle next = near == unknown && !far_.empty() ? far_.front() : near;
    if (next != unknown) look_until(next);
    return next;
  }
  void enter() { ++taken_; }
  // One that entered issues at this cycle.
  void leave(Cycle cycle) {
    if (cycle <= seen_) {
      --taken_;
      return;
    }
    if (cycle - seen_ < CycleMap::range) {
      note(cycle);
    } else {
      far_.push_back(cycle);
      std::push_heap(far_.begin(), far_.end(), std::greater<>());
    }
  }

 private:
  void look_until(Cycle cycle) {
    for (Cycle next = leaving_.next(seen_ + 1); next <= cycle; next = leaving_.next(next + 1)) {
      std::uint16_t& count = counts_[CycleMap::place(next)];
      taken_ -= count;
      count = 0;
      leaving_.clear(next);
    }
    seen_ = cycle;
    while (!far_.empty() && far_.front() - seen_ < CycleMap::range) {
      std::pop_heap(far_.begin(), far_.end(), std::greater<>());
      leave(far_.back());
      far_.pop_back();
    }
  }
  void note(Cycle cycle) {
    leaving_.mark(cycle);
    ++counts_[CycleMap::place(cycle)];
  }

  std::int64_t places_;
  std::int64_t taken_ = 0;
  Cycle seen_ = 0;
  CycleMap leaving_;
  std::array<std::uint16_t, CycleMap::range> counts_{};
  std::vector<Cycle> far_;  // further away than that; a heap with the first on top
};

}  // namespace manyscale::cpu
