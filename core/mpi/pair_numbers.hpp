// SPDX-License-Identifier: Apache-2.0
// Counts messages of each pair of ranks, so that those which overtook others on their way can be put back in
// order.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/random.hpp"

namespace manyscale::mpi {

// A counter for each pair that was ever asked for: open addressing, nothing is ever removed.
class PairNumbers {
 public:
  // The counter of a rank of this node and a rank of the world.
  std::uint32_t& operator()(std::uint32_t here, std::uint32_t there) {
    const std::uint64_t key = (std::uint64_t{here} << 32 | there) + 1;
    if (2 * (size_ + 1) > entries_.size()) grow();
    Entry& entry = find(key);
    if (entry.key == 0) {
      entry.key = key;
      ++size_;
    }
    return entry.number;
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };

  Entry& find(std::uint64_t key) {
    std::size_t at = mix64(key) & (entries_.size() - 1);
    while (entries_[at].key != 0 && entries_[at].key != key) at = (at + 1) & (entries_.size() - 1);
    return entries_[at];
  }
  void grow() {
    std::vector<Entry> old(entries_.empty() ? 8 : entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.key != 0) find(entry.key) = entry;
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace manyscale::mpi
