// SPDX-License-Identifier: Apache-2.0
// Recorded trace: the streams of a trace, the teams of its parallel regions, its shared data, and a function
// that reads its blocks. It holds no nodes.
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
  int slower_hits = 0;  // further cycles of an L1 hit, compared with the machine of the recording
  // The bytes of a block of a stream. Called by the host thread of the source.
  std::function<std::vector<std::uint8_t>(std::uint32_t stream, std::uint32_t block)> block{};
};

// The core that a task is to be executed on.
struct TaskAssignment {
  std::uint64_t task = 0;  // its number
  std::uint32_t core = 0;  // within a copy
};

}  // namespace manyscale::cpu
