// SPDX-License-Identifier: Apache-2.0
// MIO queue of a sub-core: instructions of variable latency (memory, textures, shuffles, special functions
// and conversions) wait in it, in order, for the unit that they need. The address generation unit takes one
// every few cycles, the XU pipe as often as it is free. An instruction keeps its slot until it has read its
// operands. Leaves out: the queues behind it for local and global memory and for textures.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

// What an instruction waits for in the MIO queue.
enum class MioUnit : std::uint8_t { address, shuffle, xu, count };

class MioQueue {
 public:
  explicit MioQueue(const SmSpec& spec)
      : leaves_(static_cast<std::size_t>(spec.memory_queue), 0), held_(spec.timing.operand_read) {}

  // When a slot of the queue becomes free; not after `now` if one is.
  Cycle free_at() const { return leaves_[oldest_]; }
  // An instruction enters that keeps its unit for `interval` cycles; returns when the unit takes it.
  Cycle enter(Cycle now, MioUnit unit, Cycle interval) {
    Cycle& free = free_[static_cast<std::size_t>(unit)];
    const Cycle begin = std::max({now, last_, free});
    last_ = begin;
    free = begin + interval;
    return begin;
  }
  // What entered last is taken by what follows the unit at a cycle: its slot becomes free when its operands
  // are read.
  void leave(Cycle taken) {
    last_ = std::max(last_, taken);
    leaves_[oldest_] = taken + held_;
    oldest_ = (oldest_ + 1) % leaves_.size();
  }

 private:
  std::vector<Cycle> leaves_;  // when the slots become free, the oldest at oldest_
  std::size_t oldest_ = 0;
  std::array<Cycle, static_cast<std::size_t>(MioUnit::count)> free_{};
  Cycle held_;
  Cycle last_ = 0;  // when the last instruction was taken
};

}  // namespace manyscale::gpu
