// SPDX-License-Identifier: Apache-2.0
// The reorder buffer as far as dispatch sees it: from when on it has entries for a record and for the
// instructions compacted into a replayed node.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/core/cycle_map.hpp"
#include "cpu/core/window.hpp"

namespace manyscale::cpu {

class ReorderBuffer {
 public:
  ReorderBuffer(std::int64_t entries, std::int64_t dispatch_width)
      : entries_(static_cast<std::uint64_t>(entries)), dispatch_width_(dispatch_width) {}

  // The first cycle at which there are entries for a record, which will be the operation `next` of the
  // window; unknown if that depends on what has not committed.
  Cycle earliest(const ElasticTiming& timing, const Window& window, std::uint64_t next) {
    const std::uint64_t end = taken_ + timing.instructions();
    while (oldest_ < next && end - window[oldest_].reorder_entry > entries_) {
      const Operation& oldest = window[oldest_];
      if (oldest.committed == unknown) return unknown;
      // Compacted instructions enter as entries become free; the rest of them follows at full width.
      const std::uint64_t behind = end - 1 - oldest.reorder_entry - entries_;
      const Cycle rest = behind == 0 ? 0 : static_cast<Cycle>(behind) / dispatch_width_;
      free_from_ = std::max(free_from_, oldest.committed + rest);
      ++oldest_;
    }
    return free_from_;
  }
  // Takes the entries of a record; gives the number of the entry that stands for them. Compacted instructions
  // commit before their record, on average half of them by then.
  std::uint64_t take(const ElasticTiming& timing) {
    const std::uint64_t entry = taken_ + timing.weight / 2;
    taken_ += timing.instructions();
    return entry;
  }

 private:
  const std::uint64_t entries_;
  const std::int64_t dispatch_width_;
  std::uint64_t taken_ = 0;   // so far
  std::uint64_t oldest_ = 0;  // the operation whose entries are needed next
  Cycle free_from_ = 0;
};

}  // namespace manyscale::cpu
