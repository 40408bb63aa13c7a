// SPDX-License-Identifier: Apache-2.0
// Commit slots: the cycle in which the last record committed, and how many of its slots are taken. The
// instructions compacted into a replayed node commit before it, and are taken to complete just before it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/time.hpp"

namespace manyscale::cpu {

class CommitSlots {
 public:
  explicit CommitSlots(std::int64_t width) : width_(width) {}

  Cycle cycle() const { return cycle_; }
  // Takes a slot for the oldest record, which is complete at this cycle, and for those compacted into it.
  Cycle take(std::int64_t compacted, Cycle complete) {
    used_ += compacted;
    for (; used_ >= width_; used_ -= width_) ++cycle_;
    if (complete > cycle_) {
      cycle_ = complete;
      used_ = std::min(compacted, width_ - 1);
    }
    ++used_;
    return cycle_;
  }

 private:
  const std::int64_t width_;
  Cycle cycle_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace manyscale::cpu
