// SPDX-License-Identifier: Apache-2.0
// Record ring: the buffer of records between a stream source and one core, filled by one and drained by the
// other. They may run on different host threads: each accesses only its own slots, and slots change hands by
// messages (stream_protocol.hpp), which the engine orders.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "cpu/stream/elastic_timing.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

class RecordRing {
 public:
  enum class Contents : std::uint8_t {
    executed,  // executed instructions: the elastic timing of all of them is empty
    replayed,  // nodes of a trace
  };

  // Holds at least this many records.
  explicit RecordRing(std::size_t capacity, Contents contents = Contents::executed)
      : records_(std::bit_ceil(capacity)),
        mask_(records_.size() - 1),
        timings_(contents == Contents::replayed ? records_.size() : 1),
        timing_mask_(timings_.size() - 1) {}

  std::size_t capacity() const { return records_.size(); }
  // Records are numbered from 0 over the whole run; number n and n + capacity() share a slot.
  Record& operator[](std::uint64_t number) { return records_[number & mask_]; }
  const Record& operator[](std::uint64_t number) const { return records_[number & mask_]; }

  // What a trace adds to a record. To be written in a ring of replayed nodes only.
  ElasticTiming& timing(std::uint64_t number) { return timings_[number & timing_mask_]; }
  const ElasticTiming& timing(std::uint64_t number) const { return timings_[number & timing_mask_]; }

 private:
  std::vector<Record> records_;
  std::uint64_t mask_;
  std::vector<ElasticTiming> timings_;  // one for all records of executed instructions
  std::uint64_t timing_mask_;
};

}  // namespace manyscale::cpu
