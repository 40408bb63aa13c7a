// SPDX-License-Identifier: Apache-2.0
// Elastic timing: what a node of an elastic trace adds to its record. The instructions just before it were
// compacted into it: they are no records of their own, but take slots and entries of a core, and their
// latencies are the node's computational delays. An executed instruction has none of it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "cpu/stream/prediction.hpp"

namespace manyscale::cpu {

// The taken branches among the instructions compacted into a node, and how many instructions come after the
// last of them.
struct CompactedBranches {
  static constexpr std::uint8_t most = 15;  // of either
  std::uint8_t count : 4 = 0;
  std::uint8_t after : 4 = 0;
};

struct ElasticTiming {
  // Computational delays: cycles after the result of each producer, or after the node's own dispatch where
  // there is no such producer.
  std::array<std::uint8_t, 3> delays{};
  std::uint8_t weight = 0;         // instructions compacted into the node
  CompactedBranches branches{};    // among these
  std::uint8_t waiters = 0;        // compacted instructions that wait for its result in an issue queue
  std::uint8_t from_dispatch = 0;  // a bit per operand: the delay counts from the producer's dispatch
  Prediction prediction = Prediction::correct;  // of control: as recorded

  // The node's own instruction and those compacted into it.
  std::uint32_t instructions() const { return weight + 1u; }
  bool counts_from_dispatch(std::size_t operand) const { return (from_dispatch >> operand & 1) != 0; }
};
static_assert(sizeof(ElasticTiming) == 8);

// The numbers of waiters that a trace can hold; others are rounded down.
struct WaiterCounts {
  static constexpr std::array<std::uint8_t, 16> counts{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48};

  // The index of the largest that is not above a number.
  static std::uint8_t index(std::uint32_t waiters) {
    const auto above = std::upper_bound(counts.begin(), counts.end(), waiters);
    return static_cast<std::uint8_t>(above - counts.begin() - 1);
  }
  static std::uint8_t rounded(std::uint32_t waiters) { return counts[index(waiters)]; }
};

}  // namespace manyscale::cpu
