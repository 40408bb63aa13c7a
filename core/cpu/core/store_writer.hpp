// SPDX-License-Identifier: Apache-2.0
// Store writer: in which cycle each committed store is written to the L1 cache, in program order. Limits are
// the stores written in a cycle and the outstanding ones. The core makes the accesses; a store that crosses a
// line has two parts.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/core/core_spec.hpp"
#include "cpu/core/cycle_map.hpp"

namespace manyscale::cpu {

class StoreWriter {
 public:
  explicit StoreWriter(const CoreSpec& spec)
      : per_cycle_(spec.stores_per_cycle), most_outstanding_(spec.outstanding_stores) {}

  void commit() { ++committed_; }
  // The number of the next store to be written, and whether it may be now.
  std::uint64_t next() const { return next_; }
  bool may_write() const { return next_ < committed_ && !blocked_ && outstanding_ < most_outstanding_; }
  // The first cycle for a store that committed at this one, not before `earliest`.
  Cycle cycle_for(Cycle committed, Cycle earliest) const {
    const Cycle when = std::max({committed + 1, cycle_, earliest});
    return when == cycle_ && in_cycle_ >= per_cycle_ ? when + 1 : when;
  }
  // All parts of the next store were accepted in this cycle.
  void take(Cycle cycle) {
    in_cycle_ = (cycle == cycle_ ? in_cycle_ : 0) + 1;
    cycle_ = cycle;
    part_ = 0;
    ++next_;
  }

  // The part of the next store that is to be written next: those before it were accepted.
  std::uint32_t part() const { return part_; }
  void accept_part() { ++part_; }
  // The caches accept no store until they are unblocked.
  void block() { blocked_ = true; }
  void unblock() { blocked_ = false; }

  void begin_miss() { ++outstanding_; }
  void end_miss() { --outstanding_; }

 private:
  const std::int64_t per_cycle_, most_outstanding_;
  std::uint64_t committed_ = 0, next_ = 0;
  std::int64_t outstanding_ = 0;
  Cycle cycle_ = 0;
  std::int64_t in_cycle_ = 0;
  std::uint32_t part_ = 0;
  bool blocked_ = false;
};

}  // namespace manyscale::cpu
