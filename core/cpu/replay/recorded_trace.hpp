// SPDX-License-Identifier: Apache-2.0
// A recorded trace as its replay needs it: which streams there are, who takes part in which parallel region,
// and where the blocks come from.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cpu/trace/recorder.hpp"

namespace manyscale::cpu {

struct RecordedTrace {
  std::vector<StreamInfo> streams{};
  std::vector<TeamInfo> teams{};       // by the object of sync nodes
  std::vector<SharedRange> shared{};   // what copies of a thread have in common; in any order
  std::vector<std::string> regions{};  // names by number, for messages; may be empty
  int slower_hits = 0;  // cycles that a hit of the first-level cache takes longer than where it was recorded
  // The bytes of a block of a stream. Called by whoever runs the source.
  std::function<std::vector<std::uint8_t>(std::uint32_t stream, std::uint32_t block)> block{};
};

// Which core a task is to be executed on.
struct TaskAssignment {
  std::uint64_t task = 0;  // its number
  std::uint32_t core = 0;  // within a copy
};

}  // namespace manyscale::cpu
