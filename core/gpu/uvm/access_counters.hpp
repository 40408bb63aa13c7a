// SPDX-License-Identifier: Apache-2.0
// Access counters: accesses of the device to each chunk of 64 KiB and its round trips between host and
// device, for the decision on remote accesses (Ganguly et al., IPDPS 2020).
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/uvm/managed_ranges.hpp"

namespace manyscale::gpu {

// Registers of 32 bits: 27 count accesses, 5 count round trips. When a counter is full, all counters of its
// kind are halved.
class AccessCounters {
 public:
  void grow(ChunkIndex chunks) { chunks_.resize(chunks); }
  void forget(ChunkIndex chunk) { chunks_[chunk] = {}; }
  std::uint32_t accesses(ChunkIndex chunk) const { return chunks_[chunk].accesses; }
  std::uint32_t round_trips(ChunkIndex chunk) const { return chunks_[chunk].trips; }

  void count(ChunkIndex chunk, std::uint32_t accesses) {
    std::uint64_t sum = std::uint64_t{chunks_[chunk].accesses} + accesses;
    if (sum > kMostAccesses) {
      for (Chunk& other : chunks_) other.accesses /= 2;
      sum = std::min<std::uint64_t>(std::uint64_t{chunks_[chunk].accesses} + accesses, kMostAccesses);
    }
    chunks_[chunk].accesses = static_cast<std::uint32_t>(sum) & kMostAccesses;
  }
  void count_round_trip(ChunkIndex chunk) {
    if (chunks_[chunk].trips == kMostTrips)
      for (Chunk& other : chunks_) other.trips /= 2;
    ++chunks_[chunk].trips;
  }

 private:
  static constexpr std::uint32_t kMostAccesses = (1u << 27) - 1;
  static constexpr std::uint32_t kMostTrips = (1u << 5) - 1;

  struct Chunk {
    std::uint32_t accesses : 27 = 0;
    std::uint32_t trips : 5 = 0;
  };
  std::vector<Chunk> chunks_;
};

}  // namespace manyscale::gpu
