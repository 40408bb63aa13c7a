// SPDX-License-Identifier: Apache-2.0
// Tells why a line missed: never seen before (cold), not even kept by a fully associative cache of the same
// size (capacity), or kept by that but not by this one (conflict). Runs such a cache beside the real one.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "memory/flat_map.hpp"

namespace manyscale::memory {

enum class MissCause : std::uint8_t { cold, capacity, conflict, coherence };

class MissClassifier {
 public:
  // Without `enabled` it keeps nothing and calls every miss cold.
  MissClassifier(std::uint32_t lines, std::int64_t line_size, bool enabled)
      : line_shift_(std::countr_zero(static_cast<std::uint64_t>(line_size))),
        entries_(enabled ? lines : 0),
        where_(enabled ? lines + 1 : 8) {}

  // Notes an access to a line, hit or miss, and says what a miss's cause would be.
  MissCause access(std::uint64_t line) {
    if (entries_.empty()) return MissCause::cold;
    if (line == last_) return MissCause::conflict;
    last_ = line;
    if (const std::uint32_t* found = where_.find(line)) {
      move_to_front(*found);
      return MissCause::conflict;
    }
    insert(line);
    return see(line) ? MissCause::capacity : MissCause::cold;
  }

 private:
  struct Entry {
    std::uint64_t line;
    std::uint32_t newer, older;
  };

  // Whether the line was seen before; it is now. A bit per line, 64 neighbours together.
  bool see(std::uint64_t line) {
    const std::uint64_t number = line >> line_shift_;
    std::uint64_t& group = seen_[number / 64];
    const std::uint64_t bit = std::uint64_t{1} << number % 64;
    const bool before = (group & bit) != 0;
    group |= bit;
    return before;
  }

  void unlink(std::uint32_t at) {
    const Entry& entry = entries_[at];
    (entry.newer == end ? newest_ : entries_[entry.newer].older) = entry.older;
    (entry.older == end ? oldest_ : entries_[entry.older].newer) = entry.newer;
  }
  void link_front(std::uint32_t at) {
    entries_[at].newer = end;
    entries_[at].older = newest_;
    (newest_ == end ? oldest_ : entries_[newest_].newer) = at;
    newest_ = at;
  }
  void move_to_front(std::uint32_t at) {
    if (at == newest_) return;
    unlink(at);
    link_front(at);
  }
  void insert(std::uint64_t line) {
    std::uint32_t at = used_;
    if (used_ < entries_.size()) {
      ++used_;
    } else {
      at = oldest_;
      unlink(at);
      where_.erase(entries_[at].line);
    }
    entries_[at].line = line;
    link_front(at);
    where_.insert_new(line, at);
  }

  static constexpr std::uint32_t end = ~0u;

  int line_shift_;
  std::vector<Entry> entries_;
  std::uint32_t used_ = 0;
  std::uint32_t newest_ = end, oldest_ = end;
  std::uint64_t last_ = ~std::uint64_t{0};
  FlatMap<std::uint32_t> where_;
  FlatMap<std::uint64_t> seen_;
};

}  // namespace manyscale::memory
