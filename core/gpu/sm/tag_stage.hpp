// SPDX-License-Identifier: Apache-2.0
// Tag stage of the L1 (t-stage): resolves the lines of one instruction after the other, the first in a cycle
// and then some more in each. The caller says when an instruction is there; lines follow each other in its
// order.
#pragma once
#include <algorithm>

#include "engine/clock.hpp"

namespace manyscale::gpu {

class TagStage {
 public:
  explicit TagStage(std::int64_t lines_per_cycle) : rate_(lines_per_cycle) {}

  // An instruction with `lines` lines is there at `ready`; returns when its first line is looked up. It keeps
  // the stage for 1 + (lines - 1) / rate cycles, and fractions add up.
  Cycle enter(Cycle ready, unsigned lines) {
    begin_ = std::max(ready * rate_, free_);
    free_ = begin_ + rate_ + lines - 1;
    return begin_ / rate_;
  }
  // When a line of the instruction that entered last is looked up.
  Cycle look_up(unsigned line) const { return (begin_ + line) / rate_; }
  // The cycle in which a further instruction can enter.
  Cycle free_at() const { return free_ / rate_; }

 private:
  Cycle rate_;
  Cycle begin_ = 0;  // in parts of a cycle: `rate_` of them
  Cycle free_ = 0;   // as begin_
};

}  // namespace manyscale::gpu
