// SPDX-License-Identifier: Apache-2.0
// Far-fault MSHRs of a GMMU: the translations that wait for a page to migrate to the device.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/time.hpp"
#include "gpu/uvm/managed_ranges.hpp"
#include "gpu/uvm/pool.hpp"

namespace manyscale::gpu {

// An outstanding translation of the GMMU.
struct Lookup {
  PageIndex page = 0;
  std::uint32_t tag = 0;
  std::uint32_t lane = 0;  // of the SM
  bool write = false;
  bool replayed = false;     // it waited for the page, which is pinned for it
  std::uint8_t sectors = 0;  // of a remote access; 0: a translation
  Time since = 0;            // when the SM requested it
};

// One MSHR for each page with waiting translations; translations of the same page share it.
class FaultMshrs {
 public:
  void grow(PageIndex pages) { first_.resize(pages, kNone); }
  std::uint32_t open_pages() const { return open_pages_; }
  std::size_t waiting() const { return waiters_.size(); }
  bool has(PageIndex page) const { return first_[page] != kNone; }

  void wait(const Lookup& lookup) {
    std::uint32_t& first = first_[lookup.page];
    if (first == kNone) ++open_pages_;
    first = waiters_.add({lookup, first});
  }
  // Hands out all translations that wait for a page, in the order of their arrival, and frees the MSHR.
  template <class Take>
  void release(PageIndex page, Take&& take) {
    if (first_[page] == kNone) return;
    order_.clear();
    for (std::uint32_t i = first_[page]; i != kNone; i = waiters_[i].next) order_.push_back(i);
    first_[page] = kNone;
    --open_pages_;
    for (auto i = order_.rbegin(); i != order_.rend(); ++i) take(waiters_.take(*i).lookup);
  }

 private:
  struct Waiter {
    Lookup lookup;
    std::uint32_t next = kNone;
  };
  Pool<Waiter> waiters_;
  std::vector<std::uint32_t> first_;  // waiter, by page
  std::vector<std::uint32_t> order_;
  std::uint32_t open_pages_ = 0;
};

}  // namespace manyscale::gpu
