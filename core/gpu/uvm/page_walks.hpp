// SPDX-License-Identifier: Apache-2.0
// Page walkers and L2 TLB of a GMMU.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/time.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

// Walkers of equal latency; the one that is free first takes the next walk.
class PageWalkers {
 public:
  PageWalkers(std::int64_t walkers, Time latency)
      : free_(static_cast<std::size_t>(walkers)), latency_(latency) {}

  // When a walk that is requested now ends.
  Time walk(Time now) {
    Time& free = free_[next_];
    next_ = next_ + 1 == free_.size() ? 0 : next_ + 1;
    free = std::max(free, now) + latency_;
    return free;
  }

 private:
  std::vector<Time> free_;  // by walker: from when on; ascending in the order of walks
  std::size_t next_ = 0;
  Time latency_;
};

// L2 TLB that the SMs share. Fully associative, with LRU replacement.
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
