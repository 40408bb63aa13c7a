// SPDX-License-Identifier: Apache-2.0
// Memory queue of a sub-core: memory instructions wait in it for the address generation unit, which takes one
// in every so many cycles. Leaves out: that Volta's MIO queue holds shuffles, MUFU and textures too.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

class MemoryQueue {
 public:
  explicit MemoryQueue(const SmSpec& spec)
      : leaves_(static_cast<std::size_t>(spec.memory_queue), 0), interval_(spec.address_interval) {}

  // When a slot of the queue becomes free; not after `now` if one is.
  Cycle free_at() const { return leaves_[oldest_]; }
  // An instruction enters; returns when it has passed address generation.
  Cycle enter(Cycle now) {
    const Cycle begin = std::max(now, address_free_);
    address_free_ = begin + interval_;
    leaves_[oldest_] = begin + 1;
    oldest_ = (oldest_ + 1) % leaves_.size();
    return begin;
  }

 private:
  std::vector<Cycle> leaves_;  // when the last memory instructions leave it, the oldest at oldest_
  std::size_t oldest_ = 0;
  Cycle interval_;
  Cycle address_free_ = 0;
};

}  // namespace manyscale::gpu
