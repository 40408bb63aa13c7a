// SPDX-License-Identifier: Apache-2.0
// Wait log: for the critical path, the last so many waits of each rank of a node, in a ring for each.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::mpi {

// A rank stood still until a message came.
struct Release {
  Time end = 0;            // of the wait
  Time sent = 0;           // when the message was begun to be sent
  std::uint32_t peer = 0;  // who sent it
  std::uint32_t operation = 0;
};

class WaitLog {
 public:
  // `kept` of each of `ranks`; takes memory with the first wait.
  void add(std::uint32_t rank, const Release& release, std::size_t ranks, std::uint32_t kept) {
    if (releases_.empty()) {
      releases_.resize(ranks * kept);
      counts_.resize(ranks);
    }
    releases_[std::size_t{rank} * kept + counts_[rank]++ % kept] = release;
  }
  // How many waits a rank had, those that are no longer kept among them.
  std::uint32_t count(std::uint32_t rank) const { return counts_.empty() ? 0 : counts_[rank]; }
  // Those that are kept, the last first.
  std::vector<Release> releases(std::uint32_t rank, std::uint32_t kept) const {
    std::vector<Release> result;
    const std::uint32_t count = this->count(rank);
    for (std::uint32_t i = 1; i <= std::min(count, kept); ++i)
      result.push_back(releases_[std::size_t{rank} * kept + (count - i) % kept]);
    return result;
  }

 private:
  std::vector<Release> releases_;      // [rank][wait]
  std::vector<std::uint32_t> counts_;  // [rank]
};

}  // namespace manyscale::mpi
