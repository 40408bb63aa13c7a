// SPDX-License-Identifier: Apache-2.0
// Who caused what a part of a memory system counts: the same counters for each origin of messages.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/statistics.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

// Adds counters to others of the same kind.
template <class Counts>
void add_counts(Counts& to, const Counts& from) {
  for_each_field<Counts>([&](const auto& field) { to.*(field.member) += (from.*(field.member)).value(); });
}

// Counters of each origin, side by side; their sum is what the component has counted in all. An origin's
// counters can be taken, which starts them at zero for the next that has its number.
template <class Counts>
class Attributed {
 public:
  Counts& operator[](Origin origin) { return entry(origin).counts; }

  // Something was begun for an origin that is yet to be counted, though nobody waits for it; or it was ended.
  void begin(Origin origin) { ++entry(origin).in_flight; }
  void end(Origin origin) { --entry(origin).in_flight; }
  bool idle(Origin origin) const { return origin >= entries_.size() || entries_[origin].in_flight == 0; }

  Counts of(Origin origin) const { return origin < entries_.size() ? entries_[origin].counts : Counts{}; }
  Counts take(Origin origin) {
    if (origin >= entries_.size()) return {};
    const Counts counts = std::exchange(entries_[origin].counts, {});
    add_counts(taken_, counts);
    return counts;
  }
  Counts total() const {
    Counts sum = taken_;
    for (const Entry& entry : entries_) add_counts(sum, entry.counts);
    return sum;
  }

 private:
  struct alignas(64) Entry {  // of whole lines of the host's caches
    Counts counts;
    std::int64_t in_flight = 0;
  };

  Entry& entry(Origin origin) {
    if (origin >= entries_.size()) [[unlikely]]
      entries_.resize(std::size_t{origin} + 1);
    return entries_[origin];
  }

  std::vector<Entry> entries_{1};  // by origin
  Counts taken_;
};

}  // namespace manyscale::memory
