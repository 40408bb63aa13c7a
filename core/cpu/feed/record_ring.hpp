// SPDX-License-Identifier: Apache-2.0
// The records of one core between the feed that makes them and the core that takes them: a ring, filled by
// one and emptied by the other. They may run on different host threads: each only touches its own part of the
// ring, and what is whose is told by messages (feed_protocol.hpp), which the engine orders.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "cpu/record.hpp"

namespace manyscale::cpu {

class RecordRing {
 public:
  // Holds at least this many records.
  explicit RecordRing(std::size_t capacity) : records_(std::bit_ceil(capacity)), mask_(records_.size() - 1) {}

  std::size_t capacity() const { return records_.size(); }
  // Records are numbered from 0 over the whole run; number n and n + capacity() share a place.
  Record& operator[](std::uint64_t number) { return records_[number & mask_]; }
  const Record& operator[](std::uint64_t number) const { return records_[number & mask_]; }

 private:
  std::vector<Record> records_;
  std::uint64_t mask_;
};

}  // namespace manyscale::cpu
