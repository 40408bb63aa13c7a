// SPDX-License-Identifier: Apache-2.0
// The far-fault MSHRs of a memory management unit: translations that wait for pages to come.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/uvm/pool.hpp"
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

// A translation on its way through the memory management unit.
struct Lookup {
  PageIndex page = 0;
  std::uint32_t tag = 0;
  std::uint32_t lane = 0;  // of the SM
  bool write = false;
  bool replayed = false;     // it waited for the page, which is pinned for it
  std::uint8_t sectors = 0;  // of a remote access; 0: a translation
  Time since = 0;            // when the SM asked
};

// One entry for each page that somebody waits for; lookups of the same page share it.
class FarFaults {
 public:
  std::uint32_t open_pages() const { return open_pages_; }
  std::size_t waiting() const { return waiters_.size(); }

  void wait(Page& page, const Lookup& lookup) {
    if (page.first_waiter == kNone) ++open_pages_;
    page.first_waiter = waiters_.add({lookup, page.first_waiter});
  }
  bool has_writer(const Page& page) const {
    for (std::uint32_t i = page.first_waiter; i != kNone; i = waiters_[i].next)
      if (waiters_[i].lookup.write) return true;
    return false;
  }
  // Hands out all lookups that wait for a page, in the order in which they came, and forgets them.
  template <class Take>
  void release(Page& page, Take&& take) {
    if (page.first_waiter == kNone) return;
    order_.clear();
    for (std::uint32_t i = page.first_waiter; i != kNone; i = waiters_[i].next) order_.push_back(i);
    page.first_waiter = kNone;
    --open_pages_;
    for (auto i = order_.rbegin(); i != order_.rend(); ++i) take(waiters_.take(*i).lookup);
  }

 private:
  struct Waiter {
    Lookup lookup;
    std::uint32_t next = kNone;
  };
  Pool<Waiter> waiters_;
  std::vector<std::uint32_t> order_;
  std::uint32_t open_pages_ = 0;
};

}  // namespace manyscale::gpu
