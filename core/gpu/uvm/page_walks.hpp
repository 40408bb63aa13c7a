// SPDX-License-Identifier: Apache-2.0
// Page walks of a memory management unit, and the TLB that all SMs share.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/time.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

// Several walkers that all take the same time for a walk: the one that is free first takes the next.
class PageWalkers {
 public:
  PageWalkers(std::int64_t walkers, Time latency)
      : free_(static_cast<std::size_t>(walkers)), latency_(latency) {}

  // When a walk that is asked for now ends.
  Time walk(Time now) {
    Time& free = free_[next_];
    next_ = next_ + 1 == free_.size() ? 0 : next_ + 1;
    free = std::max(free, now) + latency_;
    return free;
  }

 private:
  std::vector<Time> free_;  // by walker: from when on; in the order of walks they only grow
  std::size_t next_ = 0;
  Time latency_;
};

// Fully associative; the least recently used page makes room.
class SharedTlb {
 public:
  explicit SharedTlb(std::int64_t entries) : entries_(static_cast<std::uint32_t>(entries)) {}

  void grow(PageIndex pages) {
    if (entries_ != 0) order_.grow(pages);
  }
  bool look_up(PageIndex page) {
    if (entries_ == 0 || !order_.contains(page)) return false;
    order_.use(page);
    return true;
  }
  void fill(PageIndex page) {
    if (entries_ == 0) return;
    order_.use(page);
    if (order_.size() > entries_) order_.remove(order_.oldest());
  }
  void drop(PageIndex page) {
    if (entries_ != 0) order_.remove(page);
  }
  void clear() {
    while (order_.size() != 0) order_.remove(order_.oldest());
  }

 private:
  std::uint32_t entries_;
  RecencyOrder order_;
};

}  // namespace manyscale::gpu
