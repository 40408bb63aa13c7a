// SPDX-License-Identifier: Apache-2.0
// What the recorder knows of a thread that it records: where its instructions went, and what it is in.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/core/branch_predictor.hpp"
#include "cpu/stream/region_table.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu::recording {

inline constexpr std::uint32_t none = ~0u;  // no stream, or no region
// Producers further back than this cannot matter.
inline constexpr std::uint64_t positions_kept = 4096;

// Something that a thread has entered and not yet left.
struct Frame {
  enum class Role : std::uint8_t {
    plain,    // changes nothing about what is recorded
    team,     // a parallel region
    task,     // a task's body
    runtime,  // the runtime at work: left out
  };
  Role role = Role::plain;
  RegionKind kind = RegionKind::user;
  std::uint32_t region = none;
  std::uint32_t stream = none;  // where records go, unless they are left out
  bool left_out = false;
  bool awaits_body = false;                  // the master forms the team until the region's function begins
  bool joined = false;                       // of team
  bool master = false;                       // of team
  std::uint64_t subject = 0;                 // of team and task: its number; of others: the lock
  SyncKind sync = SyncKind::system_call;     // whose cost the runtime's instructions are
  std::uint64_t instructions = 0;            // left out
  std::uint64_t system_calls = 0;            // left out
  std::optional<std::uint64_t> idle_from{};  // instructions when the last task that it executed ended
  std::uint32_t marked = none;               // the stream that its beginning was marked in
};

// What an instruction of a thread became.
struct StreamPosition {
  std::uint32_t stream = none;
  std::uint64_t position = 0;
};

struct RecordedThread {
  RecordedThread(const BranchSpec& branch, std::uint16_t number_, std::uint32_t process_, bool recorded_)
      : predictor(branch),
        positions(positions_kept),
        number(number_),
        process(process_),
        recorded(recorded_) {}

  BranchPredictor predictor;
  std::vector<StreamPosition> positions;
  std::vector<Frame> frames;           // innermost last
  std::vector<std::uint64_t> markers;  // that came before its next record
  std::uint64_t executed = 0;
  std::uint16_t number;
  std::uint32_t process;
  bool recorded;  // also outside of parallel regions: the first of its process, and those that it made itself
  std::uint32_t stream = none;
  // Of the last instruction that was recorded.
  std::uint64_t code_line = ~std::uint64_t{0};
  std::uint32_t code_stream = none;
};

}  // namespace manyscale::cpu::recording
