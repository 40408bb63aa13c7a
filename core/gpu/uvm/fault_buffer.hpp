// SPDX-License-Identifier: Apache-2.0
// The fault buffer: a ring in memory that the GMMU writes page faults to and the UVM driver reads them from.
// Leaves out: its capacity, which the translations that wait bound: each has at most one entry, since a
// replay withdraws those that are not written yet.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>

#include "engine/time.hpp"
#include "gpu/uvm/managed_ranges.hpp"

namespace manyscale::gpu {

class FaultBuffer {
 public:
  // Whether further faults of a page that is in the buffer are merged with its first one. The driver sets it
  // before the first fault.
  bool merges() const { return merges_; }
  void set_merges(bool merges) { merges_ = merges; }

  // Writes a fault; consecutive entries are visible to the driver at least an interval apart.
  void write(PageIndex page, Time now, Time interval) {
    last_written_ = std::max(now, last_written_ + interval);
    entries_.push_back({page, last_written_});
  }

  bool empty() const { return entries_.empty(); }
  // When the driver can read the first entry.
  Time first_written() const { return entries_.front().written; }
  PageIndex first_page() const { return entries_.front().page; }
  void pop() { entries_.pop_front(); }
  // Entries that the driver can read now.
  std::size_t visible(Time now) const {
    std::size_t count = 0;
    while (count < entries_.size() && entries_[count].written <= now) ++count;
    return count;
  }
  // Takes back what is not written yet: the GMMU writes it again if the replayed translation faults again.
  void withdraw(Time now) {
    while (!entries_.empty() && entries_.back().written > now) entries_.pop_back();
    last_written_ = std::min(last_written_, now);
  }
  // Drops the first entries without service.
  void drop(std::size_t count) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  struct Entry {
    PageIndex page = 0;
    Time written = 0;
  };
  std::deque<Entry> entries_;
  Time last_written_ = 0;
  bool merges_ = false;
};

}  // namespace manyscale::gpu
