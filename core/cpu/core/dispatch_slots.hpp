// SPDX-License-Identifier: Apache-2.0
// Dispatch slots: the cycle in which the last record was dispatched, and how many of its slots are taken. The
// instructions compacted into a replayed node take slots between the record before and it.
#pragma once
#include <cstdint>

#include "engine/time.hpp"

namespace manyscale::cpu {

class DispatchSlots {
 public:
  explicit DispatchSlots(std::int64_t width) : width_(width) {}

  // The first slot that the width leaves for a record behind so many compacted instructions.
  struct Slot {
    Cycle cycle = 0;
    std::int64_t used = 0;  // slots of the cycle before it
    Cycle compacted = 0;    // the cycle of the last instruction compacted into it
  };

  Cycle cycle() const { return cycle_; }
  Slot next(std::int64_t compacted) const {
    Slot slot{cycle_, used_ + compacted, cycle_};
    for (; slot.used >= width_; slot.used -= width_) ++slot.cycle;
    if (compacted > 0) slot.compacted = slot.cycle;
    return slot;
  }
  // A record is dispatched behind so many others of this cycle.
  void take(Cycle cycle, std::int64_t used) {
    cycle_ = cycle;
    used_ = used + 1;
  }

 private:
  const std::int64_t width_;
  Cycle cycle_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace manyscale::cpu
